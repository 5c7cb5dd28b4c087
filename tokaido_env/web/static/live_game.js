// A live game in a page or a notebook: shows the model's snapshots and sends commands and queries.
//
// The model is that of anywidget: `get("snapshot")`, `on("change:snapshot")`, `send`, and answers
// as "msg:custom". The local page provides one that uses HTTP.
import { confirmed, correctBoard, editPosition } from "./editors.js";
import { button, element, svgOf, usesKey } from "./form.js";

const SLOW = 2000; // milliseconds after which the page explains that an agent compiles
const REPLACING_GAME = ["new_game", "load_record", "set_position"]; // commands
const FOR_THIS_POSITION = ["play", "resign", ...REPLACING_GAME]; // dropped after another command
// After a click on one of these the next position can have another button in its place.
const CLICKED_ONCE = ".choices, .dice, .go, .resign, .new button, .continue-here";

const percent = (probability) => `${Math.round(100 * probability)}\u00a0%`;
const panel = (name, width, height) =>
  `<svg data-panel="${name}" viewBox="0 0 ${width} ${height}" preserveAspectRatio="xMinYMin slice" class="tokaido" role="graphics-document document"></svg>`;

const LAYOUT = `
<header><h1>Tokaido Duo</h1><p class="players"></p><button class="theme" type="button"></button></header>
<p class="error" role="alert"></p>
<main>
<section class="board" aria-label="Board">
${panel("heading", 1000, 50)}
<div>${panel("island", 640, 470)}${panel("supply", 640, 144)}</div>
<div>${panel("player_0", 350, 304)}${panel("player_1", 350, 304)}</div>
</section>
<section class="points turn" aria-label="Turn" tabindex="-1">
<p class="status" aria-live="polite"></p>
<div class="history" hidden><button class="previous" type="button">Show previous</button><button class="next" type="button">Show next</button><button class="current" type="button">Return to game</button><button class="continue-here" type="button">Continue from here</button></div>
<div class="dice"></div>
<ol class="choices"></ol>
<p class="advice" aria-live="polite"></p>
<details class="probabilities"><summary>Probabilities</summary><div></div></details>
</section>
<section class="controls" aria-label="Game controls">
<div class="row">
<button class="undo" type="button" title="u">Undo</button>
<button class="advise" type="button" title="a">Get advice</button>
<button class="review-game" type="button" title="r">Review game</button>
<button class="run-agents" type="button" title="space">Pause agents</button>
<button class="resign" type="button">Resign</button>
<button class="edit-position" type="button">Edit position</button>
<button class="correct-board" type="button">Correct the board</button>
<button class="save" type="button">Save game</button>
<label class="file">Load game <input class="load" type="file" accept=".jsonl,.json"></label>
<label><input class="play-forced" type="checkbox" checked> Play forced moves automatically</label>
</div>
<details class="setup"><summary>New game</summary>
<form class="new">
<label>player_0 <select class="seat0"></select></label>
<label>player_1 <select class="seat1"></select></label>
<label>Board <input class="board-name" value="shikoku" maxlength="60"></label>
<label>Seed <input class="seed" inputmode="numeric" pattern="[0-9]*" maxlength="16" placeholder="random"></label>
<label><input class="physical" type="checkbox"> Physical game: I enter rolls and draws</label>
<button type="submit">Start game</button>
</form>
</details>
</section>
<section class="moves" aria-label="Move log"><ol class="log"></ol></section>
<section class="review" aria-label="Review"></section>
</main>
<dialog class="editor"></dialog>
<dialog class="question" role="alertdialog"></dialog>`;

