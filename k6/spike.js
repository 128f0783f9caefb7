// Everybody comes at once: PEOPLE (50) join one line in the same moment, are let in within about ten ticks, and stay.
// At the end everybody is asked once more, over all VUs: each has one place, in order, and nobody is lost.
//
//   k6 run -e DAEGI_ADMIN_TOKEN=… [-e PEOPLE=5000] [-e DAEGI_PUBLIC=http://…] k6/spike.js
import { Judge, accountedFor, fair } from './lib/judge.js';
import { waitFor } from './lib/person.js';
import { close, join, numberOf, open, tickMs } from './lib/room.js';

const PEOPLE = Number(__ENV.PEOPLE || 50);
/// How many people one VU plays: its script runs on one core.
const CROWD = 500;
const VUS = Math.ceil(PEOPLE / CROWD);
const PER_TICK = Math.max(1, Math.ceil(PEOPLE / 10));

export const options = {
  scenarios: { people: { executor: 'per-vu-iterations', vus: VUS, iterations: 1, maxDuration: '10m' } },
  // Every VU judges its own people, the teardown all of them.
  thresholds: fair(VUS + 1, {
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

/// As many as so many ticks let in. The tick that was under way when the line was opened may have seen it.
const most = ({ tick, openedAt }) => PER_TICK * (Math.floor((Date.now() - openedAt) / tick) + 2);

const user = (index) => `person-${index}`;

async function person(judge, item, index) {
  const ticket = await waitFor(judge, item, user(index));
  return ticket !== null && ticket.status === 'ENTERABLE';
}

export default async function (spike) {
  const { item } = spike;
  const judge = new Judge();
  const first = (__VU - 1) * CROWD;
  const mine = Array.from({ length: Math.min(CROWD, PEOPLE - first) }, (_, offset) => first + offset);
  let going = true;
  const watching = __VU === 1 ? judge.watch(item, () => most(spike), () => going) : null;
  const inside = await accountedFor(mine.map((index) => person(judge, item, index)));
  going = false;
  await watching;
  judge.settle(mine.length, inside, PEOPLE, 0);
  judge.verdict();
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
  judge.verdict();
}
