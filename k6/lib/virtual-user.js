// A user from the join to the admission.
import { join, poll, sleep } from './client.js';

/// Joins and polls as `pollAfterMs` says, until the ticket is admitted or ends, or `givesUp(ticket)`. Returns the last ticket, or null if the
/// join was refused.
export async function waitFor(checker, item, user, givesUp = () => false, joinTags = {}) {
  const joinStartedAt = Date.now();
  let ticket = await join(item, user, joinTags);
  if (!ticket) return null;
  const me = checker.joined(user, ticket, joinStartedAt);
  while (ticket.status === 'WAITING' && !givesUp(ticket)) {
    await sleep(ticket.pollAfterMs);
    const pollStartedAt = Date.now();
    ticket = (await poll(item, ticket.token)) || ticket;
    if (ticket.status === 'WAITING') checker.waiting(me, ticket, pollStartedAt);
  }
  if (ticket.status === 'ENTERABLE') {
    checker.entered(item, me, ticket);
    checker.waited(me);
  }
  return ticket;
}
