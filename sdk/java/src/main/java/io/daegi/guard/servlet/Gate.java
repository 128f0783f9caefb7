package io.daegi.guard.servlet;

import io.daegi.guard.Admission;
import io.daegi.guard.Carrier;
import io.daegi.guard.Entry;
import io.daegi.guard.Guard;
import io.daegi.guard.Item;
import io.daegi.guard.Refusal;
import io.daegi.guard.RefusedException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Where a request is let through or answered; the filter and the interceptor stand here. */
public final class Gate {
    private static final String ENTRY = Entry.class.getName();

    private final Guard guard;

    /** A gate with this guard. */
    public Gate(Guard guard) {
        this.guard = guard;
    }

    /** The entry of a request that was let through. */
    public static Entry entryOf(HttpServletRequest request) {
        if (request.getAttribute(ENTRY) instanceof Entry entry) {
            return entry;
        }
        throw new IllegalStateException("this route is not behind a guard");
    }

    /** Whether the request goes on. If not, it has its answer. A request that names no item gets 404. */
    public boolean admits(String item, HttpServletRequest request, HttpServletResponse response) throws IOException {
        try {
            if (!Item.isId(item)) {
                answer(Refusal.ITEM_NOT_FOUND, "", request, response);
                return false;
            }
            Carrier brought = Carrier.find(request.getQueryString(), request::getHeader, item);
            Admission admission = guard.admit(item, brought);
            request.setAttribute(ENTRY, admission.entry());
            if (admission.keep() != null) {
                response.addHeader("set-cookie", guard.cookie(admission.entry(), admission.keep()));
            }
            return true;
        } catch (RefusedException refused) {
            answer(refused.refusal(), guard.waitingPage(item), request, response);
            return false;
        }
    }

    /** Completes the entry if the answer is a good one (2xx), so that the next person is let in. */
    public void completeIfWell(HttpServletRequest request, HttpServletResponse response) {
        if (response.getStatus() / 100 == 2) {
            guard.completeOrLog(entryOf(request));
        }
    }

    private static void answer(Refusal why, String page, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        Refusal.Answer answer = why.answer(request.getHeader("accept"), page);
        response.setStatus(answer.status());
        answer.headers().forEach(response::setHeader);
        response.getOutputStream().write(answer.body().getBytes(StandardCharsets.UTF_8));
    }
}
