// The signed identity with which a visitor joins, at a waiting room that asks for one.

import type { JoinOptions, WaitingRoom } from "../../../sdk/js/src/index.js";

/** The used part of `Location`. */
type Address = Pick<Location, "hash" | "pathname" | "search">;

/** Where the identity is kept until this tab is closed, so that a reload finds it. */
const KEY = "daegi:identity";

/**
 * Returns the identity in the fragment, which browsers do not send, and removes it from the address. An invitation code behind
 * it stays there.
 */
export function takeIdentity({ hash, pathname, search }: Address, history: Pick<History, "replaceState">): string | null {
  const [, identity, code] = /^#identity=([\w.-]+)(?:&(code=.+))?$/.exec(hash) ?? [];
  if (identity === undefined) return null;
  history.replaceState(null, "", pathname + search + (code ? `#${code}` : ""));
  return identity;
}

/** Keeps the identity of the address, or returns the one that was kept. `null`: the site has set it in a cookie, or there is none. */
export function keptIdentity(taken: string | null, store: Pick<Storage, "getItem" | "setItem"> | null): string | null {
  try {
    if (taken !== null) store?.setItem(KEY, taken);
    return taken ?? store?.getItem(KEY) ?? null;
  } catch {
    return taken;
  }
}

/** Returns a room whose joins name no user, because the identity does. */
export function identified<Room extends Pick<WaitingRoom, "join">>(room: Room, identity: () => string | null): Room {
  const join = (_: string | null, options: JoinOptions = {}) => {
    const assertion = identity();
    return room.join(null, { ...options, ...(assertion !== null && { identity: assertion }) });
  };
  return Object.assign(Object.create(room) as Room, { join });
}