class LiveGame {
  constructor(model, el) {
    this.model = model;
    this.el = el;
    this.snapshot = { version: 0 };
    this.pending = new Map(); // messages without an answer, by id
    this.viewId = Math.random().toString(36).slice(2); // several views can share a model
    this.messages = 0;
    this.commands = Promise.resolve(); // the last command
    this.event = null; // show the position before this event; null: the current position
    this.roll = [null, null, null];
    el.classList.add("tokaido-app");
    el.setAttribute("data-lm-suppress-shortcuts", "true"); // disables JupyterLab's keys here
    el.innerHTML = LAYOUT;
    this.addListeners();
    this.modelListeners = {
      "msg:custom": (message) => this.receive(message),
      "change:snapshot": () => this.show(model.get("snapshot")),
    };
    for (const [event, listener] of Object.entries(this.modelListeners)) model.on(event, listener);
    if (model.get("snapshot")) this.show(model.get("snapshot"));
  }

  remove() {
    clearTimeout(this.timer);
    for (const [event, listener] of Object.entries(this.modelListeners)) this.model.off(event, listener);
  }

  find(name) {
    return this.el.querySelector(`.${name}`);
  }

  // Messages

  send(kind, name, given = {}) {
    this.messages += 1;
    const id = `${this.viewId} ${this.messages}`;
    const answer = new Promise((resolve, reject) => this.pending.set(id, { resolve, reject }));
    this.model.send({ id, kind, name, arguments: given });
    return answer;
  }

  receive({ id, answer, error, key }) {
    const { resolve, reject } = this.pending.get(id) ?? {};
    this.pending.delete(id);
    if (error !== undefined) reject?.(Object.assign(new Error(error), { key }));
    else resolve?.(answer);
  }

  // Run an action, and show its error if it fails.
  async attempt(action) {
    try {
      await action();
    } catch (error) {
      this.showError(error.message);
    }
  }

  // Send a command after the ones before; `given` may depend on their result.
  command(name, given = () => ({})) {
    const { version } = this.snapshot;
    this.commands = this.commands.then(() => this.attempt(async () => {
      const isLate = FOR_THIS_POSITION.includes(name) && this.snapshot.version !== version;
      if (isLate || (name === "undo" && !this.snapshot.can_undo)) return; // pressed too often
      this.show(await this.send("command", name, given()));
      this.showError("");
      if (REPLACING_GAME.includes(name)) this.showCurrent();
    }));
    return this.commands;
  }

  // Ask before another game replaces one in progress.
  async mayReplaceGame() {
    const { waits_for: waitsFor, can_undo: canUndo, can_review: canReview } = this.snapshot;
    if (waitsFor === "nobody" || !(canUndo || canReview)) return true;
    return confirmed(this, "Leave this game?", "The game is not over. Save it first to keep it.", "Leave game");
  }

  query(name, given = {}) {
    return this.send("query", name, given);
  }

  showError(message) {
    this.find("error").textContent = message || this.snapshot.error || "";
  }

  play(move) {
    return this.command("play", () => ({ move, log_length: this.snapshot.log.length }));
  }

  // Display

  show(snapshot) {
    if (snapshot.version <= this.snapshot.version) return;
    const isFirst = this.snapshot.version === 0;
    this.snapshot = snapshot;
    this.find("players").textContent = `${snapshot.names.join(" against ")} · ${snapshot.board}`;
    this.updateLog();
    this.showEvent(this.event ?? snapshot.log.length);
    this.updateControls();
    this.updateReview();
    if (snapshot.error) this.showError("");
    if (isFirst) this.updateSeats();
  }

  showCurrent() {
    this.event = null;
    this.find("history").hidden = true;
    this.showPicture(this.snapshot);
    this.updateChoices();
    this.updateDice();
    this.updateProbabilities();
    this.markDestinations();
    this.find("advice").textContent = this.adviceText();
    this.markLog();
  }

  showPicture({ panels, status }) {
    for (const [name, markup] of Object.entries(panels)) {
      this.el.querySelector(`[data-panel="${name}"]`).innerHTML = markup;
    }
    this.find("status").textContent = status;
    this.showTask();
  }

