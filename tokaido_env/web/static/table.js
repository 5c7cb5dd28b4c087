// A table in a page or a notebook: shows what a model tells, sends it what is chosen.
//
// The model is that of anywidget's modules: `get("told")`, `on("change:told")`, `send`, and answers
// as "msg:custom". A page gives one that fetches.
import { differs, myBoard } from "./editors.js";
import { element, svgOf } from "./form.js";

const LONG = 2000; // milliseconds of thought after which is said why

const panel = (name, width, height) =>
  `<svg data-panel="${name}" viewBox="0 0 ${width} ${height}" preserveAspectRatio="xMinYMin slice" class="tokaido" role="graphics-document document"></svg>`;

const LAYOUT = `
<header><h1>Tokaido Duo</h1><p class="who"></p><button class="theme" type="button">Dark</button></header>
<p class="error" role="alert"></p>
<main>
<section class="board" aria-label="Board">
${panel("heading", 1000, 50)}
<div>${panel("island", 640, 470)}${panel("table", 640, 144)}</div>
<div>${panel("player_0", 350, 304)}${panel("player_1", 350, 304)}</div>
</section>
<section class="points turn" aria-label="What to do">
<p class="story" aria-live="polite"></p>
<div class="past" hidden><button class="earlier" type="button">Earlier</button><button class="later" type="button">Later</button><button class="now" type="button">Back to the game</button></div>
<div class="dice"></div>
<ol class="choices"></ol>
<p class="advice" aria-live="polite"></p>
<details class="odds"><summary>What chance may bring</summary><div></div></details>
</section>
<section class="controls" aria-label="The game">
<div class="row">
<button class="undo" type="button" title="u">Take back</button>
<button class="advise" type="button" title="a">Advice</button>
<button class="review-it" type="button" title="r">Review</button>
<button class="run" type="button" title="space">Pause</button>
<button class="resign" type="button">Resign</button>
<button class="differs" type="button">The table differs</button>
<button class="my-board" type="button">My board</button>
<button class="save" type="button">Save</button>
<label class="file">Load <input class="load" type="file" accept=".jsonl,.json"></label>
<label><input class="skip" type="checkbox" checked> Make decisions without a choice</label>
</div>
<details class="setup"><summary>New game</summary>
<form class="new">
<label>player_0 <select class="seat0"></select></label>
<label>player_1 <select class="seat1"></select></label>
<label>Board <input class="board-name" value="shikoku" maxlength="60"></label>
<label>Seed <input class="seed" inputmode="numeric" pattern="[0-9]*" maxlength="16" placeholder="any"></label>
<label><input class="explicit" type="checkbox"> Beside the game on the table: I tell what dice and bag bring</label>
<button type="submit">Begin</button>
</form>
</details>
</section>
<section class="moves" aria-label="What has happened"><ol class="log"></ol></section>
<section class="review" aria-label="Review"></section>
</main>
<dialog class="editor"></dialog>`;

class Table {
  constructor(model, el) {
    this.model = model;
    this.el = el;
    this.told = { version: 0 };
    this.waiting = new Map(); // what was asked and is not answered
    this.name = Math.random().toString(36).slice(2); // of several views of one model
    this.asks = 0;
    this.past = null; // the event before which the game is shown, null: as it stands
    this.roll = [null, null, null];
    el.classList.add("tokaido-app");
    el.setAttribute("data-lm-suppress-shortcuts", "true"); // keys are ours, not JupyterLab's
    el.innerHTML = LAYOUT;
    this.listen();
    this.heard = {
      "msg:custom": (message) => this.answered(message),
      "change:told": () => this.show(model.get("told")),
    };
    for (const [name, listener] of Object.entries(this.heard)) model.on(name, listener);
    if (model.get("told")) this.show(model.get("told"));
  }

  leave() {
    clearTimeout(this.timer);
    for (const [name, listener] of Object.entries(this.heard)) this.model.off(name, listener);
  }

  at(name) {
    return this.el.querySelector(`.${name}`);
  }

  // The model

  ask(kind, name, given = {}) {
    this.asks += 1;
    const id = `${this.name} ${this.asks}`;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.model.send({ id, kind, name, arguments: given });
    return answer;
  }

