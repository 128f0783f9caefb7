import assert from "node:assert/strict";
import { test } from "node:test";
import { continueAt } from "../src/return-address.js";

const entry = "https://shop.example:8443/checkout?pass=a.b.c";
const at = (back: string, entryUrl: string | null = entry, pass: string | null = "a.b.c") =>
  continueAt(entryUrl, pass, { origin: "https://wait.example", search: `?return=${encodeURIComponent(back)}` });

test("a visitor returns to the path on the origin of the item's address", () => {
  assert.equal(at("/cart?x=1"), "https://shop.example:8443/cart?x=1&pass=a.b.c");
  assert.equal(at("/a//b"), "https://shop.example:8443/a//b?pass=a.b.c");
  assert.equal(at("/cart?pass=d.e.f"), "https://shop.example:8443/cart?pass=a.b.c");
  assert.equal(at("/@evil.example"), "https://shop.example:8443/@evil.example?pass=a.b.c");
  assert.equal(at("/cart", "/checkout?pass=a.b.c"), "https://wait.example/cart?pass=a.b.c");
  assert.equal(at("/cart", null), "https://wait.example/cart?pass=a.b.c");
});

test("no link leads to another origin", () => {
  for (const bad of ["//evil.example", "/\\evil.example", "/\t/evil.example", "https://evil.example/", "javascript:alert(1)", "evil", "", "/a b", "/ü"]) {
    assert.equal(at(bad), entry, bad);
    assert.equal(at(bad, null), null, bad);
  }
});

test("without a way back or a pass the item's address stays", () => {
  assert.equal(continueAt(entry, "a.b.c", { origin: "https://wait.example", search: "" }), entry);
  assert.equal(at("/cart", entry, null), entry);
});
