// What the waiting page shows of an item's own.

import { useId, useState } from "preact/hooks";
import { type Branding, LINKS } from "../api.js";
import { Labelled } from "../components/labelled.js";
import { useDraft } from "../components/draft.js";
import { PageTextField } from "../components/page-text.js";
import { t } from "../i18n.js";

/** The longest logo, in bytes: as a `data:` address it grows by a third, and 8,192 characters are allowed. */
const MAX_LOGO = 6_000;
const PICTURES = "image/png,image/webp,image/jpeg,image/svg+xml";
/** The default accent colour of the page. */
const ACCENT = "#2f6152";

/** What is typed is kept until it is saved. All of it is sent: the server merges it field by field. */
export function BrandingForm({ look, save }: { look: Branding; save: (look: Branding) => Promise<boolean> }) {
  const { typed, changed, change, saved } = useDraft<Branding>();
  const id = useId();
  const shown = { ...look, ...typed };
  return (
    <section class="card" aria-labelledby={`${id}-look`}>
      <h2 id={`${id}-look`}>{t("look")}</h2>
      <form
        class="rules"
        onSubmit={(event) => {
          event.preventDefault();
          void save(shown).then((done) => done && saved());
        }}
      >
        <PageTextField label="lookTitle" hint="lookTitleHint" text={shown.title} maxLength={120} change={(title) => change({ title })} />
        <PageTextField label="lookMessage" text={shown.message} maxLength={500} lines={3} change={(message) => change({ message })} />
        {LINKS.map((link) => (
          <Labelled key={link} id={`${id}-${link}`} label={`lookLink ${link}`}>
            <input
              id={`${id}-${link}`}
              inputMode="url"
              maxLength={1024}
              placeholder="https://"
              value={shown.links?.[link]?.url ?? ""}
              onInput={(event) => change({ links: withLink(shown.links, link, event.currentTarget.value) })}
            />
          </Labelled>
        ))}
        <div class="wide row">
          <label class="switch">
            <input type="checkbox" role="switch" checked={shown.accent !== null} onChange={(event) => change({ accent: event.currentTarget.checked ? ACCENT : null })} />
            {t("lookOwnAccent")}
          </label>
          {shown.accent !== null && (
            <input type="color" aria-label={t("lookAccent")} value={shown.accent} onInput={(event) => change({ accent: event.currentTarget.value })} />
          )}
        </div>
        <Logo logo={shown.logo} choose={(logo) => change({ logo })} />
        <button type="submit" class={changed ? "ready" : ""} disabled={!changed}>
          {t("save")}
        </button>
      </form>
    </section>
  );
}

/** Returns the links with another URL; an empty one removes the link. The label stays. */
function withLink(links: Branding["links"], name: (typeof LINKS)[number], url: string): NonNullable<Branding["links"]> {
  const before = links ?? { home: null, completed: null, soldOut: null, closed: null };
  return { ...before, [name]: url ? { label: null, ...before[name], url } : null };
}

function Logo({ logo, choose }: { logo: string | null; choose: (logo: string | null) => void }) {
  const [large, setLarge] = useState(false);
  const id = useId();
  const take = async (file: File | undefined) => {
    if (!file) return;
    setLarge(file.size > MAX_LOGO);
    if (file.size <= MAX_LOGO) choose(await asAddress(file));
  };
  return (
    <Labelled id={id} label="lookLogo" wide>
      <div class="row">
        {logo && <img class="logo" src={logo} alt={t("lookLogoShown")} />}
        <input id={id} type="file" accept={PICTURES} aria-describedby={`${id}-hint`} onChange={(event) => void take(event.currentTarget.files?.[0])} />
        {logo && (
          <button type="button" onClick={() => choose(null)}>
            {t("lookRemove")}
          </button>
        )}
      </div>
      <small id={`${id}-hint`} class={large ? "grave" : ""} role={large ? "alert" : undefined}>
        {t(large ? "lookLogoLarge" : "lookLogoHint")}
      </small>
    </Labelled>
  );
}

/** A file as a `data:` address, which needs no other host. */
function asAddress(file: File): Promise<string> {
  return new Promise((read, fail) => {
    const reader = new FileReader();
    reader.onload = () => read(String(reader.result));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}
