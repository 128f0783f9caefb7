// Solves proofs of work (docs/API.md, Challenges). The SHA-256 of k6 is native code, so that users with few bits cost little.
import crypto from 'k6/crypto';

/// The leading zero bits of a hash, up to 32.
const leadingZeros = (hash) => Math.clz32(new DataView(hash).getUint32(0));

/// The solution of a challenge: `<challenge>:<nonce>`. `from` is the first nonce to try.
export function solve({ challenge, difficulty }, from = 0) {
  const block = new Uint8Array(32);
  for (let byte = 0; byte < 24; byte += 1) block[byte] = parseInt(challenge.slice(2 * byte, 2 * byte + 2), 16);
  const view = new DataView(block.buffer);
  for (let nonce = from; ; nonce += 1) {
    view.setUint32(28, nonce);
    if (leadingZeros(crypto.sha256(block.buffer, 'binary')) >= difficulty) return `${challenge}:${nonce.toString(16)}`;
  }
}

/// A text of the same form that does not solve the challenge.
export function fail({ challenge }) {
  return `${challenge}:0`;
}
