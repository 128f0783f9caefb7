/**
 * Lets in only who was let in by a daegi waiting room.
 *
 * <p>{@link io.daegi.guard.Guard} checks passes against daegi's published keys, without asking anybody, and completes
 * entries. {@code servlet} has a filter for every servlet container, {@code spring} an annotation for handlers. The
 * guards for Rust and Node do the same; {@code sdk/vectors} keeps all three in step.
 */
package io.daegi.guard;
