// The page at a table: shows what the server tells, and sends what is chosen.
const byId = (id) => document.getElementById(id);
const token = location.hash.slice(1);
let told = { version: 0 };

const element = (name, text = "", attributes = {}) => {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

// The server

async function ask(path, body) {
  const options = { headers: { "X-Token": token } };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  const answer = path === "record" && response.ok ? await response.text() : await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function act(name, body = {}) {
  try {
    show(await ask(`do/${name}`, body));
    byId("error").textContent = "";
  } catch (error) {
    byId("error").textContent = error.message;
  }
}

async function watch() {
  for (;;) {
    try {
      show(await ask(`look?seen=${told.version}`));
    } catch (error) {
      byId("error").textContent = `no answer: ${error.message}; the game is kept, trying again`;
      await new Promise((later) => setTimeout(later, 2000));
      continue;
    }
    if (byId("error").textContent.startsWith("no answer")) byId("error").textContent = "";
  }
}

// What is shown

function show(next) {
  if (next.version <= told.version) return;
  const first = told.version === 0;
  told = next;
  for (const [name, markup] of Object.entries(told.panels)) {
    document.querySelector(`[data-panel="${name}"]`).innerHTML = markup;
  }
  byId("who").textContent = `${told.names.join(" against ")} · ${told.board}`;
  document.title = `${told.names.join(" against ")}, Tokaido Duo`;
  byId("story").textContent = told.thinks ? `${told.story} …` : told.story;
  byId("undo").disabled = !told.can_undo;
  byId("advise").disabled = told.waits_for !== "human" || told.advises;
  byId("run").textContent = told.runs ? "Pause" : "Go on";
  byId("run").setAttribute("aria-pressed", !told.runs);
  byId("skip").checked = told.skips;
  if (told.failed) byId("error").textContent = told.failed;
  layChoices();
  layLog();
  markPlaces();
  byId("advice").textContent = advice();
  if (first) laySeats();
}

function layChoices() {
  const hadFocus = byId("choices").contains(document.activeElement);
  const items = told.choices.map(({ label, words }, number) => {
    const button = element("button", "", { type: "button" });
    button.append(element("kbd", String(number + 1)), element("b", label), element("span", words));
    button.addEventListener("click", () => choose(label));
    const item = element("li", "", { "data-label": label });
    item.append(button);
    return item;
  });
  byId("choices").replaceChildren(...items);
  if (hadFocus && items.length) items[0].firstChild.focus();
}

function layLog() {
  const list = byId("log");
  let before = null;
  const items = told.log.map(([round, seat, sentence]) => {
    const item = element("li", sentence);
    if (seat !== null) item.dataset.seat = seat;
    if (round !== before) item.dataset.round = round ? `round ${round}` : "set-up";
    before = round;
    return item;
  });
  list.replaceChildren(...items);
  list.parentElement.scrollTop = list.parentElement.scrollHeight;
}

// Where a character may go the picture has a mark that names the actions: it takes clicks.
function markPlaces() {
  for (const title of document.querySelectorAll('[data-panel="island"] title')) {
    if (!title.textContent.startsWith("legal: ")) continue;
    const labels = title.textContent.slice(7).split(", ");
    const place = title.parentElement;
    place.classList.add("go");
    place.addEventListener("click", () => (labels.length === 1 ? choose(labels[0]) : aim(labels)));
    place.querySelector(".mark").style.fill = "transparent"; // the whole disc takes clicks
  }
}

function aim(labels) {
  const items = [...byId("choices").children];
  for (const item of items) item.classList.toggle("aimed", labels.includes(item.dataset.label));
  items.find((item) => labels.includes(item.dataset.label))?.firstChild.focus();
}

function advice() {
  if (told.advises) return `${told.advisor} thinks …`;
  if (!told.advice) return "";
  const wins = told.advice.wins === null ? "" : `: wins ${Math.round(100 * told.advice.wins)} %`;
  const moves = told.advice.moves.map(([label, share]) => `${Math.round(100 * share)} %  ${label}`);
  return [`${told.advisor}${wins}`, ...moves].join("\n");
}

function laySeats() {
  const named = told.seats.filter((spec) => !["human", ...told.levels.map(([one]) => one)].includes(spec));
  const options = [["human", null], ...told.levels, ...named.map((spec) => [spec, null])];
  for (const seat of [0, 1]) {
    const made = options.map(([spec, elo]) =>
      element("option", elo === null ? spec : `${spec} (Elo ${elo})`, { value: spec }),
    );
    byId(`seat${seat}`).replaceChildren(...made);
    byId(`seat${seat}`).value = told.seats[seat];
  }
}

// What is done

const choose = (move) => act("play", { move, events: told.log.length });

const actions = {
  undo: () => act("undo", { outcome: told.waits_for === "chance" }),
  advise: () => act("advise"),
  run: () => act("run", { on: !told.runs }),
};
for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
byId("skip").addEventListener("change", (event) => act("skip", { on: event.target.checked }));

byId("new").addEventListener("submit", (event) => {
  event.preventDefault();
  const seed = byId("seed").value;
  act("new", {
    seats: [byId("seat0").value, byId("seat1").value],
    board: byId("board").value,
    seed: seed === "" ? null : Number(seed),
    chance: byId("explicit").checked ? "explicit" : "sampled",
  });
  byId("setup").open = false;
});

byId("save").addEventListener("click", async (event) => {
  event.preventDefault();
  const text = await ask("record");
  const link = element("a", "", { download: "game.jsonl" });
  link.href = `data:application/jsonl;charset=utf-8,${encodeURIComponent(text)}`;
  link.click();
});
byId("load").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (file) await act("load", { record: (await file.text()).split("\n")[0] });
  event.target.value = "";
});

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) return;
  const keys = { u: "undo", a: "advise" };
  if (event.key in keys && !byId(keys[event.key]).disabled) actions[keys[event.key]]();
  else if (/^[1-9]$/.test(event.key) && told.choices[event.key - 1]) {
    choose(told.choices[event.key - 1].label);
  } else return;
  event.preventDefault();
});

// By day and by night

function dress(isDark) {
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", isDark);
  for (const svg of document.querySelectorAll("svg[data-panel]")) {
    svg.setAttribute("class", `tokaido tokaido-${isDark ? "dark" : "light"}`);
  }
}
byId("theme").addEventListener("click", () => dress(document.documentElement.dataset.theme !== "dark"));
dress(matchMedia("(prefers-color-scheme: dark)").matches);
watch();
