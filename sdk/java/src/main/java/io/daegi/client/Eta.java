package io.daegi.client;

/**
 * An estimated wait in seconds.
 *
 * @param p50 half of the users wait less
 * @param p90 nine of ten users wait less
 */
public record Eta(double p50, double p90) {}
