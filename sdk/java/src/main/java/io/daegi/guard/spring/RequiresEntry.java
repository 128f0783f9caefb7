package io.daegi.guard.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Only people whom the waiting room let in reach this handler, or those of this controller. A parameter of type {@link
 * io.daegi.guard.Entry} says who came.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.TYPE})
public @interface RequiresEntry {
    /** The item, or the path variable that names it, such as <code>"{itemId}"</code>. */
    String value();

    /** Completes the entry after every good answer (2xx), so that the next person is let in. */
    boolean completes() default false;
}
