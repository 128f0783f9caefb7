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

/** Protects everything behind it. Handlers learn who came from {@link Gate#entryOf}. */
public final class GuardFilter implements Filter {
    private final Gate gate;
    private final Function<HttpServletRequest, String> item;
    private final boolean completes;

    private GuardFilter(Gate gate, Function<HttpServletRequest, String> item, boolean completes) {
        this.gate = gate;
        this.item = item;
        this.completes = completes;
    }

    /** Protects routes that belong to one item. */
    public GuardFilter(Guard guard, String item) {
        this(guard, request -> item);
    }

    /** Protects routes whose item is part of the request. */
    public GuardFilter(Guard guard, Function<HttpServletRequest, String> item) {
        this(new Gate(guard), item, false);
    }

    /** The same, but it completes the entry after every good answer (2xx). */
    public GuardFilter completing() {
        return new GuardFilter(gate, item, true);
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        HttpServletRequest asked = (HttpServletRequest) request;
        HttpServletResponse answer = (HttpServletResponse) response;
        if (!gate.admits(item.apply(asked), asked, answer)) {
            return;
        }
        chain.doFilter(request, response);
        if (!completes) {
            return;
        }
        if (request.isAsyncStarted()) {
            request.getAsyncContext().addListener(new AtTheEnd(asked, answer));
        } else {
            gate.completeIfWell(asked, answer);
        }
    }

    /** The answer of an asynchronous request is known later. */
    private final class AtTheEnd implements AsyncListener {
        private final HttpServletRequest request;
        private final HttpServletResponse response;

        AtTheEnd(HttpServletRequest request, HttpServletResponse response) {
            this.request = request;
            this.response = response;
        }

        @Override
        public void onComplete(AsyncEvent event) {
            gate.completeIfWell(request, response);
        }

        @Override
        public void onTimeout(AsyncEvent event) {}

        @Override
        public void onError(AsyncEvent event) {}

        @Override
        public void onStartAsync(AsyncEvent event) {}
    }
}
