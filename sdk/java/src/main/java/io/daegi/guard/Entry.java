package io.daegi.guard;

/**
 * An admitted user, as stated by their pass. All passes of an entry share {@code itemId}, {@code userId} and {@code number}: use
 * these as the key for one order per entry.
 *
 * @param userId the admitted user
 * @param itemId the item they were admitted to
 * @param passId the id of the pass; it changes when daegi's ticket secret is rotated
 * @param number the ticket's number, unique in its lane
 * @param lane the name of the ticket's lane; null for the standard lane
 * @param expiresAt when the entry expires, in seconds since the Unix epoch
 * @param signatureVerified whether the signature was verified; false only with {@link OnUnavailable#FAIL_OPEN}
 */
public record Entry(
        String userId, String itemId, String passId, long number, String lane, long expiresAt, boolean signatureVerified) {
    /** Returns the ticket's token, which identifies the entry to daegi. */
    public String token() {
        return userId + "-" + itemId + "-" + passId;
    }
}
