// Who changed what.

import type { Change } from "../api.js";
import { brief, date } from "../format.js";
import { say, sayOf } from "../words.js";
import { lineAddress } from "./glance.js";

export function Changes({ changes, ofLine = false }: { changes: Change[]; ofLine?: boolean }) {
  if (changes.length === 0) return <p class="soft">{say("noChanges")}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={say("audit")}>
      <table class="changes">
        <thead>
          <tr>
            <th scope="col">{say("when")}</th>
            <th scope="col">{say("who")}</th>
            <th scope="col">{say("what")}</th>
            {!ofLine && <th scope="col">{say("line")}</th>}
            <th scope="col">{say("was")}</th>
            <th scope="col">{say("is")}</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change, nth) => (
            <tr key={`${change.at} ${nth}`}>
              <td>
                <time dateTime={change.at}>{date(change.at)}</time>
              </td>
              <td>{change.operator ?? <span class="soft">{say("nobody")}</span>}</td>
              <td>{sayOf("act ", change.action)}</td>
              {!ofLine && <td>{change.itemId && <a href={lineAddress(change.itemId)}>{change.itemId}</a>}</td>}
              <td class="value">{brief(change.from)}</td>
              <td class="value">{brief(change.to)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
