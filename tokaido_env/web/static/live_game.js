// A live game in a page or a notebook: shows the model's states and sends commands and queries.
//
// The model is that of anywidget: `get("state")`, `on("change:state")`, `send`, and answers
// as "msg:custom". The local page provides one that uses HTTP.
import { button, confirmed, element, holding, percent, rowOf, svgOf } from "./dom.js";
import { BOARD, Frames, MOVES, PLAYBACK } from "./frames.js";
import { playerName, showChange, showHelp, showStart, storage } from "./start.js";

const LONG = 10000; // milliseconds after which the page explains why an agent may take long
const DRAWN = /^ (draws|reveals) /; // the person's own chance events
const MOST_GAMES = 10; // kept in the browser
const REPLACING_GAME = ["new_game", "load_record", "continue_from", "change_player"]; // commands
const FOR_THIS_POSITION = ["play", "resign", "advise"];
// After a click on one of these the next position can have another button in its place.
const CLICKED_ONCE = ".choices, .dice, .go, .resign, .new .done, .continue-here, .rematch";

const LAYOUT = `
<header><h1>Tokaido Duo</h1><p class="players"></p><button class="help" type="button" title="?">How to play</button></header>
<p class="error" role="alert"></p>
<main>
${BOARD}
<section class="points turn" aria-label="Turn" tabindex="-1">
<p class="status" aria-live="polite"></p>
<p class="news" aria-live="polite"></p>
<div class="failure" role="alert" hidden><p></p><div class="row"><button class="try-again" type="button">Try again</button><button class="choose-another" type="button">Choose another</button></div></div>
<div class="history" hidden>${PLAYBACK}<div class="row"><button class="current" type="button">Return to game</button><button class="continue-here" type="button">Continue from here</button></div></div>
<div class="dice"></div>
<div class="choices"></div>
<p class="advice" aria-live="polite"></p>
</section>
<section class="controls" aria-label="Game controls">
<div class="row"><button class="undo" type="button" title="u">Undo</button><button class="advise" type="button" title="a">Get advice</button><button class="review-game" type="button" title="r">Review game</button><button class="new-game" type="button" title="n">New game</button></div>
<details class="more"><summary>More</summary><div class="row"><button class="run-agents" type="button" title="space">Pause agents</button><button class="change-player" type="button">Change opponent</button><button class="resign" type="button">Resign</button><button class="save" type="button">Save game</button><label>Load game <input class="load" type="file" accept=".jsonl,.json"></label>
<label><input class="play-forced" type="checkbox" checked> Play forced moves automatically</label></div></details>
</section>
${MOVES}
<div class="preview" hidden></div>
</main>`;

class LiveGame extends Frames {
  constructor(model, el) {
    super(el, LAYOUT);
    this.model = model;
    this.state = { version: 0, log: [] };
    el.inert = true; // until the first state
    this.pending = new Map(); // messages without an answer, by id
    this.viewId = Math.random().toString(36).slice(2); // several views can share a model
    this.messages = 0;
    this.commands = Promise.resolve(); // the last command
    Object.assign(this, { at: null, listed: [] }); // what is shown
    el.setAttribute("data-lm-suppress-shortcuts", "true"); // disables JupyterLab's keys here
    this.addListeners();
    this.modelListeners = {
      "msg:custom": (message) => this.receive(message),
      "change:state": () => this.show(model.get("state")),
    };
    for (const [event, listener] of Object.entries(this.modelListeners)) model.on(event, listener);
    if (model.get("state")) this.show(model.get("state"));
  }

  remove() {
    this.pause();
    clearTimeout(this.taskTimer);
    for (const [event, listener] of Object.entries(this.modelListeners)) this.model.off(event, listener);
  }

  // Messages

  send(kind, name, given = {}) {
    this.messages += 1;
    const id = `${this.viewId} ${this.messages}`;
    const answer = new Promise((resolve, reject) => this.pending.set(id, { resolve, reject }));
    this.model.send({ id, kind, name, arguments: given });
    return answer;
  }

