package io.daegi.guard;

/**
 * A request that the guard admits.
 *
 * @param entry the entry of the pass that counts
 * @param keep that pass, if the browser must keep it in the guard's cookie from now on; otherwise null
 */
public record Admission(Entry entry, String keep) {}
