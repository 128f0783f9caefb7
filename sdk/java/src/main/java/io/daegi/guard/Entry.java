package io.daegi.guard;

/**
 * A person who was let in, as their pass says. All passes of an entry have {@code itemId}, {@code userId} and {@code number} in
 * common: the key for one order per entry.
 *
 * @param userId who was let in
 * @param itemId to what
 * @param passId the pass's own id; another one once daegi signs with another ticket secret
 * @param number their number in the line
 * @param expiresAt when the entry ends, in seconds since 1970
 * @param genuine whether the signature was checked; false only under {@link WhenAway#LET_IN}
 */
public record Entry(String userId, String itemId, String passId, long number, long expiresAt, boolean genuine) {
    /** The ticket's token, by which daegi knows the entry. */
    public String token() {
        return userId + "-" + itemId + "-" + passId;
    }
}
