// An ordinary long evening: RATE (20) people per second come for MINUTES (10), wait their turn, stay inside for about a
// second and go. The line neither grows nor forgets, and the last minute is as quick as the first.
//
//   k6 run -e DAEGI_ADMIN_TOKEN=… [-e RATE=200 -e MINUTES=120] k6/soak.js
import { Judge, fair } from './lib/judge.js';
import { waitFor } from './lib/person.js';
import { close, complete, open, sleep } from './lib/room.js';

const RATE = Number(__ENV.RATE || 20);
const MINUTES = Number(__ENV.MINUTES || 10);
const VUS = Math.ceil(RATE / 100);

export const options = {
  scenarios: { people: { executor: 'per-vu-iterations', vus: VUS, iterations: 1, maxDuration: `${MINUTES + 5}m` } },
  thresholds: fair({
    'http_req_duration{name:join}': [`p(99)<${__ENV.JOIN_P99_MS || 1000}`],
    'http_req_duration{name:poll}': [`p(99)<${__ENV.POLL_P99_MS || 500}`],
  }),
  batchPerHost: 0,
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

export function setup() {
  const item = `soak-${Date.now()}`;
  open(item, 1_000_000_000, { tokensPerTick: RATE * 2, passTtlSeconds: 600 });
  return { item };
}

async function person(judge, item, user) {
  const ticket = await waitFor(judge, item, user);
  if (!ticket || ticket.status !== 'ENTERABLE') return false;
  await sleep(500 + 1000 * Math.random());
  return complete(item, ticket.token);
}

export default async function ({ item }) {
  const judge = new Judge();
  const [end, pause] = [Date.now() + MINUTES * 60_000, (1000 * VUS) / RATE];
  const people = [];
  while (Date.now() < end) {
    people.push(person(judge, item, `person-${__VU}-${people.length}`));
    await sleep(pause * (0.5 + Math.random()));
  }
  const accounted = (await Promise.all(people)).filter(Boolean).length;
  judge.settle(people.length, accounted, Infinity, 0);
}

export function teardown({ item }) {
  new Judge().empty(item);
  close(item);
}
