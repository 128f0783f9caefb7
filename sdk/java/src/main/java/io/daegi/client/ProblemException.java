package io.daegi.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.http.HttpHeaders;
import java.time.Duration;
import java.time.Instant;

/** A request that the waiting room refused: an RFC 9457 problem with a stable code. */
public final class ProblemException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String code;
    private final int status;
    private final Duration retryAfter;
    private final Instant opensAt;
    private final Instant lobbyAt;

    private ProblemException(JsonNode problem, int status, Duration retryAfter) {
        super(problem.path("detail").asText("the waiting room responded with " + status));
        this.code = problem.path("code").asText("UNAVAILABLE");
        this.status = status;
        this.retryAfter = retryAfter;
        this.opensAt = Json.instant(problem.path("opensAt"));
        this.lobbyAt = Json.instant(problem.path("lobbyAt"));
    }

    /** Reads the problem of a response. A proxy may have sent anything else. */
    static ProblemException fromResponse(int status, HttpHeaders headers, String body) {
        return new ProblemException(Json.tree(body), status, Http.retryAfter(headers));
    }

    /** Reads the problem in the last event of a stream. Without a status it counts as transient. */
    static ProblemException fromEvent(String data) {
        JsonNode problem = Json.tree(data);
        return new ProblemException(problem, problem.path("status").asInt(503), null);
    }

    /** Returns the code, such as {@code INVALID_CODE} or {@code LINE_RESTARTED}: docs/API.md lists them. */
    public String code() {
        return code;
    }

    /** Returns the HTTP status. */
    public int status() {
        return status;
    }

    /** Returns when to retry; null if the server did not say so. */
    public Duration retryAfter() {
        return retryAfter;
    }

    /** Returns when the line opens, for {@code NOT_OPEN_YET}; null if the server set no time. */
    public Instant opensAt() {
        return opensAt;
    }

    /** Returns when the lobby opens and joins are accepted, for {@code NOT_OPEN_YET}; null if the server set no time. */
    public Instant lobbyAt() {
        return lobbyAt;
    }

    /** Returns whether a retry can succeed. */
    public boolean isTransient() {
        return status == 408 || status == 429 || status >= 500;
    }
}
