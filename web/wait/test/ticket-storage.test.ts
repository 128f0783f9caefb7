import assert from "node:assert/strict";
import { test } from "node:test";
import { TicketStorage } from "../src/ticket-storage.js";

function store() {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
  };
}

let users = 0;
const newUser = () => `user-${++users}`;

test("user, ticket and progress survive a reload", () => {
  const kept = store();
  const first = new TicketStorage("concert", kept, newUser);
  first.keep("t");
  assert.equal(first.progress(11), 0);
  assert.equal(first.progress(6), 0.5);
  const again = new TicketStorage("concert", kept, newUser);
  assert.equal(again.current.userId, first.current.userId);
  assert.equal(again.current.token, "t");
  assert.equal(again.progress(6), 0.5);
  assert.notEqual(new TicketStorage("other", kept, newUser).current.userId, first.current.userId);
});

test("progress never decreases, and a new ticket starts at zero", () => {
  const storage = new TicketStorage("concert", store(), newUser);
  storage.keep("t");
  storage.progress(10);
  assert.ok(storage.progress(4) > 0.6);
  assert.ok(storage.progress(8) > 0.6, "returning tickets are ahead of this one");
  assert.equal(storage.progress(1), 1);
  storage.keep("another");
  assert.equal(storage.progress(10), 0);
});

test("a code is kept until a join returns a ticket, a new one or the same", () => {
  const kept = store();
  const storage = new TicketStorage("concert", kept, newUser);
  for (const token of ["t", "t", "another"]) {
    storage.note({ code: "AB-1" });
    assert.equal(new TicketStorage("concert", kept, newUser).current.code, "AB-1");
    storage.keep(token);
    assert.equal(new TicketStorage("concert", kept, newUser).current.code, undefined);
  }
});

test("a forbidden, full or corrupt storage does not break the page", () => {
  const broken = {
    getItem: () => "not json",
    setItem: () => {
      throw new Error("full");
    },
  };
  for (const kept of [broken, null]) {
    const storage = new TicketStorage("concert", kept, newUser);
    storage.keep("t");
    assert.equal(storage.current.token, "t");
  }
});
