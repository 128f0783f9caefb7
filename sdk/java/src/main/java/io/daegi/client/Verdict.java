package io.daegi.client;

import java.time.Instant;

/**
 * Whether a user has an entry now.
 *
 * @param valid whether the entry is live
 * @param userId the user if valid; otherwise null
 * @param expiresAt when the entry expires if valid; otherwise null
 * @param reason the reason if not valid, such as {@code WAITING}, {@code EXPIRED} or {@code COMPLETED}; otherwise null
 */
public record Verdict(boolean valid, String userId, Instant expiresAt, String reason) {}
