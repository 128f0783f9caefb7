// The invitation code in the address of the page.

/** The used part of `Location`. */
type Address = Pick<Location, "hash" | "pathname" | "search">;

/** Returns the invitation code in the fragment, which browsers do not send, and removes it from the address. */
export function takeCode({ hash, pathname, search }: Address, history: Pick<History, "replaceState">): string | null {
  const code = /^#code=(.+)$/.exec(hash)?.[1];
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
