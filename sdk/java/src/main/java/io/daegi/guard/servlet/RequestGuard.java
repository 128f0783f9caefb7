package io.daegi.guard.servlet;

import io.daegi.guard.Authorization;
import io.daegi.guard.PassSource;
import io.daegi.guard.Entry;
import io.daegi.guard.Guard;
import io.daegi.guard.Item;
import io.daegi.guard.Refusal;
import io.daegi.guard.RefusedException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Authorizes or refuses servlet requests. Used by the filter and the Spring interceptor. */
public final class RequestGuard {
    private static final String ENTRY = Entry.class.getName();

    private final Guard guard;

    /** Creates a request guard. */
    public RequestGuard(Guard guard) {
        this.guard = guard;
    }

    /** Returns the entry of an authorized request. */
    public static Entry entryOf(HttpServletRequest request) {
        if (request.getAttribute(ENTRY) instanceof Entry entry) {
            return entry;
        }
        throw new IllegalStateException("this route is not behind a guard");
    }

    /** Returns whether the request is authorized; otherwise the response has been written. A request without an item gets 404. */
    public boolean authorize(String item, HttpServletRequest request, HttpServletResponse response) throws IOException {
        try {
            if (!Item.isId(item)) {
                respond(Refusal.ITEM_NOT_FOUND, "", request, response);
                return false;
            }
            PassSource source = PassSource.find(request.getQueryString(), request::getHeader, item);
            Authorization authorization = guard.authorize(item, source);
            request.setAttribute(ENTRY, authorization.entry());
            if (authorization.keep() != null) {
                response.addHeader("set-cookie", guard.cookie(authorization.entry(), authorization.keep()));
            }
            return true;
        } catch (RefusedException refused) {
            respond(refused.refusal(), guard.waitingPage(item), request, response);
            return false;
        }
    }

    /** Completes the entry after a successful response (2xx), so that daegi can admit the next user. */
    public void completeOnSuccess(HttpServletRequest request, HttpServletResponse response) {
        if (response.getStatus() / 100 == 2) {
            guard.tryComplete(entryOf(request));
        }
    }

    private static void respond(Refusal refusal, String page, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        Refusal.Response reply = refusal.toResponse(request.getHeader("accept"), page);
        response.setStatus(reply.status());
        reply.headers().forEach(response::setHeader);
        response.getOutputStream().write(reply.body().getBytes(StandardCharsets.UTF_8));
    }
}
