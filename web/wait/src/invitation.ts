// Loads the panel for invitations when a line has lanes or a user has a code: most lines have none.

import type { Line, Ticket } from "../../../sdk/js/src/index.js";
import type { InvitationPanel } from "./invitation-panel.js";
import type { Kind } from "./screen.js";
import type { CodeResult } from "./visit.js";

export class Invitation {
  #panel: InvitationPanel | null = null;
  #loading: Promise<InvitationPanel | null> | null = null;
  #shown: [Kind, Ticket | null, boolean] = ["joining", null, false];
  #line: Line | null = null;

  constructor(
    readonly load: () => Promise<InvitationPanel>,
    /** Whether the line had lanes when the server rendered the page. */
    private hasLanes: boolean,
  ) {}

  show(kind: Kind, ticket: Ticket | null, isKept: boolean): void {
    this.#shown = [kind, ticket, isKept];
    if (ticket?.lane || isKept) this.hasLanes = true;
    this.#render();
  }

  update(line: Line): void {
    this.#line = line;
    if (line.lanes?.length) this.hasLanes = true;
    this.#panel?.update(line);
    this.#render();
  }

  async refused(code: string, isJoined: boolean): Promise<void> {
    (await this.#open())?.refused(code, isJoined);
  }

  async offer(code: string, redeem: (code: string) => Promise<CodeResult>): Promise<void> {
    await (await this.#open())?.offer(code, redeem);
  }

  #render(): void {
    if (this.#panel) this.#panel.show(...this.#shown);
    else if (this.hasLanes) void this.#open();
  }

  /** Loads the panel; the next screen retries a load that failed. */
  #open(): Promise<InvitationPanel | null> {
    this.#loading ??= this.load().then(
      (panel) => {
        this.#panel = panel;
        if (this.#line) panel.update(this.#line);
        panel.show(...this.#shown);
        return panel;
      },
      () => (this.#loading = null),
    );
    return this.#loading;
  }
}
