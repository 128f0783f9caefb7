// Where an admitted visitor continues: at the item's address, or where the gate stopped them.

/**
 * Returns the item's address, or the path of the query parameter `return` on the origin of that address, with the pass. Without an
 * address of the item the origin is the one of this page, which then is the one of the gate. Any other origin is ignored, so that a
 * link to this page cannot lead elsewhere.
 */
export function continueAt(entryUrl: string | null, pass: string | null, { origin, search }: Pick<Location, "origin" | "search">): string | null {
  const back = new URLSearchParams(search).get("return");
  // Browsers read `//` and `/\` as the start of a host, and a backslash as a slash.
  if (pass === null || back === null || !/^\/(?!\/)[!-[\]-~]*$/.test(back)) return entryUrl;
  const site = new URL(entryUrl ?? "/", origin).origin;
  const address = new URL(back, site);
  if (address.origin !== site) return entryUrl;
  address.searchParams.set("pass", pass);
  return address.href;
}
