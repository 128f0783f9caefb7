// A line with `challenge: pow`: HONEST (100) users solve their challenges, CAMPUS (40) of them behind one address, while programs at
// 50 addresses join as FAKES (2000) other users and do not solve: they send nothing, the nonce 0, or the solution of another user. One of
// the 50 addresses is that of the campus. No program gets a place, no honest user is refused, and the places of honest users are those of
// their arrival. k6/run.sh trusts this machine as a proxy, so that X-Forwarded-For names the addresses.
//
//   k6/run.sh bots.js one -e HONEST=500 -e CAMPUS=200 -e FAKES=20000
import { scenario } from 'k6/execution';
import http from 'k6/http';
import { Counter, Trend } from 'k6/metrics';
import { Checker, finished, thresholds } from './lib/checker.js';
import { fail, solve } from './lib/challenge.js';
import { close, lineOf, lineUrl, open, serverErrors, sleep } from './lib/client.js';

const HONEST = Number(__ENV.HONEST || 100);
const CAMPUS = Number(__ENV.CAMPUS || 40);
const FAKES = Number(__ENV.FAKES || 2000);
const [ADDRESSES, FAKE_VUS, PARALLEL] = [50, 5, 8];
/// Over these seconds honest users arrive.
const ARRIVAL_SECONDS = Number(__ENV.ARRIVAL_SECONDS || 10);

const fakePlaces = new Counter('fake_places');
const honestRefusals = new Counter('honest_refusals');
const wrongReplies = new Counter('wrong_replies');
const challenged = new Counter('fakes_challenged');
const limited = new Counter('fakes_limited');
const bits = new Trend('honest_bits');
const campusBits = new Trend('campus_bits');

export const options = {
  scenarios: {
    honest: { executor: 'per-vu-iterations', exec: 'honest', vus: 1, iterations: 1, maxDuration: '15m' },
    fakes: { executor: 'per-vu-iterations', exec: 'fakes', vus: FAKE_VUS, iterations: 1, maxDuration: '15m' },
  },
  // The honest users and the teardown have a verdict.
  thresholds: thresholds(2 + FAKE_VUS, {
    fake_places: ['count==0'],
    honest_refusals: ['count==0'],
    wrong_replies: ['count==0'],
    fakes_challenged: [`count>${FAKES / 2}`],
  }),
  batchPerHost: 0,
  teardownTimeout: '1m',
  summaryTrendStats: ['min', 'med', 'p(95)', 'max'],
};

const CAMPUS_ADDRESS = '203.0.113.1';
const honestAddress = (index) => (index < CAMPUS ? CAMPUS_ADDRESS : `198.51.${100 + (index >> 8)}.${index & 255}`);
const fakeAddress = (index) => `203.0.113.${1 + (index % ADDRESSES)}`;

export function setup() {
  for (const counter of [fakePlaces, honestRefusals, wrongReplies, limited]) counter.add(0);
  const item = `bots-${Date.now()}`;
  // No ticket is admitted meanwhile, so that all places are seen.
  open(item, HONEST, { challenge: 'pow', tokensPerTick: 0, graceSeconds: 0 });
  return { item };
}

async function send(item, user, address, solution) {
  const headers = { 'user-id': user, 'x-forwarded-for': address, ...(solution && { 'daegi-challenge': solution }) };
  const response = await http.asyncRequest('POST', lineUrl(item), null, { headers, tags: { name: 'join' }, timeout: '35s' });
  if (response.status === 0 || response.status >= 500) serverErrors.add(1, { name: 'join', status: String(response.status) });
  return response;
}

/// The challenge of a refused join, or null.
const challengeOf = (response) => (response.status === 403 ? response.json('challenge') : null);

async function honestUser(checker, item, index) {
  const [user, address] = [`honest-${index}`, honestAddress(index)];
  await sleep((1000 * ARRIVAL_SECONDS * index) / HONEST);
  const challenge = challengeOf(await send(item, user, address));
  if (!challenge) return honestRefusals.add(1);
  (address === CAMPUS_ADDRESS ? campusBits : bits).add(challenge.difficulty);
  const solution = solve(challenge);
  const startedAt = Date.now();
  const response = await send(item, user, address, solution);
  if (response.status !== 201) return honestRefusals.add(1, { status: String(response.status) });
  checker.joined(user, response.json(), startedAt);
  return true;
}

export async function honest({ item }) {
  const checker = new Checker();
  const users = Array.from({ length: HONEST }, (_, index) => honestUser(checker, item, index));
  checker.checkEnd(HONEST, await finished(users), Infinity, 0);
  checker.checkDense();
  checker.verdict();
}

/// A program: one join without a solution, and every third time another one that does not solve.
async function fakeUser(item, index, foreign) {
  const [user, address] = [`fake-${index}`, fakeAddress(index)];
  const first = await send(item, user, address);
  count(first);
  const challenge = challengeOf(first);
  if (!challenge || index % 3 > 0) return;
  // With 8 bits or more the nonce 0 solves one challenge of 256: then it is not sent.
  const solution = index % 2 > 0 ? foreign : fail(challenge);
  if (solve(challenge) !== solution) count(await send(item, user, address, solution));
}

function count({ status }) {
  if (status === 200 || status === 201) fakePlaces.add(1);
  else if (status === 403) challenged.add(1);
  else if (status === 429) limited.add(1);
  else wrongReplies.add(1, { status: String(status) });
}

export async function fakes({ item }) {
  const checker = new Checker();
  const part = scenario.iterationInTest;
  const [first, last] = [part, part + 1].map((index) => Math.floor((FAKES * index) / FAKE_VUS));
  // A solution that is valid for another user.
  const foreign = solve(challengeOf(await send(item, `foreign-${part}`, '192.0.2.1')));
  let next = first;
  const program = async () => {
    while (next < last) await fakeUser(item, next++, foreign);
  };
  await Promise.all(Array.from({ length: PARALLEL }, program));
  checker.verdict();
}

/// Exactly the honest users wait.
export async function teardown({ item }) {
  const checker = new Checker();
  // The public view may be a second old.
  await sleep(1500);
  const { waitingCount } = await lineOf(item);
  checker.checkEnd(HONEST, waitingCount, Infinity, 0);
  if (waitingCount > HONEST) fakePlaces.add(waitingCount - HONEST);
  close(item);
  checker.verdict();
}
