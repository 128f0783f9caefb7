package io.daegi.guard;

/** A refused request. */
public final class RefusedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final Refusal refusal;

    RefusedException(Refusal refusal) {
        // Without a stack trace: a refusal is a normal outcome.
        super(refusal.detail(), null, false, false);
        this.refusal = refusal;
    }

    /** Returns the reason. */
    public Refusal refusal() {
        return refusal;
    }
}
