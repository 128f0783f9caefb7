package io.daegi.client;

import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandler;
import java.net.http.HttpResponse.BodySubscriber;
import java.net.http.HttpResponse.BodySubscribers;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** One connection that receives the lines of a stream. It ends with the response, or after too long a time without a line. */
final class EventStream implements BodyHandler<String>, Flow.Subscriber<String> {
    /**
     * Limits of the time without a line.
     *
     * @param response until the head of the response
     * @param firstLine until the first line; the server sends it immediately, so without it a proxy buffers the stream
     * @param idle between two lines; above the server's keep-alive interval, 15 s
     */
    record Timeouts(Duration response, Duration firstLine, Duration idle) {
        static final Timeouts DEFAULT = new Timeouts(Duration.ofSeconds(40), Duration.ofSeconds(8), Duration.ofSeconds(40));
    }

    private enum Phase {
        RESPONSE,
        FIRST_LINE,
        LINES
    }

    private final CompletableFuture<Void> end = new CompletableFuture<>();
    private final Executor executor;
    private final Timeouts timeouts;
    private final Runnable opened;
    private final Consumer<String> lines;
    private volatile Phase phase = Phase.RESPONSE;
    private volatile long lastActivityNanos = System.nanoTime();

    private EventStream(Executor executor, Timeouts timeouts, Runnable opened, Consumer<String> lines) {
        this.executor = executor;
        this.timeouts = timeouts;
        this.opened = opened;
        this.lines = lines;
    }

    /**
     * Opens a stream. {@code opened} runs before the first line.
     *
     * @return completes when the stream has ended; exceptionally with the exception of {@code lines}, a {@link ProblemException}, a
     *     {@link StreamUnsupportedException} or an exception of the connection. Cancelling it closes the connection
     */
    static CompletableFuture<Void> open(
            HttpClient client, HttpRequest request, Executor executor, Timeouts timeouts, Runnable opened, Consumer<String> lines) {
        EventStream stream = new EventStream(executor, timeouts, opened, lines);
        CompletableFuture<HttpResponse<String>> response = client.sendAsync(request, stream);
        stream.end.whenComplete((ended, error) -> response.cancel(true));
        response.whenComplete((received, error) -> stream.finish(received, error));
        stream.watch(Phase.RESPONSE);
        return stream.end;
    }

    @Override
    public BodySubscriber<String> apply(HttpResponse.ResponseInfo info) {
        if (!isStream(info.statusCode(), info.headers().firstValue("content-type").orElse(""))) {
            return BodySubscribers.ofString(StandardCharsets.UTF_8);
        }
        enter(Phase.FIRST_LINE);
        opened.run();
        return BodySubscribers.fromLineSubscriber(this, stream -> "", StandardCharsets.UTF_8, null);
    }

    private static boolean isStream(int status, String contentType) {
        return status == 200 && contentType.startsWith("text/event-stream");
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
        subscription.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(String line) {
        if (end.isDone()) {
            return;
        }
        if (phase == Phase.LINES) {
            lastActivityNanos = System.nanoTime();
        } else {
            enter(Phase.LINES);
        }
        try {
            lines.accept(line);
        } catch (RuntimeException ends) {
            end.completeExceptionally(ends);
        }
    }

    @Override
    public void onError(Throwable error) {
        // The response completes with it.
    }

    @Override
    public void onComplete() {
        // The response completes.
    }

    private void finish(HttpResponse<String> response, Throwable error) {
        if (error != null) {
            end.completeExceptionally(error);
        } else if (isStream(response.statusCode(), response.headers().firstValue("content-type").orElse(""))) {
            end.complete(null);
        } else if (response.statusCode() / 100 == 2) {
            end.completeExceptionally(new StreamUnsupportedException(true));
        } else if (response.statusCode() == 429 || response.statusCode() == 503) {
            // A pod at its limit of streams still answers polls.
            end.completeExceptionally(new StreamUnsupportedException(false));
        } else {
            end.completeExceptionally(ProblemException.fromResponse(response.statusCode(), response.headers(), response.body()));
        }
    }

    private void enter(Phase next) {
        lastActivityNanos = System.nanoTime();
        phase = next;
        watch(next);
    }

    /** Ends the stream when the time of a phase without a line is over. */
    private void watch(Phase watched) {
        if (end.isDone() || phase != watched) {
            return;
        }
        long left = limit(watched).toNanos() - (System.nanoTime() - lastActivityNanos);
        if (left > 0) {
            CompletableFuture.delayedExecutor(left, TimeUnit.NANOSECONDS, executor).execute(() -> watch(watched));
            return;
        }
        switch (watched) {
            case RESPONSE -> end.completeExceptionally(new HttpTimeoutException("no response"));
            case FIRST_LINE -> end.completeExceptionally(new StreamUnsupportedException(true));
            case LINES -> end.complete(null);
        }
    }

    private Duration limit(Phase watched) {
        return switch (watched) {
            case RESPONSE -> timeouts.response();
            case FIRST_LINE -> timeouts.firstLine();
            case LINES -> timeouts.idle();
        };
    }
}
