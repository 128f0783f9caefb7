package io.daegi.client;

/** A stream does not work on this connection, or the server refuses one for now: polls may work. */
final class StreamUnsupportedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final boolean permanent;

    StreamUnsupportedException(boolean permanent) {
        super("streams are not supported on this connection", null, false, false);
        this.permanent = permanent;
    }

    boolean isPermanent() {
        return permanent;
    }
}
