import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { LaneView } from "../../../sdk/js/src/index.js";
import { takeCode } from "../src/address.js";
import type { Messages } from "../src/i18n.js";
import { laneText } from "../src/lanes.js";

const messages = JSON.parse(readFileSync("i18n/en.json", "utf8")) as Messages;

const lane = (name: string, waitingCount: number, sharePercent: number | null): LaneView => ({ name, waitingCount, sharePercent, first: sharePercent === null });
const STANDARD = lane("standard", 4100, 50);

test("users of the standard lane see how much of the rate goes to lanes in which users wait", () => {
  const text = (...lanes: LaneView[]) => laneText(null, [STANDARD, ...lanes], messages);
  assert.equal(text(), "");
  assert.equal(text(lane("members", 0, 50)), "", "a lane in which no user waits takes nothing");
  assert.match(text(lane("members", 1, 50)), /^About 50% of entries go to invited visitors/);
  // 30 of 50 + 30: the share of an empty lane is divided, too.
  assert.match(text(lane("members", 1, 30), lane("press", 0, 20)), /^About 38%/);
  assert.match(text(lane("members", 1, 30), lane("press", 2, 20)), /^About 50%/);
  assert.equal(text(lane("vip", 3, null)), messages.laneFirst);
  assert.equal(laneText(null, [], messages), "");
});

test("users of a lane see its name and its share", () => {
  const text = (own: string, ...lanes: LaneView[]) => laneText(own, [STANDARD, ...lanes], messages);
  assert.equal(text("members", lane("members", 9, 25)), `${messages.laneMine.replace("{lane}", "members")} About 33% of entries go to this line.`);
  assert.match(text("vip", lane("vip", 9, null)), /“vip”.* This line goes first\.$/);
  const first = [lane("vip", 9, null), lane("crew", 9, null)];
  assert.match(text("crew", ...first), /Some invited visitors go before you/);
  assert.match(text("vip", ...first), /This line goes first/);
  assert.equal(laneText("members", [], messages), messages.laneMine.replace("{lane}", "members"), "the shares are not loaded yet");
});

test("a share is never shown as 0%", () => {
  assert.match(laneText(null, [lane("standard", 9, 99), lane("members", 9, 0.2)], messages), /About 1%/);
});

test("the code is taken from the fragment and removed from the address", () => {
  const taken = (hash: string) => {
    const addresses: unknown[] = [];
    const code = takeCode({ hash, pathname: "/wait/concert", search: "?a" }, { replaceState: (_, __, address) => void addresses.push(address) });
    return [code, ...addresses];
  };
  assert.deepEqual(taken("#code=AB12-CD34"), ["AB12-CD34", "/wait/concert?a"]);
  assert.deepEqual(taken("#code=%20AB%2012%0A"), ["AB12", "/wait/concert?a"]);
  assert.deepEqual(taken("#code=%E0%"), ["%E0%", "/wait/concert?a"], "an address that cannot be decoded");
  assert.deepEqual(taken("#code=%20"), [null, "/wait/concert?a"]);
  assert.deepEqual(taken("#screen"), [null]);
  assert.deepEqual(taken(""), [null]);
});
