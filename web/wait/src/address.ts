// The code in the address of the page.

/** The used part of `Location`. */
type Address = Pick<Location, "hash" | "pathname" | "search">;

/**
 * Returns the code in the fragment, which browsers do not send, and removes it from the address: `code` is an invitation, `from` the
 * handover of another device.
 */
export function takeCode({ hash, pathname, search }: Address, history: Pick<History, "replaceState">, name: "code" | "from" = "code"): string | null {
  const code = hash.startsWith(`#${name}=`) ? hash.slice(name.length + 2) : undefined;
  if (code === undefined) return null;
  history.replaceState(null, "", pathname + search);
  return cleanCode(decoded(code)) || null;
}

/** Returns a code without the spaces that typing or copying adds. */
export const cleanCode = (text: string): string => text.replace(/\s/g, "");

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
