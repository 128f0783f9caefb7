package io.daegi.guard;

import java.util.LinkedHashMap;
import java.util.Map;

/** Why somebody is not let in, and what they are answered. */
public enum Refusal {
    /** They brought no pass. */
    PASS_MISSING(401, "there is no pass, please wait in line first"),
    /** Malformed, forged, or signed by a key that daegi does not publish. */
    PASS_INVALID(401, "the pass was not issued by the waiting room"),
    /** Genuine, but too old: the place was given to somebody else. */
    PASS_EXPIRED(401, "the pass has expired, please join the line again"),
    /** From the future. */
    PASS_NOT_YET_VALID(401, "the pass is not valid yet"),
    /** Genuine, but for something else. */
    PASS_OTHER_ITEM(403, "the pass is for another item"),
    /** Genuine, but the entry was completed, given back or taken away. */
    PASS_REVOKED(403, "the pass was used or given back, please join the line again"),
    /** Nobody can say: daegi does not answer. */
    UNAVAILABLE(503, "the waiting room cannot be asked right now"),
    /** The request names no item. */
    ITEM_NOT_FOUND(404, "there is no such item");

    private static final Map<Integer, String> TITLES =
            Map.of(401, "Unauthorized", 403, "Forbidden", 404, "Not Found", 503, "Service Unavailable");

    private final int status;
    private final String detail;

    Refusal(int status, String detail) {
        this.status = status;
        this.detail = detail;
    }

    /** The status for clients that are no browsers. */
    public int status() {
        return status;
    }

    /** The reason for people. */
    public String detail() {
        return detail;
    }

    /** Whether waiting in line mends it. */
    public boolean wantsTheLine() {
        return status == 401 || status == 403;
    }

    /** The answer. People are sent to the waiting page, programs get an RFC 9457 problem. */
    public Answer answer(String accept, String waitingPage) {
        Map<String, String> headers = new LinkedHashMap<>(Map.of("cache-control", "no-store", "vary", "accept"));
        if (accept != null && accept.contains("text/html") && wantsTheLine()) {
            // 303: whatever they wanted to do, they look at the page now.
            headers.put("location", waitingPage);
            return new Answer(303, headers, "");
        }
        headers.put("content-type", "application/problem+json");
        headers.putAll(hint());
        return new Answer(status, headers, Json.text(problem(waitingPage)));
    }

    private Map<String, Object> problem(String waitingPage) {
        Map<String, Object> problem = new LinkedHashMap<>();
        problem.put("type", "about:blank");
        problem.put("title", TITLES.get(status));
        problem.put("status", status);
        problem.put("code", name());
        problem.put("detail", detail);
        if (wantsTheLine()) {
            problem.put("waitingPage", waitingPage);
        }
        return problem;
    }

    /** RFC 9110 wants every 401 to say how to authenticate. */
    private Map<String, String> hint() {
        if (this == PASS_MISSING) {
            return Map.of("www-authenticate", "Bearer");
        }
        return switch (status) {
            case 401 -> Map.of("www-authenticate", "Bearer error=\"invalid_token\"");
            case 503 -> Map.of("retry-after", "1");
            default -> Map.of();
        };
    }

    /** What somebody who is not let in is answered; the body may be empty. */
    public record Answer(int status, Map<String, String> headers, String body) {}
}
