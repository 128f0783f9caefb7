package io.daegi.guard.spring;

import io.daegi.guard.Entry;
import io.daegi.guard.Guard;
import io.daegi.guard.servlet.RequestGuard;
import jakarta.servlet.http.HttpServletRequest;
import java.util.List;
import org.springframework.core.MethodParameter;
import org.springframework.web.bind.support.WebDataBinderFactory;
import org.springframework.web.context.request.NativeWebRequest;
import org.springframework.web.method.support.HandlerMethodArgumentResolver;
import org.springframework.web.method.support.ModelAndViewContainer;
import org.springframework.web.servlet.config.annotation.InterceptorRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;

/** A bean of this class enables {@link RequiresEntry} and parameters of type {@link Entry}. */
public final class GuardConfigurer implements WebMvcConfigurer {
    private final Guard guard;

    /** Creates a configurer with this guard. */
    public GuardConfigurer(Guard guard) {
        this.guard = guard;
    }

    @Override
    public void addInterceptors(InterceptorRegistry registry) {
        registry.addInterceptor(new RequiresEntryInterceptor(guard));
    }

    @Override
    public void addArgumentResolvers(List<HandlerMethodArgumentResolver> resolvers) {
        resolvers.add(new EntryResolver());
    }

    private static final class EntryResolver implements HandlerMethodArgumentResolver {
        @Override
        public boolean supportsParameter(MethodParameter parameter) {
            return parameter.getParameterType() == Entry.class;
        }

        @Override
        public Object resolveArgument(
                MethodParameter parameter,
                ModelAndViewContainer container,
                NativeWebRequest request,
                WebDataBinderFactory binder) {
            return RequestGuard.entryOf(request.getNativeRequest(HttpServletRequest.class));
        }
    }
}
