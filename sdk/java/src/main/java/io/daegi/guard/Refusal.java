package io.daegi.guard;

import java.util.LinkedHashMap;
import java.util.Map;

/** Reasons to refuse a request, and the responses. */
public enum Refusal {
    /** The request carries no pass. */
    PASS_MISSING(401, "there is no pass, please wait in line first"),
    /** Malformed, forged, or signed with a key that daegi does not publish. */
    PASS_INVALID(401, "the pass was not issued by the waiting room"),
    /** The pass has expired, and its entry with it. */
    PASS_EXPIRED(401, "the pass has expired, please join the line again"),
    /** {@code iat} or {@code nbf} is in the future. */
    PASS_NOT_YET_VALID(401, "the pass is not valid yet"),
    /** The pass belongs to another item. */
    PASS_OTHER_ITEM(403, "the pass is for another item"),
    /** The entry was completed, given back or ended by an operator. */
    PASS_REVOKED(403, "the pass was used or given back, please join the line again"),
    /** daegi was needed and is unreachable. */
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

    /** Returns the HTTP status for clients other than browsers. */
    public int status() {
        return status;
    }

    /** Returns the human-readable reason. */
    public String detail() {
        return detail;
    }

    /** Returns whether joining the line resolves the refusal. */
    public boolean shouldRejoin() {
        return status == 401 || status == 403;
    }

    /** Builds the response: browsers are redirected to the waiting page, other clients get an RFC 9457 problem. */
    public Response toResponse(String accept, String waitingPage) {
        Map<String, String> headers = new LinkedHashMap<>(Map.of("cache-control", "no-store", "vary", "accept"));
        if (accept != null && accept.contains("text/html") && shouldRejoin()) {
            // 303, so that the browser loads the page with GET whatever the request's method was.
            headers.put("location", waitingPage);
            return new Response(303, headers, "");
        }
        headers.put("content-type", "application/problem+json");
        headers.putAll(hint());
        return new Response(status, headers, Json.text(problem(waitingPage)));
    }

    private Map<String, Object> problem(String waitingPage) {
        Map<String, Object> problem = new LinkedHashMap<>();
        problem.put("type", "about:blank");
        problem.put("title", TITLES.get(status));
        problem.put("status", status);
        problem.put("code", name());
        problem.put("detail", detail);
        if (shouldRejoin()) {
            problem.put("waitingPage", waitingPage);
        }
        return problem;
    }

    /** RFC 9110 requires {@code WWW-Authenticate} on every 401. */
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

    /** The response to a refused request; the body may be empty. */
    public record Response(int status, Map<String, String> headers, String body) {}
}
