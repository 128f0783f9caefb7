package io.daegi.guard.servlet;

import io.daegi.guard.Guard;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.function.Function;

/** Refuses requests without a valid pass. Handlers get the entry from {@link RequestGuard#entryOf}. */
public final class GuardFilter implements Filter {
    private final RequestGuard requestGuard;
    private final Function<HttpServletRequest, String> item;
    private final boolean completeOnSuccess;

    private GuardFilter(RequestGuard requestGuard, Function<HttpServletRequest, String> item, boolean completeOnSuccess) {
        this.requestGuard = requestGuard;
        this.item = item;
        this.completeOnSuccess = completeOnSuccess;
    }

    /** Protects routes of one item. */
    public GuardFilter(Guard guard, String item) {
        this(guard, request -> item);
    }

    /** Protects routes whose item is taken from the request. */
    public GuardFilter(Guard guard, Function<HttpServletRequest, String> item) {
        this(new RequestGuard(guard), item, false);
    }

    /** Returns a filter that also completes the entry after each successful response (2xx). */
    public GuardFilter completeOnSuccess() {
        return new GuardFilter(requestGuard, item, true);
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        HttpServletRequest httpRequest = (HttpServletRequest) request;
        HttpServletResponse httpResponse = (HttpServletResponse) response;
        if (!requestGuard.authorize(item.apply(httpRequest), httpRequest, httpResponse)) {
            return;
        }
        chain.doFilter(request, response);
        if (!completeOnSuccess) {
            return;
        }
        if (request.isAsyncStarted()) {
            request.getAsyncContext().addListener(new CompletionListener(httpRequest, httpResponse));
        } else {
            requestGuard.completeOnSuccess(httpRequest, httpResponse);
        }
    }

    /** Completes the entry when an asynchronous request has finished. */
    private final class CompletionListener implements AsyncListener {
        private final HttpServletRequest request;
        private final HttpServletResponse response;

        CompletionListener(HttpServletRequest request, HttpServletResponse response) {
            this.request = request;
            this.response = response;
        }

        @Override
        public void onComplete(AsyncEvent event) {
            requestGuard.completeOnSuccess(request, response);
        }

        @Override
        public void onTimeout(AsyncEvent event) {}

        @Override
        public void onError(AsyncEvent event) {}

        @Override
        public void onStartAsync(AsyncEvent event) {}
    }
}
