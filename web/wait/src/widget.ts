// The widget of a third party, in a bundle of its own that only pages of lines with a widget load. Turnstile and hCaptcha have the
// same functions under different names.

import type { Challenge } from "../../../sdk/js/src/challenge.js";

/** Shows the widget of a challenge under a headline and a text, and returns the response of the user. */
export type ShowWidget = (challenge: Challenge, showTexts: (headline: string, text: string) => void, signal?: AbortSignal) => Promise<string>;

/** The functions that the script of a provider defines. */
interface Provider {
  render(place: HTMLElement, options: Record<string, unknown>): unknown;
  remove(id: unknown): void;
}

const showWidget: ShowWidget = async ({ widget, challenge }, showTexts, signal) => {
  const place = document.getElementById("widget");
  if (!widget || !place) throw new Error("the challenge has no widget: update this page");
  showTexts(place.dataset.head ?? "", place.dataset.text ?? "");
  await load(widget.script);
  const provider = (globalThis as unknown as Record<string, Provider | undefined>)[widget.provider];
  if (!provider) throw new Error(`the script of ${widget.provider} has not loaded`);
  const language = document.documentElement.lang;
  let shown: unknown;
  place.hidden = false;
  try {
    return await new Promise<string>((resolve, reject) => {
      const refuse = () => reject(new Error("the widget failed"));
      signal?.addEventListener("abort", refuse);
      // The provider shows an expired widget again.
      const callbacks = { callback: resolve, "error-callback": refuse };
      shown = provider.render(place, { sitekey: widget.siteKey, cData: challenge, language, hl: language, ...callbacks });
    });
  } finally {
    place.hidden = true;
    if (shown !== undefined) provider.remove(shown);
  }
};

const loaded = new Set<string>();

/** Loads a script once. */
function load(address: string): Promise<void> {
  if (loaded.has(address)) return Promise.resolve();
  const script = document.createElement("script");
  return new Promise((resolve, reject) => {
    script.addEventListener("load", () => {
      loaded.add(address);
      resolve();
    });
    script.addEventListener("error", () => reject(new Error("the script of the widget cannot be loaded")));
    script.src = address;
    document.head.append(script);
  });
}

Object.assign(globalThis, { showWidget });
