// Checks the record of a draw (GET …/draw) in the browser, as docs/DRAW.md specifies. Self-contained, so that a page can
// load it only when a visitor asks for the proof. The signature of a beacon is not checked: `daegi verify draw` does.

/** The JSON of GET …/draw. */
export interface DrawRecord {
  itemId: string;
  version: number;
  state: "COMMITTED" | "DRAWN";
  commitment: string;
  reveal: string | null;
  cohortFirst: number | null;
  cohortSize: number | null;
  cohortRoot: string | null;
  beacon: string | null;
  seed: string | null;
  beaconRound?: number;
  beaconSignature?: string;
  /** The cohort, while the draw waits for the round of its beacon: the record of the draw must have the same. */
  frozen?: { cohortFirst: number; cohortSize: number; cohortRoot: string };
  ticket?: DrawTicket;
}

/** One ticket of the cohort, with the proof that the draw included its token. */
export interface DrawTicket {
  number: number;
  leaf: string;
  index: number;
  path: string[];
  rank: number;
}

/** The names of the checks in docs/DRAW.md. */
export type DrawCheckName = "version" | "fields" | "commitment" | "beacon" | "seed" | "number" | "rank" | "path" | "token";

export interface DrawCheck {
  name: DrawCheckName;
  ok: boolean;
}

type Word = [low: number, high: number];

const MAX_NUMBERS = 2 ** 48;
const TOKEN = /^.+-(([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f])[0-9a-f]{2}-[0-9a-f]{4}-[0-9a-f]{12})$/;

/** Checks everything that follows from a record, and with a token that the draw included this token. */
export async function checkDraw(record: DrawRecord, token?: string | null): Promise<{ ok: boolean; checks: DrawCheck[] }> {
  const checks: DrawCheck[] = [];
  const add = (name: DrawCheckName, ok: boolean) => (checks.push({ name, ok }), ok);
  const result = () => ({ ok: checks.every((check) => check.ok), checks });
  const { itemId, commitment, reveal, cohortFirst, cohortSize, cohortRoot, beacon, seed, ticket } = record;

  if (!add("version", record.version === 1)) return result();
  if (record.state === "COMMITTED") {
    const results = [reveal, cohortFirst, cohortSize, cohortRoot, beacon, seed, ticket];
    add("fields", results.every((field) => field == null) && isHash(commitment));
    return result();
  }
  const first = cohortFirst ?? -1;
  const size = cohortSize ?? -1;
  const hashes = [commitment, reveal, cohortRoot, seed, beacon ?? commitment].concat(ticket ? [ticket.leaf, ...ticket.path] : []);
  const isComplete = record.state === "DRAWN" && hashes.every(isHash) && [first, size].every((field) => field >= 0);
  if (!add("fields", isComplete && first + size <= MAX_NUMBERS) || !reveal || !cohortRoot || !seed) return result();

  add("commitment", (await sha256(bytes(reveal))) === commitment);
  add("beacon", await checkBeacon(record));
  add("seed", (await sha256(text(`daegi-draw-v1\0${itemId}\0`), bytes(reveal + cohortRoot + (beacon ?? "")))) === seed);

  const isInCohort = (number: number) => number >= first && number < first + size;
  if (ticket) {
    const { number, index, leaf, path } = ticket;
    add("number", isInCohort(number) && number - first === index);
    add("rank", isInCohort(number) && permute(bytes(seed), size, number - first) + 1 === ticket.rank);
    add("path", (await rootOf(leaf, index, size, path)) === cohortRoot);
  }
  if (token) {
    const [, uuid, high, low, lane] = TOKEN.exec(token) ?? [];
    const number = parseInt(`${high}${low}`, 16);
    const suffix = `-${itemId}-${uuid}`;
    const isDrawn = lane === "0" && isInCohort(number);
    const isProven = ticket ? isDrawn && ticket.number === number && ticket.leaf === (await sha256(text(token))) : !isDrawn;
    add("token", isProven && token.endsWith(suffix) && token.length > suffix.length);
  }
  return result();
}

