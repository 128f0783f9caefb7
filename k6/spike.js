// A spike: PEOPLE (50) users join one line at the same time, are admitted within about ten ticks, and keep their entries.
// At the end all users of all VUs join again: each has one number, in order, and none is lost.
//
//   k6 run -e DAEGI_ADMIN_TOKEN=… [-e PEOPLE=5000] [-e DAEGI_PUBLIC=http://…] k6/spike.js
import { Checker, finished, thresholds } from './lib/checker.js';
import { waitFor } from './lib/virtual-user.js';
import { close, join, numberOf, open, tickMs } from './lib/client.js';

const PEOPLE = Number(__ENV.PEOPLE || 50);
/// Users per VU: a VU runs on one core.
const USERS_PER_VU = 500;
const VUS = Math.ceil(PEOPLE / USERS_PER_VU);
const PER_TICK = Math.max(1, Math.ceil(PEOPLE / 10));

export const options = {
  scenarios: { people: { executor: 'per-vu-iterations', vus: VUS, iterations: 1, maxDuration: '10m' } },
  // Every VU checks its own users, the teardown all of them.
  thresholds: thresholds(VUS + 1, {
    'http_req_duration{name:join}': [`p(99)<${__ENV.JOIN_P99_MS || 2000}`],
    'http_req_duration{name:poll}': [`p(99)<${__ENV.POLL_P99_MS || 1000}`],
  }),
  batchPerHost: 0,
  setupTimeout: '30s',
  teardownTimeout: '5m',
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

export function setup() {
  const [item, tick, openedAt] = [`spike-${Date.now()}`, tickMs(), Date.now()];
  open(item, PEOPLE, { tokensPerTick: PER_TICK, passTtlSeconds: 3600 });
  return { item, tick, openedAt };
}

/// The admissions of all ticks so far. The tick that ran when the line opened may include it.
const maxEntries = ({ tick, openedAt }) => PER_TICK * (Math.floor((Date.now() - openedAt) / tick) + 2);

const user = (index) => `user-${index}`;

async function virtualUser(checker, item, index) {
  const ticket = await waitFor(checker, item, user(index));
  return ticket !== null && ticket.status === 'ENTERABLE';
}

export default async function (spike) {
  const { item } = spike;
  const checker = new Checker();
  const first = (__VU - 1) * USERS_PER_VU;
  const mine = Array.from({ length: Math.min(USERS_PER_VU, PEOPLE - first) }, (_, offset) => first + offset);
  let running = true;
  const watch = __VU === 1 ? checker.watch(item, () => maxEntries(spike), () => running) : null;
  const admitted = await finished(mine.map((index) => virtualUser(checker, item, index)));
  running = false;
  await watch;
  checker.checkEnd(mine.length, admitted, PEOPLE, 0);
  checker.verdict();
}

/// Joining again returns the existing ticket, so this checks all users of all VUs.
export async function teardown({ item }) {
  const checker = new Checker();
  const numbers = [];
  for (let first = 0; first < PEOPLE; first += USERS_PER_VU) {
    const some = Array.from({ length: Math.min(USERS_PER_VU, PEOPLE - first) }, (_, offset) => first + offset);
    const tickets = await Promise.all(some.map((index) => join(item, user(index))));
    tickets.forEach((ticket, offset) => {
      if (!ticket || ticket.status !== 'ENTERABLE') return;
      checker.entered(item, checker.joined(user(first + offset), ticket), ticket);
      numbers.push(numberOf(ticket.token));
    });
  }
  checker.checkEnd(PEOPLE, numbers.length, PEOPLE, 0);
  checker.checkDense(numbers);
  close(item);
  checker.verdict();
}
