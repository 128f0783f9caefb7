// A rush on a plain Service: each VU is a person who joins once, keeps the connection and polls.
//   k6 run -e BASE=http://… -e VUS=300 -e SECONDS=180 infra/cluster/spike.js
import http from 'k6/http';
import { sleep } from 'k6';

export const options = {
  scenarios: { rush: { executor: 'constant-vus', vus: Number(__ENV.VUS || 300), duration: `${__ENV.SECONDS || 180}s`, gracefulStop: '5s' } },
  thresholds: { http_req_failed: ['rate==0'] },
  summaryTrendStats: ['med', 'p(95)', 'p(99)', 'max'],
};

const line = `${__ENV.BASE}/api/v1/item/crowd/waiting-queue`;
const people = `k6-${__ENV.RUN || Date.now()}`;
let token;

export default function () {
  if (!token) {
    token = http.post(line, null, { headers: { 'user-id': `${people}-${__VU}` }, tags: { name: 'join' } }).json('token');
  }
  http.get(`${line}/${token}`, { tags: { name: 'poll' } });
  sleep(0.15 + Math.random() * 0.1);
}
