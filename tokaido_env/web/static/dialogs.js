// Dialogs, and questions in a dialog of their own.
import { button, element, rowOf } from "./dom.js";

export function openDialog(game, title, parts, name = "panel") {
  const dialog = game.find(name);
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(element("h2", title), ...parts);
  if (!dialog.open) dialog.showModal();
  return dialog;
}

// Ask whether to do something, in a dialog of its own; return the answer. Closing it means no.
export function confirmed(game, title, text, verb) {
  return new Promise((resolve) => {
    const dialog = element("dialog", "", { class: "question", role: "alertdialog", "aria-label": title });
    const answer = (word, name) => button(word, () => dialog.close(name), { class: name });
    const buttons = rowOf(answer("Cancel", "cancel"), answer(verb, "done"));
    dialog.append(element("h2", title), element("p", text), buttons);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "done");
    });
    for (const one of game.el.querySelectorAll("dialog.question")) one.close();
    game.el.append(dialog);
    dialog.showModal();
  });
}
