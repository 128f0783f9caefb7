package io.daegi.client;

import java.time.Instant;

/**
 * A ticket and its current state. Components of reference types are null where the description says so.
 *
 * @param itemId the item
 * @param userId the user
 * @param token the only proof of the position: store it
 * @param status the status
 * @param position 1 for the first in line; 0 unless the ticket waits; null in the lobby of a draw, which decides it
 * @param waitingCount the number of waiting tickets
 * @param lineState whether the line moves
 * @param opensAt when the line opens or opened; null if it has no opening, or an operator opens it
 * @param opensInMs milliseconds from the response to the opening by the server's clock; null unless the ticket waits in a lobby with
 *     a set time
 * @param cohortRank the rank that the draw gave to this ticket, from 1; null before the draw and for tickets that took no part
 * @param lane the lane of the ticket; null in the standard lane. Position, count and estimate are those of the lane
 * @param etaSeconds the estimated wait; null while the rate is unknown and while the line does not move
 * @param pollAfterMs the delay until the next poll; a client that keeps it never counts as absent
 * @param pass the pass, a JWT, once the ticket is admitted; otherwise null
 * @param passExpiresAt when the pass expires; null without one
 * @param entryUrl the URL to open with the pass; null without a pass, or if the policy sets none
 */
public record Ticket(
        String itemId,
        String userId,
        String token,
        TicketStatus status,
        Long position,
        long waitingCount,
        LineState lineState,
        Instant opensAt,
        Long opensInMs,
        Long cohortRank,
        String lane,
        Eta etaSeconds,
        long pollAfterMs,
        String pass,
        Instant passExpiresAt,
        String entryUrl) {
    /** Returns the fields except token and pass, which must not appear in logs. */
    @Override
    public String toString() {
        return "Ticket[itemId=" + itemId + ", userId=" + userId + ", status=" + status + ", position=" + position + ", waitingCount="
                + waitingCount + ", lineState=" + lineState + ", lane=" + lane + ", etaSeconds=" + etaSeconds + "]";
    }
}
