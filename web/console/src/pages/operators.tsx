// Operators with tokens of their own: list, create, remove. For admins.

import { useId, useRef, useState } from "preact/hooks";
import { Refusal } from "../api.js";
import { type Role, ROLES } from "../caller.js";
import { type Action, Dialog, Toast, useActions } from "../components/controls.js";
import { Field } from "../components/field.js";
import { date } from "../format.js";
import { t } from "../i18n.js";
import { fromLocal } from "../opening.js";
import { usePoll } from "../poll.js";
import { ConnectionLost, type PageProps } from "./page.js";

interface OperatorView {
  name: string;
  role: Role;
  items: string | null;
  createdAt: string;
  createdBy: string | null;
  expiresAt: string | null;
}

export function Operators({ watch }: PageProps) {
  const { data, lost, again } = usePoll<{ operators: OperatorView[] }>(watch, "/operators", 3000);
  const [act, message] = useActions(again);
  const [isCreating, setCreating] = useState(false);
  const [removing, setRemoving] = useState<string | null>(null);
  const remove = async (name: string) => {
    if (await act(t("operatorRemoved", { name }), () => watch.api.send("DELETE", operatorPath(name)))) setRemoving(null);
  };
  return (
    <main>
      <ConnectionLost lost={lost} />
      <section class="card" aria-labelledby="operators">
        <div class="head">
          <h1 id="operators">{t("operators")}</h1>
          <button type="button" class="ready" onClick={() => setCreating(true)}>
            {t("newOperator")}
          </button>
        </div>
        <p class="soft">{t("operatorsText")}</p>
        {data && <Table operators={data.operators} remove={setRemoving} />}
      </section>
      {isCreating && <NewOperator act={act} watch={watch} close={() => setCreating(false)} />}
      {removing && (
        <Dialog title={t("operatorRemoveAsk", { name: removing })} close={() => setRemoving(null)}>
          <p>{t("operatorRemoveText")}</p>
          <div class="menu">
            <button type="button" autofocus onClick={() => setRemoving(null)}>
              {t("cancel")}
            </button>
            <button type="button" class="danger" onClick={() => void remove(removing)}>
              {t("operatorRemove")}
            </button>
          </div>
        </Dialog>
      )}
      <Toast message={message} />
    </main>
  );
}

const operatorPath = (name: string): string => `/operators/${encodeURIComponent(name)}`;

function Table({ operators, remove }: { operators: OperatorView[]; remove: (name: string) => void }) {
  if (operators.length === 0) return <p class="soft">{t("noOperators")}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-labelledby="operators">
      <table>
        <thead>
          <tr>
            <th scope="col">{t("operatorName")}</th>
            <th scope="col">{t("role")}</th>
            <th scope="col">{t("operatorItems")}</th>
            <th scope="col">{t("operatorCreated")}</th>
            <th scope="col">{t("operatorExpires")}</th>
            <th scope="col">
              <span class="unseen">{t("operatorRemove")}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {operators.map(({ name, role, items, createdAt, createdBy, expiresAt }) => (
            <tr key={name}>
              <td>{name}</td>
              <td>{t(`role ${role}`)}</td>
              <td>{items === null ? t("allItems") : <code>{items}…</code>}</td>
              <td>
                <time dateTime={createdAt}>{date(createdAt)}</time>
                {createdBy && ` · ${createdBy}`}
              </td>
              <td>{expiresAt === null ? "–" : <time dateTime={expiresAt}>{date(expiresAt)}</time>}</td>
              <td>
                <button type="button" aria-label={t("operatorRemoveName", { name })} onClick={() => remove(name)}>
                  {t("operatorRemove")}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface NewProps extends PageProps {
  act: Action;
  close: () => void;
}

function NewOperator({ act, watch, close }: NewProps) {
  const id = useId();
  const token = useRef<HTMLInputElement>(null);
  const [fields, setFields] = useState({ name: "", role: "operator" as Role, items: "", expiresAt: "" });
  const [refused, setRefused] = useState("");
  const [created, setCreated] = useState<{ name: string; token: string } | null>(null);
  const set = (change: Partial<typeof fields>) => {
    setFields({ ...fields, ...change });
    setRefused("");
  };
  const submit = async () => {
    const { name, role, items, expiresAt } = fields;
    const body = { name: name.trim(), role, items: items.trim() || null, expiresAt: fromLocal(expiresAt) };
    await act(t("operatorCreated1", { name: body.name }), async () => {
      try {
        const made = await watch.api.send<{ token: string }>("POST", "/operators", body);
        setCreated({ name: body.name, token: made.token });
      } catch (error) {
        if (error instanceof Refusal) setRefused(error.message);
        throw error;
      }
    });
  };
  if (created) {
    return (
      <Dialog title={t("operatorToken", { name: created.name })} close={close} wide>
        <p>{t("operatorTokenText")}</p>
        <div class="row">
          <input ref={token} readOnly value={created.token} aria-label={t("operatorToken", { name: created.name })} onFocus={(event) => event.currentTarget.select()} />
          <button
            type="button"
            class="ready"
            onClick={() => {
              // Browsers allow it on secure pages only; the text is selected for the keyboard.
              token.current?.select();
              void navigator.clipboard?.writeText(created.token).catch(() => undefined);
            }}
          >
            {t("codesCopy")}
          </button>
        </div>
        <div class="menu">
          <button type="button" onClick={close}>
            {t("close")}
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={t("newOperator")} close={close} wide>
      <form
        class="codes"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div class="fields">
          <Field id={`${id}-name`} label="operatorName" hint={t("operatorNameHint")} error={refused || undefined}>
            {(described) => (
              <input id={`${id}-name`} required maxLength={64} value={fields.name} {...described} onInput={(event) => set({ name: event.currentTarget.value })} />
            )}
          </Field>
          <Field id={`${id}-role`} label="role" hint={t(`roleHint ${fields.role}`)} error={undefined}>
            {(described) => (
              <select id={`${id}-role`} value={fields.role} {...described} onChange={(event) => set({ role: event.currentTarget.value as Role })}>
                {ROLES.map((role) => (
                  <option key={role} value={role}>
                    {t(`role ${role}`)}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field id={`${id}-items`} label="operatorItems" hint={t("operatorItemsHint")} error={undefined}>
            {(described) => (
              <input
                id={`${id}-items`}
                maxLength={64}
                disabled={fields.role === "admin"}
                value={fields.role === "admin" ? "" : fields.items}
                {...described}
                onInput={(event) => set({ items: event.currentTarget.value })}
              />
            )}
          </Field>
          <Field id={`${id}-expiresAt`} label="operatorExpires" hint={t("operatorExpiresHint")} error={undefined}>
            {(described) => (
              <input
                id={`${id}-expiresAt`}
                type="datetime-local"
                max="9999-12-31T23:59"
                value={fields.expiresAt}
                {...described}
                onInput={(event) => set({ expiresAt: event.currentTarget.value })}
              />
            )}
          </Field>
        </div>
        <div class="menu">
          <button type="button" onClick={close}>
            {t("cancel")}
          </button>
          <button type="submit" class="ready">
            {t("operatorMake")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
