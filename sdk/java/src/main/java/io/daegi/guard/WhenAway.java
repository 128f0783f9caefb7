package io.daegi.guard;

/**
 * What a guard does when daegi cannot be asked for what it needs: its keys, before they were had once, or whether a pass
 * was revoked.
 */
public enum WhenAway {
    /** Nobody is let in who was not checked: 503. */
    REFUSE,
    /** Whoever brings a pass that could be one is let in: better too many people than none. */
    LET_IN
}
