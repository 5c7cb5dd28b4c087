// Dialogs to edit the position and to correct the board; `position_form.py` and `board_form.py`
// define their forms.
import { button, element, rowOf, svgOf } from "./dom.js";
import { formOf } from "./form.js";

export function openDialog(game, title, parts, name = "editor") {
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

export async function editPosition(game) {
  const { form, data } = await game.query("position_form");
  const { element: fields, showFormError } = formOf(form, data);
  const done = button("Continue from here", async () => {
    try {
      game.show(await game.send("command", "set_position", { position: data }));
      dialog.close();
    } catch (error) {
      showFormError(error.message, error.key);
    }
  }, { class: "done" });
  const cancel = button("Cancel", () => dialog.close(), { class: "cancel" });
  const dialog = openDialog(game, "Edit position", [fields, rowOf(done, cancel)]);
}

const RESULTS = [
  ["", "Not checked"],
  ["matches", "Matches"],
  ["differs", "Differs"],
];

// Elements above the fields of a table: the result of the comparison, a drawing and the provenance.
function comparison(group, compared, themeClass) {
  const { table, title, provenance, note, provenance_of: values, picture } = group;
  const select = element("select", "", { "aria-label": `${title}: comparison with the printed board` });
  for (const [value, text] of RESULTS) select.append(element("option", text, { value }));
  select.value = compared[table] ?? "";
  const update = () => select.closest("fieldset").classList.toggle("open", select.value === "differs");
  select.addEventListener("change", () => {
    if (select.value) compared[table] = select.value;
    else delete compared[table];
    update();
  });
  queueMicrotask(update);
  const single = values.map(([name, from]) => `${name}: ${from}`).join(", ");
  const text = `${provenance}${single ? ` (${single})` : ""}${note ? ` – ${note}` : ""}`;
  const known = element("p", text, { class: "known" });
  if (!picture) return [select, known];
  const viewBox = `0 0 ${picture.width} ${picture.height}`;
  return [select, svgOf({ viewBox, class: `${themeClass} printed`, "aria-hidden": "true" }, picture.markup), known];
}

function changeList(changes) {
  const items = changes.map(([name, before, after]) => {
    const texts = [before, after].map((value) => (value === null ? "–" : [value].flat().join(" ")));
    return element("li", `${name}: ${texts[0]} → ${texts[1]}`);
  });
  const list = element("ul", "", { class: "changes" });
  list.append(...(items.length ? items : [element("li", "No values differ.")]));
  return list;
}

export async function correctBoard(game) {
  const compared = {};
  update(await game.query("board_form"));

  function update({ form, data, island }, changes = "") {
    const groups = form.map((group) => ({
      ...group,
      fields: group.fields.map((field) => ({ ...field, island, themeClass: game.themeClass() })),
      extra: group.table && comparison(group, compared, game.themeClass()),
    }));
    const { element: fields, showFormError } = formOf(groups, data);
    fields.classList.add("tables");
    const ifValid = (action) => async () => {
      try {
        const answer = await game.query("check_board", { data, compared });
        if (dialog.open) await action(answer);
      } catch (error) {
        showFormError(error.message, error.key);
      }
    };
    const check = button("Check", ifValid((answer) => update({ ...answer, data }, changeList(answer.changes))), { class: "check" });
    const play = button("Play on this board", ifValid(async () => {
      if (!(await game.mayReplaceGame())) return;
      game.show(await game.send("command", "set_board", { data, compared }));
      dialog.close();
    }), { class: "done" });
    const save = button("Save board file", ifValid(({ toml }) => game.download(`${data.name}.toml`, toml)), { class: "save-board" });
    const diff = button("Download changes", ifValid(({ difference }) => game.download(`${data.name}.diff`, difference)), { class: "save-changes" });
    const cancel = button("Cancel", () => dialog.close(), { class: "cancel" });
    const help = element("p", "Compare each table with your printed board. Save the board file to play on it later with tokaido play --board FILE.");
    const picture = svgOf({ viewBox: "0 0 640 470", class: `${game.themeClass()} island`, role: "img", "aria-label": "Island" }, island);
    const dialog = openDialog(game, "Correct the board", [help, picture, fields, changes, rowOf(check, play, save, diff, cancel)]);
  }
}
