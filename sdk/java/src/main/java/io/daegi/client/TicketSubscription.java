package io.daegi.client;

import io.daegi.client.Connection.State;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Follows one ticket until it ends: over a stream if possible, otherwise with polls. Lost connections are re-established, with jitter
 * so that clients do not return together. A subscription holds no thread while nothing happens.
 */
public final class TicketSubscription implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(TicketSubscription.class.getName());
    /** How long to poll after a stream was refused. */
    private static final Duration POLL_FALLBACK = Duration.ofSeconds(60);
    /** Consecutive failures after which polls are used: a proxy may support them, but no streams. */
    private static final int MAX_STREAM_FAILURES = 3;
    /** Delay before reconnecting if the server sent none. */
    private static final long RECONNECT_MS = 1_000;

    private final WaitingRoom room;
    private final String item;
    private final String token;
    private final TicketListener listener;
    private final EventParser parser = new EventParser(this::onEvent);
    private volatile boolean closed;
    private volatile CompletableFuture<?> attempt = CompletableFuture.completedFuture(null);
    // Attempts follow each other, and so do the events of an attempt: these fields need no lock.
    private TicketStatus lastStatus;
    private State lastState;
    private int failures;
    private boolean streamsSupported = true;
    private long streamsFromNanos = System.nanoTime();

    private TicketSubscription(WaitingRoom room, String item, String token, TicketListener listener) {
        this.room = room;
        this.item = item;
        this.token = token;
        this.listener = listener;
    }

    static TicketSubscription start(WaitingRoom room, String item, String token, TicketListener listener) {
        TicketSubscription subscription = new TicketSubscription(room, item, token, listener);
        room.executor().execute(subscription::run);
        return subscription;
    }

    /** Stops following; no event begins afterwards. The ticket stays in line. */
    @Override
    public void close() {
        closed = true;
        attempt.cancel(true);
    }

    /** Makes one attempt, and schedules the next one. */
    private void run() {
        if (closed) {
            return;
        }
        boolean streams = streamsSupported && System.nanoTime() - streamsFromNanos >= 0;
        CompletableFuture<Duration> delay = streams ? stream() : poll();
        if (closed) {
            attempt.cancel(true);
        }
        delay.exceptionally(this::afterFailure).thenAccept(this::runAfter);
    }

    private void runAfter(Duration delay) {
        if (!closed) {
            CompletableFuture.delayedExecutor(delay.toMillis(), TimeUnit.MILLISECONDS, room.executor()).execute(this::run);
        }
    }

    private CompletableFuture<Duration> stream() {
        parser.reset();
        CompletableFuture<Void> end = room.openStream(item, token, parser.lastEventId(), () -> connected(State.LIVE), parser::line);
        attempt = end;
        return end.thenApply(ended -> {
            // The server sends a delay before a restart, spread over all clients.
            Duration delay = Duration.ofMillis(parser.retryMs() == null ? RECONNECT_MS : parser.retryMs());
            emitConnection(new Connection(State.LOST, delay));
            return delay;
        });
    }

    private void onEvent(String name, String data) {
        if (name.equals("ticket")) {
            emitTicket(Json.read(data, Ticket.class));
        } else if (name.equals("problem")) {
            ProblemException problem = ProblemException.fromEvent(data);
            // The ticket has a newer stream elsewhere: another stream would end that one.
            throw problem.status() == 429 ? new StreamUnsupportedException(false) : problem;
        }
    }

    private CompletableFuture<Duration> poll() {
        CompletableFuture<String> response = room.pollAsync(item, token);
        attempt = response;
        return response.thenApply(body -> {
            Ticket ticket = Json.read(body, Ticket.class);
            connected(State.POLLING);
            emitTicket(ticket);
            return Backoff.untilPoll(ticket);
        });
    }

    /** Returns the delay until the next attempt. */
    private Duration afterFailure(Throwable thrown) {
        Throwable error = thrown instanceof CompletionException ? thrown.getCause() : thrown;
        if (error instanceof StreamUnsupportedException unsupported) {
            streamsSupported = !unsupported.isPermanent();
            streamsFromNanos = System.nanoTime() + POLL_FALLBACK.toNanos();
            return Duration.ZERO;
        }
        if (error instanceof ProblemException problem && !problem.isTransient()) {
            emit(receiver -> receiver.onProblem(problem));
            close();
            return Duration.ZERO;
        }
        Duration delay = Backoff.afterFailure(failures++);
        if (failures == MAX_STREAM_FAILURES) {
            streamsFromNanos = System.nanoTime() + POLL_FALLBACK.toNanos();
        }
        if (error instanceof ProblemException problem && problem.retryAfter() != null && problem.retryAfter().compareTo(delay) > 0) {
            delay = problem.retryAfter();
        }
        emitConnection(new Connection(State.LOST, delay));
        return delay;
    }

    private void emitTicket(Ticket ticket) {
        TicketStatus before = lastStatus;
        lastStatus = ticket.status();
        emit(receiver -> receiver.onTicket(ticket));
        if (ticket.status() == TicketStatus.ENTERABLE && before != TicketStatus.ENTERABLE) {
            emit(receiver -> receiver.onEnterable(ticket));
        }
        if (ticket.status().isFinal()) {
            emit(receiver -> receiver.onEnd(ticket));
            close();
        }
    }

    private void connected(State state) {
        failures = 0;
        emitConnection(new Connection(state, null));
    }

    private void emitConnection(Connection connection) {
        boolean unchanged = connection.state() == lastState && connection.state() != State.LOST;
        lastState = connection.state();
        if (!unchanged) {
            emit(receiver -> receiver.onConnection(connection));
        }
    }

    private void emit(Consumer<TicketListener> event) {
        if (closed) {
            return;
        }
        try {
            event.accept(listener);
        } catch (RuntimeException error) {
            LOG.log(Level.WARNING, "a listener of a ticket failed", error);
        }
    }
}
