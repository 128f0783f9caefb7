// A whole sale: PEOPLE (300) users join a line for STOCK (100) seats with at most INSIDE (20) entries. Users poll as
// `pollAfterMs` says and order or leave when they are admitted; some leave while they wait. Every order lowers the stock, and
// waiting users receive SOLD_OUT. SALES (1) sales run in parallel, each with one item and one VU, so that each is checked as a whole.
//
//   k6 run -e DAEGI_ADMIN_TOKEN=… [-e PEOPLE=2000 -e STOCK=500 -e INSIDE=100] [-e SALES=4] k6/sale.js
import { Checker, finished, thresholds } from './lib/checker.js';
import { waitFor } from './lib/virtual-user.js';
import { close, complete, leave, open, restock, sleep, verify } from './lib/client.js';

const PEOPLE = Number(__ENV.PEOPLE || 300);
const STOCK = Number(__ENV.STOCK || 100);
const INSIDE = Number(__ENV.INSIDE || 20);
const SALES = Number(__ENV.SALES || 1);

export const options = {
  scenarios: { sales: { executor: 'per-vu-iterations', vus: SALES, iterations: 1, maxDuration: '15m' } },
  thresholds: thresholds(SALES, {
    'http_req_duration{name:join}': [`p(99)<${__ENV.JOIN_P99_MS || 2000}`],
    'http_req_duration{name:poll}': [`p(99)<${__ENV.POLL_P99_MS || 1000}`],
  }),
  batchPerHost: 0,
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

export function setup() {
  return { run: Date.now() };
}

/// The state of the order and product services of one sale.
class Shop {
  constructor(item) {
    Object.assign(this, { item, stock: STOCK, sold: 0, published: STOCK, completing: 0 });
  }

  /// Maximum number of entries: the policy, or the published stock plus orders that are being completed.
  capacity() {
    return Math.min(INSIDE, this.published + this.completing);
  }

  async order(token) {
    if (!(await verify(this.item, token))) return false;
    await sleep(200 + 800 * Math.random());
    if (Math.random() < 0.1) return leave(this.item, token);
    // The order service publishes the stock first; the entry ends after the product service knows.
    this.stock -= 1;
    this.sold += 1;
    this.completing += 1;
    this.publishStock();
    const ended = await complete(this.item, token);
    this.completing -= 1;
    return ended;
  }

  /// The checker finds seats sold twice; a negative stock would be refused and end the sale without a verdict.
  publishStock() {
    const left = Math.max(0, this.stock);
    if (this.published !== left) restock(this.item, left);
    this.published = left;
  }
}

/// One user; returns whether the visit ended as expected.
async function virtualUser(checker, shop, index) {
  await sleep(2000 * Math.random());
  const givesUp = (ticket) => ticket.lineState === 'SOLD_OUT' || Math.random() < 0.005;
  const ticket = await waitFor(checker, shop.item, `user-${index}`, givesUp);
  // Refused: sold out before the join.
  if (!ticket) return shop.stock <= 0;
  if (ticket.status === 'WAITING') return leave(shop.item, ticket.token);
  return ticket.status === 'ENTERABLE' && shop.order(ticket.token);
}

export default async function ({ run }) {
  const shop = new Shop(`sale-${run}-${__VU}`);
  const policy = { tokensPerTick: Math.max(1, Math.ceil(INSIDE / 2)), maxActive: INSIDE, passTtlSeconds: 300, guard: 'online' };
  open(shop.item, STOCK, policy);
  const checker = new Checker();
  let running = true;
  const watch = checker.watch(shop.item, () => shop.capacity(), () => running);
  const users = Array.from({ length: PEOPLE }, (_, index) => virtualUser(checker, shop, index));
  const finishedUsers = await finished(users);
  running = false;
  await watch;
  checker.checkEnd(PEOPLE, finishedUsers, STOCK, shop.sold);
  checker.checkEmpty(shop.item);
  console.log(`${shop.item}: ${shop.sold} of ${STOCK} sold, ${finishedUsers} of ${PEOPLE} users finished`);
  close(shop.item);
  checker.verdict();
}
