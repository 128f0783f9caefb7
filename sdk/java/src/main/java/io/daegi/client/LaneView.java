package io.daegi.client;

/**
 * A lane: users with an invitation wait in a lane with positions and a share of the rate of its own.
 *
 * @param name {@code standard} for users without an invitation
 * @param waitingCount the number of waiting tickets of the lane
 * @param sharePercent the share of the rate while tickets wait in every lane; null for a lane that is served first
 * @param first whether the lane is served before all lanes with a share
 */
public record LaneView(String name, long waitingCount, Integer sharePercent, boolean first) {}