  answered({ id, answer, error, key }) {
    const { resolve, reject } = this.waiting.get(id) ?? {};
    this.waiting.delete(id);
    if (error !== undefined) reject?.(Object.assign(new Error(error), { key }));
    else resolve?.(answer);
  }

  async act(name, given = {}) {
    try {
      this.show(await this.ask("do", name, given));
      this.say("");
    } catch (error) {
      this.say(error.message);
    }
  }

  say(what) {
    this.at("error").textContent = what || this.told.failed || "";
  }

  choose(move) {
    return this.act("play", { move, events: this.told.log.length });
  }

  // What is shown

  show(next) {
    if (next.version <= this.told.version) return;
    const first = this.told.version === 0;
    this.told = next;
    if (this.past !== null && this.past >= next.log.length) this.past = null;
    this.at("who").textContent = `${next.names.join(" against ")} · ${next.board}`;
    if (this.past === null) this.showNow();
    this.layLog();
    this.layControls();
    this.layReview();
    if (next.failed) this.say("");
    if (first) this.laySeats();
  }

  showNow() {
    this.past = null;
    this.at("past").hidden = true;
    this.picture(this.told);
    this.layChoices();
    this.layDice();
    this.layOdds();
    this.markPlaces();
    this.at("advice").textContent = this.advice();
    this.markLog();
  }

  picture({ panels, story }) {
    for (const [name, markup] of Object.entries(panels)) {
      this.el.querySelector(`[data-panel="${name}"]`).innerHTML = markup;
    }
    this.at("story").textContent = story;
    this.thinking();
  }

  // Say who thinks, and after a while why that may take long.
  thinking() {
    const { thinks, thinker, does, compiles, version, story } = this.told;
    this.at("turn").setAttribute("aria-busy", Boolean(thinks));
    clearTimeout(this.timer);
    if (!thinks || this.past !== null) return;
    const doing = { advise: "looks for advice", review: "reviews the game" }[does] ?? "thinks";
    this.at("story").textContent = `${does ? story : ""} ${thinker} ${doing} …`.trim();
    if (!compiles) return;
    this.timer = setTimeout(() => {
      if (this.told.version !== version || this.past !== null) return;
      this.at("story").textContent += " (the first time it is compiled, which can take a minute)";
    }, LONG);
  }

  async lookBack(event) {
    if (event < 0) return;
    if (event >= this.told.log.length) {
      this.showNow();
      return;
    }
    const picture = await this.ask("ask", "at", { event });
    this.past = event;
    this.picture(picture);
    const [, , sentence] = this.told.log[event];
    this.at("story").textContent = `Then, as event ${event + 1} of ${this.told.log.length}: ${sentence}${this.remark(event)}`;
    this.at("past").hidden = false;
    this.at("choices").replaceChildren();
    this.at("dice").replaceChildren();
    this.at("advice").textContent = "";
    this.markLog();
  }

  layControls() {
    const { told } = this;
    const isHuman = told.waits_for === "human";
    this.at("undo").disabled = !told.can_undo;
    this.at("advise").disabled = !isHuman || told.asked === "advise";
    this.at("review-it").disabled = told.asked === "review" || !told.can_review;
    this.at("resign").disabled = !isHuman;
    this.at("run").textContent = told.runs ? "Pause" : "Go on";
    this.at("skip").checked = told.skips;
  }

  layChoices() {
    const list = this.at("choices");
    const hadFocus = list.contains(document.activeElement);
    const shown = this.told.rolls && this.told.waits_for === "chance" ? [] : this.told.choices;
    const items = shown.map(({ label, words, sign }, number) => {
      const button = element("button", "", { type: "button" });
      button.append(element("kbd", String(number + 1)), this.sign(sign), element("b", label), element("span", words));
      button.addEventListener("click", () => this.choose(label));
      const item = element("li", "", { "data-label": label });
      item.append(button);
      return item;
    });
    list.replaceChildren(...items);
    if (hadFocus && items.length) items[0].firstChild.focus();
  }

  sign(markup) {
    if (!markup) return "";
    return svgOf({ viewBox: "-14 -14 28 28", "aria-hidden": "true", class: this.sheet() }, markup);
  }