  // Name the agent that is thinking, and after a while explain why it may take long.
  showTask() {
    const { thinking, task_agent: agent, task, compiling, version, status } = this.snapshot;
    this.find("turn").setAttribute("aria-busy", Boolean(thinking));
    clearTimeout(this.timer);
    if (!thinking || this.event !== null) return;
    const activity = { advise: "is preparing advice", review: "is reviewing the game" }[task] ?? "is thinking";
    this.find("status").textContent = `${task ? status : ""} ${agent} ${activity} …`.trim();
    if (!compiling) return;
    this.timer = setTimeout(() => {
      if (this.snapshot.version !== version || this.event !== null) return;
      this.find("status").textContent += " (compiling for the first time; this can take a minute)";
    }, SLOW);
  }

  async showEvent(event) {
    const { log, version } = this.snapshot;
    if (event < 0) return;
    if (event >= log.length) {
      this.showCurrent();
      return;
    }
    this.event = event; // before the answer, so that the next key steps from here
    this.find("history").hidden = false;
    this.replaceList("choices");
    this.replaceList("dice");
    this.find("advice").textContent = "";
    this.markLog();
    await this.attempt(async () => {
      const picture = await this.query("picture", { event });
      if (this.event !== event || this.snapshot.version !== version) return; // a late answer
      this.showPicture(picture);
      this.find("status").textContent = `Event ${event + 1} of ${log.length}: ${log[event][2]}${this.remark(event)}`;
    });
  }

  // Replace the content of a list; if the focus was in it, move it to the panel of the turn.
  replaceList(name, items = []) {
    const list = this.find(name);
    const hadFocus = list.contains(document.activeElement);
    list.replaceChildren(...items);
    if (hadFocus) this.find("turn").focus({ preventScroll: true });
  }

  updateControls() {
    const { waits_for: waitsFor, can_undo: canUndo, can_review: canReview, requested, ...rest } = this.snapshot;
    const isHuman = waitsFor === "human";
    this.find("undo").disabled = !canUndo;
    this.find("advise").disabled = !isHuman || requested === "advise";
    this.find("review-game").disabled = requested === "review" || !canReview;
    this.find("resign").disabled = !isHuman;
    this.find("run-agents").textContent = rest.agents_running ? "Pause agents" : "Resume agents";
    this.find("play-forced").checked = rest.plays_forced;
  }

  updateChoices() {
    const choices = this.snapshot.enters_roll ? [] : this.snapshot.choices;
    const items = choices.map(({ label, text, icon }, index) => {
      const choice = button("", () => this.play(label));
      choice.append(element("kbd", String(index + 1)), this.icon(icon), element("b", label), element("span", text));
      const item = element("li", "", { "data-label": label });
      item.append(choice);
      return item;
    });
    this.replaceList("choices", items);
    if (items.length && document.activeElement === this.find("turn")) items[0].firstChild.focus({ preventScroll: true });
  }

  icon(markup) {
    if (!markup) return "";
    return svgOf({ viewBox: "-14 -14 28 28", "aria-hidden": "true", class: this.themeClass() }, markup);
  }

  // Buttons to enter a roll of physical dice.
  updateDice() {
    this.roll = [null, null, null];
    const dice = this.snapshot.enters_roll ? this.snapshot.probabilities.slice(0, 3) : [];
    const groups = dice.map(({ title, outcomes }, die) => {
      const group = element("fieldset");
      group.append(element("legend", title));
      for (const [face, probability] of outcomes) {
        const one = button(face, () => this.enterFace(die, face, group, one), { "aria-pressed": false });
        one.append(element("small", percent(probability)));
        group.append(one);
      }
      return group;
    });
    this.replaceList("dice", groups);
  }

  enterFace(die, face, group, chosen) {
    this.roll[die] = face;
    for (const one of group.querySelectorAll("button")) one.setAttribute("aria-pressed", one === chosen);
    if (!this.roll.includes(null)) this.play(`roll:${this.roll.join("/")}`);
  }

  updateProbabilities() {
    const lines = this.snapshot.probabilities.map(({ title, outcomes }) => {
      const line = element("p");
      const texts = outcomes.map(([outcome, probability]) => `${outcome} ${percent(probability)}`);
      line.append(element("b", title), ` ${texts.join(" · ") || "none left"}`);
      return line;
    });
    this.find("probabilities").lastElementChild.replaceChildren(...lines);
  }

