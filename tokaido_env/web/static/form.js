// Forms: groups of fields (see `position_form.py` for their kinds) that show and change plain data.

export const element = (name, text = "", attributes = {}) => {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

export const svgOf = (attributes, markup) => {
  const made = element("div");
  made.innerHTML = `<svg>${markup}</svg>`;
  for (const [key, value] of Object.entries(attributes)) made.firstChild.setAttribute(key, value);
  return made.firstChild;
};

const path = (key) => key.split(/[.[\]]+/).filter((part) => part !== "");
const valueAt = (data, key) => path(key).reduce((inner, part) => inner?.[part], data);

function put(data, key, value) {
  const parts = path(key);
  const last = parts.pop();
  parts.reduce((inner, part) => inner[part], data)[last] = value;
}

function chooser(options, value, label) {
  const made = element("select", "", { "aria-label": label });
  for (const [at, [, word]] of options.entries()) made.append(element("option", word, { value: at }));
  made.value = options.findIndex(([one]) => JSON.stringify(one) === JSON.stringify(value));
  return made;
}

const chosen = (select, options) => options[select.value]?.[0];

// What stands in a field, as an element, and how its value is read back; each tells `changed`.
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
    // What is no whole number is sent as it stands, for the answer to say so.
    const read = () => (/^-?\d{1,9}$/.test(input.value) ? Number(input.value) : input.value);
    input.addEventListener("input", () => changed(read()));
    return input;
  },
  word(field, value, changed) {
    const input = element("input", "", { maxlength: field.max, "aria-label": field.label });
    input.value = value;
    input.addEventListener("input", () => changed(input.value));
    return input;
  },
  flags(field, value, changed) {
    const made = element("span", "", { class: "flags" });
    const boxes = field.options.map(([one, word]) => {
      const label = element("label");
      const box = element("input", "", { type: "checkbox" });
      box.checked = value.includes(one);
      label.append(box, word);
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
    const lay = () => {
      const items = values.map((one, at) => {
        const select = chooser(field.options, one, `${field.label} ${at}`);
        select.addEventListener("change", () => {
          values[at] = chosen(select, field.options);
          changed([...values]);
        });
        const item = element("span");
        item.append(select, button(`remove ${field.label} ${at}`, "×", () => values.splice(at, 1)));
        return item;
      });
      const more = button(`add ${field.label}`, "+", () => values.push(values.at(-1) ?? field.options[0][0]));
      more.disabled = values.length >= field.most;
      made.replaceChildren(...items, more);
    };
    const button = (label, sign, act) => {
      const one = element("button", sign, { type: "button", "aria-label": label });
      one.addEventListener("click", () => {
        act();
        changed([...values]);
        lay();
      });
      return one;
    };
    lay();
    return made;
  },
  // Pairs of towns, by two clicks in a picture of the island, or by lists.
  routes(field, value, changed) {
    const pairs = value.map((pair) => [...pair]);
    const made = element("div", "", { class: "routes" });
    const chips = element("div", "", { class: "sequence" });
    const picture = svgOf({ viewBox: "0 0 640 470", class: field.sheet }, field.island);
    let first = null;
    const isSame = ([a, b], [c, d]) => (a === c && b === d) || (a === d && b === c);
    const toggle = (pair) => {
      const at = pairs.findIndex((one) => isSame(one, pair));
      if (at < 0) pairs.push(pair);
      else pairs.splice(at, 1);
      changed(pairs.map((one) => [...one]));
      lay();
    };
    const options = field.towns.map((town) => [town, town]);
    const ends = ["from", "to"].map((end) => chooser(options, field.towns[0], `route ${end}`));
    const add = element("button", "add or remove", { type: "button" });
    add.addEventListener("click", () => toggle(ends.map((end) => chosen(end, options))));
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
    const lay = () => {
      const items = pairs.map((pair) => {
        const one = element("button", `${pair.join("–")} ×`, { type: "button", "aria-label": `remove the route ${pair.join(" to ")}` });
        one.addEventListener("click", () => toggle(pair));
        return one;
      });
      chips.replaceChildren(...items);
    };
    lay();
    made.append(
      element("p", "Click one town, then another: a route between them is added, or removed. Eleven are needed."),
      picture, chips, ...ends, add,
    );
    return made;
  },
};

// Lay out groups of fields over data, which is changed as they are; `changed` is told of each.
export function formOf(groups, data, changed = () => {}) {
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
      const note = (value) => {
        put(data, field.key, value);
        changed(field.key);
      };
      row.append(name, kinds[field.kind](field, valueAt(data, field.key), note), wrong);
      group.append(row);
      rows.set(field.key, row);
    }
    made.append(group);
  }

  // Say at the field what is wrong, or above all where no field is at fault alone.
  function refuse(message, key = "") {
    for (const row of rows.values()) row.classList.remove("at-fault");
    for (const place of made.querySelectorAll(".wrong")) place.textContent = "";
    if (!message) return;
    const inside = (one) => key !== "" && (one === key || key.startsWith(`${one}.`));
    const at = [...rows.keys()].find(inside);
    const place = at === undefined ? top : rows.get(at).querySelector(".wrong");
    if (at !== undefined) rows.get(at).classList.add("at-fault");
    place.textContent = message;
    place.scrollIntoView({ block: "nearest" });
  }
  return { element: made, refuse };
}