  receive({ id, answer, error }) {
    const { resolve, reject } = this.pending.get(id) ?? {};
    this.pending.delete(id);
    if (error !== undefined) reject?.(new Error(error));
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

  // Send a command after the ones before are shown; it means the game and the position at the click.
  command(name, given = {}) {
    const { game, log } = this.state;
    const meant = { ...(name !== "undo" && { game }), ...(FOR_THIS_POSITION.includes(name) && { log_length: log.length }) };
    this.commands = this.commands.then(() => this.attempt(async () => {
      const now = { game: this.state.game, log_length: this.state.log.length };
      const isLate = Object.entries(meant).some(([key, value]) => now[key] !== value);
      if (isLate || (name === "undo" && !this.state.can_undo)) return; // pressed too often
      const answered = await this.send("command", name, { ...given, ...meant });
      while (this.state.version < answered) await new Promise((resolve) => (this.shown = resolve));
      this.showError("");
      if (REPLACING_GAME.includes(name)) this.showCurrent();
    }));
    return this.commands;
  }

  // Store a value in the browser; say if it is not kept.
  store(name, value) {
    const before = this.warning ?? "";
    this.warning = storage.write(name, value) ? "" : "The browser stores nothing here: save the game to keep it.";
    if (this.warning !== before) this.showError("");
  }

  // Keep the game among the last ones, to resume it also in another session of the program.
  async keepGame() {
    const { game: id, names, log, board } = this.state;
    const record = await this.query("record");
    if (id !== this.state.game) return; // a late answer
    const title = `${names.map((name) => playerName(this, name)).join(" against ")}, ${board}, ${log.length} events`;
    const others = storage.read("games", []).filter((one) => one.id !== id);
    this.store("games", [{ id, record, title, time: Date.now() }, ...others].slice(0, MOST_GAMES));
  }

  // Go on with a recorded game; ask if one of its players is not offered here.
  async resume(record, id = "") {
    const [missing] = await this.query("missing", { record });
    const text = `This page does not offer ${missing}. To play against it, stop the program, start tokaido play with --opponent ${missing}, and resume the game there. Or play both seats here; the record keeps the names.`;
    if (missing && !(await confirmed(this, "Play both seats?", text, "Play both seats"))) return;
    await this.replace("load_record", { record, id, plays_both: Boolean(missing) });
  }

  // Ask before another game replaces one in progress.
  async mayReplaceGame() {
    const { waits_for: waitsFor, can_undo: canUndo, can_review: canReview } = this.state;
    if (waitsFor === "nobody" || !(canUndo || canReview)) return true;
    return confirmed(this, "Leave this game?", `The game is not over. ${this.warning || "This browser keeps it: resume it from the list of New game."}`, "Leave game");
  }

  query(name, given = {}) {
    return this.send("query", name, given);
  }

  showError(message) {
    this.find("error").textContent = message || this.state.save_error || this.warning || "";
  }

  // Display

  show(state) {
    if (state.version <= this.state.version) return;
    const before = this.state;
    this.state = state;
    this.el.inert = false;
    this.showPlayers(state.is_chosen ? state.seats : []);
    this.setGame(state);
    if (state.review) this.find("review").append(...this.graphs());
    this.showFailure(); // before the log is scrolled, as it takes room
    if (this.at === null) this.find("log").parentElement.scrollTop = this.find("log").scrollHeight;
    this.goTo(this.at ?? this.end);
    this.updateControls();
    if (state.review && this.wantsReview) this.showReview();
    if (state.save_error !== before.save_error) this.showError("");
    if (!state.is_chosen && before.is_chosen !== false) showStart(this);
    else if (state.is_chosen && !before.is_chosen) this.find("start")?.close();
    if (state.can_undo) this.attempt(() => this.keepGame());
    this.el.dataset.version = state.version; // for programs that drive the page
    this.shown?.();
  }

  showPlayers(seats) {
    const { names, board } = this.state;
    const shown = seats.map((spec, seat) => playerName(this, spec === "human" ? names[seat] : spec));
    this.find("players").textContent = shown.length ? `${shown.join(" against ")} · ${board}` : "";
  }

  // Show what went wrong with an agent, and what to do.
  showFailure() {
    const { failure, humans } = this.state;
    const panel = this.find("failure");
    panel.hidden = !failure;
    panel.lastElementChild.hidden = failure?.task !== "move";
    if (panel.firstElementChild.textContent !== (failure?.text ?? "")) panel.firstElementChild.textContent = failure?.text ?? "";
    this.find("change-player").disabled = humans.length > 1;
  }

  showReview() {
    this.wantsReview = false;
    this.find("review").scrollIntoView({ block: "start" });
  }

  showCurrent() {
    this.at = null;
    this.find("history").hidden = true;
    this.draw(this.state);
    this.markDestinations();
    this.find("status").textContent = this.state.status;
    this.showTask();
    this.updateChoices();
    this.updateDice();
    const advice = this.adviceText();
    const isNew = advice && advice !== this.find("advice").textContent;
    this.find("advice").textContent = advice;
    if (isNew) this.find("advice").scrollIntoView({ block: "nearest" });
    this.find("news").textContent = this.newsText();
    this.mark();
  }

  // Return the seat of the only person, or null.
  human() {
    const { humans } = this.state;
    return humans.length === 1 ? humans[0] : null;
  }

  // Return what the opponent did in its last pick, and what the person has drawn since the one before.
  newsText() {
    const { log, names, player } = this.state;
    const own = this.human() ?? player ?? 0;
    const before = (end, isPassed) => log.slice(0, end).findLastIndex(([, seat]) => !isPassed(seat)) + 1;
    const end = before(log.length, (seat) => seat !== 1 - own);
    const start = before(end, (seat) => seat === 1 - own);
    const drawn = log.slice(before(start, (seat) => seat !== 1 - own)).filter(([, seat, text]) => seat === own && DRAWN.test(text.slice(names[own].length)));
    const text = (events, seat, subject) => (events.length ? `${subject} ${events.map(([, , one]) => one.slice(names[seat].length + 1)).join("; ")}.` : "");
    return [text(log.slice(start, end), 1 - own, playerName(this, names[1 - own])), text(drawn, own, `${playerName(this, names[own])}:`)].join(" ").trim();
  }

  // Name the agent that is thinking, and after a while explain why it may take long.
  showTask() {
    const { jobs, version, status, waits_for: waitsFor, agents_running: areRunning, failure } = this.state;
    const isPaused = waitsFor === "agent" && !areRunning && !failure;
    const job = isPaused ? undefined : jobs[0];
    this.find("turn").setAttribute("aria-busy", job !== undefined);
    clearTimeout(this.taskTimer);
    if (this.at !== null) return;
    if (isPaused) this.find("status").textContent = "Paused. Press the space bar, or Resume agents, to go on.";
    if (!job) return;
    const { task, agent } = job;
    const activity = { move: "is thinking", advice: "is preparing advice", review: "is reviewing the game" }[task];
    this.find("status").textContent = `${task === "move" ? "" : status} ${playerName(this, agent)} ${activity} …`.trim();
    this.taskTimer = setTimeout(() => {
      if (this.state.version !== version || this.at !== null) return;
      this.find("status").textContent += " (an agent compiles for up to a minute when it is new; Change opponent if you do not want to wait)";
    }, LONG);
  }

  // Show the frame after a number of events; after all, the game goes on.
  async goTo(at) {
    const { version } = this.state;
    if (at < 0 || this.el.inert) return;
    if (at >= this.end) {
      this.pause();
      this.showCurrent();
      return;
    }
    this.clearTurn();
    this.at = at; // before the answer, so that the next key steps from here
    this.find("history").hidden = false;
    this.select(at);
    await this.attempt(async () => {
      const frame = await this.query("frame", { at });
      if (this.at !== at || this.state.version !== version) return; // a late answer
      this.draw(frame);
      this.markDestinations();
      this.mark();
      this.find("status").textContent = this.sentence(at);
    });
  }

  clearTurn() {
    Object.assign(this, { at: null, position: "" });
    for (const name of ["history", "preview"]) this.find(name).hidden = true;
    for (const name of ["choices", "dice", "advice", "news"]) this.replaceList(name);
  }

  updateControls() {
    const { waits_for: waitsFor, can_undo: canUndo, can_review: canReview, ...rest } = this.state;
    const isHuman = waitsFor === "human";
    this.find("undo").disabled = !canUndo;
    this.find("advise").disabled = !isHuman || this.isDoing("advice");
    this.find("review-game").disabled = this.isDoing("review") || !canReview;
    this.find("resign").disabled = !isHuman;
    this.find("run-agents").textContent = rest.agents_running ? "Pause agents" : "Resume agents";
    this.find("play-forced").checked = rest.plays_forced;
  }

  isDoing(task) {
    return this.state.jobs.some((job) => job.task === task);
  }

  updateChoices() {
    const { dice, choices, waits_for: waitsFor, log, game } = this.state;
    const position = JSON.stringify([game, log.length, waitsFor, choices]);
    if (position !== this.position) { // else keep the focus and the preview
      this.position = position;
      if (waitsFor === "nobody") this.replaceList("choices", this.result());
      else this.listChoices(dice.length ? [] : choices);
    }
    this.find("reviewed")?.replaceChildren(...this.reviewed());
  }

  // Return the end of a game: its result, and a place for its review.
  result() {
    const { opponents, seats, winner, chance } = this.state;
    const human = this.human();
    const level = opponents.find(({ spec }) => spec === seats[1 - human])?.level;
    const beaten = human !== null && winner === human && level;
    if (beaten && level > storage.read("beaten", 0)) this.store("beaten", level);
    const table = holding(element("table", "", { class: "score" }), this.scoreRows(this.end));
    const row = rowOf(
      button("Rematch", () => this.replace("new_game", { chance }), { class: "rematch" }),
      button(beaten ? "Next level" : "New game", () => showStart(this)),
    );
    return [table, row, element("div", "", { class: "reviewed" })];
  }

  // Return the graphs and moments of the review, and how far it is.
  reviewed() {
    const { review } = this.state;
    const [judged, choices] = this.state.review_progress ?? [0, 0];
    const progress = this.isDoing("review") ? [
      rowOf(element("span", judged ? `Reviewing: ${judged} of ${choices} decisions` : "The win probabilities and moments follow …"),
        button("Skip", () => this.command("skip_review"), { class: "skip" })),
    ] : [];
    if (!review) return progress;
    const moments = review.moments.map(({ title, event, text }) => holding(element("li"), [button(title, () => this.step(event + 1)), ` ${text}`]));
    return [...progress, ...this.graphs(), holding(element("ol", "", { class: "moments" }), moments)];
  }

  // List choices by group.
  listChoices(choices) {
    const groups = new Map();
    choices.forEach(({ label, group = "Chance", name, text, icon }, index) => {
      if (!groups.has(group)) groups.set(group, element("ol", "", { class: "group", "aria-label": group }));
      const made = button("", () => this.command("play", { move: label }), { "data-label": label });
      const picture = svgOf({ viewBox: "-14 -14 28 28", "aria-hidden": "true", class: "tokaido tokaido-auto" }, GLYPHS[icon] ?? "");
      made.append(element("kbd", String(index + 1)), picture, element("b", name), element("span", text));
      groups.get(group).append(element("li"));
      groups.get(group).lastChild.append(made);
    });
    this.listed = choices;
    this.replaceList("choices", [...groups].flatMap(([title, list]) => [element("h3", title), list]));
    this.find("preview").hidden = true;
    if (document.activeElement === this.find("turn")) this.find("choices").querySelector("button")?.focus({ preventScroll: true });
  }

  // Mark the places of actions with some labels; show at a place of the map what they give.
  showPreview(labels, place) {
    const isMeant = ({ dataset: { labels: its = "", label = its } }) => label.split(" ").some((one) => labels.includes(one));
    for (const one of this.el.querySelectorAll("[data-labels], [data-label]")) one.classList.toggle("hovered", isMeant(one));
    const found = this.listed.filter(({ label }) => labels.includes(label));
    this.showAt(place, found.flatMap(({ group, name, text }) => [element("b", `${group} to ${name}`), element("span", text)]));
  }

  // Show some lines below a part of the picture; none without a part.
  showAt(place, lines) {
    const preview = this.find("preview");
    preview.hidden = !place;
    if (!place) return;
    preview.replaceChildren(...lines);
    preview.style.left = "0"; // its old place could make it narrower
    const [frame, box] = [preview.parentElement, place].map((one) => one.getBoundingClientRect());
    preview.style.left = `${Math.max(0, Math.min(box.right - frame.left, frame.width - preview.offsetWidth))}px`;
    preview.style.top = `${box.bottom + 8 - frame.top}px`;
  }

  // Show the title of a part of the picture, which a mouse shows by itself, after a tap.
  showTitle(part) {
    const title = part?.querySelector("title")?.textContent;
    if (title && !part.closest(".go")) this.showAt(part, [element("span", title)]);
  }

  // Buttons to enter a roll of physical dice.
  updateDice() {
    const { dice } = this.state;
    const roll = {}; // by die
    this.replaceList("dice", dice.map(({ title, faces: its }) => {
      const choose = (face) => {
        roll[title] = face;
        faces.forEach((one) => one.setAttribute("aria-pressed", one.value === face));
        if (Object.keys(roll).length === dice.length) this.command("play", { move: `roll:${dice.map((die) => roll[die.title]).join("/")}` });
      };
      const faces = Object.entries(its).map(([face, probability]) => holding(button(face, () => choose(face), { value: face, "aria-pressed": false }), [element("small", percent(probability))]));
      return holding(element("fieldset"), [element("legend", title), ...faces]);
    }));
  }

  // Make the picture's marks of legal destinations clickable; their titles list the actions.
  markDestinations() {
    for (const title of this.el.querySelectorAll('[data-panel="island"] title')) {
      if (!title.textContent.startsWith("legal: ")) continue;
      const place = title.parentElement;
      place.classList.add("go");
      place.dataset.labels = title.textContent.slice(7).replaceAll(", ", " ");
      place.querySelector(".mark").style.fill = "transparent"; // makes the whole disc clickable
    }
  }

  // Use a clicked destination: make its only choice, or show its choices.
  choosePlace(labels) {
    const [first, ...others] = [...this.find("choices").querySelectorAll("button")].filter((one) => labels.includes(one.dataset.label));
    if (others.length) first.focus();
    else first?.click();
    this.showPreview(labels, this.el.querySelector("[data-labels].hovered"));
  }

  // Return the advice with choices as the list names them.
  adviceText() {
    const { advice, advisor, choices } = this.state;
    if (!advice) return "";
    const [{ win_probability: win }] = advice;
    const wins = win === null ? "" : `: you win ${percent(win)}`;
    const line = ({ label, text }) => {
      const { group, name } = choices.find((one) => one.label === label);
      return `${group.split(":")[0]}, ${name}${text.slice(label.length)}`;
    };
    return [`${advisor}${wins}`, ...advice.map(line)].join("\n");
  }

  // Input

  addListeners() {
    const actions = {
      undo: () => this.command("undo"),
      advise: () => this.command("advise"),
      "review-game": () => {
        if (this.state.review) return this.showReview();
        this.wantsReview = true;
        return this.command("review");
      },
      "run-agents": () => this.command("run_agents", { on: !this.state.agents_running }),
      "try-again": () => this.command("run_agents", { on: true }),
      "choose-another": () => showChange(this),
      "change-player": () => showChange(this),
      resign: () => this.command("resign"),
      save: async () => this.download("game.jsonl", await this.query("record")),
      current: () => this.step(this.end),
      "continue-here": () => this.replace("continue_from", { at: this.at }),
      help: () => showHelp(this),
      "new-game": () => showStart(this),
    };
    for (const [name, action] of Object.entries(actions)) {
      this.find(name).addEventListener("click", () => this.attempt(action));
    }
    this.find("play-forced").addEventListener("change", ({ target: { checked: on } }) =>
      this.command("play_forced", { on }),
    );
    const labelsAt = ({ target }) => {
      const { label = "", labels = label } = target.closest("[data-label], [data-labels]")?.dataset ?? {};
      return labels ? labels.split(" ") : [];
    };
    this.el.addEventListener("pointerover", (event) => this.showPreview(labelsAt(event), event.target.closest(".go")));
    this.el.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && this.showPreview(labelsAt(event), null));
    this.el.querySelector('[data-panel="island"]').addEventListener("click", (event) => this.choosePlace(labelsAt(event)));
    this.find("board").addEventListener("click", (event) => this.showTitle(event.target.closest("[role=img]")));
    this.find("load").addEventListener("change", (event) => this.attempt(() => this.load(event.target)));
    this.el.addEventListener("click", (event) => this.ignoreRepeatedClick(event), true);
  }

