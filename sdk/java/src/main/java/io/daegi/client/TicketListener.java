package io.daegi.client;

/**
 * Receives the events of a subscription, one at a time, on threads of the client. An exception of a listener is logged and otherwise
 * ignored.
 */
public interface TicketListener {
    /** The ticket changed; the first event comes immediately. */
    void onTicket(Ticket ticket);

    /** The ticket was admitted. Called once, after {@link #onTicket}. */
    default void onEnterable(Ticket ticket) {}

    /** The ticket has ended. The last event of a ticket. */
    default void onEnd(Ticket ticket) {}

    /** The connection changed. Lost connections are re-established automatically. */
    default void onConnection(Connection connection) {}

    /** The ticket cannot be followed: it is invalid, of another item, or the line was restarted. The last event. */
    default void onProblem(ProblemException problem) {}
}
