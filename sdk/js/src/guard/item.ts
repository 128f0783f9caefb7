const ITEM = /^[A-Za-z0-9._~-]{1,64}$/;

/** Whether something can be the id of an item. */
export function isItem(value: unknown): value is string {
  return typeof value === "string" && ITEM.test(value);
}
