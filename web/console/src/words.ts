// The console's words, in the language the browser likes best of those there are.

import en from "../words/en.json" with { type: "json" };
import ko from "../words/ko.json" with { type: "json" };

export type Key = keyof typeof en;
type Words = Record<Key, string>;

const LANGUAGES: Record<string, Words> = { en, ko };

export function languageOf(liked: readonly string[]): string {
  const tags = liked.map((tag) => tag.toLowerCase().split("-")[0] ?? "");
  return tags.find((tag) => tag in LANGUAGES) ?? "en";
}

export const language = languageOf(globalThis.navigator?.languages ?? []);
const words = LANGUAGES[language] ?? en;

/** A word, with its slots filled in. */
export function say(key: Key, values: Record<string, string | number> = {}): string {
  return words[key].replace(/\{(\w+)\}/g, (slot, name: string) => String(values[name] ?? slot));
}

/** A word whose key is made up of data; the data itself where there is none. */
export function sayOf(prefix: string, name: string): string {
  const key = `${prefix}${name}`;
  return key in words ? words[key as Key] : name;
}
