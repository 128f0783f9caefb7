package io.daegi.guard;

/** daegi does not answer, or not with what was asked for. */
public final class AwayException extends RuntimeException {
    private static final long serialVersionUID = 1;

    AwayException(String message) {
        super(message);
    }

    AwayException(String message, Throwable cause) {
        super(message, cause);
    }
}
