package io.daegi.guard.spring;

import io.daegi.guard.Guard;
import io.daegi.guard.servlet.Gate;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Map;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.HandlerInterceptor;
import org.springframework.web.servlet.HandlerMapping;

/** Does what {@link RequiresEntry} says. */
public final class RequiresEntryInterceptor implements HandlerInterceptor {
    private final Gate gate;

    /** An interceptor with this guard. */
    public RequiresEntryInterceptor(Guard guard) {
        this.gate = new Gate(guard);
    }

    @Override
    public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler)
            throws IOException {
        RequiresEntry required = required(handler);
        return required == null || gate.admits(item(required, request), request, response);
    }

    @Override
    public void afterCompletion(
            HttpServletRequest request, HttpServletResponse response, Object handler, Exception error) {
        RequiresEntry required = required(handler);
        if (required != null && required.completes() && error == null) {
            gate.completeIfWell(request, response);
        }
    }

    /** What is said at the method, or else at its class. */
    private static RequiresEntry required(Object handler) {
        if (!(handler instanceof HandlerMethod method)) {
            return null;
        }
        RequiresEntry own = method.getMethodAnnotation(RequiresEntry.class);
        return own != null
                ? own
                : AnnotatedElementUtils.findMergedAnnotation(method.getBeanType(), RequiresEntry.class);
    }

    private static String item(RequiresEntry required, HttpServletRequest request) {
        String item = required.value();
        if (!item.startsWith("{") || !item.endsWith("}")) {
            return item;
        }
        String name = item.substring(1, item.length() - 1);
        Object variables = request.getAttribute(HandlerMapping.URI_TEMPLATE_VARIABLES_ATTRIBUTE);
        return variables instanceof Map<?, ?> map && map.get(name) instanceof String value ? value : null;
    }
}