  ignoreRepeatedClick(event) {
    if (event.detail < 2 || !event.target.closest(CLICKED_ONCE)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  // Replace the game by a command of the dialog, after a question if a game is in progress.
  async replace(name, given) {
    if (!(await this.mayReplaceGame())) return;
    this.find("start")?.close();
    await this.command(name, given);
  }

  download(name, text) {
    const link = element("a", "", { download: name });
    link.href = `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`;
    link.click();
  }

  async load(input) {
    const [file] = input.files;
    if (file) await this.resume((await file.text()).trim().split("\n").at(-1));
    input.value = "";
  }

  shortcut(pressed) {
    const key = pressed.length === 1 ? pressed.toLowerCase() : pressed; // Caps Lock
    if (this.el.inert) return null;
    if (key === "Escape" && this.at !== null) return () => this.step(this.end);
    const name = { u: "undo", a: "advise", r: "review-game", n: "new-game", "?": "help", " ": "run-agents" }[key];
    const choice = /^[1-9]$/.test(key) ? this.find("choices").querySelectorAll("[data-label]")[key - 1] : null;
    const button = name ? this.find(name) : choice;
    if (button) return button.disabled ? null : () => button.click();
    return super.shortcut(key);
  }
}

export default {
  render({ model, el }) {
    const game = new LiveGame(model, el);
    return () => game.remove();
  },
};
