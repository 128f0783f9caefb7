package io.daegi.guard;

/** Somebody is not let in. */
public final class RefusedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final Refusal refusal;

    RefusedException(Refusal refusal) {
        // An everyday answer, not a fault: nobody needs to know where in the code it was given.
        super(refusal.detail(), null, false, false);
        this.refusal = refusal;
    }

    /** Why. */
    public Refusal refusal() {
        return refusal;
    }
}
