// Shows the widget of a third party. Turnstile and hCaptcha have the same functions under different names.

import type { Challenge } from "../../../sdk/js/src/challenge.js";

/** The functions that the script of a provider defines. */
interface Provider {
  render(place: HTMLElement, options: Record<string, unknown>): unknown;
  remove(id: unknown): void;
}

/** Delay before the page is loaded again, so that pages and pods that disagree do not repeat it without a pause. */
const RELOAD_MS = 3_000;

/**
 * Returns the response of the user. `isPermitted`: the policy of the page permits the origin of the provider. It does not if
 * the line got its widget after the page was loaded; then the page is loaded again.
 */
export async function solveWidget({ widget, challenge }: Challenge, isPermitted: boolean, signal?: AbortSignal): Promise<string> {
  if (!widget) throw new Error("the challenge has no widget: update this page");
  if (!isPermitted) return reload();
  await load(widget.script);
  const provider = (globalThis as unknown as Record<string, Provider | undefined>)[widget.provider];
  const place = document.getElementById("widget");
  if (!provider || !place) throw new Error(`the script of ${widget.provider} has not loaded`);
  place.hidden = false;
  let shown: unknown;
  try {
    return await new Promise<string>((resolve, reject) => {
      const refuse = () => reject(new Error("the widget failed"));
      signal?.addEventListener("abort", refuse);
      // The provider shows an expired widget again.
      const callbacks = { callback: resolve, "error-callback": refuse };
      shown = provider.render(place, { sitekey: widget.siteKey, cData: challenge, language: document.documentElement.lang, hl: document.documentElement.lang, ...callbacks });
    });
  } finally {
    place.hidden = true;
    if (shown !== undefined) provider.remove(shown);
  }
}

/** Loads a script once. */
function load(address: string): Promise<void> {
  if (document.querySelector(`script[src="${CSS.escape(address)}"]`)) return Promise.resolve();
  const script = document.createElement("script");
  return new Promise((resolve, reject) => {
    script.addEventListener("load", () => resolve());
    script.addEventListener("error", () => {
      script.remove();
      reject(new Error("the script of the widget cannot be loaded"));
    });
    script.src = address;
    document.head.append(script);
  });
}

function reload(): Promise<never> {
  setTimeout(() => location.reload(), RELOAD_MS);
  return new Promise(() => {});
}
