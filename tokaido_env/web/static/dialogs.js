// Dialogs, and questions in a dialog of their own.
import { button, element, rowOf } from "./dom.js";

export function openDialog(game, title, parts, name = "keys-dialog") {
  const dialog = game.find(name);
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(element("h2", title), ...parts);
  if (!dialog.open) dialog.showModal();
  return dialog;
}

// Ask whether to do something; return the answer.
export function confirmed(game, title, text, verb, other = "Cancel") {
  return new Promise((resolve) => {
    const answer = (word, name) => button(word, () => dialog.close(name), { class: name });
    const buttons = rowOf(answer(other, "cancel"), answer(verb, "done"));
    const dialog = openDialog(game, title, [element("p", text), buttons], "question");
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "done"), { once: true });
  });
}
