// The dialog that makes invitation codes and shows them once.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type Api, type Invitations, type LaneFigures, linePath, Refusal } from "../api.js";
import { useServerClock } from "../clock.js";
import { type Action, Dialog } from "../components/controls.js";
import { saveCsv } from "../download.js";
import { Field } from "../components/field.js";
import { count } from "../format.js";
import { t } from "../i18n.js";
import { type CodeErrors, type CodeFields, csvOf, errorsOf, fieldIn, requestOf } from "../invitations.js";
import { toLocal } from "../opening.js";
import { invitationLink, publicOrigin } from "../public-address.js";
import { Zone } from "./opening.js";

const DAY_MS = 86_400_000;

interface DialogProps {
  itemId: string;
  /** The server's time. */
  at: string;
  /** The lanes besides the standard one. */
  lanes: LaneFigures[];
  act: Action;
  api: Api;
  close: () => void;
}

export function InvitationsDialog({ itemId, at, lanes, act, api, close }: DialogProps) {
  const [made, setMade] = useState<Invitations | null>(null);
  /** Whether the codes were copied or downloaded. */
  const [isSaved, setSaved] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const leave = () => (made && !isSaved ? setAsking(true) : close());
  const make = async (fields: CodeFields, failed: (detail: string) => void) => {
    await act(
      (codes: Invitations) => t("codesMade", { n: count(codes.codes.length), lane: codes.lane }),
      async () => {
        try {
          const codes = await api.send<Invitations>("POST", linePath(itemId, "invitations"), requestOf(fields));
          setMade(codes);
          return codes;
        } catch (error) {
          failed(error instanceof Refusal ? error.message : String(error));
          throw error;
        }
      },
    );
  };
  const title = made ? t("codesTitle", { n: count(made.codes.length), lane: made.lane }) : t("codes");
  return (
    <Dialog title={title} close={close} wide escape={leave}>
      {made ? (
        <Codes itemId={itemId} made={made} saved={() => setSaved(true)} />
      ) : (
        <CodesForm at={at} lanes={lanes} make={make} close={close} />
      )}
      {isAsking && !isSaved && (
        <p class="grave" role="alert">
          {t("codesUnsaved")}
        </p>
      )}
      {made && (
        <div class="menu">
          {isAsking && !isSaved ? (
            <button type="button" class="danger" onClick={close}>
              {t("codesDiscard")}
            </button>
          ) : (
            <button type="button" onClick={leave}>
              {t("close")}
            </button>
          )}
        </div>
      )}
    </Dialog>
  );
}

interface FormProps {
  at: string;
  lanes: LaneFigures[];
  make: (fields: CodeFields, failed: (detail: string) => void) => Promise<void>;
  close: () => void;
}

function CodesForm({ at, lanes, make, close }: FormProps) {
  const clock = useServerClock(at);
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const [fields, setFields] = useState<CodeFields>(() => ({
    lane: lanes[0]?.name ?? "",
    count: "100",
    usesEach: "1",
    // To the minute, because the field hides seconds that are 0.
    expiresAt: toLocal(new Date(Date.parse(at) + 7 * DAY_MS).toISOString()).slice(0, 16),
  }));
  const [isChecked, setChecked] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [refused, setRefused] = useState<{ field: keyof CodeFields | null; detail: string } | null>(null);
  const found = errorsOf(fields, clock.now());
  const errors: CodeErrors = { ...(isChecked && found), ...(refused?.field && { [refused.field]: refused.detail }) };
  const set = (changes: Partial<CodeFields>) => {
    setFields({ ...fields, ...changes });
    setRefused(null);
  };
  useEffect(() => {
    if (isChecked || refused) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [isChecked, refused]);
  const submit = async () => {
    setChecked(true);
    if (Object.keys(found).length > 0) return form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
    setBusy(true);
    await make(fields, (detail) => setRefused({ field: fieldIn(detail), detail }));
    setBusy(false);
  };
  const number = (name: "count" | "usesEach", label: "codesCount" | "codesUses", hint: string) => (
    <Field id={`${id}-${name}`} label={label} hint={hint} error={errors[name]}>
      {(described) => (
        <input id={`${id}-${name}`} type="number" inputMode="numeric" min={1} value={fields[name]} {...described} onInput={(event) => set({ [name]: event.currentTarget.value })} />
      )}
    </Field>
  );
  return (
    <form
      ref={form}
      class="codes"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <p>{t("codesText")}</p>
      <div class="fields">
        <Field id={`${id}-lane`} label="lane" error={errors.lane}>
          {(described) => (
            <select id={`${id}-lane`} value={fields.lane} {...described} onChange={(event) => set({ lane: event.currentTarget.value })}>
              {lanes.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
        </Field>
        <Field id={`${id}-expiresAt`} label="codesExpiry" error={errors.expiresAt}>
          {(described) => (
            <input
              id={`${id}-expiresAt`}
              type="datetime-local"
              step="any"
              max="9999-12-31T23:59"
              value={fields.expiresAt}
              {...described}
              onInput={(event) => set({ expiresAt: event.currentTarget.value })}
            />
          )}
        </Field>
        {number("count", "codesCount", "")}
        {number("usesEach", "codesUses", t("codesUsesHint"))}
      </div>
      <small>
        <Zone clock={clock} at={null} />
      </small>
      {refused && !refused.field && (
        <p class="grave" role="alert">
          {refused.detail}
        </p>
      )}
      <div class="menu">
        <button type="button" onClick={close}>
          {t("cancel")}
        </button>
        <button type="submit" class="ready" disabled={isBusy}>
          {t("codesMake")}
        </button>
      </div>
    </form>
  );
}

function Codes({ itemId, made, saved }: { itemId: string; made: Invitations; saved: () => void }) {
  const [said, setSaid] = useState("");
  const list = useRef<HTMLTextAreaElement>(null);
  const origin = publicOrigin(location);
  const text = made.codes.join("\n");
  useEffect(() => {
    list.current?.focus();
    list.current?.setSelectionRange(0, 0);
    list.current?.scrollTo(0, 0);
  }, []);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid(t("codesCopied"));
      saved();
    } catch {
      // Browsers allow it on secure pages only.
      list.current?.select();
      setSaid(t("codesCopyFailed"));
    }
  };
  const download = () => {
    const csv = csvOf(made, (code) => (origin ? invitationLink(origin, itemId, code) : ""));
    saveCsv(csv, `${itemId}-${made.lane}-codes.csv`);
    setSaid(t("codesDownloaded"));
    saved();
  };
  return (
    <>
      <p>{t("codesOnce")}</p>
      <textarea ref={list} class="codes" readOnly rows={Math.min(10, made.codes.length)} aria-label={t("codes")} value={text} />
      <div class="row">
        <button type="button" class="ready" onClick={() => void copy()}>
          {t("codesCopy")}
        </button>
        <button type="button" class="ready" onClick={download}>
          {t("codesDownload")}
        </button>
        <span role="status">{said}</span>
      </div>
      <small>{origin ? t("codesLinks") : t("codesNoLinks", { item: itemId })}</small>
    </>
  );
}
