// Questions in dialogs.

/** Asks a question in a dialog. Returns whether the user confirmed. */
export async function ask(question: string, text: string, no: string, yes: string, isGrave = false): Promise<boolean> {
  const dialog = element("dialog", "");
  const [form, menu, head] = [element("form", ""), element("menu", ""), element("h2", question)];
  form.method = "dialog";
  head.id = "ask";
  dialog.setAttribute("aria-labelledby", head.id);
  const [stay, go] = [element("button", no), element("button", yes)];
  [stay.value, go.value, stay.autofocus, go.className] = ["no", "yes", true, isGrave ? "grave" : ""];
  menu.append(stay, go);
  form.append(head, element("p", text), menu);
  dialog.append(form);
  document.body.append(dialog);
  dialog.returnValue = "no";
  dialog.showModal();
  await new Promise((closed) => dialog.addEventListener("close", closed, { once: true }));
  dialog.remove();
  return dialog.returnValue === "yes";
}

export function element<K extends keyof HTMLElementTagNameMap>(name: K, text: string): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
