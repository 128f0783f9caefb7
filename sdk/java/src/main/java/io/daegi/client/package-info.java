/**
 * A client for the lines of a waiting room, for services that build their own ticketing pages. Begin with
 * {@link io.daegi.client.WaitingRoom}.
 */
package io.daegi.client;
