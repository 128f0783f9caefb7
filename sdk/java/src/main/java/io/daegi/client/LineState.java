package io.daegi.client;

import com.fasterxml.jackson.annotation.JsonEnumDefaultValue;

/** Whether a line moves, and if not, the reason. */
public enum LineState {
    /** The lobby is not open yet, and joins are refused. */
    SCHEDULED,
    /** Joins are accepted, and no ticket is admitted before the opening. */
    LOBBY,
    /** Tickets are admitted. */
    OPEN,
    /** An operator paused the line. */
    PAUSED,
    /** There is no stock; new users cannot join. */
    SOLD_OUT,
    /** The line is disabled. */
    DISABLED,
    /** The line restores its order after a data loss. */
    RECOVERING,
    /** Events of earlier admissions are not published yet. */
    HELD,
    /** The line has closed for good; no ticket is admitted. */
    CLOSED,
    /** A state of a newer server: show it as a line that does not move. */
    @JsonEnumDefaultValue
    UNKNOWN
}
