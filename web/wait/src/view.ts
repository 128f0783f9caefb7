// Renders a screen into the page.

import type { LocalTexts, PageLink } from "../../../sdk/js/src/index.js";
import type { Screen } from "./screen.js";
import type { Verdict } from "./verdict.js";
import { clock, format } from "./i18n.js";

export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

export class View {
  readonly main = byId("screen");
  readonly enter = byId<HTMLAnchorElement>("enter");
  readonly again = byId("again");
  readonly leave = byId("leave");
  readonly check = byId("check");
  readonly move = byId("move");
  readonly invitation = byId("invitation");
  /** Shows the findings of a verdict; set with the script that is loaded on demand. */
  renderVerdict: ((verdict: Verdict) => Node[]) | null = null;
  readonly #headline = byId("headline");
  readonly #bar = byId("bar");
  readonly #numbers = new Intl.NumberFormat(document.documentElement.lang);
  readonly number = (value: number): string => this.#numbers.format(value);

  constructor() {
    // Hidden without scripts.
    for (const id of ["live", "foot"]) byId(id).hidden = false;
  }

  /** A check box of the footer with its label. */
  option(id: string): { label: HTMLElement; box: HTMLInputElement } {
    const label = byId(id);
    return { label, box: label.querySelector("input") as HTMLInputElement };
  }

  show(screen: Screen, done: number): void {
    const turned = this.main.dataset["screen"] !== screen.kind;
    this.main.dataset["screen"] = screen.kind;
    write(this.#headline, screen.headline);
    write(byId("text"), screen.text);
    const contact = byId<HTMLAnchorElement>("contact");
    contact.hidden = screen.contactUrl === undefined;
    if (screen.contactUrl !== undefined) contact.href = screen.contactUrl;
    byId("place").hidden = !screen.place;
    if (screen.place) this.#place(screen.place, done);
    this.again.hidden = !screen.again;
    write(this.again, screen.again ?? "");
    const { stock } = screen;
    write(byId("stock"), stock ? format(stock.text, { left: this.number(stock.left), ahead: this.number(stock.ahead) }) : "");
    byId("opens").hidden = !screen.next;
    if (!screen.next) this.#row("opens-later", "");
    this.#row("lobby-position", screen.lobby?.position ? this.number(screen.lobby.position) : "");
    this.#row("lobby-count", screen.lobby ? this.number(screen.lobby.count) : "");
    // Keyboard focus moves to the headline, because the focused button may have disappeared.
    const lost = document.activeElement === document.body || !document.activeElement;
    if (turned && (screen.kind === "turn" || screen.kind === "ended") && lost) this.#headline.focus();
  }

  #place({ position, ahead, behind, eta }: NonNullable<Screen["place"]>, done: number): void {
    const shown = this.#numbers.format(position);
    const number = byId("position");
    write(number, shown);
    number.dataset["long"] = shown.length >= 7 ? "7" : shown.length >= 5 ? "5" : "";
    write(byId("ahead"), this.#numbers.format(ahead));
    write(byId("behind"), this.#numbers.format(behind));
    write(byId("eta"), eta);
    const percent = String(Math.round(done * 100));
    this.#bar.setAttribute("aria-valuenow", percent);
    this.#bar.style.setProperty("--done", String(done));
  }

  /** Shows the operator's link for the state, if there is one. */
  way(link: PageLink | null | undefined, label: string): void {
    const way = byId<HTMLAnchorElement>("way");
    way.hidden = !link;
    way.href = link?.url ?? "";
    write(way, link ? (link.label ?? label) : "");
  }

  /** Shows the countdown: what happens and when, how long until then, and when the line opens after that. */
  countdown(label: string, left: string, opens: string): void {
    write(byId("opens-label"), label);
    const number = byId("opens-in");
    write(number, left);
    number.dataset["long"] = /[^\d:]/.test(left) ? "words" : left.length > 5 ? "hours" : "";
    this.#row("opens-later", opens);
  }

  /** Shows a row of a list, or hides it if it is empty. */
  #row(id: string, text: string): void {
    const value = byId(id);
    write(value, text);
    if (value.parentElement) value.parentElement.hidden = text === "";
  }

  /** The URL comes from the ticket, where the server puts the one of the item's policy. */
  offer(address: string | null): void {
    if (address) this.enter.href = address;
    else this.enter.removeAttribute("href");
  }

  text(text: string): void {
    write(byId("text"), text);
  }

  left(ms: number | null): void {
    byId("left").hidden = ms === null;
    if (ms !== null) write(byId("countdown"), clock(ms));
  }

  /** Shows the operator's texts. Returns whether the message changed. */
  page({ name, message }: LocalTexts): boolean {
    write(byId("name"), name);
    return write(byId("message"), message ?? "");
  }

  drawn(text: string): void {
    byId("draw").hidden = text === "";
    write(byId("drawn"), text);
  }

  /** Shows the text of the button, and the verdict on the draw or why there is none. */
  verdict(button: string, verdict: Verdict | null, notice: string): void {
    write(this.check, button);
    const nodes = verdict && this.renderVerdict?.(verdict);
    byId("verdict").replaceChildren(...(nodes ?? [notice]));
  }

  lane(text: string): void {
    write(byId("lane"), text);
  }

  notice(text: string): void {
    write(byId("notice"), text);
  }

  /** Shows whether the connection is lost. Returns the text that says so. */
  lost(isLost: boolean): string {
    const lost = byId("lost");
    lost.hidden = !isLost;
    return lost.textContent ?? "";
  }

  announce(text: string): void {
    write(byId("said"), text);
  }
}

export function write(element: HTMLElement, text: string): boolean {
  const changes = element.textContent !== text;
  if (changes) element.textContent = text;
  return changes;
}
