// Addresses of the public listener, as far as the console knows them.

/** The port of the public listener is known only where the defaults are used: elsewhere this is null. */
export function publicOrigin({ protocol, hostname, port }: Pick<Location, "protocol" | "hostname" | "port">): string | null {
  return port === "8081" ? `${protocol}//${hostname}:8080` : null;
}

/** Returns the address of the waiting page with an invitation code. Browsers do not send fragments, so that the code is not logged. */
export function invitationLink(origin: string, itemId: string, code: string): string {
  return `${origin}/wait/${encodeURIComponent(itemId)}#code=${encodeURIComponent(code)}`;
}
