package io.daegi.client;

import java.time.Instant;
import java.util.List;

/**
 * The public view of a line, at most a second old.
 *
 * @param itemId the item
 * @param itemName the display name of the item
 * @param lineState whether the line moves
 * @param waitingCount the number of waiting tickets
 * @param enteredCount the number of entries
 * @param admittedPerSecond tickets that left the front of the line per second, over the last 30 s
 * @param opensAt the opening; all of the following up to {@code order} are null for a line without one
 * @param opensInMs milliseconds from the response to the opening by the server's clock; null after it, or if an operator opens the
 *     line
 * @param lobbyAt when the lobby opens and joins are accepted
 * @param lobbyInMs milliseconds from the response to the lobby; null once it is open
 * @param closesAt when the line closes
 * @param order how the tickets of the lobby are ordered at the opening
 * @param lanes the lanes, the standard lane first; empty for a line without lanes
 */
public record Line(
        String itemId,
        String itemName,
        LineState lineState,
        long waitingCount,
        long enteredCount,
        double admittedPerSecond,
        Instant opensAt,
        Long opensInMs,
        Instant lobbyAt,
        Long lobbyInMs,
        Instant closesAt,
        OpeningOrder order,
        List<LaneView> lanes) {
    /** Creates a line. A missing list of lanes, of an older server, is an empty one. */
    public Line {
        lanes = lanes == null ? List.of() : List.copyOf(lanes);
    }
}
