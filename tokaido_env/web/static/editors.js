// The dialogs of a table in which a position or the board is changed: see `position_form.py` and
// `board_form.py` for what they ask.
import { element, formOf, svgOf } from "./form.js";

const button = (text, name, act) => {
  const made = element("button", text, { type: "button", class: name });
  made.addEventListener("click", act);
  return made;
};

function open(table, title, ...parts) {
  const dialog = table.at("editor");
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(element("h2", title), ...parts);
  if (!dialog.open) dialog.showModal();
  return dialog;
}

const bar = (...buttons) => {
  const row = element("div", "", { class: "row" });
  row.append(...buttons);
  return row;
};

// The position, for a table that differs from what the page shows.
export async function differs(table) {
  const { form, data } = await table.ask("ask", "position");
  const { element: laid, refuse } = formOf(form, data);
  const done = button("Go on from here", "done", async () => {
    try {
      table.show(await table.ask("do", "put", { position: data }));
      dialog.close();
    } catch (error) {
      refuse(error.message, error.key);
    }
  });
  const dialog = open(table, "The table differs", laid, bar(done, button("Cancel", "cancel", () => dialog.close())));
}

const SAYS = [
  ["", "not compared"],
  ["same", "the same as mine"],
  ["different", "different"],
];

// Above the fields of a table: what the owner says of it, and what is known of it.
function comparison(group, compared, sheet) {
  const { table, title, provenance, note, surer, picture } = group;
  const select = element("select", "", { "aria-label": `${title}: compared with yours` });
  for (const [value, word] of SAYS) select.append(element("option", word, { value }));
  select.value = compared[table] ?? "";
  const fields = () => select.closest("fieldset").classList.toggle("open", select.value === "different");
  select.addEventListener("change", () => {
    if (select.value) compared[table] = select.value;
    else delete compared[table];
    fields();
  });
  queueMicrotask(fields);
  const surely = surer.map(([name, from]) => `${name}: ${from}`).join(", ");
  const known = `${provenance}${surely ? ` (${surely})` : ""}${note ? ` – ${note}` : ""}`;
  const words = element("p", known, { class: "known" });
  if (!picture) return [select, words];
  const viewBox = `0 0 ${picture.width} ${picture.height}`;
  return [select, svgOf({ viewBox, class: `${sheet} printed`, "aria-hidden": "true" }, picture.markup), words];
}

function listed(changes) {
  const items = changes.map(([name, before, after]) => {
    const words = [before, after].map((one) => (one === null ? "–" : [one].flat().join(" ")));
    return element("li", `${name}: ${words[0]} → ${words[1]}`);
  });
  const list = element("ul", "", { class: "changes" });
  list.append(...(items.length ? items : [element("li", "no value differs")]));
  return list;
}

// The board, corrected by who has the printed one.
export async function myBoard(table) {
  const compared = {};
  lay(await table.ask("ask", "board"));

  function lay({ form, data, island }, found = "") {
    const groups = form.map((group) => ({
      ...group,
      fields: group.fields.map((field) => ({ ...field, island, sheet: table.sheet() })),
      extra: group.table && comparison(group, compared, table.sheet()),
    }));
    const { element: laid, refuse } = formOf(groups, data);
    laid.classList.add("tables");
    const attempt = (act) => async () => {
      try {
        await act(await table.ask("ask", "check", { data, compared }));
      } catch (error) {
        refuse(error.message, error.key);
      }
    };
    const check = button("Check", "check", attempt((told) => lay({ ...told, data }, listed(told.changes))));
    const keep = button("Save the board file", "keep", attempt(({ data: { name }, toml }) => table.hand(`${name}.toml`, toml)));
    const send = button("Save what differs", "send", attempt(({ data: { name }, difference }) => table.hand(`${name}.diff`, difference)));
    const on = button("Play on it", "done", attempt(async () => {
      table.show(await table.ask("do", "board", { data, compared }));
      table.laySeats();
      dialog.close();
    }));
    const words = element("p", "Go through the tables with your board beside you. Save the file: tokaido play --board FILE knows it later.");
    const cancel = button("Cancel", "cancel", () => dialog.close());
    const shown = svgOf({ viewBox: "0 0 640 470", class: `${table.sheet()} island`, role: "img", "aria-label": "the island" }, island);
    const dialog = open(table, "My board", words, shown, laid, found, bar(check, on, keep, send, cancel));
  }
}
