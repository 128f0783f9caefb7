package io.daegi.client;

import java.time.Duration;

/**
 * The current connection of a subscription.
 *
 * @param state the state
 * @param retryIn the time until the next attempt while {@link State#LOST}; otherwise null
 */
public record Connection(State state, Duration retryIn) {
    /** State of a connection. */
    public enum State {
        /** A stream is open. */
        LIVE,
        /** The ticket is polled. */
        POLLING,
        /** The waiting room was not reached, or the stream has ended. */
        LOST
    }
}
