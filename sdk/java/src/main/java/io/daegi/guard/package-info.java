/**
 * Accepts only users admitted by a daegi waiting room.
 *
 * <p>{@link io.daegi.guard.Guard} verifies passes offline, against daegi's published keys, and completes entries.
 * {@code servlet} has a filter for servlet containers, {@code spring} an annotation for handlers. The
 * guards for other languages behave identically; {@code sdk/vectors} tests all of them.
 */
package io.daegi.guard;
