package io.daegi.guard;

/** daegi is unreachable or responded with an error. */
public final class DaegiUnavailableException extends RuntimeException {
    private static final long serialVersionUID = 1;

    DaegiUnavailableException(String message) {
        super(message);
    }

    DaegiUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }
}
