// Shows a code for another device, and takes over the ticket of one.

import { encode } from "uqr";
import { type Handover, isHandoverUsed, issueHandover, takeOver, type WaitingRoom } from "../../../sdk/js/src/index.js";
import type { Messages } from "./i18n.js";
import { ask, element } from "./dialog.js";
import type { TicketStorage } from "./ticket-storage.js";
import type { View } from "./view.js";

/** How often the page asks whether the code was used, while it shows the code. */
const USED_INTERVAL_MS = 2_000;
const SVG = "http://www.w3.org/2000/svg";
/** Empty modules around a QR code, as its specification asks for. */
const MARGIN = 4;

/** Shows a code for another device until it is used, expires or is closed. */
export async function showHandover(room: WaitingRoom, token: string, view: View, messages: Messages): Promise<void> {
  const handover = await issueHandover(room, token).catch(() => null);
  if (!handover) return view.notice(messages.moveFailed);
  const [dialog, code, form] = [element("dialog", ""), element("div", ""), element("form", "")];
  const [head, text, menu, close] = [element("h2", messages.move), element("p", messages.moveText), element("menu", ""), element("button", messages.moveClose)];
  [dialog.id, head.id, form.method, code.className] = ["handover", "handover-head", "dialog", "qr"];
  dialog.setAttribute("aria-labelledby", head.id);
  text.setAttribute("role", "status");
  const link = `${location.origin}${location.pathname}#from=${encodeURIComponent(handover.code)}`;
  code.append(qrCode(link, messages.moveQr));
  if (navigator.clipboard) menu.append(copyButton(link, messages));
  menu.append(close);
  form.append(head, text, code, menu);
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  const finish = (said: string) => {
    code.remove();
    menu.replaceChildren(close);
    text.textContent = said;
  };
  const closed = new Promise<void>((done) => dialog.addEventListener("close", () => done(), { once: true }));
  void untilUsed(room, token, handover, dialog).then((isUsed) => {
    if (!dialog.open) return;
    finish(isUsed ? messages.moveDone : messages.moveOver);
    if (isUsed) view.notice(messages.moveDone);
  });
  await closed;
  dialog.remove();
}

/** Takes over the ticket of another device. The user gives up a ticket of this one. Returns whether the page has a new ticket. */
export async function takeHandover(room: WaitingRoom, code: string, storage: TicketStorage, view: View, messages: Messages): Promise<boolean> {
  const { token: own } = storage.reload();
  if (own !== undefined && !(await ask(messages.moveAsk, messages.moveWarn, messages.leaveNo, messages.moveYes))) return false;
  try {
    const { userId, token } = await takeOver(room, code);
    storage.take(userId, token);
    if (own !== undefined && own !== token) void room.leave(own).catch(() => {});
    view.notice(messages.moveTaken);
    return true;
  } catch {
    view.notice(messages.moveBad);
    return false;
  }
}

/** Resolves when the code is used, has expired, or the dialog is closed. Returns whether it was used. */
async function untilUsed(room: WaitingRoom, token: string, handover: Handover, dialog: HTMLDialogElement): Promise<boolean> {
  const until = performance.now() + handover.expiresInMs;
  while (dialog.open && performance.now() < until) {
    await new Promise((again) => setTimeout(again, USED_INTERVAL_MS));
    if (await isHandoverUsed(room, token, handover).catch(() => false)) return true;
  }
  return false;
}

function copyButton(link: string, messages: Messages): HTMLButtonElement {
  const button = element("button", messages.moveCopy);
  button.type = "button";
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(link).then(() => (button.textContent = messages.moveCopied), () => {});
  });
  return button;
}

/** Returns a QR code as an image. Dark on light in dark mode as well, which all scanners read. */
function qrCode(text: string, label: string): SVGSVGElement {
  const { data, size } = encode(text, { ecc: "L", border: 0 });
  const modules = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  const [svg, path] = [document.createElementNS(SVG, "svg") as SVGSVGElement, document.createElementNS(SVG, "path")];
  svg.setAttribute("viewBox", `${-MARGIN} ${-MARGIN} ${size + 2 * MARGIN} ${size + 2 * MARGIN}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  path.setAttribute("d", modules.join(""));
  svg.append(path);
  return svg;
}
