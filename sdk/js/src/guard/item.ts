const ITEM = /^[A-Za-z0-9._~-]{1,64}$/;

/** Returns whether a value is a valid item id. */
export function isItem(value: unknown): value is string {
  return typeof value === "string" && ITEM.test(value);
}