  updateLog() {
    const list = this.find("log");
    let previous = null;
    const items = this.snapshot.log.map(([round, seat, sentence], event) => {
      const item = element("li");
      item.append(button(sentence + this.remark(event), () => this.showEvent(event), { tabindex: -1 }));
      if (seat !== null) item.dataset.seat = seat;
      if (round !== previous) item.dataset.round = round ? `round ${round}` : "set-up";
      previous = round;
      return item;
    });
    this.replaceList("log", items);
    this.markLog();
    if (this.event === null) list.parentElement.scrollTop = list.parentElement.scrollHeight;
  }

  markLog() {
    const list = this.find("log");
    for (const one of list.querySelectorAll("[aria-current]")) one.removeAttribute("aria-current");
    const item = this.event === null ? null : list.children[this.event];
    item?.firstChild.setAttribute("aria-current", "true");
    item?.scrollIntoView({ block: "nearest" });
  }

  remark(event) {
    return this.snapshot.review?.remarks[event] ?? "";
  }

  // Make the picture's marks of legal destinations clickable; their titles list the actions.
  markDestinations() {
    for (const title of this.el.querySelectorAll('[data-panel="island"] title')) {
      if (!title.textContent.startsWith("legal: ")) continue;
      const labels = title.textContent.slice(7).split(", ");
      const place = title.parentElement;
      place.classList.add("go");
      place.addEventListener("click", () => (labels.length === 1 ? this.play(labels[0]) : this.highlight(labels)));
      place.querySelector(".mark").style.fill = "transparent"; // makes the whole disc clickable
    }
  }

  highlight(labels) {
    const items = [...this.find("choices").children];
    for (const item of items) item.classList.toggle("highlighted", labels.includes(item.dataset.label));
    items.find((item) => labels.includes(item.dataset.label))?.firstChild.focus();
  }

  adviceText() {
    const { advice, advisor } = this.snapshot;
    if (!advice) return "";
    const wins = advice.win_probability === null ? "" : `: you win ${percent(advice.win_probability)}`;
    return [`${advisor}${wins}`, ...advice.moves.map(({ text }) => text)].join("\n");
  }

