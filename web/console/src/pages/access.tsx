// The block and allow list: its rules, a form that adds one, the contact of blocked users, and the export.

import { useId, useState } from "preact/hooks";
import { type AccessPage, type AccessRule, type Api, subjectOf } from "../api.js";
import { Dialog, Toast, useActions } from "../components/controls.js";
import { Labelled } from "../components/labelled.js";
import { count } from "../format.js";
import { t, tEnum } from "../i18n.js";
import { usePoll } from "../poll.js";
import { ConnectionLost, type PageProps } from "./page.js";

const PAGE = 50;
const SUBJECTS = ["userId", "network", "userAgent"] as const;

export function Access({ watch }: PageProps) {
  const [search, setSearch] = useState("");
  const [offset, setOffset] = useState(0);
  const [isAdding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<AccessRule | null>(null);
  const query = new URLSearchParams({ offset: String(offset), limit: String(PAGE) });
  if (search) query.set("search", search);
  const { data, lost, again } = usePoll<AccessPage>(watch, `/access?${query}`, 3000);
  const [act, message] = useActions(again);
  const { api } = watch;
  if (!data) return <ConnectionLost lost={lost} />;
  const remove = (rule: AccessRule) => {
    setRemoving(null);
    void act(t("accessRemoved", { subject: subjectOf(rule) }), () => api.send("POST", "/access/remove", { ids: [rule.id] }));
  };
  return (
    <main>
      <ConnectionLost lost={lost} />
      <section class="card" aria-labelledby="access">
        <div class="head">
          <h1 id="access">{t("access")}</h1>
          <input
            type="search"
            aria-label={t("accessSearch")}
            placeholder={t("accessSearch")}
            value={search}
            onInput={(event) => {
              setSearch(event.currentTarget.value);
              setOffset(0);
            }}
          />
          <button type="button" onClick={() => setAdding(true)}>
            {t("accessAdd")}
          </button>
          <button type="button" onClick={() => void act(t("accessExported"), () => download(api))}>
            {t("accessExport")}
          </button>
        </div>
        <p class="soft">{t("accessText", { n: count(data.total), max: count(data.max) })}</p>
        <Rules rules={data.rules} remove={setRemoving} />
        <div class="row">
          <button type="button" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - PAGE))}>
            {t("previous")}
          </button>
          <button type="button" disabled={offset + PAGE >= data.matching} onClick={() => setOffset(offset + PAGE)}>
            {t("next")}
          </button>
        </div>
      </section>
      <Contact url={data.contactUrl} set={(contactUrl) => act(t("accessContactSet"), () => api.send("PUT", "/access/contact", { contactUrl }))} />
      {isAdding && <NewRule close={() => setAdding(false)} add={(rule) => act(t("accessAdded"), () => api.send("POST", "/access", { rules: [rule] }))} />}
      {removing && (
        <Dialog title={t("accessRemoveAsk")} close={() => setRemoving(null)}>
          <p>{subjectOf(removing)}</p>
          {removing.origin === "file" && <p class="grave">{t("accessInFile")}</p>}
          <div class="menu">
            <button type="button" onClick={() => setRemoving(null)}>
              {t("cancel")}
            </button>
            <button type="button" class="danger" onClick={() => remove(removing)}>
              {t("accessRemove")}
            </button>
          </div>
        </Dialog>
      )}
      <Toast message={message} />
    </main>
  );
}

