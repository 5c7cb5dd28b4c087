// A page that shows the frames of a game: live, recorded or annotated. `frames.py` describes them.
import { element, holding, percent, svgOf, usesKey } from "./dom.js";

const ROWS = ["pilgrim: faith", "merchant: commerce", "artist: culture", "total"];

const panel = (name, width, height, label) =>
  `<svg data-panel="${name}" viewBox="0 0 ${width} ${height}" preserveAspectRatio="xMinYMin slice" class="tokaido tokaido-auto" role="graphics-document document" aria-label="${label}"></svg>`;

const symbol = (name, label, key, paths) =>
  `<button class="${name}" type="button" aria-label="${label}" title="${key}"><svg viewBox="0 0 20 20">${paths}</svg></button>`;

export const BOARD = `<section class="board" aria-label="Board">
${panel("heading", 1000, 50, "Round")}
<div>${panel("island", 640, 470, "Map")}${panel("supply", 640, 124, "Dice, bag and tokens")}</div>
<div>${panel("player_0", 350, 304, "Board of player_0")}${panel("player_1", 350, 304, "Board of player_1")}</div>
</section>`;

const sign = (name) => `<svg viewBox="-14 -14 28 28" aria-hidden="true" class="tokaido tokaido-auto">${GLYPHS[name]}</svg>`;
const cell = (look, inside = "") => `<svg viewBox="-14 -14 28 28" aria-hidden="true" class="tokaido tokaido-auto"><rect x="-11" y="-12" width="22" height="24" rx="3" class="${look}"/>${inside}</svg>`;
const signs = (...names) => names.map((name) => `<span>${sign(name)} ${name}</span>`).join(" ");

export const LEGEND_LIST = `<dl class="legend-list">
<dt>stations</dt><dd>${signs("temple", "garden", "seashore", "hot spring")}</dd>
<dt>towns</dt><dd>C1 to C8 buy the ware of their token at its price. The number in a mountain town counts the wares that a merchant draws.</dd>
<dt>wares</dt><dd>${signs("kimono", "pottery", "doll", "fan")}</dd>
<dt>areas</dt><dd>${signs("moon", "waterfall", "mountain", "bamboo")}</dd>
<dt>tokens</dt><dd><span>${sign("wave")} wave tile:</span> changes a die or an effect of one character; a pilgrim takes it at a seashore. <span>${sign("hot spring")} hot spring token:</span> repeats a die.</dd>
<dt>pawns</dt><dd>P pilgrim, M merchant, A artist; discs are player_0, squares player_1.</dd>
<dt>dashed marks</dt><dd>Possible destinations, with the letters of the characters. A line is a player's newest move.</dd>
<dt>+4 · 5 left</dt><dd>The next step of the track brings 4 points; 5 steps are left to the end of the game.</dd>
<dt>2 of 5</dt><dd>The player holds 2 wares, and may hold 5.</dd>
<dt>paintings</dt><dd><span>${cell("slot", `<g class="faint">${GLYPHS.given}</g>`)} given</span> <span>${cell("moon", GLYPHS.moon)} revealed, the front first</span> <span>${cell("back")} face down</span>. The number below is the culture once the painting is given.</dd>
</dl>`;

export const LEGEND = `<details class="legend"><summary>Read the board</summary>${LEGEND_LIST}</details>`;

export const PLAYBACK = `<input class="slider" type="range" min="0" max="0" value="0" step="1" aria-label="Move">
<div class="steps">
${symbol("first", "First", "First (Home)", '<path d="M3 4h2v12H3zM17 4v12L6 10z"/>')}
${symbol("previous", "Previous", "Previous (left arrow)", '<path d="M13 3 15 5 10 10 15 15 13 17 6 10z"/>')}
${symbol("play", "Play", "Play or pause", '<path class="ahead" d="M5 2 17 10 5 18z"/><path class="halt" d="M4 3h4v14H4zM12 3h4v14h-4z"/>')}
${symbol("next", "Next", "Next (right arrow)", '<path d="M7 3 5 5 10 10 5 15 7 17 14 10z"/>')}
${symbol("last", "Last", "Last (End)", '<path d="M15 4h2v12h-2zM3 4v12L14 10z"/>')}
<span class="position"></span>
<label>Speed <select class="speed"><option value="2000">½×</option><option value="1000" selected>1×</option><option value="500">2×</option><option value="250">4×</option><option value="125">8×</option></select></label>
</div>`;

export const MOVES = `<section class="moves" aria-label="Moves"><ol class="log"></ol></section>
<section class="review" aria-label="Review"></section>`;