  // Dice that were rolled on the table: a face of each is tapped.
  layDice() {
    const isAsked = this.told.rolls && this.told.waits_for === "chance";
    this.roll = [null, null, null];
    const dice = isAsked ? this.told.odds.slice(0, 3) : [];
    const made = dice.map(({ title, shares }, die) => {
      const group = element("fieldset");
      group.append(element("legend", title));
      for (const [face, share] of shares) {
        const button = element("button", face, { type: "button", "aria-pressed": false });
        button.append(element("small", `${Math.round(100 * share)} %`));
        button.addEventListener("click", () => this.tap(die, face, group, button));
        group.append(button);
      }
      return group;
    });
    this.at("dice").replaceChildren(...made);
  }

  tap(die, face, group, button) {
    this.roll[die] = face;
    for (const one of group.querySelectorAll("button")) one.setAttribute("aria-pressed", one === button);
    if (!this.roll.includes(null)) this.choose(`roll:${this.roll.join("/")}`);
  }

  layOdds() {
    const lines = this.told.odds.map(({ title, shares }) => {
      const line = element("p");
      const words = shares.map(([label, share]) => `${label} ${Math.round(100 * share)} %`);
      line.append(element("b", title), ` ${words.join(" · ") || "none left"}`);
      return line;
    });
    this.at("odds").lastElementChild.replaceChildren(...lines);
  }

  layLog() {
    const list = this.at("log");
    let before = null;
    const items = this.told.log.map(([round, seat, sentence], event) => {
      const item = element("li");
      const button = element("button", sentence + this.remark(event), { type: "button", tabindex: -1 });
      button.addEventListener("click", () => this.lookBack(event));
      item.append(button);
      if (seat !== null) item.dataset.seat = seat;
      if (round !== before) item.dataset.round = round ? `round ${round}` : "set-up";
      before = round;
      return item;
    });
    list.replaceChildren(...items);
    this.markLog();
    if (this.past === null) list.parentElement.scrollTop = list.parentElement.scrollHeight;
  }

  markLog() {
    for (const one of this.at("log").querySelectorAll("[aria-current]")) one.removeAttribute("aria-current");
    const item = this.past === null ? null : this.at("log").children[this.past];
    item?.firstChild.setAttribute("aria-current", "true");
    item?.scrollIntoView({ block: "nearest" });
  }

  remark(event) {
    return this.told.review?.remarks[event] ?? "";
  }

  // Where a character may go the picture has a mark that names the actions: it takes clicks.
  markPlaces() {
    for (const title of this.el.querySelectorAll('[data-panel="island"] title')) {
      if (!title.textContent.startsWith("legal: ")) continue;
      const labels = title.textContent.slice(7).split(", ");
      const place = title.parentElement;
      place.classList.add("go");
      place.addEventListener("click", () => (labels.length === 1 ? this.choose(labels[0]) : this.aim(labels)));
      place.querySelector(".mark").style.fill = "transparent"; // the whole disc takes clicks
    }
  }

  aim(labels) {
    const items = [...this.at("choices").children];
    for (const item of items) item.classList.toggle("aimed", labels.includes(item.dataset.label));
    items.find((item) => labels.includes(item.dataset.label))?.firstChild.focus();
  }

  advice() {
    const { advice, advisor } = this.told;
    if (!advice) return "";
    const wins = advice.wins === null ? "" : `: you win ${Math.round(100 * advice.wins)} %`;
    return [`${advisor}${wins}`, ...advice.moves.map(({ words }) => words)].join("\n");
  }

  layReview() {
    const { review } = this.told;
    if (!review) {
      this.at("review").replaceChildren();
      return;
    }
    const table = element("table");
    const head = element("tr");
    head.append(element("td"), ...review.names.map((name) => element("th", name, { scope: "col" })));
    table.createTHead().append(head);
    const body = table.createTBody();
    for (const [what, ...cells] of review.totals) {
      const row = body.insertRow();
      row.append(element("th", what, { scope: "row" }), ...cells.map((cell) => element("td", cell)));
    }
    const worst = element("ol");
    for (const [event, words] of review.worst) {
      const button = element("button", words, { type: "button" });
      button.addEventListener("click", () => this.lookBack(event));
      const item = element("li");
      item.append(button);
      worst.append(item);
    }
    const found = review.worst.length ? worst : element("p", "No decision is shown to have lost anything.");
    this.at("review").replaceChildren(
      element("h2", "Review"), element("p", review.judged), table, found, this.graph(review),
    );
  }

