// The texts of the console, in the browser's preferred language.

import en from "../i18n/en.json" with { type: "json" };
import ko from "../i18n/ko.json" with { type: "json" };

export type Key = keyof typeof en;
type Messages = Record<Key, string>;

const LANGUAGES: Record<string, Messages> = { en, ko };

export function languageOf(preferred: readonly string[]): string {
  const tags = preferred.map((tag) => tag.toLowerCase().split("-")[0] ?? "");
  return tags.find((tag) => tag in LANGUAGES) ?? "en";
}

export const language = languageOf(globalThis.navigator?.languages ?? []);
const messages = LANGUAGES[language] ?? en;

/** Returns a text with its slots filled in. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  return messages[key].replace(/\{(\w+)\}/g, (slot, name: string) => String(values[name] ?? slot));
}

/** Returns the text of an enum value, or the value itself if there is no text. */
export function tEnum(prefix: string, name: string): string {
  const key = `${prefix}${name}`;
  return key in messages ? messages[key as Key] : name;
}
