package io.daegi.client;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** Delays of clients, with jitter so that they do not return together. */
final class Backoff {
    private static final long FIRST_MS = 500;
    private static final long LONGEST_MS = 10_000;
    /** Time over which clients that poll spread their first poll after the opening of their line. */
    private static final long OPENING_SPREAD_MS = 3_000;

    private static final long DEFAULT_POLL_MS = 5_000;

    private Backoff() {}

    /** Returns the delay after the n-th consecutive failure, from 0: exponential, half of it random. */
    static Duration afterFailure(int failures) {
        long most = Math.min(LONGEST_MS, FIRST_MS << Math.min(failures, 10));
        return Duration.ofMillis(most / 2 + ThreadLocalRandom.current().nextLong(most / 2 + 1));
    }

    /** Returns the delay until the next poll: shortly after the opening if that is before the interval that the server asks for. */
    static Duration untilPoll(Ticket ticket) {
        long delay = ticket.pollAfterMs() > 0 ? ticket.pollAfterMs() : DEFAULT_POLL_MS;
        if (ticket.opensInMs() != null) {
            long spread = ThreadLocalRandom.current().nextLong(OPENING_SPREAD_MS / 10, OPENING_SPREAD_MS);
            delay = Math.min(delay, Math.max(0, ticket.opensInMs()) + spread);
        }
        return Duration.ofMillis(delay);
    }
}
