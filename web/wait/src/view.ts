// The page itself: writes what a scene says into it, and nothing else.

import type { PageTexts } from "../../../sdk/js/src/index.js";
import type { Scene } from "./scene.js";
import { clock } from "./words.js";

function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

export class View {
  readonly main = byId("scene");
  readonly enter = byId<HTMLAnchorElement>("enter");
  readonly again = byId("again");
  readonly leave = byId("leave");
  readonly leaving = byId<HTMLDialogElement>("leaving");
  readonly sound = byId("sound").querySelector("input");
  readonly #headline = byId("headline");
  readonly #bar = byId("bar");
  readonly #numbers = new Intl.NumberFormat(document.documentElement.lang);

  constructor() {
    // Hidden until there is a script to bring it to life.
    for (const id of ["live", "foot"]) byId(id).hidden = false;
  }

  show(scene: Scene, done: number): void {
    const turned = this.main.dataset["scene"] !== scene.kind;
    this.main.dataset["scene"] = scene.kind;
    write(this.#headline, scene.headline);
    write(byId("text"), scene.text);
    if (scene.place) this.#place(scene.place, done);
    // Whoever came by keyboard is where the news is, not on a button that is gone.
    const lost = document.activeElement === document.body || !document.activeElement;
    if (turned && (scene.kind === "turn" || scene.kind === "ended") && lost) this.#headline.focus();
  }

  #place({ position, ahead, behind, eta }: NonNullable<Scene["place"]>, done: number): void {
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

  /** The address comes from the waiting room's own answer, which takes it from the item's policy. */
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

  /** The operator's texts. Returns whether the message is another one than before. */
  page({ name, message }: PageTexts): boolean {
    write(byId("name"), name);
    return write(byId("message"), message ?? "");
  }

  notice(text: string): void {
    write(byId("notice"), text);
  }

  lost(isLost: boolean): void {
    byId("lost").hidden = !isLost;
  }

  say(text: string): void {
    write(byId("said"), text);
  }

  /** Asks whether the person really wants to leave. */
  async reallyLeaves(): Promise<boolean> {
    this.leaving.returnValue = "stay";
    this.leaving.showModal();
    await new Promise((closed) => this.leaving.addEventListener("close", closed, { once: true }));
    return this.leaving.returnValue === "leave";
  }
}

function write(element: HTMLElement, text: string): boolean {
  const changes = element.textContent !== text;
  if (changes) element.textContent = text;
  return changes;
}