function Rules({ rules, remove }: { rules: AccessRule[]; remove: (rule: AccessRule) => void }) {
  if (rules.length === 0) return <p class="soft">{t("accessNone")}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-labelledby="access">
      <table>
        <thead>
          <tr>
            {(["accessKind", "accessSubject", "line", "accessReason", "accessUntil", "accessAuthor"] as const).map((key) => (
              <th key={key} scope="col">
                {t(key)}
              </th>
            ))}
            <td />
          </tr>
        </thead>
        <tbody>
          {rules.map((rule) => (
            <tr key={rule.id}>
              <td>{tEnum("access_", rule.kind)}</td>
              <th scope="row">
                {subjectOf(rule)} <small>{rule.id}</small>
              </th>
              <td>{rule.itemId ?? t("accessAllLines")}</td>
              <td>
                {rule.reason}
                {rule.publicReason && <small> · {rule.publicReason}</small>}
              </td>
              <td>{rule.expiresAt ? new Date(rule.expiresAt).toLocaleString() : t("accessNever")}</td>
              <td>{rule.origin === "file" ? t("accessFile") : (rule.author ?? "–")}</td>
              <td>
                <button type="button" aria-label={`${t("accessRemove")}: ${subjectOf(rule)}`} onClick={() => remove(rule)}>
                  {t("accessRemove")}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Contact({ url, set }: { url: string | null; set: (url: string | null) => Promise<boolean> }) {
  const [typed, setTyped] = useState<string | null>(null);
  const id = useId();
  return (
    <section class="card" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{t("accessContact")}</h2>
      <form
        class="control"
        onSubmit={(event) => {
          event.preventDefault();
          void set((typed ?? url ?? "").trim() || null).then((isDone) => isDone && setTyped(null));
        }}
      >
        <label for={id}>{t("accessContactLabel")}</label>
        <div class="row">
          <input id={id} value={typed ?? url ?? ""} aria-describedby={`${id}-hint`} onInput={(event) => setTyped(event.currentTarget.value)} />
          <button type="submit" class={typed !== null ? "ready" : ""}>
            {t("set")}
          </button>
        </div>
        <small id={`${id}-hint`}>{t("accessContactHint")}</small>
      </form>
    </section>
  );
}

interface NewRuleProps {
  close: () => void;
  add: (rule: Record<string, string>) => Promise<boolean>;
}

function NewRule({ close, add }: NewRuleProps) {
  const id = useId();
  const [subject, setSubject] = useState<(typeof SUBJECTS)[number]>("userId");
  const submit = async (form: HTMLFormElement) => {
    const fields = Object.fromEntries(new FormData(form)) as Record<string, string>;
    const { value = "", expiresAt = "", ...texts } = fields;
    const rule: Record<string, string> = { [subject]: value.trim() };
    for (const [name, text] of Object.entries(texts)) if (text.trim()) rule[name] = text.trim();
    if (expiresAt) rule["expiresAt"] = new Date(expiresAt).toISOString();
    if (await add(rule)) close();
  };
  const text = (name: string, label: Parameters<typeof t>[0], hint = "", required = false) => (
    <Labelled id={`${id}-${name}`} label={label}>
      <input id={`${id}-${name}`} name={name} maxLength={200} required={required} autocomplete="off" />
      {hint && <small>{hint}</small>}
    </Labelled>
  );
  return (
    <Dialog title={t("accessAdd")} close={close} wide>
      <form
        class="codes"
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <div class="fields">
          <Labelled id={`${id}-kind`} label="accessKind">
            <select id={`${id}-kind`} name="kind">
              <option value="block">{t("access_block")}</option>
              <option value="allow">{t("access_allow")}</option>
            </select>
          </Labelled>
          <Labelled id={`${id}-subject`} label="accessBy">
            <select id={`${id}-subject`} value={subject} onChange={(event) => setSubject(event.currentTarget.value as typeof subject)}>
              {SUBJECTS.map((name) => (
                <option key={name} value={name}>
                  {tEnum("access_", name)}
                </option>
              ))}
            </select>
          </Labelled>
          {text("value", "accessSubject", tEnum("accessHint_", subject), true)}
          {text("itemId", "line", t("accessItemHint"))}
          {text("reason", "accessReason", t("accessReasonHint"), true)}
          {text("publicReason", "accessPublic", t("accessPublicHint"))}
          <Labelled id={`${id}-expiresAt`} label="accessUntil">
            <input id={`${id}-expiresAt`} name="expiresAt" type="datetime-local" />
            <small>{t("accessUntilHint")}</small>
          </Labelled>
        </div>
        <div class="menu">
          <button type="button" onClick={close}>
            {t("cancel")}
          </button>
          <button type="submit" class="ready">
            {t("accessAdd")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

async function download(api: Api): Promise<void> {
  const csv = await api.text("/access/export");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
  link.download = "block-list.csv";
  link.click();
  // After the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
