// What everybody does until it is their turn.
import { join, poll, sleep } from './room.js';

/// Joins and polls when told to, until the wait is over or `givesUp(ticket)`. The last ticket, or null for somebody who was
/// refused a place.
export async function waitFor(judge, item, user, givesUp = () => false) {
  const cameAt = Date.now();
  let ticket = await join(item, user);
  if (!ticket) return null;
  const me = judge.joined(user, ticket, cameAt);
  while (ticket.status === 'WAITING' && !givesUp(ticket)) {
    await sleep(ticket.pollAfterMs);
    const askedAt = Date.now();
    ticket = (await poll(item, ticket.token)) || ticket;
    if (ticket.status === 'WAITING') judge.waits(me, ticket, askedAt);
  }
  if (ticket.status === 'ENTERABLE') {
    judge.enters(item, me, ticket);
    judge.waited(me);
  }
  return ticket;
}
