// Everybody comes at once: PEOPLE (50) join one line in the same moment, are let in within about ten ticks, and stay.
// At the end everybody is asked once more, over all VUs: each has one place, in order, and nobody is lost.
//
//   k6 run -e DAEGI_ADMIN_TOKEN=… [-e PEOPLE=5000] [-e DAEGI_PUBLIC=http://…] k6/spike.js
import { Judge, fair } from './lib/judge.js';
import { waitFor } from './lib/person.js';
import { close, join, numberOf, open } from './lib/room.js';

const PEOPLE = Number(__ENV.PEOPLE || 50);
/// How many people one VU plays: its script runs on one core.
const CROWD = 500;
const VUS = Math.ceil(PEOPLE / CROWD);

export const options = {
  scenarios: { people: { executor: 'per-vu-iterations', vus: VUS, iterations: 1, maxDuration: '10m' } },
  thresholds: fair({
    'http_req_duration{name:join}': [`p(99)<${__ENV.JOIN_P99_MS || 2000}`],
    'http_req_duration{name:poll}': [`p(99)<${__ENV.POLL_P99_MS || 1000}`],
  }),
  batchPerHost: 0,
  setupTimeout: '30s',
  teardownTimeout: '5m',
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

export function setup() {
  const item = `spike-${Date.now()}`;
  open(item, PEOPLE, { tokensPerTick: Math.max(1, Math.ceil(PEOPLE / 10)), passTtlSeconds: 3600 });
  return { item };
}

const user = (index) => `person-${index}`;

async function person(judge, item, index) {
  const ticket = await waitFor(judge, item, user(index));
  return ticket !== null && ticket.status === 'ENTERABLE';
}

export default async function ({ item }) {
  const judge = new Judge();
  const first = (__VU - 1) * CROWD;
  const mine = Array.from({ length: Math.min(CROWD, PEOPLE - first) }, (_, offset) => first + offset);
  let going = true;
  const watching = __VU === 1 ? judge.watch(item, () => PEOPLE, () => going) : null;
  const inside = (await Promise.all(mine.map((index) => person(judge, item, index)))).filter(Boolean).length;
  going = false;
  await watching;
  judge.settle(mine.length, inside, PEOPLE, 0);
}

/// Joining again answers with the place one has, so the last look is over all people of all VUs.
export async function teardown({ item }) {
  const judge = new Judge();
  const numbers = [];
  for (let first = 0; first < PEOPLE; first += CROWD) {
    const some = Array.from({ length: Math.min(CROWD, PEOPLE - first) }, (_, offset) => first + offset);
    const tickets = await Promise.all(some.map((index) => join(item, user(index))));
    tickets.forEach((ticket, offset) => {
      if (!ticket || ticket.status !== 'ENTERABLE') return;
      judge.enters(item, judge.joined(user(first + offset), ticket), ticket);
      numbers.push(numberOf(ticket.token));
    });
  }
  judge.settle(PEOPLE, numbers.length, PEOPLE, 0);
  judge.dense(numbers);
  close(item);
}
