// Hands a ticket over to another device of its user.

import type { WaitingRoom } from "./room.js";
import type { Ticket } from "./wire.js";

/** A code with which another device gets the ticket, once. */
export interface Handover {
  code: string;
  /** Unix milliseconds, by the server's clock. */
  issuedAt: number;
  expiresInMs: number;
}

/** Returns a code for another device. Until it is used or expires, it is as secret as the token. */
export async function issueHandover(room: WaitingRoom, token: string): Promise<Handover> {
  return (await room.request("/me/handover", { method: "POST", token })).json() as Promise<Handover>;
}

/** Returns whether a code was used, or a newer one of the same ticket. */
export async function isHandoverUsed(room: WaitingRoom, token: string, { issuedAt }: Handover): Promise<boolean> {
  const { usedUpTo } = (await (await room.request("/me/handover", { token })).json()) as { usedUpTo: number | null };
  return usedUpTo !== null && usedUpTo >= issuedAt;
}

/** Uses a code of another device. Returns its ticket, which both devices can follow. Throws `INVALID_CODE` if the code does not work. */
export async function takeOver(room: WaitingRoom, code: string): Promise<Ticket> {
  return (await room.request("/handover", { method: "POST", body: { code } })).json() as Promise<Ticket>;
}