// Subclasses have `frame(at)`, which returns the frame after a number of events or its promise.
export class Frames {
  constructor(el, layout) {
    // `at` is the number of events before the shown frame; null: all, also when more follow.
    Object.assign(this, { el, at: 0, drawn: {}, timer: 0, game: { log: [], names: [] } });
    el.classList.add("tokaido-app");
    el.innerHTML = layout;
    const keys = { first: "Home", previous: "ArrowLeft", next: "ArrowRight", last: "End" };
    for (const [name, key] of Object.entries(keys)) this.find(name).addEventListener("click", () => Frames.prototype.shortcut.call(this, key)());
    this.find("play").addEventListener("click", () => this.toggle());
    this.find("slider").addEventListener("input", ({ target }) => this.step(Number(target.value)));
    el.addEventListener("click", (event) => this.follow(event));
    for (const name of ["pointerdown", "pointermove"]) el.addEventListener(name, (event) => this.seek(event));
    (el.dataset.page === undefined ? el : document).addEventListener("keydown", (event) => this.pressKey(event));
  }

  find(name) {
    return this.el.querySelector(`.${name}`);
  }

  get end() {
    return this.game.log.length;
  }

  // A game

  // Take a game, or the same one with more events.
  setGame(game) {
    this.game = game;
    this.find("slider").max = this.end;
    this.replaceList("log", this.logItems());
    this.find("review").innerHTML = game.review?.html ?? "";
  }

  logItems() {
    let before = null;
    return [[null, null, "Start"], ...this.game.log].map(([round, seat, sentence], at) => {
      const item = element("li", "", round === null || round === before ? {} : { "data-round": round ? `Round ${round}` : "Set-up" });
      before = round;
      const made = element("button", sentence + this.remark(at), { type: "button", tabindex: -1 });
      if (seat !== null) made.dataset.seat = seat;
      made.addEventListener("click", () => this.step(at));
      return holding(item, [made]);
    });
  }

  // Return the remark of a review on the event before a frame.
  remark(at) {
    return this.game.review?.remarks[at - 1] ?? "";
  }

  sentence(at) {
    return at ? this.game.log[at - 1][2] + this.remark(at) : "Start";
  }

  // Replace the content of a list; if the focus was in it, move it to the panel of the turn.
  replaceList(name, items = []) {
    const list = this.find(name);
    const hadFocus = list.contains(document.activeElement);
    list.replaceChildren(...items);
    if (hadFocus) this.find("turn")?.focus({ preventScroll: true });
  }

  // A frame

  step(at) {
    this.pause();
    return this.goTo(at);
  }

  goTo(at) {
    this.at = Math.max(0, Math.min(this.end, Math.trunc(at) || 0));
    this.draw(this.frame(this.at));
    this.mark();
    this.find("status").textContent = this.sentence(this.at);
  }

  draw({ panels }) {
    for (const [name, parts] of Object.entries(panels)) {
      const svg = this.el.querySelector(`[data-panel="${name}"]`);
      const drawn = this.drawn[name] ?? {};
      const isNew = Object.keys(drawn).join() !== Object.keys(parts).join();
      if (isNew) svg.replaceChildren(...Object.keys(parts).map((part) => partOf(part)));
      Object.entries(parts).forEach(([part, markup], index) => {
        if (isNew || markup !== drawn[part]) svg.children[index].innerHTML = markup;
      });
    }
    this.drawn = panels;
  }

  // Mark the shown frame in the playback, the move log and the graphs.
  mark() {
    const at = this.at ?? this.end;
    const text = `move ${at} of ${this.end}`;
    this.find("position").textContent = text;
    this.find("slider").value = at;
    this.find("slider").setAttribute("aria-valuetext", `${text}: ${this.sentence(at)}`);
    for (const name of ["first", "previous"]) this.find(name).disabled = at === 0;
    for (const name of ["next", "last"]) this.find(name).disabled = at === this.end;
    for (const one of this.el.querySelectorAll(".marker")) one.style.left = `${(100 * at) / Math.max(1, this.end)}%`;
    this.select(at);
  }

  select(at) {
    const list = this.find("log");
    const [current, old] = [list.children[at].firstChild, list.querySelector("[aria-current]")];
    old?.removeAttribute("aria-current");
    old?.setAttribute("tabindex", -1);
    current.setAttribute("aria-current", "step");
    current.tabIndex = 0;
    if (old && old === document.activeElement) current.focus({ preventScroll: true });
    const frame = list.parentElement; // scrollIntoView would scroll the page too
    frame.scrollTop = current.parentElement.offsetTop - frame.clientHeight / 2;
  }

