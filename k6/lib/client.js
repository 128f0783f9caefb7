// Calls of users, order services and operators.
//
// DAEGI_PUBLIC, DAEGI_INTERNAL, DAEGI_ADMIN: URLs of the public, internal and admin API. Several public URLs, separated by commas,
// are used in turn, as by a load balancer. DAEGI_ADMIN_TOKEN authenticates admin calls.
import http from 'k6/http';
import { Counter } from 'k6/metrics';
import encoding from 'k6/encoding';
import { setTimeout } from 'k6/timers';

const PUBLIC = (__ENV.DAEGI_PUBLIC || 'http://127.0.0.1:8080').split(',');
const INTERNAL = __ENV.DAEGI_INTERNAL || 'http://127.0.0.1:8081';
const ADMIN = __ENV.DAEGI_ADMIN || INTERNAL;
const ADMIN_TOKEN = __ENV.DAEGI_ADMIN_TOKEN;

/// Responses of 500 and above, and requests without a response.
export const serverErrors = new Counter('server_errors');
/// Unexpected 4xx responses.
export const refusals = new Counter('refusals');

let requests = 0;

export const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));

async function call(method, url, body, params, name, tags = {}) {
  const response = await http.asyncRequest(method, url, body, { ...params, tags: { ...tags, name }, timeout: '35s' });
  if (response.status === 0 || response.status >= 500) serverErrors.add(1, { name, status: String(response.status) });
  return response;
}

/// The URL of a line at the next api.
export function lineUrl(item) {
  requests += 1;
  return `${PUBLIC[requests % PUBLIC.length]}/api/v1/item/${item}/waiting-queue`;
}

const json = { headers: { 'content-type': 'application/json' } };

/// The ticket, or null if the join was refused. `tags` distinguish joins in thresholds.
export async function join(item, user, tags) {
  const response = await call('POST', lineUrl(item), null, { headers: { 'user-id': user } }, 'join', tags);
  return response.status === 201 || response.status === 200 ? response.json() : null;
}

/// The ticket, or null if the poll failed.
export async function poll(item, token) {
  const response = await call('GET', `${lineUrl(item)}/${token}`, null, {}, 'poll');
  if (response.status !== 200 && response.status < 500) refusals.add(1, { status: String(response.status) });
  return response.status === 200 ? response.json() : null;
}

export async function leave(item, token) {
  return (await call('DELETE', `${lineUrl(item)}/${token}`, null, {}, 'leave')).status === 204;
}

/// The public view of the line; an empty object if the request failed.
export async function lineOf(item) {
  const response = await call('GET', lineUrl(item), null, {}, 'line');
  return response.status === 200 ? response.json() : {};
}

/// As an order service: whether the token has an entry.
export async function verify(item, token) {
  const body = JSON.stringify({ token });
  const response = await call('POST', `${INTERNAL}/internal/v1/item/${item}/entry/verify`, body, json, 'verify');
  return response.status === 200 && response.json('valid') === true;
}

/// As an order service: ends the entry after an order.
export async function complete(item, token) {
  const body = JSON.stringify({ token });
  const response = await call('POST', `${INTERNAL}/internal/v1/item/${item}/entry/complete`, body, json, 'complete');
  return response.status === 200 && response.json('released') === true;
}

function admin(method, path, body) {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };
  const text = body === undefined ? null : JSON.stringify(body);
  const response = http.request(method, `${ADMIN}/internal/admin/v1/${path}`, text, { headers, tags: { name: 'admin' } });
  if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.body}`);
  return response.status === 204 ? null : response.json();
}

/// Creates an item with a policy.
export function open(item, stock, policy) {
  return admin('POST', 'waiting-item', { itemId: item, itemName: item, remainCount: stock, policy });
}

/// Plans the opening of an empty line.
export function planOpening(item, opening) {
  return admin('PATCH', `waiting-item/${item}/policy`, { opening });
}

export function close(item) {
  admin('DELETE', `waiting-item/${item}`);
}

/// Sets the stock, as the product service does after an order.
export function restock(item, stock) {
  const body = { itemName: item, remainCount: stock, waitingQueueEnabled: true };
  admin('POST', `waiting-item/${item}/manually`, body);
}

export function tickMs() {
  return admin('GET', 'waiting-queue/tick-ms').tickMs;
}

export function counts(item) {
  const { items } = admin('GET', `waiting-queue/token-count?itemId=${item}`);
  return { waiting: items[0].waitingTokenCount, entered: items[0].enteredTokenCount };
}

/// The number of a token: the first 48 bits of its UUID.
export function numberOf(token) {
  return parseInt(token.slice(-36).replaceAll('-', '').slice(0, 12), 16);
}

export function claimsOf(pass) {
  return JSON.parse(encoding.b64decode(pass.split('.')[1], 'rawurl', 's'));
}
