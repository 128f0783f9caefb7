package io.daegi.guard;

/**
 * What a guard does while daegi is unreachable and the guard needs it: for the keys, until the first successful fetch, or for
 * an online check.
 */
public enum OnUnavailable {
    /** Refuses requests that could not be checked, with 503. */
    FAIL_CLOSED,
    /** Accepts any well-formed, unexpired pass without verifying its signature or revocation. */
    FAIL_OPEN
}