  updateReview() {
    const { review } = this.snapshot;
    const section = this.find("review");
    section.innerHTML = review?.html ?? "";
    if (review) section.append(this.graph(review));
    for (const link of section.querySelectorAll("a")) {
      const move = Number(new URLSearchParams(link.hash.slice(1)).get("move"));
      link.href = location.href;
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.showEvent(move - 1);
      });
    }
  }

  graph({ win_probabilities: wins, names }) {
    const caption = `win probability of ${names[0]} by event, ${percent(wins.at(-1))} at the end`;
    const points = wins.map((win, event) => `${(1000 * event) / (wins.length - 1)},${100 - 100 * win}`);
    const svg = svgOf(
      { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": caption },
      `<path d="M0 50H1000"/><polyline points="${points.join(" ")}"/>`,
    );
    svg.addEventListener("click", (event) => {
      const { left, width } = svg.getBoundingClientRect();
      this.showEvent(Math.round(((event.clientX - left) / width) * (wins.length - 1)));
    });
    const figure = element("figure", "", { class: "wins" });
    figure.append(element("figcaption", `${caption}; click to show an event`), svg);
    return figure;
  }

  updateSeats() {
    const { opponents, seats, board } = this.snapshot;
    const listed = ["human", ...opponents.map(([spec]) => spec)];
    const others = [...new Set(seats)].filter((spec) => !listed.includes(spec));
    const options = [["human", null], ...opponents, ...others.map((spec) => [spec, null])];
    for (const seat of [0, 1]) {
      const items = options.map(([spec, elo]) =>
        element("option", elo === null ? spec : `${spec} (Elo ${elo})`, { value: spec }),
      );
      this.find(`seat${seat}`).replaceChildren(...items);
      this.find(`seat${seat}`).value = seats[seat];
    }
    this.find("board-name").value = board;
  }

  // Input

  addListeners() {
    const actions = {
      undo: () => this.command("undo"),
      advise: () => this.command("advise"),
      "review-game": () => this.command("review"),
      "run-agents": () => this.command("run_agents", () => ({ on: !this.snapshot.agents_running })),
      resign: () => this.command("resign"),
      "edit-position": () => editPosition(this),
      "correct-board": () => correctBoard(this),
      save: async () => this.download("game.jsonl", await this.query("record")),
      previous: () => this.showEvent(this.event - 1),
      next: () => this.showEvent(this.event + 1),
      current: () => this.showCurrent(),
      "continue-here": async () => {
        const { position } = await this.query("picture", { event: this.event });
        await this.command("set_position", () => ({ position }));
      },
      theme: () => this.setTheme(this.el.dataset.theme !== "dark"),
    };
    for (const [name, action] of Object.entries(actions)) {
      this.find(name).addEventListener("click", () => this.attempt(action));
    }
    this.find("play-forced").addEventListener("change", ({ target: { checked: on } }) =>
      this.command("play_forced", () => ({ on })),
    );
    this.find("load").addEventListener("change", (event) => this.attempt(() => this.load(event.target)));
    this.el.addEventListener("click", (event) => this.ignoreRepeatedClick(event), true);
    this.find("new").addEventListener("submit", (event) => this.startGame(event));
    this.el.addEventListener("keydown", (event) => this.pressKey(event));
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
  }

  ignoreRepeatedClick(event) {
    if (event.detail < 2 || !event.target.closest(CLICKED_ONCE)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  async startGame(event) {
    event.preventDefault();
    if (!(await this.mayReplaceGame())) return;
    const seed = this.find("seed").value;
    this.find("setup").open = false;
    await this.command("new_game", () => ({
      seats: [this.find("seat0").value, this.find("seat1").value],
      board: this.find("board-name").value,
      seed: seed === "" ? null : Number(seed),
      chance: this.find("physical").checked ? "explicit" : "sampled",
    }));
  }

  download(name, text) {
    const link = element("a", "", { download: name });
    link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
    link.click();
  }

  async load(input) {
    const [file] = input.files;
    if (file && (await this.mayReplaceGame())) {
      const record = (await file.text()).trim().split("\n").at(-1);
      await this.command("load_record", () => ({ record }));
    }
    input.value = "";
  }

  pressKey(event) {
    const { key, repeat, target } = event;
    if (repeat && key === "Enter") event.preventDefault(); // a held key presses a button once
    if (event.ctrlKey || event.metaKey || event.altKey || usesKey(target, key)) return;
    const action = this.el.querySelector("dialog[open]") ? null : this.shortcut(key);
    if (!action) return;
    if (!repeat || key.startsWith("Arrow")) action();
    event.preventDefault();
    event.stopPropagation();
  }

  // Return the action of a key, if it has one now.
  shortcut(key) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (step) return () => this.showEvent((this.event ?? this.snapshot.log.length) + step);
    if (key === "Escape" && this.event !== null) return () => this.showCurrent();
    const name = { u: "undo", a: "advise", r: "review-game", " ": "run-agents" }[key];
    const choice = /^[1-9]$/.test(key) ? this.find("choices").children[key - 1]?.firstChild : null;
    const button = name ? this.find(name) : choice;
    return button && !button.disabled ? () => button.click() : null;
  }

  // Light and dark theme

  themeClass() {
    return `tokaido tokaido-${this.el.dataset.theme}`;
  }

  setTheme(isDark) {
    this.el.dataset.theme = isDark ? "dark" : "light";
    this.find("theme").textContent = isDark ? "Use light theme" : "Use dark theme";
    for (const svg of this.el.querySelectorAll("svg.tokaido")) svg.setAttribute("class", this.themeClass());
  }
}

export default {
  render({ model, el }) {
    const game = new LiveGame(model, el);
    return () => game.remove();
  },
};
