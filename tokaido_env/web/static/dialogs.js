// Dialogs, and questions in a dialog of their own.
import { button, element, rowOf } from "./dom.js";

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
