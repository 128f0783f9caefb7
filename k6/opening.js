// An opening: EARLY (5000) users join in the lobby, once each, and follow by polls; the line opens LOBBY (20) seconds after the start; LATE
// (5000) users join when they see it open. ORDER is draw (default) or arrival. All are admitted within about twenty ticks. At the end all users
// of all VUs join again: none is lost, the lobby is served before the late users, and by the published ranks if the order is drawn.
//
//   k6 run -e DAEGI_ADMIN_TOKEN=… [-e EARLY=500 -e LATE=500 -e LOBBY=10] [-e ORDER=arrival] k6/opening.js
import { Counter } from 'k6/metrics';
import { Checker, finished, thresholds } from './lib/checker.js';
import { waitFor } from './lib/virtual-user.js';
import { close, join, lineOf, open, planOpening, sleep, tickMs } from './lib/client.js';

const EARLY = Number(__ENV.EARLY || 5000);
const LATE = Number(__ENV.LATE || 5000);
const LOBBY_MS = 1000 * Number(__ENV.LOBBY || 20);
const ORDER = __ENV.ORDER || 'draw';
const PEOPLE = EARLY + LATE;
/// Users per VU: a VU runs on one core.
const USERS_PER_VU = 500;
const EARLY_VUS = Math.ceil(EARLY / USERS_PER_VU);
const VUS = EARLY_VUS + Math.ceil(LATE / USERS_PER_VU);
const PER_TICK = Math.max(1, Math.ceil(PEOPLE / 20));
/// Late users arrive within this time.
const RUSH_MS = 2000;

/// Lobby users that have no rank after a draw, or two with the same one.
const wrongRanks = new Counter('wrong_ranks');

export const options = {
  scenarios: { people: { executor: 'per-vu-iterations', vus: VUS, iterations: 1, maxDuration: '10m' } },
  // Every VU checks its own users, the teardown all of them.
  thresholds: thresholds(VUS + 1, {
    wrong_ranks: ['count==0'],
    'http_reqs{name:join,arrival:early}': [`count<=${EARLY}`],
    'http_req_duration{name:join}': [`p(99)<${__ENV.JOIN_P99_MS || 2000}`],
    'http_req_duration{name:poll}': [`p(99)<${__ENV.POLL_P99_MS || 1000}`],
  }),
  batchPerHost: 0,
  setupTimeout: '30s',
  teardownTimeout: '5m',
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

export function setup() {
  const [item, tick] = [`opening-${Date.now()}`, tickMs()];
  open(item, PEOPLE, { tokensPerTick: PER_TICK, passTtlSeconds: 3600 });
  const opensAt = Date.now() + LOBBY_MS;
  planOpening(item, { opensAt: new Date(opensAt).toISOString(), order: ORDER });
  return { item, tick, opensAt };
}

/// None before the opening, then the admissions of all ticks so far. The tick that opens the line may admit.
const maxEntries = ({ tick, opensAt }) => (Date.now() < opensAt ? 0 : PER_TICK * (Math.floor((Date.now() - opensAt) / tick) + 2));

const isEarly = (index) => index < EARLY;
const user = (index) => `${isEarly(index) ? 'early' : 'late'}-${index}`;

async function earlyUser(checker, { item, opensAt }, index) {
  // In the first half of the lobby, so that a slow join is still early.
  await sleep(Math.random() * Math.max(0, (opensAt - Date.now()) / 2));
  const ticket = await waitFor(checker, item, user(index), undefined, { arrival: 'early' });
  return ticket !== null && ticket.status === 'ENTERABLE';
}

async function lateUser(checker, { item }, index) {
  await sleep(Math.random() * RUSH_MS);
  const ticket = await waitFor(checker, item, user(index), undefined, { arrival: 'late' });
  return ticket !== null && ticket.status === 'ENTERABLE';
}

/// The line has opened, not only its time: a join before the leader has opened it is in the lobby.
async function opened({ item, opensAt }) {
  await sleep(Math.max(0, opensAt - Date.now()));
  while ((await lineOf(item)).lineState !== 'OPEN') await sleep(50);
}

export default async function (opening) {
  const checker = new Checker();
  const early = __VU <= EARLY_VUS;
  const first = early ? (__VU - 1) * USERS_PER_VU : EARLY + (__VU - 1 - EARLY_VUS) * USERS_PER_VU;
  const count = Math.min(USERS_PER_VU, (early ? EARLY : PEOPLE) - first);
  const mine = Array.from({ length: count }, (_, offset) => first + offset);
  let running = true;
  const watch = __VU === 1 ? checker.watch(opening.item, () => maxEntries(opening), () => running) : null;
  if (!early) await opened(opening);
  const admitted = await finished(mine.map((index) => (early ? earlyUser : lateUser)(checker, opening, index)));
  running = false;
  await watch;
  checker.checkEnd(mine.length, admitted, PEOPLE, 0);
  checker.verdict();
}

/// Every lobby user has a different rank from 1 on, no late user has one, and the draw changed the order.
function checkRanks(tickets) {
  const ranks = tickets.map((ticket) => ticket.cohortRank || null);
  const [lobby, late] = [ranks.slice(0, EARLY), ranks.slice(EARLY)];
  [...lobby].sort((a, b) => a - b).forEach((rank, index) => rank !== index + 1 && wrongRanks.add(1));
  wrongRanks.add(late.filter((rank) => rank !== null).length);
  const byNumber = tickets.slice(0, EARLY).sort((a, b) => (a.number < b.number ? -1 : 1));
  const keptOrder = EARLY > 20 && byNumber.every((ticket, index) => ticket.cohortRank === index + 1);
  if (keptOrder) throw new Error('the draw kept the order of arrival');
}

/// Joining again returns the existing ticket, so this checks all users of all VUs.
export async function teardown({ item }) {
  const checker = new Checker();
  const tickets = [];
  wrongRanks.add(0);
  for (let first = 0; first < PEOPLE; first += USERS_PER_VU) {
    const some = Array.from({ length: Math.min(USERS_PER_VU, PEOPLE - first) }, (_, offset) => first + offset);
    const rejoined = await Promise.all(some.map((index) => join(item, user(index))));
    rejoined.forEach((ticket, offset) => {
      if (!ticket || ticket.status !== 'ENTERABLE') return;
      const me = checker.joined(user(first + offset), ticket);
      checker.entered(item, me, ticket);
      tickets.push({ index: first + offset, number: me.number, cohortRank: ticket.cohortRank });
    });
  }
  checker.checkEnd(PEOPLE, tickets.length, PEOPLE, 0);
  checker.checkDense(tickets.map((ticket) => ticket.number));
  // A late user never has a lower number than one of the lobby.
  checker.checkBefore(tickets.filter((ticket) => isEarly(ticket.index)), tickets.filter((ticket) => !isEarly(ticket.index)));
  if (ORDER === 'draw' && tickets.length === PEOPLE) checkRanks(tickets);
  close(item);
  checker.verdict();
}
