// The calls of a waiting room, as people, order services and operators make them.
//
// DAEGI_PUBLIC, DAEGI_INTERNAL, DAEGI_ADMIN: where people, services and operators knock. Several public addresses,
// separated by commas, are taken in turn, as a balancer would. DAEGI_ADMIN_TOKEN opens the last one.
import http from 'k6/http';
import { Counter } from 'k6/metrics';
import encoding from 'k6/encoding';
import { setTimeout } from 'k6/timers';

const PUBLIC = (__ENV.DAEGI_PUBLIC || 'http://127.0.0.1:8080').split(',');
const INTERNAL = __ENV.DAEGI_INTERNAL || 'http://127.0.0.1:8081';
const ADMIN = __ENV.DAEGI_ADMIN || INTERNAL;
const ADMIN_TOKEN = __ENV.DAEGI_ADMIN_TOKEN;

/// Answers of 500 and above, and requests without an answer.
export const serverErrors = new Counter('server_errors');
/// Refusals nobody asked for.
export const refusals = new Counter('refusals');

let turn = 0;

export const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

async function call(method, url, body, params, name) {
  const answer = await http.asyncRequest(method, url, body, { ...params, tags: { name }, timeout: '35s' });
  if (answer.status === 0 || answer.status >= 500) serverErrors.add(1, { name, status: String(answer.status) });
  return answer;
}

function line(item) {
  turn += 1;
  return `${PUBLIC[turn % PUBLIC.length]}/api/v1/item/${item}/waiting-queue`;
}

const json = { headers: { 'content-type': 'application/json' } };

/// The ticket, or null for somebody who was refused a place.
export async function join(item, user) {
  const answer = await call('POST', line(item), null, { headers: { 'user-id': user } }, 'join');
  return answer.status === 201 || answer.status === 200 ? answer.json() : null;
}

/// The ticket, or null if this poll had no answer.
export async function poll(item, token) {
  const answer = await call('GET', `${line(item)}/${token}`, null, {}, 'poll');
  if (answer.status !== 200 && answer.status < 500) refusals.add(1, { status: String(answer.status) });
  return answer.status === 200 ? answer.json() : null;
}

export async function leave(item, token) {
  return (await call('DELETE', `${line(item)}/${token}`, null, {}, 'leave')).status === 204;
}

/// As the order service: was this person let in?
export async function verify(item, token) {
  const body = JSON.stringify({ token });
  const answer = await call('POST', `${INTERNAL}/internal/v1/item/${item}/entry/verify`, body, json, 'verify');
  return answer.status === 200 && answer.json('valid') === true;
}

/// As the order service: the order is placed, the slot is free.
export async function complete(item, token) {
  const body = JSON.stringify({ token });
  const answer = await call('POST', `${INTERNAL}/internal/v1/item/${item}/entry/complete`, body, json, 'complete');
  return answer.status === 200 && answer.json('released') === true;
}

function operator(method, path, body) {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };
  const text = body === undefined ? null : JSON.stringify(body);
  const answer = http.request(method, `${ADMIN}/internal/admin/v1/${path}`, text, { headers, tags: { name: 'admin' } });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
  return answer.status === 204 ? null : answer.json();
}

/// An open line with a policy of its own.
export function open(item, stock, policy) {
  return operator('POST', 'waiting-item', { itemId: item, itemName: item, remainCount: stock, policy });
}

export function close(item) {
  operator('DELETE', `waiting-item/${item}`);
}

/// What the product service would say after an order.
export function restock(item, stock) {
  const body = { itemName: item, remainCount: stock, waitingQueueEnabled: true };
  operator('POST', `waiting-item/${item}/manually`, body);
}

export function tickMs() {
  return operator('GET', 'waiting-queue/tick-ms').tickMs;
}

export function counts(item) {
  const { items } = operator('GET', `waiting-queue/token-count?itemId=${item}`);
  return { waiting: items[0].waitingTokenCount, inside: items[0].enteredTokenCount };
}

/// The number a token carries: the first 48 bits of its UUID.
export function numberOf(token) {
  return parseInt(token.slice(-36).replaceAll('-', '').slice(0, 12), 16);
}

export function claimsOf(pass) {
  return JSON.parse(encoding.b64decode(pass.split('.')[1], 'rawurl', 's'));
}
