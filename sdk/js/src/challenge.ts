// Challenges of lines that challenge new users: a proof of work, which is solved here, or a widget of a third party. SHA-256 is computed here, because `crypto.subtle` is asynchronous,
// which costs more than one hash, and browsers have it on secure pages only.

/** A challenge in the problem `CHALLENGE_REQUIRED`. */
export interface Challenge {
  kind: "pow" | "widget" | (string & {});
  /** The signed text: 48 hexadecimal digits. */
  challenge: string;
  /** The zero bits with which the SHA-256 of the challenge and the nonce, as bytes, begins; 0 for a widget. */
  difficulty: number;
  /** What to show, for the kind `widget`. */
  widget?: Widget;
}

/** A widget of a third party that a user solves. */
export interface Widget {
  provider: "turnstile" | "hcaptcha" | (string & {});
  siteKey: string;
  /** The address of the script that renders it. */
  script: string;
}

/** Returns the response of a widget that the user solved. Give it `challenge.challenge` as its data, if it takes any. */
export type OnChallenge = (challenge: Challenge, signal?: AbortSignal) => Promise<string>;

/** Returns the solution of a challenge: `<challenge>:<nonce>`. */
export type SolveChallenge = (challenge: Challenge, signal?: AbortSignal) => Promise<string>;

/** Time without a pause, below a frame of 60 Hz, so that a page that solves a challenge itself stays usable. */
const SLICE_MS = 12;
/** Hashes between two looks at the clock: well below 1 ms. */
const BATCH = 256;

/** The first word of the initial state (FIPS 180-4), which is added to the first word of the result. */
const INITIAL_A = 0x6a09e667;
const ROUND_CONSTANTS = roundConstants();

/** Returns the solution with the lowest nonce. Pauses every `sliceMs`, 12 ms by default. */
export async function solveChallenge({ kind, challenge, difficulty }: Challenge, signal?: AbortSignal, sliceMs = SLICE_MS): Promise<string> {
  if (kind !== "pow") throw new Error(`unknown challenge ${kind}: update this client`);
  const search = new NonceSearch(challenge, difficulty);
  for (;;) {
    signal?.throwIfAborted();
    const nonce = search.run(sliceMs);
    if (nonce !== null) return `${challenge}:${nonce.toString(16)}`;
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/** A search from nonce 0 that can pause. */
export class NonceSearch {
  readonly #block = new Int32Array(64);
  #nonce = 0;

  constructor(
    challenge: string,
    readonly difficulty: number,
  ) {
    if (!/^[0-9a-f]{48}$/i.test(challenge)) throw new Error("a challenge has 48 hexadecimal digits");
    for (let word = 0; word < 6; word++) this.#block[word] = Number.parseInt(challenge.slice(8 * word, 8 * word + 8), 16) | 0;
    // The end of a message of 32 bytes: a one bit, zeros, and its length in bits.
    this.#block[8] = 0x80000000 | 0;
    this.#block[15] = 256;
  }

  /** Returns the nonce, or null after `ms` without finding one. */
  run(ms: number): number | null {
    const end = performance.now() + ms;
    do {
      for (let left = BATCH; left > 0; left--) {
        const nonce = this.#nonce++;
        this.#block[6] = Math.floor(nonce / 0x1_0000_0000) | 0;
        this.#block[7] = nonce | 0;
        if (leadingZeros(this.#block) >= this.difficulty) return nonce;
      }
    } while (performance.now() < end);
    return null;
  }
}

/** Returns the leading zero bits of the SHA-256 of one block, up to 32. Words 16 to 63 are the schedule, which it fills. */
function leadingZeros(w: Int32Array): number {
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!;
    const y = w[i - 2]!;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
  }
  let a = INITIAL_A;
  let b = 0xbb67ae85 | 0;
  let c = 0x3c6ef372;
  let d = 0xa54ff53a | 0;
  let e = 0x510e527f;
  let f = 0x9b05688c | 0;
  let g = 0x1f83d9ab;
  let h = 0x5be0cd19;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUND_CONSTANTS[i]! + w[i]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  return Math.clz32((a + INITIAL_A) | 0);
}

/** Returns the first 32 bits of the fractions of the cube roots of the first 64 primes (FIPS 180-4). */
function roundConstants(): Int32Array {
  const constants: number[] = [];
  for (let n = 2; constants.length < 64; n++) {
    let isPrime = true;
    for (let factor = 2; factor * factor <= n; factor++) isPrime &&= n % factor !== 0;
    if (isPrime) constants.push(((Math.cbrt(n) % 1) * 0x1_0000_0000) | 0);
  }
  return Int32Array.from(constants);
}
