package io.daegi.guard;

/**
 * The outcome of an authorized request.
 *
 * @param entry the entry of the chosen pass
 * @param keep the chosen pass if it came with the URL and the response must set the guard's cookie to it; otherwise null
 */
public record Authorization(Entry entry, String keep) {}
