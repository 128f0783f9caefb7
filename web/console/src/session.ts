// Who is signed in: in this tab, until it is closed.

import { Api } from "./api.js";

const [TOKEN, OPERATOR] = ["daegi-token", "daegi-operator"];

/**
 * The address that `daegi` prints at its start may carry the token it made up for this run, behind
 * the `#`, which browsers send to nobody. It is taken out of the address at once.
 */
export function restore(): Api | null {
  const brought = /^#token=([^&]+)$/.exec(location.hash)?.[1];
  if (brought) {
    sessionStorage.setItem(TOKEN, decodeURIComponent(brought));
    history.replaceState(null, "", location.pathname);
  }
  const token = sessionStorage.getItem(TOKEN);
  return token ? new Api(token, localStorage.getItem(OPERATOR) ?? "") : null;
}

export function remember(api: Api): void {
  sessionStorage.setItem(TOKEN, api.token);
  localStorage.setItem(OPERATOR, api.operator);
}

export const operatorBefore = (): string => localStorage.getItem(OPERATOR) ?? "";

export function forget(): void {
  sessionStorage.removeItem(TOKEN);
}
