// An ordinary long evening: RATE (20) people per second come for MINUTES (10), wait their turn, stay inside for about a
// second and go. A rush every half minute, five seconds' worth of people at once, fills the room. The line neither
// grows nor forgets, and the last minute is as quick as the first. A VU plays up to 100 people per second, in a line of its
// own, so that each line is judged as a whole.
//
//   k6 run -e DAEGI_ADMIN_TOKEN=… [-e RATE=200 -e MINUTES=120] k6/soak.js
import { Judge, accountedFor, fair } from './lib/judge.js';
import { waitFor } from './lib/person.js';
import { close, complete, open, sleep } from './lib/room.js';

const RATE = Number(__ENV.RATE || 20);
const MINUTES = Number(__ENV.MINUTES || 10);
const LINES = Math.ceil(RATE / 100);
/// People per second in one line, and how many of them may be inside.
const PACE = RATE / LINES;
const ROOM = Math.ceil(PACE * 3);
const [RUSH_EVERY, RUSH] = [30, 5];

export const options = {
  scenarios: { lines: { executor: 'per-vu-iterations', vus: LINES, iterations: 1, maxDuration: `${MINUTES + 5}m` } },
  thresholds: fair(LINES, {
    'http_req_duration{name:join}': [`p(99)<${__ENV.JOIN_P99_MS || 1000}`],
    'http_req_duration{name:poll}': [`p(99)<${__ENV.POLL_P99_MS || 500}`],
  }),
  batchPerHost: 0,
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

export function setup() {
  return { run: Date.now() };
}

async function person(judge, item, user) {
  const ticket = await waitFor(judge, item, user);
  if (!ticket || ticket.status !== 'ENTERABLE') return false;
  await sleep(500 + 1000 * Math.random());
  return complete(item, ticket.token);
}

/// Calls `come` for everybody, at the moment they come.
async function arrivals(come) {
  const [end, pause] = [Date.now() + MINUTES * 60_000, (1000 * RUSH_EVERY) / (PACE * (RUSH_EVERY - RUSH))];
  for (let rush = 0; Date.now() < end; ) {
    if (Date.now() >= rush) {
      for (let many = 0; many < PACE * RUSH; many += 1) come();
      rush = Date.now() + RUSH_EVERY * 1000;
    }
    await sleep(pause * (0.5 + Math.random()));
    come();
  }
}

export default async function ({ run }) {
  const item = `soak-${run}-${__VU}`;
  // More per tick than there is room for: it is the room that limits a rush.
  open(item, 1_000_000_000, { tokensPerTick: ROOM * 2, maxActive: ROOM, passTtlSeconds: 600, guard: 'online' });
  const judge = new Judge();
  let going = true;
  const watching = judge.watch(item, () => ROOM, () => going);
  const people = [];
  await arrivals(() => people.push(person(judge, item, `person-${people.length}`)));
  const accounted = await accountedFor(people);
  going = false;
  await watching;
  judge.settle(people.length, accounted, Infinity, 0);
  judge.dense();
  judge.empty(item);
  console.log(`${item}: ${accounted} of ${people.length} people accounted for`);
  close(item);
  judge.verdict();
}
