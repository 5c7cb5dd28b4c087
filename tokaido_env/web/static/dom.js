// Elements, buttons, drawings and dialogs.

export const element = (name, text = "", attributes = {}) => {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

export function holding(made, parts) {
  made.append(...parts);
  return made;
}
export const rowOf = (...buttons) => holding(element("div", "", { class: "row" }), buttons);

// A button ignores clicks while its action runs, so that none is done twice.
export function button(text, action, attributes = {}) {
  const made = element("button", text, { type: "button", ...attributes });
  let isBusy = false;
  made.addEventListener("click", async () => {
    if (isBusy) return;
    isBusy = true;
    await action();
    isBusy = false;
  });
  return made;
}

export const svgOf = (attributes, markup) => {
  const made = element("div");
  made.innerHTML = `<svg>${markup}</svg>`;
  for (const [key, value] of Object.entries(attributes)) made.firstChild.setAttribute(key, value);
  return made.firstChild;
};

// Whether the browser uses a key on an element, so that it must not be a shortcut there.
export const usesKey = (target, key) =>
  target.matches("select, input:not([type=checkbox], [type=file], [type=range])") || (key === " " && target.matches("button, summary, input"));

export const percent = (probability, digits = 0) => `${(100 * probability).toFixed(digits)}\u00a0%`;

// Open a dialog in place of the last one of its kind; it goes when it is closed.
export function openDialog(game, kind, title, parts, attributes = {}) {
  for (const one of game.el.querySelectorAll(`dialog.${kind}`)) one.close();
  const dialog = element("dialog", "", { class: kind, "aria-label": title, ...attributes });
  dialog.append(element("h2", title), ...parts);
  dialog.addEventListener("close", () => dialog.remove());
  game.el.append(dialog);
  dialog.showModal();
  return dialog;
}

// Ask whether to do something; return the answer. Closing the dialog means no.
export function confirmed(game, title, text, verb) {
  const answer = (word, name) => button(word, () => dialog.close(name), { class: name });
  const parts = [element("p", text), rowOf(answer("Cancel", "cancel"), answer(verb, "done"))];
  const dialog = openDialog(game, "question", title, parts, { role: "alertdialog" });
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "done")));
}