/** Returns the rank from 0 of an index of a cohort: the Feistel network of the seed, repeated until below the size. */
export function permute(seed: Uint8Array, size: number, index: number): number {
  // Numbers have 48 bits, so that a half has at most 24 and fits the integer operators.
  let half = 2;
  while (half * half < size) half *= 2;
  let rank = index;
  do {
    let left = Math.floor(rank / half);
    let right = rank % half;
    for (let round = 0; round < 12; round++) {
      [left, right] = [right, left ^ (sipHash(seed, round, right) & (half - 1))];
    }
    rank = left * half + right;
  } while (rank >= size);
  return rank;
}

/** Returns the low 32 bits of SipHash-2-4 over `round (u8) ‖ half (u64, big-endian)`. The half has at most 24 bits. */
function sipHash(key: Uint8Array, round: number, half: number): number {
  const view = new DataView(key.buffer, key.byteOffset);
  const word = (at: number, low: number, high: number): Word => [view.getInt32(at, true) ^ low, view.getInt32(at + 4, true) ^ high];
  const v0 = word(0, 0x70736575, 0x736f6d65);
  const v1 = word(8, 0x6e646f6d, 0x646f7261);
  const v2 = word(0, 0x6e657261, 0x6c796765);
  const v3 = word(8, 0x79746573, 0x74656462);
  const mix = (rounds: number) => {
    while (rounds--) {
      sum(v0, v1), turn(v1, 13), xor(v1, v0), turn(v0, 32);
      sum(v2, v3), turn(v3, 16), xor(v3, v2);
      sum(v0, v3), turn(v3, 21), xor(v3, v0);
      sum(v2, v1), turn(v1, 17), xor(v1, v2), turn(v2, 32);
    }
  };
  // The nine bytes of the message as two little-endian words; the highest byte is their count.
  const head: Word = [round, (half & 0xff0000) | ((half & 0xff00) << 16)];
  const tail: Word = [half & 0xff, 9 << 24];
  for (const message of [head, tail]) {
    xor(v3, message);
    mix(2);
    xor(v0, message);
  }
  v2[0] ^= 0xff;
  mix(4);
  return v0[0] ^ v1[0] ^ v2[0] ^ v3[0];
}

function sum(a: Word, b: Word): void {
  const low = (a[0] >>> 0) + (b[0] >>> 0);
  a[1] = (a[1] + b[1] + (low > 0xffffffff ? 1 : 0)) | 0;
  a[0] = low | 0;
}

function xor(a: Word, b: Word): void {
  a[0] ^= b[0];
  a[1] ^= b[1];
}

/** Rotates to the left by at most 32 bits. */
function turn(a: Word, by: number): void {
  const [low, high] = a;
  if (by === 32) [a[0], a[1]] = [high, low];
  else [a[0], a[1]] = [(low << by) | (high >>> (32 - by)), (high << by) | (low >>> (32 - by))];
}

/** Returns the root to which an inclusion path leads (RFC 9162, 2.1.3.2), or null if the path has another length. */
export async function rootOf(leaf: string, index: number, size: number, path: string[]): Promise<string | null> {
  let node = index;
  let last = size - 1;
  let hash = await sha256(bytes("00" + leaf));
  const up = () => {
    node = Math.floor(node / 2);
    last = Math.floor(last / 2);
  };
  for (const sibling of path) {
    if (last <= 0) return null;
    const isRight = node % 2 === 1 || node === last;
    hash = await sha256(bytes("01" + (isRight ? sibling + hash : hash + sibling)));
    // The last node of a level without a sibling moves up unchanged.
    while (isRight && node % 2 === 0 && node > 0) up();
    up();
  }
  return last === 0 && index < size ? hash : null;
}

async function checkBeacon({ beacon, beaconRound, beaconSignature }: DrawRecord): Promise<boolean> {
  if (beaconSignature == null) return beaconRound == null || beacon != null;
  const isSignature = /^[0-9a-f]{96}$/.test(beaconSignature);
  return beaconRound != null && isSignature && (await sha256(bytes(beaconSignature))) === beacon;
}

function isHash(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

function text(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

function bytes(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

async function sha256(...parts: Uint8Array[]): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", Uint8Array.from(parts.flatMap((part) => [...part])));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
