// Forms of grouped fields that edit plain data; `position_form.py` defines the kinds of fields.

import { button, element, svgOf } from "./dom.js";

const path = (key) => key.split(/[.[\]]+/).filter((part) => part !== "");
const valueAt = (data, key) => path(key).reduce((inner, part) => inner?.[part], data);

function put(data, key, value) {
  const parts = path(key);
  const last = parts.pop();
  parts.reduce((inner, part) => inner[part], data)[last] = value;
}

function chooser(options, value, label) {
  const made = element("select", "", { "aria-label": label });
  for (const [at, [, text]] of options.entries()) made.append(element("option", text, { value: at }));
  made.value = options.findIndex(([one]) => JSON.stringify(one) === JSON.stringify(value));
  return made;
}

const chosen = (select, options) => options[select.value]?.[0];

// An input element for each kind of field; it calls `changed` with new values.
const kinds = {
  choice(field, value, changed) {
    const select = chooser(field.options, value, field.label);
    select.addEventListener("change", () => changed(chosen(select, field.options)));
    return select;
  },
  number(field, value, changed) {
    const { min, max, label } = field;
    const input = element("input", "", { type: "number", min, max, "aria-label": label });
    input.value = value;
    // Other text is sent unchanged, so that the answer reports the error.
    const read = () => (/^-?\d{1,9}$/.test(input.value) ? Number(input.value) : input.value);
    input.addEventListener("input", () => changed(read()));
    return input;
  },
  text(field, value, changed) {
    const input = element("input", "", { maxlength: field.max, "aria-label": field.label });
    input.value = value;
    input.addEventListener("input", () => changed(input.value));
    return input;
  },
  flags(field, value, changed) {
    const made = element("span", "", { class: "flags" });
    const boxes = field.options.map(([one, text]) => {
      const label = element("label");
      const box = element("input", "", { type: "checkbox" });
      box.checked = value.includes(one);
      label.append(box, text);
      made.append(label);
      return box;
    });
    made.addEventListener("change", () =>
      changed(field.options.map(([one]) => one).filter((_, at) => boxes[at].checked)),
    );
    return made;
  },
  list(field, value, changed) {
    const made = element("span", "", { class: "sequence" });
    const values = [...value];
    const update = () => {
      const items = values.map((one, at) => {
        const select = chooser(field.options, one, `${field.label} ${at}`);
        select.addEventListener("change", () => {
          values[at] = chosen(select, field.options);
          changed([...values]);
        });
        const item = element("span");
        item.append(select, changing(`Remove ${field.label} ${at}`, "×", () => values.splice(at, 1)));
        return item;
      });
      const more = changing(`Add ${field.label}`, "+", () => values.push(values.at(-1) ?? field.options[0][0]));
      more.disabled = values.length >= field.most;
      made.replaceChildren(...items, more);
    };
    const changing = (label, text, action) => button(text, () => {
      action();
      changed([...values]);
      update();
    }, { "aria-label": label });
    update();
    return made;
  },
  // Pairs of towns, edited by two clicks in a picture of the island or by lists.
  routes(field, value, changed) {
    const pairs = value.map((pair) => [...pair]);
    const made = element("div", "", { class: "routes" });
    const chips = element("div", "", { class: "sequence" });
    const picture = svgOf({ viewBox: "0 0 640 470", class: field.themeClass }, field.island);
    let first = null;
    const isSame = ([a, b], [c, d]) => (a === c && b === d) || (a === d && b === c);
    const toggle = (pair) => {
      const at = pairs.findIndex((one) => isSame(one, pair));
      if (at < 0) pairs.push(pair);
      else pairs.splice(at, 1);
      changed(pairs.map((one) => [...one]));
      update();
    };
    const options = field.towns.map((town) => [town, town]);
    const ends = ["from", "to"].map((end) => chooser(options, field.towns[0], `route ${end}`));
    const add = button("Add or remove route", () => toggle(ends.map((end) => chosen(end, options))));
    for (const title of picture.querySelectorAll("title")) {
      const town = /^(?:mountain|coastal) town (\w+),/.exec(title.textContent)?.[1];
      if (!town) continue;
      const place = title.parentElement;
      place.classList.add("go");
      place.addEventListener("click", () => {
        if (first === null) {
          first = { town, place };
          place.classList.add("from");
          return;
        }
        first.place.classList.remove("from");
        if (first.town !== town) toggle([first.town, town]);
        first = null;
      });
    }
    const update = () => {
      const label = (pair) => ({ "aria-label": `Remove the route ${pair.join(" to ")}` });
      chips.replaceChildren(...pairs.map((pair) => button(`${pair.join("–")} ×`, () => toggle(pair), label(pair))));
    };
    update();
    made.append(
      element("p", "Click two towns to add or remove the route between them. A board has 11 routes."),
      picture, chips, ...ends, add,
    );
    return made;
  },
};

// Return a form for groups of fields, which edits `data` in place.
export function formOf(groups, data) {
  const rows = new Map();
  const top = element("p", "", { class: "wrong", role: "alert" });
  const made = element("div", "", { class: "form" });
  made.append(top);
  for (const { title, fields, extra } of groups) {
    const group = element("fieldset");
    group.append(element("legend", title));
    if (extra) group.append(...extra);
    for (const field of fields) {
      const row = element("div", "", { class: `field ${field.kind}` });
      const name = element("span", field.label);
      const wrong = element("span", "", { class: "wrong", role: "alert" });
      const changed = (value) => put(data, field.key, value);
      row.append(name, kinds[field.kind](field, valueAt(data, field.key), changed), wrong);
      group.append(row);
      rows.set(field.key, row);
    }
    made.append(group);
  }

  // Show an error at its field, or above all fields if it concerns several.
  function showFormError(message, key = "") {
    for (const row of rows.values()) row.classList.remove("at-fault");
    for (const one of made.querySelectorAll(".wrong")) one.textContent = "";
    if (!message) return;
    const inside = (one) => key !== "" && (one === key || key.startsWith(`${one}.`));
    const at = [...rows.keys()].find(inside);
    const place = at === undefined ? top : rows.get(at).querySelector(".wrong");
    if (at !== undefined) rows.get(at).classList.add("at-fault");
    place.textContent = message;
    place.scrollIntoView({ block: "nearest" });
  }
  return { element: made, showFormError };
}
