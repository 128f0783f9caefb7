package io.daegi.client;

import com.fasterxml.jackson.annotation.JsonEnumDefaultValue;

/** The status of a ticket. */
public enum TicketStatus {
    /** In line. */
    WAITING,
    /** Admitted: the ticket has a pass. */
    ENTERABLE,
    /** The entry was completed. */
    COMPLETED,
    /** The entry expired. */
    EXPIRED,
    /** The user left the line or gave the entry back. */
    LEFT,
    /** The user was absent for too long. */
    ABANDONED,
    /** The user joined again, for example in another lane, and has a new ticket. */
    REPLACED,
    /** A status of a newer server. */
    @JsonEnumDefaultValue
    UNKNOWN;

    /** Returns whether the ticket has ended. */
    public boolean isFinal() {
        return switch (this) {
            case WAITING, ENTERABLE, UNKNOWN -> false;
            case COMPLETED, EXPIRED, LEFT, ABANDONED, REPLACED -> true;
        };
    }
}
