// Dialogs to edit the position and to correct the board; `position_form.py` and `board_form.py`
// define their forms.
import { element, formOf, svgOf } from "./form.js";

const button = (text, name, action) => {
  const made = element("button", text, { type: "button", class: name });
  made.addEventListener("click", action);
  return made;
};

function open(game, title, ...parts) {
  const dialog = game.find("editor");
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(element("h2", title), ...parts);
  if (!dialog.open) dialog.showModal();
  return dialog;
}

const buttonRow = (...buttons) => {
  const row = element("div", "", { class: "row" });
  row.append(...buttons);
  return row;
};

export async function editPosition(game) {
  const { form, data } = await game.query("position_form");
  const { element: fields, showFormError } = formOf(form, data);
  const done = button("Continue from here", "done", async () => {
    try {
      game.show(await game.send("command", "set_position", { position: data }));
      dialog.close();
    } catch (error) {
      showFormError(error.message, error.key);
    }
  });
  const cancel = button("Cancel", "cancel", () => dialog.close());
  const dialog = open(game, "Edit position", fields, buttonRow(done, cancel));
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
        await action(await game.query("check_board", { data, compared }));
      } catch (error) {
        showFormError(error.message, error.key);
      }
    };
    const check = button("Check", "check", ifValid((answer) => update({ ...answer, data }, changeList(answer.changes))));
    const play = button("Play on this board", "done", ifValid(async () => {
      game.show(await game.send("command", "set_board", { data, compared }));
      game.updateSeats();
      dialog.close();
    }));
    const save = button("Save board file", "save-board", ifValid(({ toml }) => game.download(`${data.name}.toml`, toml)));
    const diff = button("Download changes", "save-changes", ifValid(({ difference }) => game.download(`${data.name}.diff`, difference)));
    const cancel = button("Cancel", "cancel", () => dialog.close());
    const help = element("p", "Compare each table with your printed board. Save the board file to play on it later with tokaido play --board FILE.");
    const picture = svgOf({ viewBox: "0 0 640 470", class: `${game.themeClass()} island`, role: "img", "aria-label": "Island" }, island);
    const dialog = open(game, "Correct the board", help, picture, fields, changes, buttonRow(check, play, save, diff, cancel));
  }
}
