// A whole sale: PEOPLE (300) storm a line for STOCK (100) seats of which INSIDE (20) may be looked at at once. People poll
// when they are told to, order or change their mind when they are let in, some walk away while they wait; every order
// lowers the stock; sold out reaches everybody who still waits. SALES (1) such sales run side by side, one item and one
// VU each, so that each is judged as a whole.
//
//   k6 run -e DAEGI_ADMIN_TOKEN=… [-e PEOPLE=2000 -e STOCK=500 -e INSIDE=100] [-e SALES=4] k6/sale.js
import { Judge, accountedFor, fair } from './lib/judge.js';
import { waitFor } from './lib/person.js';
import { close, complete, leave, open, restock, sleep, verify } from './lib/room.js';

const PEOPLE = Number(__ENV.PEOPLE || 300);
const STOCK = Number(__ENV.STOCK || 100);
const INSIDE = Number(__ENV.INSIDE || 20);
const SALES = Number(__ENV.SALES || 1);

export const options = {
  scenarios: { sales: { executor: 'per-vu-iterations', vus: SALES, iterations: 1, maxDuration: '15m' } },
  thresholds: fair(SALES, {
    'http_req_duration{name:join}': [`p(99)<${__ENV.JOIN_P99_MS || 2000}`],
    'http_req_duration{name:poll}': [`p(99)<${__ENV.POLL_P99_MS || 1000}`],
  }),
  batchPerHost: 0,
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

export function setup() {
  return { run: Date.now() };
}

/// What the order and product services know of one sale.
class Shop {
  constructor(item) {
    Object.assign(this, { item, stock: STOCK, sold: 0, told: STOCK, atTill: 0 });
  }

  /// How many may be inside: as many as the policy and the seats left allow, and who has taken a seat but not gone yet.
  room() {
    return Math.min(INSIDE, this.told + this.atTill);
  }

  async order(token) {
    if (!(await verify(this.item, token))) return false;
    await sleep(200 + 800 * Math.random());
    if (Math.random() < 0.1) return leave(this.item, token);
    // The order service takes the seat first and says so; the slot is freed after the product service knows.
    this.stock -= 1;
    this.sold += 1;
    this.atTill += 1;
    this.tell();
    const gone = await complete(this.item, token);
    this.atTill -= 1;
    return gone;
  }

  /// A seat sold twice is for the judge to find; a stock below zero would be refused and end the sale unjudged.
  tell() {
    const left = Math.max(0, this.stock);
    if (this.told !== left) restock(this.item, left);
    this.told = left;
  }
}

/// One person's evening; every way it ends is an account of it.
async function person(judge, shop, index) {
  await sleep(2000 * Math.random());
  const givesUp = (ticket) => ticket.lineState === 'SOLD_OUT' || Math.random() < 0.005;
  const ticket = await waitFor(judge, shop.item, `person-${index}`, givesUp);
  // Refused a place: sold out before they came.
  if (!ticket) return shop.stock <= 0;
  if (ticket.status === 'WAITING') return leave(shop.item, ticket.token);
  return ticket.status === 'ENTERABLE' && shop.order(ticket.token);
}

export default async function ({ run }) {
  const shop = new Shop(`sale-${run}-${__VU}`);
  const policy = { tokensPerTick: Math.max(1, Math.ceil(INSIDE / 2)), maxActive: INSIDE, passTtlSeconds: 300, guard: 'online' };
  open(shop.item, STOCK, policy);
  const judge = new Judge();
  let going = true;
  const watching = judge.watch(shop.item, () => shop.room(), () => going);
  const people = Array.from({ length: PEOPLE }, (_, index) => person(judge, shop, index));
  const accounted = await accountedFor(people);
  going = false;
  await watching;
  judge.settle(PEOPLE, accounted, STOCK, shop.sold);
  judge.empty(shop.item);
  console.log(`${shop.item}: ${shop.sold} of ${STOCK} sold, ${accounted} of ${PEOPLE} people accounted for`);
  close(shop.item);
  judge.verdict();
}
