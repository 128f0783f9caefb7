// What must never happen in a fair waiting room, counted. Every threshold below is zero, but for the verdicts: k6 ends
// well if a script throws or runs out of time, so a run counts only if everybody who judges came to the end.
import { Counter, Trend } from 'k6/metrics';
import { claimsOf, counts, numberOf, sleep } from './room.js';

const fifoInversions = new Counter('fifo_inversions');
const duplicatePlaces = new Counter('duplicate_places');
const backwardSteps = new Counter('backward_steps');
const overAdmission = new Counter('over_admission');
const lostPeople = new Counter('lost_people');
const oversold = new Counter('oversold');
const wrongPasses = new Counter('wrong_passes');
const verdicts = new Counter('verdicts');
const waited = new Trend('waited_seconds');

const WRONGS = { fifoInversions, duplicatePlaces, backwardSteps, overAdmission, lostPeople, oversold, wrongPasses };

/// A view may be a moment old, and two pods' views differ by less than this.
const VIEW_AGE_MS = 1500;

/// For `options.thresholds`: correctness is absolute, latency is the caller's. So many judges must have given their verdict.
export function fair(judges, latency) {
  const zero = ['fifo_inversions', 'duplicate_places', 'backward_steps', 'over_admission', 'lost_people', 'oversold',
    'wrong_passes', 'server_errors', 'refusals'];
  const wrongs = Object.fromEntries(zero.map((name) => [name, ['count==0']]));
  return Object.assign(wrongs, { verdicts: [`count==${judges}`] }, latency);
}

/// How many of these stories had a good end. One that broke off is somebody lost, and no reason not to judge the others.
export async function accountedFor(stories) {
  const ends = await Promise.allSettled(stories);
  ends.filter((end) => end.status === 'rejected').forEach((end) => console.error(end.reason));
  return ends.filter((end) => end.value === true).length;
}

/// Watches the people of one line.
export class Judge {
  constructor() {
    this.byNumber = new Map();
    this.joins = [];
    this.entries = [];
    this.front = [];
    // A metric without a sample has no threshold to fail.
    Object.values(WRONGS).forEach((wrong) => wrong.add(0));
  }

  /// Somebody has a place, for which they asked then. Nobody else may have the same one.
  joined(user, ticket, askedAt) {
    const [number, joinedAt] = [numberOf(ticket.token), Date.now()];
    if (this.byNumber.has(number) && this.byNumber.get(number) !== user) duplicatePlaces.add(1);
    this.byNumber.set(number, user);
    if (askedAt) this.joins.push({ number, askedAt, answeredAt: joinedAt });
    return { user, number, position: ticket.position || Infinity, joinedAt };
  }

  /// Somebody was told a place in the line; `askedAt` is when they asked.
  waits(person, ticket, askedAt) {
    if (ticket.position > person.position) backwardSteps.add(1);
    person.position = ticket.position;
    const overtaken = this.front.findLast((entry) => entry.at < askedAt - VIEW_AGE_MS);
    if (overtaken && overtaken.number > person.number) fifoInversions.add(1);
  }

  /// Somebody was let in, once.
  enters(item, person, ticket) {
    const claims = claimsOf(ticket.pass);
    const right = claims.aud === item && claims.sub === person.user && claims.num === person.number;
    if (!right) wrongPasses.add(1);
    // All passes of a line last equally long, so ends are ordered as admissions are.
    this.entries.push({ number: person.number, at: Date.parse(ticket.passExpiresAt) });
    const last = this.front[this.front.length - 1];
    if (!last || last.number < person.number) this.front.push({ number: person.number, at: Date.now() });
  }

  /// How long it took, for people who were watched all the way.
  waited(person) {
    waited.add((Date.now() - person.joinedAt) / 1000);
  }

  /// At the end: who came first was let in no later, and everybody's story has an end.
  settle(people, accounted, stock, sold) {
    this.inOrder();
    const order = this.entries.sort((a, b) => a.number - b.number);
    let latest = 0;
    for (const entry of order) {
      if (entry.at < latest) fifoInversions.add(1);
      latest = Math.max(latest, entry.at);
    }
    if (accounted !== people) lostPeople.add(Math.abs(people - accounted));
    if (sold > stock) oversold.add(sold - stock);
  }

  /// Numbers are what the server says of itself. Clocks here say: whoever had an answer before another one asked came first.
  inOrder() {
    const answered = [...this.joins].sort((a, b) => a.answeredAt - b.answeredAt);
    let [next, highest] = [0, -Infinity];
    for (const join of [...this.joins].sort((a, b) => a.askedAt - b.askedAt)) {
      for (; answered[next].answeredAt < join.askedAt; next += 1) highest = Math.max(highest, answered[next].number);
      if (highest > join.number) fifoInversions.add(1);
    }
  }

  /// All numbers of a line nobody has left: each once, none left out.
  dense(numbers = this.joins.map((join) => join.number)) {
    numbers.sort((a, b) => a - b).forEach((number, index) => {
      if (number !== numbers[0] + index) duplicatePlaces.add(1);
    });
  }

  /// Nobody is left in a line whose people are all accounted for.
  empty(item) {
    const { waiting, inside } = counts(item);
    lostPeople.add(waiting + inside);
  }

  /// The last thing anybody who judges does.
  verdict() {
    verdicts.add(1);
  }

  /// Looks from outside until told to stop: never more people inside than may be.
  async watch(item, capacity, going) {
    while (going()) {
      if (counts(item).inside > capacity()) overAdmission.add(1);
      await sleep(200);
    }
  }
}
