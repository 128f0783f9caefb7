// A text of the waiting page: the same for all languages, or one per language.

import { useId, useState } from "preact/hooks";
import type { PageText } from "../api.js";
import { type Key, t } from "../i18n.js";

/** The languages of the waiting page by their own names. */
const LANGUAGES: Record<string, string> = {
  en: "English",
  ko: "한국어",
  ja: "日本語",
  "zh-Hans": "简体中文",
  "zh-Hant": "繁體中文",
  es: "Español",
  vi: "Tiếng Việt",
  th: "ไทย",
};

/** Returns the text with the one of a language replaced. An empty text removes it; no language stands for all of them. */
export function withText(text: PageText | null, language: string, typed: string): PageText | null {
  if (language === "") return typed || null;
  // Other languages take the English one.
  const before = typeof text === "string" ? { en: text } : (text ?? {});
  const { [language]: _, ...others } = before as Record<string, string>;
  const after = typed ? { ...others, [language]: typed } : others;
  return Object.keys(after).length > 0 ? after : null;
}

/** Returns the text of a language, without those that stand in for it. */
export function textIn(text: PageText | null, language: string): string {
  if (typeof text === "string") return language === "" || language === "en" ? text : "";
  return text?.[language || "en"] ?? "";
}

interface PageTextFieldProps {
  label: Key;
  hint?: Key;
  text: PageText | null;
  maxLength: number;
  lines?: number;
  change: (text: PageText | null) => void;
}

export function PageTextField({ label, hint, text, maxLength, lines = 1, change }: PageTextFieldProps) {
  const id = useId();
  const [chosen, setChosen] = useState<string | null>(null);
  const language = chosen ?? (text !== null && typeof text === "object" ? "en" : "");
  const input = {
    id,
    maxLength,
    value: textIn(text, language),
    ...(language && { lang: language }),
    ...(hint && { "aria-describedby": `${id}-hint` }),
  };
  return (
    <div class="wide">
      <div class="row">
        <label for={id}>{t(label)}</label>
        <select aria-label={`${t(label)}: ${t("lookLanguage")}`} value={language} onChange={(event) => setChosen(event.currentTarget.value)}>
          <option value="">{t("lookAllLanguages")}</option>
          {Object.entries(LANGUAGES).map(([tag, name]) => (
            <option key={tag} value={tag} lang={tag}>
              {name}
            </option>
          ))}
        </select>
      </div>
      {lines > 1 ? (
        <textarea {...input} rows={lines} onInput={(event) => change(withText(text, language, event.currentTarget.value))} />
      ) : (
        <input {...input} onInput={(event) => change(withText(text, language, event.currentTarget.value))} />
      )}
      {hint && <small id={`${id}-hint`}>{t(hint)}</small>}
    </div>
  );
}
