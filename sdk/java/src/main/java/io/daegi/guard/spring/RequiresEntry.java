package io.daegi.guard.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Only users admitted by the waiting room reach this handler, or the handlers of this controller. A parameter of type {@link
 * io.daegi.guard.Entry} receives the entry.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.TYPE})
public @interface RequiresEntry {
    /** The item, or the path variable that names it, such as <code>"{itemId}"</code>. */
    String value();

    /** Completes the entry after each successful response (2xx), so that daegi can admit the next user. */
    boolean completeOnSuccess() default false;
}
