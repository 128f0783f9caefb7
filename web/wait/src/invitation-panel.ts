// The lane of the user, the share of the lanes, and the form for an invitation code.

import type { LaneView, Line, Ticket, WaitingRoom } from "../../../sdk/js/src/index.js";
import { isHidden } from "../../../sdk/js/src/visibility.js";
import { cleanCode } from "./address.js";
import { format, type Messages } from "./i18n.js";
import { laneText } from "./lanes.js";
import type { Kind } from "./screen.js";
import type { CodeResult } from "./visit.js";

/** Interval at which a waiting page requests the shares. The response is cacheable and costs the store nothing. */
const SHARES_INTERVAL_MS = 60_000;
/** Longest delay before the first request: the pages of an opening begin together. */
const FIRST_SHARES_MS = 2_000;
/** Screens of a ticket that waits. */
const WAITS: ReadonlySet<Kind> = new Set(["lobby", "waiting", "still"]);
/** Screens from which the page or the user joins later. */
const BEFORE: ReadonlySet<Kind> = new Set(["scheduled", "outside", "ended"]);

/** What the panel controls: the page, or a test double. */
export interface InvitationView {
  lane(text: string): void;
  /** Shows or hides the form. */
  invitation(isShown: boolean): void;
  /** Fills in and opens the form. */
  fillCode(code: string): void;
  /** Clears and folds the form. */
  clearCode(): void;
  codeBusy(isBusy: boolean): void;
  codeMessage(text: string, isError: boolean): void;
  /** Returns whether the user gives up the present place. */
  confirmMove(): Promise<boolean>;
  announce(text: string): void;
}

export class InvitationPanel {
  #lanes: readonly LaneView[] = [];
  #kind: Kind = "joining";
  #ticket: Ticket | null = null;
  #isKept = false;
  #isClosed = false;
  #isRefused = false;
  #isBusy = false;
  #loading: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly room: Pick<WaitingRoom, "line">,
    readonly view: InvitationView,
    readonly messages: Messages,
    /** Whether the line had lanes when the server rendered the page: other lines are not requested for their lanes. */
    private hasLanes: boolean,
  ) {}

  /** Shows what applies to a screen. `isKept`: a code is kept for the next join. */
  show(kind: Kind, ticket: Ticket | null, isKept: boolean): void {
    this.#kind = kind;
    this.#ticket = ticket;
    this.#isKept = isKept;
    if (ticket) this.#isClosed = false;
    if (ticket?.lane) this.hasLanes = true;
    const loads = this.hasLanes && WAITS.has(kind);
    if (loads) this.#loading ??= setTimeout(() => void this.#load(), FIRST_SHARES_MS * Math.random());
    else this.#stop();
    this.#render();
  }

  /** Shows the lanes of a line. */
  update({ lanes = [], lineState }: Partial<Line>): void {
    this.#lanes = lanes;
    this.#isClosed = lineState === "CLOSED";
    this.hasLanes = lanes.length > 0 || Boolean(this.#ticket?.lane);
    this.#render();
  }

  /** Says that the server refused the code, and that the page joined without it if it did. */
  refused(code: string, isJoined: boolean): void {
    this.#isRefused = true;
    this.#render();
    this.view.fillCode(code);
    this.#complain(isJoined ? `${this.messages.codeBad} ${this.messages.codeBadJoined}` : this.messages.codeBad);
  }

  /** Offers a code to a user who waits already. */
  offer(code: string, redeem: (code: string) => Promise<CodeResult>): Promise<void> {
    this.hasLanes = true;
    this.#render();
    this.view.fillCode(code);
    return this.submit(code, redeem);
  }

  /** Uses the code that the user typed, after a confirmation if that gives up a place. */
  async submit(text: string, redeem: (code: string) => Promise<CodeResult>): Promise<void> {
    if (this.#isBusy) return;
    const code = cleanCode(text);
    if (!code) return this.#complain(this.messages.codeEmpty);
    this.view.codeMessage("", false);
    this.#isRefused = false;
    this.#isBusy = true;
    const isConfirmed = !WAITS.has(this.#kind) || (await this.view.confirmMove());
    if (isConfirmed) {
      this.view.codeBusy(true);
      this.#showResult(await redeem(code));
      this.view.codeBusy(false);
    }
    this.#isBusy = false;
  }

  #showResult(result: CodeResult): void {
    const { codeBad, codeBadKeep, codeFailed, codeSame, laneMoved } = this.messages;
    if (result === "refused") {
      this.#isRefused = true;
      return this.#complain(`${codeBad} ${codeBadKeep}`);
    }
    if (result === "failed") return this.#complain(codeFailed);
    if (result === "same") return this.#complain(codeSame);
    // `refused` has said so.
    if (this.#isRefused) return;
    if (result === "kept") this.#isKept = true;
    this.view.clearCode();
    this.#render();
    const lane = this.#ticket?.lane;
    if (result === "joined" && lane) this.view.announce(format(laneMoved, { lane }));
  }

  #complain(text: string): void {
    this.view.codeMessage(text, true);
  }

  async #load(): Promise<void> {
    const mine = this.#loading;
    if (!isHidden()) await this.room.line().then((line) => this.update(line), () => {});
    // The screen changed meanwhile.
    if (this.#loading !== mine) return;
    this.#loading = setTimeout(() => void this.#load(), SHARES_INTERVAL_MS * (1 + 0.25 * Math.random()));
  }

  #stop(): void {
    clearTimeout(this.#loading);
    this.#loading = undefined;
  }

  #render(): void {
    const waits = WAITS.has(this.#kind);
    const before = BEFORE.has(this.#kind) && !this.#isClosed;
    const kept = before && this.#isKept ? this.messages.codeKept : "";
    this.view.lane(waits && this.#ticket ? laneText(this.#ticket.lane ?? null, this.#lanes, this.messages) : kept);
    this.view.invitation((this.hasLanes || this.#isRefused) && (waits || before));
  }
}
