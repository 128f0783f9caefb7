import assert from "node:assert/strict";
import { test } from "node:test";
import type { JoinOptions, Ticket } from "../../../sdk/js/src/index.js";
import { identified, keptIdentity, takeIdentity } from "../src/identity.js";

function taken(hash: string) {
  const shown: string[] = [];
  const history = { replaceState: (_: unknown, __: string, url?: string | URL | null) => void shown.push(String(url)) };
  const identity = takeIdentity({ hash, pathname: "/wait/concert", search: "?return=/cart" }, history);
  return { identity, shown };
}

test("an identity is taken from the fragment once, and a code behind it stays", () => {
  assert.deepEqual(taken("#identity=a.b-_.c"), { identity: "a.b-_.c", shown: ["/wait/concert?return=/cart"] });
  assert.deepEqual(taken("#identity=a.b.c&code=X-Y"), { identity: "a.b.c", shown: ["/wait/concert?return=/cart#code=X-Y"] });
  for (const other of ["", "#code=X", "#identity=", "#identity=<script>", "#identity=a.b.c&x=1"]) {
    assert.deepEqual(taken(other), { identity: null, shown: [] }, other);
  }
});

test("an identity is kept for the tab, and a newer one replaces it", () => {
  const kept = new Map<string, string>();
  const store = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => void kept.set(key, value) };
  assert.equal(keptIdentity(null, store), null);
  assert.equal(keptIdentity("one", store), "one");
  assert.equal(keptIdentity(null, store), "one");
  assert.equal(keptIdentity("two", store), "two");
  const broken = {
    getItem: () => {
      throw new Error("forbidden");
    },
    setItem: () => {},
  };
  assert.equal(keptIdentity(null, broken), null);
});

test("an identified room names no user and sends the identity", async () => {
  const joins: unknown[] = [];
  const room = {
    join: async (userId: string | null, options?: JoinOptions) => {
      joins.push([userId, options]);
      return {} as Ticket;
    },
  };
  let identity: string | null = "a.b.c";
  const wrapped = identified(room, () => identity);
  await wrapped.join("web-1", { code: "X" });
  identity = null;
  await wrapped.join("web-1");
  assert.deepEqual(joins, [[null, { code: "X", identity: "a.b.c" }], [null, {}]]);
});
