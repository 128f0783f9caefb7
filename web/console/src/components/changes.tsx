// The audit log.

import type { Change } from "../api.js";
import { compact, date } from "../format.js";
import { t, tEnum } from "../i18n.js";
import { lineAddress } from "./summary.js";

export function Changes({ changes, ofLine = false }: { changes: Change[]; ofLine?: boolean }) {
  if (changes.length === 0) return <p class="soft">{t("noChanges")}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t("audit")}>
      <table class="changes">
        <thead>
          <tr>
            <th scope="col">{t("when")}</th>
            <th scope="col">{t("who")}</th>
            <th scope="col">{t("what")}</th>
            {!ofLine && <th scope="col">{t("line")}</th>}
            <th scope="col">{t("was")}</th>
            <th scope="col">{t("is")}</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change, nth) => (
            <tr key={`${change.at} ${nth}`}>
              <td>
                <time dateTime={change.at}>{date(change.at)}</time>
              </td>
              <td>{change.operator ?? <span class="soft">{t("nobody")}</span>}</td>
              <td>{tEnum("act ", change.action)}</td>
              {!ofLine && <td>{change.itemId && <a href={lineAddress(change.itemId)}>{change.itemId}</a>}</td>}
              <td class="value">{compact(change.from)}</td>
              <td class="value">{compact(change.to)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
