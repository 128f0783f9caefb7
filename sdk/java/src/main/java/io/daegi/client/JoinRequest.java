package io.daegi.client;

/**
 * A request to join a line.
 *
 * @param userId the user
 * @param code an invitation code, or null. The ticket then waits in the lane of the invitation, and a user who waits in another lane
 *     gives up that place
 * @param token the token of an earlier ticket of this user, or null. The join returns that ticket even if the server lost it
 */
public record JoinRequest(String userId, String code, String token) {
    /** Joins as this user. */
    public JoinRequest(String userId) {
        this(userId, null, null);
    }

    /** Returns a request with an invitation code. Case, spaces and dashes do not matter. */
    public JoinRequest withCode(String invitationCode) {
        return new JoinRequest(userId, invitationCode, token);
    }

    /** Returns a request with the token of an earlier ticket. */
    public JoinRequest withToken(String earlierToken) {
        return new JoinRequest(userId, code, earlierToken);
    }

    /** Returns the user; code and token must not appear in logs. */
    @Override
    public String toString() {
        return "JoinRequest[userId=" + userId + "]";
    }
}
