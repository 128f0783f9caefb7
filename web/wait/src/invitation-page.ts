// The form for an invitation code in the page.

import type { Messages } from "./i18n.js";
import type { InvitationView } from "./invitation-panel.js";
import { type View, write } from "./view.js";

export class InvitationPage implements InvitationView {
  readonly form = document.createElement("form");
  readonly code = document.createElement("input");
  readonly #text = document.createElement("p");
  readonly #details = document.createElement("details");

  constructor(
    readonly page: View,
    messages: Messages,
    readonly confirmMove: () => Promise<boolean>,
  ) {
    const { form, code } = this;
    const [summary, label, field, button] = ["summary", "label", "p", "button"].map((name) => document.createElement(name)) as [HTMLElement, HTMLLabelElement, HTMLElement, HTMLElement];
    summary.textContent = messages.codeHave;
    [label.textContent, label.htmlFor, code.id] = [messages.code, "code", "code"];
    [this.#text.id, button.textContent, field.className, form.id] = ["code-text", messages.codeUse, "field", "code-form"];
    this.#text.setAttribute("role", "status");
    [code.maxLength, code.autocomplete, code.autocapitalize, code.spellcheck] = [256, "off", "off", false];
    code.setAttribute("autocorrect", "off");
    code.setAttribute("aria-describedby", "code-text");
    field.append(code, button);
    form.append(label, this.#text, field);
    this.#details.hidden = true;
    this.#details.append(summary, form);
    page.invitation.append(this.#details);
  }

  lane(text: string): void {
    this.page.lane(text);
  }

  announce(text: string): void {
    this.page.announce(text);
  }

  invitation(isShown: boolean): void {
    this.#details.hidden = !isShown;
  }

  fillCode(code: string): void {
    this.code.value = code;
    this.#details.open = true;
  }

  clearCode(): void {
    // The focused button disappears.
    if (this.#details.contains(document.activeElement)) this.#details.querySelector("summary")?.focus();
    this.code.value = "";
    this.#details.open = false;
  }

  /** Not disabled meanwhile, because a disabled button loses the keyboard focus. */
  codeBusy(isBusy: boolean): void {
    this.form.ariaBusy = String(isBusy);
  }

  codeMessage(text: string, isError: boolean): void {
    // On a phone the form may be below the edge of the screen.
    if (write(this.#text, text) && isError) this.#details.scrollIntoView({ block: "nearest" });
    this.code.setAttribute("aria-invalid", String(isError));
  }
}
