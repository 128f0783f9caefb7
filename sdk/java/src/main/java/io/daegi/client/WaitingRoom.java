package io.daegi.client;

import io.daegi.guard.Item;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.function.Consumer;

/**
 * Client for the lines of a waiting room. One per process is enough; it is safe for threads.
 *
 * <p>Calls throw a {@link ProblemException} if the waiting room refuses, and an {@link java.io.UncheckedIOException} if it is not
 * reached or the thread is interrupted. They do not retry: a refusal says with {@link ProblemException#retryAfter} when to.
 */
public final class WaitingRoom {

    private final String publicUrl;
    private final String internalUrl;
    private final Duration timeout;
    private final EventStream.Timeouts streamTimeouts;
    private final Http http;
    private final Executor executor;

    private WaitingRoom(Builder config) {
        this.publicUrl = config.publicUrl;
        this.internalUrl = config.internalUrl;
        this.timeout = config.timeout;
        this.streamTimeouts = config.streamTimeouts;
        this.executor = config.executor != null ? config.executor : Executors.newCachedThreadPool(WaitingRoom::daemon);
        this.http = new Http(config.client != null ? config.client : newClient());
    }

    private HttpClient newClient() {
        // Over TLS, streams of many tickets share a connection.
        boolean isTls = publicUrl.startsWith("https:");
        HttpClient.Version version = isTls ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1;
        return HttpClient.newBuilder().version(version).connectTimeout(timeout).executor(executor).build();
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work, "daegi-client");
        thread.setDaemon(true);
        return thread;
    }

    /** Returns a builder for the daegi at this public URL, as this service reaches it. */
    public static Builder builder(String publicUrl) {
        return new Builder(publicUrl);
    }

    /** Joins the line of an item, or returns the ticket this user has. */
    public Ticket join(String item, String userId) {
        return join(item, new JoinRequest(userId));
    }

    /**
     * Joins the line of an item, or returns the ticket this user has.
     *
     * @throws ProblemException {@code INVALID_CODE} if the invitation code cannot be used: nothing changes then; {@code NOT_OPEN_YET}
     *     before the lobby opens; {@code SOLD_OUT}, {@code LINE_FULL} and others of docs/API.md
     */
    public Ticket join(String item, JoinRequest join) {
        Map<String, String> body = new LinkedHashMap<>();
        body.put("userId", join.userId());
        if (join.code() != null) {
            // In the body, because a header cannot contain every text that a user types.
            body.put("code", join.code());
        }
        // For the operator's statistics.
        HttpRequest.Builder request = Http.request(lineUrl(item), join.token()).header("daegi-client", "sdk-java");
        return send(Http.post(request, body), Ticket.class);
    }

    /** Returns a ticket. A poll also marks the user as present. */
    public Ticket poll(String item, String token) {
        return poll(item, token, Duration.ZERO);
    }

    /** Returns a ticket. The response is delayed by up to {@code wait}, at most 30 s, until the ticket or the line state changes. */
    public Ticket poll(String item, String token, Duration wait) {
        return Json.read(http.send(pollRequest(item, token, wait)), Ticket.class);
    }

    /** Ends the ticket or gives the entry back. Idempotent. */
    public void leave(String item, String token) {
        http.send(Http.request(lineUrl(item) + "/me", token).DELETE().timeout(timeout).build());
    }

    /** Returns the public view of a line. */
    public Line line(String item) {
        return send(Http.request(lineUrl(item), null), Line.class);
    }

    /** Follows a ticket until it ends or the subscription is closed, over a stream if possible, otherwise with polls. */
    public TicketSubscription follow(Ticket ticket, TicketListener listener) {
        return follow(ticket.itemId(), ticket.token(), listener);
    }

    /** Follows the ticket with this token, for example one of an earlier session. */
    public TicketSubscription follow(String item, String token, TicketListener listener) {
        return TicketSubscription.start(this, checked(item), token, listener);
    }

    /** Returns whether the user with this token has an entry now. Needs the internal URL. */
    public Verdict verify(String item, String token) {
        return internal(item, "verify", Map.of("token", token), Verdict.class);
    }

    /** Returns whether the entry of this pass is live. Needs the internal URL. */
    public Verdict verifyPass(String item, String pass) {
        return internal(item, "verify", Map.of("pass", pass), Verdict.class);
    }

    /**
     * Ends the entry of a token, for example after the order was placed, so that daegi can admit the next user. Idempotent. Needs the
     * internal URL.
     *
     * @return whether this call ended the entry
     */
    public boolean complete(String item, String token) {
        return internal(item, "complete", Map.of("token", token), Completed.class).released();
    }

    /** Ends the entry of a pass; see {@link #complete}. */
    public boolean completePass(String item, String pass) {
        return internal(item, "complete", Map.of("pass", pass), Completed.class).released();
    }

    private record Completed(boolean released) {}

    private <T> T internal(String item, String operation, Map<String, String> body, Class<T> type) {
        if (internalUrl == null) {
            throw new IllegalStateException("internalUrl is not configured; it is required to verify and to complete entries");
        }
        String url = internalUrl + "/internal/v1/item/" + checked(item) + "/entry/" + operation;
        return send(Http.post(Http.request(url, null), body), type);
    }

    private <T> T send(HttpRequest.Builder request, Class<T> type) {
        return Json.read(http.send(request.timeout(timeout).build()), type);
    }

    CompletableFuture<String> pollAsync(String item, String token) {
        return http.sendAsync(pollRequest(item, token, Duration.ZERO));
    }

    private HttpRequest pollRequest(String item, String token, Duration wait) {
        String query = wait.isZero() ? "" : "?waitMs=" + wait.toMillis();
        return Http.request(lineUrl(item) + "/me" + query, token).timeout(timeout.plus(wait)).build();
    }

    CompletableFuture<Void> openStream(String item, String token, String lastEventId, Runnable opened, Consumer<String> lines) {
        HttpRequest.Builder request = Http.request(lineUrl(item) + "/me/events", token).setHeader("accept", "text/event-stream");
        if (!lastEventId.isEmpty()) {
            request.header("last-event-id", lastEventId);
        }
        return EventStream.open(http.client(), request.build(), executor, streamTimeouts, opened, lines);
    }

    Executor executor() {
        return executor;
    }

    private String lineUrl(String item) {
        return publicUrl + "/api/v1/item/" + checked(item) + "/waiting-queue";
    }

    private static String checked(String item) {
        if (!Item.isId(item)) {
            throw new IllegalArgumentException(item + " is not an item id");
        }
        return item;
    }

    /** Configuration of a client. Only the public URL is required. */
    public static final class Builder {
        private final String publicUrl;
        private String internalUrl;
        private Duration timeout = Duration.ofSeconds(5);
        private EventStream.Timeouts streamTimeouts = EventStream.Timeouts.DEFAULT;
        private HttpClient client;
        private Executor executor;

        private Builder(String publicUrl) {
            this.publicUrl = trimSlashes(publicUrl);
        }

        /** daegi's internal URL. Required to verify and to complete entries. */
        public Builder internalUrl(String url) {
            internalUrl = trimSlashes(url);
            return this;
        }

        /** Timeout of one call, without the delay of a poll that the caller asks for. Default: 5 s. */
        public Builder timeout(Duration duration) {
            timeout = duration;
            return this;
        }

        Builder streamTimeouts(EventStream.Timeouts timeouts) {
            streamTimeouts = timeouts;
            return this;
        }

        /** Another HTTP client, for example one with own certificates or a proxy. */
        public Builder httpClient(HttpClient other) {
            client = other;
            return this;
        }

        /** Runs subscriptions, and the client unless it is another one. Default: daemon threads that end when they are idle. */
        public Builder executor(Executor other) {
            executor = other;
            return this;
        }

        /** Builds the client. */
        public WaitingRoom build() {
            return new WaitingRoom(this);
        }

        private static String trimSlashes(String url) {
            return url.replaceAll("/+$", "");
        }
    }
}