  graph({ wins, names }) {
    const end = Math.round(100 * wins.at(-1));
    const words = `win probability of ${names[0]}, event by event: at the end ${end} %`;
    const points = wins.map((share, at) => `${(1000 * at) / (wins.length - 1)},${100 - 100 * share}`);
    const svg = svgOf(
      { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": words },
      `<path d="M0 50H1000"/><polyline points="${points.join(" ")}"/>`,
    );
    svg.addEventListener("click", (event) => {
      const { left, width } = svg.getBoundingClientRect();
      this.lookBack(Math.round(((event.clientX - left) / width) * (wins.length - 1)));
    });
    const figure = element("figure", "", { class: "wins" });
    figure.append(element("figcaption", `${words}; a click leads there`), svg);
    return figure;
  }

  laySeats() {
    const { levels, seats, board } = this.told;
    const known = ["human", ...levels.map(([spec]) => spec)];
    const named = [...new Set(seats)].filter((spec) => !known.includes(spec));
    const options = [["human", null], ...levels, ...named.map((spec) => [spec, null])];
    for (const seat of [0, 1]) {
      const made = options.map(([spec, elo]) =>
        element("option", elo === null ? spec : `${spec} (Elo ${elo})`, { value: spec }),
      );
      this.at(`seat${seat}`).replaceChildren(...made);
      this.at(`seat${seat}`).value = seats[seat];
    }
    this.at("board-name").value = board;
  }

  // What is done

  listen() {
    const actions = {
      undo: () => this.act("undo"),
      advise: () => this.act("advise"),
      "review-it": () => this.act("review"),
      run: () => this.act("run", { on: !this.told.runs }),
      resign: () => this.act("resign"),
      differs: () => differs(this),
      "my-board": () => myBoard(this),
      save: () => this.save(),
      earlier: () => this.lookBack(this.past - 1),
      later: () => this.lookBack(this.past + 1),
      now: () => this.showNow(),
      theme: () => this.dress(this.el.dataset.theme !== "dark"),
    };
    for (const [name, action] of Object.entries(actions)) this.at(name).addEventListener("click", action);
    this.at("skip").addEventListener("change", (event) => this.act("skip", { on: event.target.checked }));
    this.at("load").addEventListener("change", (event) => this.load(event.target));
    this.at("new").addEventListener("submit", (event) => this.begin(event));
    this.el.addEventListener("keydown", (event) => this.press(event));
    this.dress(matchMedia("(prefers-color-scheme: dark)").matches);
  }

  begin(event) {
    event.preventDefault();
    const seed = this.at("seed").value;
    this.act("new", {
      seats: [this.at("seat0").value, this.at("seat1").value],
      board: this.at("board-name").value,
      seed: seed === "" ? null : Number(seed),
      chance: this.at("explicit").checked ? "explicit" : "sampled",
    });
    this.at("setup").open = false;
  }

  async save() {
    this.hand("game.jsonl", await this.ask("ask", "record"));
  }

  hand(name, text) {
    const link = element("a", "", { download: name });
    link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
    link.click();
  }

  async load(input) {
    const [file] = input.files;
    if (file) await this.act("load", { record: (await file.text()).trim().split("\n").at(-1) });
    input.value = "";
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.at("editor").open) return;
    if (event.target.matches("input, select, textarea")) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const key = { u: "undo", a: "advise", r: "review-it" }[event.key];
    if (key && !this.at(key).disabled) this.at(key).click();
    else if (event.key === " " && !event.target.matches("button, summary, a")) this.at("run").click();
    else if (event.key === "Escape" && this.past !== null) this.showNow();
    else if (step) this.lookBack((this.past ?? this.told.log.length) + step);
    else if (/^[1-9]$/.test(event.key) && this.at("choices").children[event.key - 1]) {
      this.at("choices").children[event.key - 1].firstChild.click();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // By day and by night

  sheet() {
    return `tokaido tokaido-${this.el.dataset.theme}`;
  }

  dress(isDark) {
    this.el.dataset.theme = isDark ? "dark" : "light";
    this.at("theme").textContent = isDark ? "Light" : "Dark";
    for (const svg of this.el.querySelectorAll("svg.tokaido")) svg.setAttribute("class", this.sheet());
  }
}

export default {
  render({ model, el }) {
    const table = new Table(model, el);
    return () => table.leave();
  },
};
