package io.daegi.guard.spring;

import io.daegi.guard.Guard;
import io.daegi.guard.servlet.RequestGuard;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Map;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.HandlerInterceptor;
import org.springframework.web.servlet.HandlerMapping;

/** Implements {@link RequiresEntry}. */
public final class RequiresEntryInterceptor implements HandlerInterceptor {
    private final RequestGuard requestGuard;

    /** Creates an interceptor with this guard. */
    public RequiresEntryInterceptor(Guard guard) {
        this.requestGuard = new RequestGuard(guard);
    }

    @Override
    public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler)
            throws IOException {
        RequiresEntry required = required(handler);
        return required == null || requestGuard.authorize(item(required, request), request, response);
    }

    @Override
    public void afterCompletion(
            HttpServletRequest request, HttpServletResponse response, Object handler, Exception error) {
        RequiresEntry required = required(handler);
        if (required != null && required.completeOnSuccess() && error == null) {
            requestGuard.completeOnSuccess(request, response);
        }
    }

    /** Returns the annotation of the method, or else of its class. */
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
