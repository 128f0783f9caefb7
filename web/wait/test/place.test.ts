import assert from "node:assert/strict";
import { test } from "node:test";
import { Places } from "../src/place.js";

function shelf() {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
  };
}

let people = 0;
const newUser = () => `person-${++people}`;

test("a reload finds person, ticket and progress again", () => {
  const kept = shelf();
  const first = new Places("concert", kept, newUser);
  first.keep("t");
  assert.equal(first.progress(11), 0);
  assert.equal(first.progress(6), 0.5);
  const again = new Places("concert", kept, newUser);
  assert.equal(again.current.userId, first.current.userId);
  assert.equal(again.current.token, "t");
  assert.equal(again.progress(6), 0.5);
  assert.notEqual(new Places("other", kept, newUser).current.userId, first.current.userId);
});

test("progress never runs backwards, and a new ticket begins anew", () => {
  const places = new Places("concert", shelf(), newUser);
  places.keep("t");
  places.progress(10);
  assert.ok(places.progress(4) > 0.6);
  assert.ok(places.progress(8) > 0.6, "people came back ahead of this one");
  assert.equal(places.progress(1), 1);
  places.keep("another");
  assert.equal(places.progress(10), 0);
});

test("a storage that is forbidden, full or wrong is no end", () => {
  const broken = {
    getItem: () => "not json",
    setItem: () => {
      throw new Error("full");
    },
  };
  for (const kept of [broken, null]) {
    const places = new Places("concert", kept, newUser);
    places.keep("t");
    assert.equal(places.current.token, "t");
  }
});
