// Counts violations of fairness. Every threshold is 0, except for the verdicts: k6 exits with 0 if a script throws or times out, so a run
// counts only if every checker reached its end.
import { Counter, Trend } from 'k6/metrics';
import { claimsOf, counts, numberOf, sleep } from './client.js';

const fifoInversions = new Counter('fifo_inversions');
const duplicatePlaces = new Counter('duplicate_places');
const backwardSteps = new Counter('backward_steps');
const overAdmission = new Counter('over_admission');
const lostPeople = new Counter('lost_people');
const oversold = new Counter('oversold');
const wrongPasses = new Counter('wrong_passes');
const verdicts = new Counter('verdicts');
const waited = new Trend('waited_seconds');

const VIOLATIONS = { fifoInversions, duplicatePlaces, backwardSteps, overAdmission, lostPeople, oversold, wrongPasses };

/// Maximum difference between the snapshots of two pods.
const SNAPSHOT_AGE_MS = 1500;

/// The order in which users are served: the rank of a drawn cohort, otherwise the number. Numbers begin at the time in ms × 64, so every
/// rank is lower.
const rankOf = (ticket, number) => ticket.cohortRank || number;

/// For `options.thresholds`: no violations, the latency thresholds of the caller, and a verdict of every checker.
export function thresholds(checkers, latency) {
  const zero = ['fifo_inversions', 'duplicate_places', 'backward_steps', 'over_admission', 'lost_people', 'oversold',
    'wrong_passes', 'server_errors', 'refusals'];
  const none = Object.fromEntries(zero.map((name) => [name, ['count==0']]));
  return Object.assign(none, { verdicts: [`count==${checkers}`] }, latency);
}

/// The number of users that ended as expected. A user whose script threw counts as lost, and the others are still checked.
export async function finished(users) {
  const ends = await Promise.allSettled(users);
  ends.filter((end) => end.status === 'rejected').forEach((end) => console.error(end.reason));
  return ends.filter((end) => end.value === true).length;
}

/// Checks the users of one line.
export class Checker {
  constructor() {
    this.byNumber = new Map();
    this.joins = [];
    this.entries = [];
    this.front = [];
    // A metric without a sample has no threshold to fail.
    Object.values(VIOLATIONS).forEach((violation) => violation.add(0));
  }

  /// A join has returned. The number must not belong to another user.
  joined(user, ticket, startedAt) {
    const [number, joinedAt] = [numberOf(ticket.token), Date.now()];
    if (this.byNumber.has(number) && this.byNumber.get(number) !== user) duplicatePlaces.add(1);
    this.byNumber.set(number, user);
    if (startedAt) this.joins.push({ number, startedAt, endedAt: joinedAt });
    return { user, number, rank: rankOf(ticket, number), position: ticket.position || Infinity, joinedAt };
  }

  /// A poll that began at `startedAt` has returned a position.
  waiting(user, ticket, startedAt) {
    // A ticket has no position while its order is not drawn.
    if (ticket.position === null) return;
    if (ticket.position > user.position) backwardSteps.add(1);
    user.position = ticket.position;
    user.rank = rankOf(ticket, user.number);
    const overtaken = this.front.findLast((entry) => entry.at < startedAt - SNAPSHOT_AGE_MS);
    if (overtaken && overtaken.rank > user.rank) fifoInversions.add(1);
  }

  /// A user was admitted; called once per user.
  entered(item, user, ticket) {
    const claims = claimsOf(ticket.pass);
    const valid = claims.aud === item && claims.sub === user.user && claims.num === user.number;
    if (!valid) wrongPasses.add(1);
    user.rank = Math.min(user.rank, rankOf(ticket, user.number));
    // All passes of a line have the same TTL, so expiries have the order of admissions.
    this.entries.push({ rank: user.rank, at: Date.parse(ticket.passExpiresAt) });
    const last = this.front[this.front.length - 1];
    if (!last || last.rank < user.rank) this.front.push({ rank: user.rank, at: Date.now() });
  }

  /// Records the waiting time of a user.
  waited(user) {
    waited.add((Date.now() - user.joinedAt) / 1000);
  }

  /// At the end: admissions follow the ranks, and all users ended as expected.
  checkEnd(users, finishedUsers, stock, sold) {
    this.checkOrder();
    const order = this.entries.sort((a, b) => a.rank - b.rank);
    let latest = 0;
    for (const entry of order) {
      if (entry.at < latest) fifoInversions.add(1);
      latest = Math.max(latest, entry.at);
    }
    if (finishedUsers !== users) lostPeople.add(Math.abs(users - finishedUsers));
    if (sold > stock) oversold.add(sold - stock);
  }

  /// A join that ended before another one began has the lower number, by the clock of this script.
  checkOrder() {
    const ended = [...this.joins].sort((a, b) => a.endedAt - b.endedAt);
    let [next, highest] = [0, -Infinity];
    for (const join of [...this.joins].sort((a, b) => a.startedAt - b.startedAt)) {
      for (; ended[next].endedAt < join.startedAt; next += 1) highest = Math.max(highest, ended[next].number);
      if (highest > join.number) fifoInversions.add(1);
    }
  }

  /// Every number of `first` is below every number of `second`.
  checkBefore(first, second) {
    const highest = first.reduce((number, ticket) => Math.max(number, ticket.number), 0);
    fifoInversions.add(second.filter((ticket) => ticket.number < highest).length);
  }

  /// All numbers of a line that no user has left: unique and without gaps.
  checkDense(numbers = this.joins.map((join) => join.number)) {
    numbers.sort((a, b) => a - b).forEach((number, index) => {
      if (number !== numbers[0] + index) duplicatePlaces.add(1);
    });
  }

  /// No ticket is left in a line whose users have all finished.
  checkEmpty(item) {
    const { waiting, entered } = counts(item);
    lostPeople.add(waiting + entered);
  }

  /// Called last: the checker reached its end.
  verdict() {
    verdicts.add(1);
  }

  /// Polls the admin API while `running()`: entries never exceed the capacity.
  async watch(item, capacity, running) {
    while (running()) {
      if (counts(item).entered > capacity()) overAdmission.add(1);
      await sleep(200);
    }
  }
}
