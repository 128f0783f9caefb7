// The drawn place and the check of the draw.

import type { Ticket, WaitingRoom } from "../../../sdk/js/src/index.js";
import { format, type Messages } from "./i18n.js";
import type { TicketStorage } from "./ticket-storage.js";
import type { Expected, Verdict } from "./verdict.js";

/** Longest delay before the page notes the commitment: the pages of a lobby request it one after the other. */
const NOTE_WITHIN_MS = 30_000;
/** Longest delay before the page requests how many took part. */
const SIZE_WITHIN_MS = 20_000;

/** What the panel controls: the page, or a test double. */
export interface DrawView {
  /** Shows the drawn place; an empty text hides the panel. */
  drawn(text: string): void;
  /** Shows the button's text and the verdict. */
  verdict(button: string, verdict: Verdict | null, notice: string): void;
  announce(text: string): void;
  number(value: number): string;
}

export class DrawPanel {
  #ticket: Ticket | null = null;
  #size: number | null = null;
  #noting: ReturnType<typeof setTimeout> | undefined;
  #sizing: ReturnType<typeof setTimeout> | undefined;
  #isChecking = false;

  constructor(
    readonly room: Pick<WaitingRoom, "draw">,
    readonly storage: TicketStorage,
    readonly view: DrawView,
    readonly messages: Messages,
    /** Checks the draw of a ticket. */
    readonly verdictOf: (token: string, expected: Expected) => Promise<Verdict>,
  ) {}

  /** Shows the drawn place of a ticket. Returns it as a text; empty if the ticket has none. */
  show(ticket: Ticket | null): string {
    if (this.#ticket?.token !== ticket?.token) this.#reset();
    this.#ticket = ticket;
    if (ticket?.lineState === "LOBBY" && ticket.position === null) this.#noteCommitment(ticket);
    const text = this.#place();
    if (text && this.#size === null) this.#sizing ??= setTimeout(() => void this.#loadSize(), SIZE_WITHIN_MS * Math.random());
    this.view.drawn(text);
    return text;
  }

  /** Checks the draw with this device, and shows the verdict. */
  async check(): Promise<void> {
    const ticket = this.#ticket;
    if (!ticket?.cohortRank || this.#isChecking) return;
    this.#isChecking = true;
    this.view.verdict(this.messages.drawChecking, null, "");
    try {
      const verdict = await this.verdictOf(ticket.token, { rank: ticket.cohortRank, commitment: this.storage.current.commitment });
      this.view.verdict(this.messages.drawCheck, verdict, "");
      this.view.announce(verdict.text);
    } catch {
      this.view.verdict(this.messages.drawCheck, null, this.messages.drawUnchecked);
      this.view.announce(this.messages.drawUnchecked);
    }
    this.#isChecking = false;
  }

  /** Notes the commitment before the opening: afterwards, only a page that noted it can tell whether it was replaced. */
  #noteCommitment({ opensInMs }: Ticket): void {
    if (this.#noting !== undefined || this.storage.current.commitment) return;
    const within = Math.min(NOTE_WITHIN_MS, (opensInMs ?? NOTE_WITHIN_MS) / 2);
    this.#noting = setTimeout(async () => {
      const record = await this.room.draw().catch(() => null);
      if (record?.state === "COMMITTED") this.storage.note({ commitment: record.commitment });
    }, within * Math.random());
  }

  async #loadSize(): Promise<void> {
    const record = await this.room.draw().catch(() => null);
    this.#size = record?.cohortSize ?? null;
    this.view.drawn(this.#place());
  }

  #place(): string {
    const rank = this.#ticket?.status === "WAITING" ? this.#ticket.cohortRank : null;
    if (!rank) return "";
    const n = this.view.number(rank);
    if (this.#size === null) return format(this.messages.drawnPlace, { n });
    return format(this.messages.drawnPlaceOf, { n, all: this.view.number(this.#size) });
  }

  #reset(): void {
    clearTimeout(this.#noting);
    clearTimeout(this.#sizing);
    this.#noting = this.#sizing = undefined;
    this.#size = null;
    this.view.verdict(this.messages.drawCheck, null, "");
  }
}
