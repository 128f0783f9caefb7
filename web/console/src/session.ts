// The session of this tab.

import { Api } from "./api.js";

const [TOKEN, OPERATOR] = ["daegi-token", "daegi-operator"];

/**
 * Restores the session. The URL that `daegi` prints at start may carry a generated token in its fragment, which browsers
 * do not send. The token is removed from the URL immediately.
 */
export function restore(): Api | null {
  const fromUrl = /^#token=([^&]+)$/.exec(location.hash)?.[1];
  if (fromUrl) {
    sessionStorage.setItem(TOKEN, decodeURIComponent(fromUrl));
    history.replaceState(null, "", location.pathname);
  }
  const token = sessionStorage.getItem(TOKEN);
  return token ? new Api(token, localStorage.getItem(OPERATOR) ?? "") : null;
}

export function remember(api: Api): void {
  sessionStorage.setItem(TOKEN, api.token);
  localStorage.setItem(OPERATOR, api.operator);
}

export const lastOperator = (): string => localStorage.getItem(OPERATOR) ?? "";

export function forget(): void {
  sessionStorage.removeItem(TOKEN);
}
