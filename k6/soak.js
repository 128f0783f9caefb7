// Constant load: RATE (20) users per second for MINUTES (10) join, wait, complete about 1 s after their admission and end. Every 30 s the
// users of 5 s arrive together and fill the entry set. The line must not grow or lose users, and latency must not rise. A VU simulates up to
// 100 users per second in its own line, so that each line is checked as a whole.
//
//   k6 run -e DAEGI_ADMIN_TOKEN=… [-e RATE=200 -e MINUTES=120] k6/soak.js
import { Checker, finished, thresholds } from './lib/checker.js';
import { waitFor } from './lib/virtual-user.js';
import { close, complete, open, sleep } from './lib/client.js';

const RATE = Number(__ENV.RATE || 20);
const MINUTES = Number(__ENV.MINUTES || 10);
const LINES = Math.ceil(RATE / 100);
/// Users per second in one line, and its maximum number of entries.
const LINE_RATE = RATE / LINES;
const CAPACITY = Math.ceil(LINE_RATE * 3);
const [RUSH_EVERY, RUSH] = [30, 5];

export const options = {
  scenarios: { lines: { executor: 'per-vu-iterations', vus: LINES, iterations: 1, maxDuration: `${MINUTES + 5}m` } },
  thresholds: thresholds(LINES, {
    'http_req_duration{name:join}': [`p(99)<${__ENV.JOIN_P99_MS || 1000}`],
    'http_req_duration{name:poll}': [`p(99)<${__ENV.POLL_P99_MS || 500}`],
  }),
  batchPerHost: 0,
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

export function setup() {
  return { run: Date.now() };
}

async function virtualUser(checker, item, user) {
  const ticket = await waitFor(checker, item, user);
  if (!ticket || ticket.status !== 'ENTERABLE') return false;
  await sleep(500 + 1000 * Math.random());
  return complete(item, ticket.token);
}

/// Calls `start` for each arrival.
async function arrivals(start) {
  const [end, pause] = [Date.now() + MINUTES * 60_000, (1000 * RUSH_EVERY) / (LINE_RATE * (RUSH_EVERY - RUSH))];
  for (let rush = 0; Date.now() < end; ) {
    if (Date.now() >= rush) {
      for (let count = 0; count < LINE_RATE * RUSH; count += 1) start();
      rush = Date.now() + RUSH_EVERY * 1000;
    }
    await sleep(pause * (0.5 + Math.random()));
    start();
  }
}

export default async function ({ run }) {
  const item = `soak-${run}-${__VU}`;
  // The quota exceeds the capacity, so that the capacity limits a rush.
  open(item, 1_000_000_000, { tokensPerTick: CAPACITY * 2, maxActive: CAPACITY, passTtlSeconds: 600, guard: 'online' });
  const checker = new Checker();
  let running = true;
  const watch = checker.watch(item, () => CAPACITY, () => running);
  const users = [];
  await arrivals(() => users.push(virtualUser(checker, item, `user-${users.length}`)));
  const finishedUsers = await finished(users);
  running = false;
  await watch;
  checker.checkEnd(users.length, finishedUsers, Infinity, 0);
  checker.checkDense();
  checker.checkEmpty(item);
  console.log(`${item}: ${finishedUsers} of ${users.length} users finished`);
  close(item);
  checker.verdict();
}