  // Points and graphs

  // Return the parts of the table of points at a frame.
  scoreRows(at) {
    const { names, points, wins } = this.game;
    const row = (title, texts, kind, attributes = () => ({})) => holding(element("tr"), [title ? element("th", title, { scope: "row" }) : element("td"), ...texts.map((text, seat) => element(kind, text, attributes(seat)))]);
    const lines = ROWS.map((title, track) => row(title, points[at].map((one) => (track < 3 ? one[track] : sum(one))), "td"));
    const win = wins?.[at];
    if (wins) lines.push(row("win estimate", [win, 1 - win].map((one) => (win === null ? "–" : percent(one))), "td"));
    const head = row("", names, "th", (seat) => ({ scope: "col", "data-seat": seat }));
    return [holding(element("thead"), [head]), holding(element("tbody"), lines)];
  }

  // Return the graphs of points and of win estimates over the game.
  graphs() {
    const { names, points, wins } = this.game;
    const totals = points.map((seats) => seats.map(sum));
    const top = Math.max(10, ...totals.flat());
    const lines = [0, 1].map((seat) => stepLine(totals.map((one) => one[seat] / top), seat));
    const label = `points over the game, at the end ${names.map((name, seat) => `${name} ${totals.at(-1)[seat]}`).join(", ")}`;
    const made = [this.plot(`points, up to ${top}: ${names[0]} solid, ${names[1]} dashed`, label, lines)];
    if (!wins) return made;
    const known = wins.map((win) => win ?? 0.5);
    const caption = `win estimate of ${names[0]}, 0 to 100 %, ${percent(known.at(-1))} at the end`;
    return [...made, this.plot(caption, caption, [stepLine(known, 0)])];
  }

  plot(caption, label, lines) {
    const options = { viewBox: "0 0 1000 1000", preserveAspectRatio: "none", role: "img", "aria-label": label, class: "tokaido tokaido-auto" };
    const rule = '<path d="M0 500H1000" class="rule"/>';
    return holding(element("figure"), [
      element("figcaption", caption),
      holding(element("div", "", { class: "plot" }), [svgOf(options, rule + lines.join("")), element("div", "", { class: "marker" })]),
    ]);
  }

  // Show the frame at a place of a graph.
  seek(event) {
    const plot = event.target.closest(".plot");
    if (!plot || !(event.buttons & 1)) return;
    const { left, width } = plot.getBoundingClientRect();
    this.step(Math.round((this.end * (event.clientX - left)) / width));
  }

  // Show the frame of a link of the review.
  follow(event) {
    const link = event.target.closest(".review a");
    if (!link) return;
    event.preventDefault();
    this.step(Number(new URLSearchParams(link.hash.slice(1)).get("move")));
  }

  // Playback

  pause() {
    clearTimeout(this.timer);
    this.timer = 0;
    delete this.find("play").dataset.playing;
    this.find("play").setAttribute("aria-label", "Play");
    this.find("status").setAttribute("aria-live", "polite");
  }

  toggle() {
    if (this.timer) return this.pause();
    if ((this.at ?? this.end) === this.end) this.goTo(0);
    this.find("play").dataset.playing = "";
    this.find("play").setAttribute("aria-label", "Pause");
    this.find("status").setAttribute("aria-live", "off"); // a screen reader could not keep up
    this.wait();
  }

  wait() {
    this.timer = setTimeout(() => {
      this.goTo(this.at + 1);
      if (this.at === null || this.at === this.end) this.pause();
      else this.wait();
    }, Number(this.find("speed").value));
  }

  // Keys

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
    const at = this.at ?? this.end;
    const target = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.end }[key];
    if (target !== undefined) return () => this.step(target);
    return key === " " ? () => this.toggle() : null;
  }
}

const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);

function partOf(name) {
  const group = svgOf({}, "<g></g>").firstChild;
  group.dataset.part = name;
  return group;
}

// Return heights from 0 to 1 as a step line, with a rim that shows light lines on white.
function stepLine(heights, seat) {
  const across = 1000 / Math.max(1, heights.length - 1);
  const path = heights.map((height, at) => (at && height === heights[at - 1] ? "" : `${at ? `H${(at * across).toFixed(1)}V` : "M0 "}${Math.round(1000 - 1000 * height)}`));
  return ["rim", `way${seat}`].map((name) => `<path d="${path.join("")}H1000" class="${name}"/>`).join("");
}
