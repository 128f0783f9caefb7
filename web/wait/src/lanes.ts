// Lanes in words: which line the user is in, and how much of the rate the lanes take.

import type { LaneView } from "../../../sdk/js/src/index.js";
import { format, type Messages } from "./i18n.js";

/** The lane of users without an invitation, as the server names it. */
const STANDARD = "standard";

/** Returns what a user of a lane should know about the lanes; empty if that is nothing. `lane` is null in the standard lane. */
export function laneText(lane: string | null, lanes: readonly LaneView[], messages: Messages): string {
  const index = lanes.findIndex(({ name }) => name === (lane ?? STANDARD));
  const own = lanes[index];
  const others = lanes.filter((other) => other !== own && other.waitingCount > 0);
  const texts = lane === null ? [] : [format(messages.laneMine, { lane })];
  if (!own) return texts.join("");
  // Lanes that are served first are served in their order.
  const isBefore = (other: LaneView) => other.first && (!own.first || lanes.indexOf(other) < index);
  if (others.some(isBefore)) texts.push(messages.laneFirst);
  else if (own.first) texts.push(messages.laneMineFirst);
  const mine = own.sharePercent ?? 0;
  const theirs = others.reduce((sum, { sharePercent }) => sum + (sharePercent ?? 0), 0);
  if (mine > 0 && theirs > 0) {
    const part = (lane === null ? theirs : mine) / (mine + theirs);
    texts.push(format(lane === null ? messages.laneOthers : messages.laneShare, { n: Math.max(1, Math.round(100 * part)) }));
  }
  return texts.join(" ");
}
