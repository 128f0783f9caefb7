import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser, type StreamState } from "../src/sse.js";

function parser(): [EventParser, StreamState] {
  const state = { lastEventId: "", retryMs: null };
  return [new EventParser(state), state];
}

test("events are parsed whole across any chunk boundaries", () => {
  const text = ": hello\n\nid: 7\nevent: ticket\ndata: {\"a\":\ndata: 1}\n\nretry: 40\r\n\r\ndata:x\r\n\r\n";
  const expected = [
    { name: "ticket", data: '{"a":\n1}' },
    { name: "message", data: "x" },
  ];
  for (let size = 1; size <= text.length; size++) {
    const [events, state] = parser();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...events.push(text.slice(at, at + size)));
    assert.deepEqual(found, expected, `pieces of ${size}`);
    assert.deepEqual(state, { lastEventId: "7", retryMs: 40 });
  }
});

test("comments and unfinished events are ignored", () => {
  const [events, state] = parser();
  assert.deepEqual(events.push(": beat\n\nid: 3\nevent: ticket\n\nretry: soon\n\ndata: 1"), []);
  assert.deepEqual(state, { lastEventId: "3", retryMs: null });
});
