import assert from "node:assert/strict";
import { test } from "node:test";
import { type CodeFields, csvOf, errorsOf, fieldIn, requestOf } from "../src/invitations.js";
import { invitationLink, publicOrigin } from "../src/public-address.js";

const NOW = Date.parse("2026-11-20T19:00:00");
const FIELDS: CodeFields = { lane: "members", count: "100", usesEach: "2", expiresAt: "2026-11-27T19:00" };

test("the request has numbers, and the time of the operator's time zone as RFC 3339", () => {
  assert.deepEqual(requestOf(FIELDS), { lane: "members", count: 100, usesEach: 2, expiresAt: new Date("2026-11-27T19:00").toISOString() });
});

test("errors name the field", () => {
  const errors = (fields: Partial<CodeFields>) => Object.keys(errorsOf({ ...FIELDS, ...fields }, NOW));
  assert.deepEqual(errors({}), []);
  for (const bad of ["", "0", "-1", "1.5", "many"]) assert.deepEqual(errors({ count: bad, usesEach: bad }), ["count", "usesEach"], bad);
  assert.deepEqual(errors({ expiresAt: "" }), ["expiresAt"]);
  assert.deepEqual(errors({ expiresAt: "2026-11-20T19:00" }), ["expiresAt"], "a time that is past");
  assert.equal(fieldIn("usesEach must be 1 to 1000000"), "usesEach");
  assert.equal(fieldIn("the line has no lane \"vip\""), "lane");
  assert.equal(fieldIn("the store does not answer"), null);
});

test("the file has one row per code, with quotes where RFC 4180 needs them", () => {
  const made = { lane: "members", usesEach: 1, expiresAt: "2026-11-27T10:00:00Z", codes: ["AB-1", 'C,"D"', "E\nF"] };
  const link = (code: string) => (code === "AB-1" ? "https://wait.example/wait/concert#code=AB-1" : "");
  assert.deepEqual(csvOf(made, link).split("\r\n"), [
    "code,lane,usesEach,expiresAt,link",
    "AB-1,members,1,2026-11-27T10:00:00Z,https://wait.example/wait/concert#code=AB-1",
    '"C,""D""",members,1,2026-11-27T10:00:00Z,',
    '"E\nF",members,1,2026-11-27T10:00:00Z,',
    "",
  ]);
});

test("a link has the code in its fragment, and there is none where the public address is not known", () => {
  const origin = publicOrigin({ protocol: "http:", hostname: "localhost", port: "8081" });
  assert.equal(origin, "http://localhost:8080");
  assert.equal(publicOrigin({ protocol: "https:", hostname: "admin.example", port: "" }), null);
  assert.equal(invitationLink("https://wait.example", "a~b", "AB 1&2"), "https://wait.example/wait/a~b#code=AB%201%262");
});
