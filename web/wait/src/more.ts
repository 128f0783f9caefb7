// What few users need, in a bundle of its own that the page loads on demand: the check of a draw, invitations, and the
// move to another device.

import { checkDraw } from "../../../sdk/js/src/draw.js";
import type { WaitingRoom } from "../../../sdk/js/src/index.js";
import { ask, element } from "./dialog.js";
import type { Messages } from "./i18n.js";
import { InvitationPage } from "./invitation-page.js";
import { InvitationPanel } from "./invitation-panel.js";
import type { CodeResult } from "./visit.js";
import { type Expected, type Verdict, verdictOf } from "./verdict.js";
import type { View } from "./view.js";

export { showHandover, takeHandover } from "./handover.js";

/** Checks the draw of a ticket with this device. */
export async function checkedDraw(room: WaitingRoom, token: string, expected: Expected, messages: Messages): Promise<Verdict> {
  const record = await room.draw(token);
  return verdictOf(record, await checkDraw(record, token), expected, messages);
}

/** Returns what the page shows of a verdict. */
export function renderVerdict(verdict: Verdict, messages: Messages): Node[] {
  const text = element("p", verdict.text);
  text.dataset["verdict"] = verdict.isGood ? "good" : "bad";
  const list = element("ul", "");
  [text.id, list.id] = ["verdict-text", "checks"];
  list.append(
    ...verdict.findings.map((finding) => {
      const line = element("li", finding.text);
      line.dataset["verdict"] = finding.ok ? "good" : "bad";
      return line;
    }),
  );
  const details = element("details", "");
  details.id = "findings";
  details.append(element("summary", messages.drawDetails), list, element("p", messages.drawDevice));
  return [text, details];
}

/** Creates the panel for invitations, with its form. */
export function createInvitation(room: WaitingRoom, view: View, messages: Messages, redeem: (code: string) => Promise<CodeResult>): InvitationPanel {
  const page = new InvitationPage(view, messages, () => ask(messages.codeAsk, messages.codeWarn, messages.leaveNo, messages.codeYes));
  const panel = new InvitationPanel(room, page, messages, true);
  page.form.addEventListener("submit", (event) => {
    event.preventDefault();
    void panel.submit(page.code.value, redeem);
  });
  return panel;
}

/** Asks whether the user leaves the line. */
export function askLeave(messages: Messages): Promise<boolean> {
  return ask(messages.leaveAsk, messages.leaveWarn, messages.leaveNo, messages.leaveYes, true);
}
