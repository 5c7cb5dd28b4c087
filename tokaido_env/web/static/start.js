// The storage of the browser, and the dialogs that start a game, change its opponent and explain it.
import { button, element, holding, openDialog, rowOf } from "./dom.js";
import { HELP } from "./help.js";

export const storage = {
  read(name, none) {
    try {
      return JSON.parse(localStorage.getItem(`tokaido.${name}`)) ?? none;
    } catch {
      return none;
    }
  },
  // Store a value; return whether the browser keeps it.
  write(name, value) {
    try {
      localStorage.setItem(`tokaido.${name}`, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  },
};

// Return the name of a player as pages show it.
export function playerName(game, spec) {
  if (spec === "human") return game.human() === null ? spec : "You";
  return game.state.opponents.find((one) => one.spec === spec)?.name ?? spec;
}

const labelled = (text, input) => holding(element("label", text), [input]);
const group = (title, ...parts) => holding(element("fieldset"), [element("legend", title), ...parts]);
const selectOf = (name, options) => holding(element("select", "", { class: name }), options.map(([value, text = value]) => element("option", text, { value })));

export function showHelp(game) {
  const text = element("div", "", { class: "help-text" });
  text.innerHTML = HELP;
  const dialog = openDialog(game, "panel", "How to play", [text, rowOf(button("Close", () => dialog.close(), { class: "done" }))]);
}

// Return a choice of opponents, a card for each: first the levels, then the others.
function opponentChoice(game, selected) {
  const { opponents, seats } = game.state;
  const others = [{ spec: "human", name: "A person at this computer" }, ...opponents, ...seats.map((spec) => ({ spec }))];
  const cards = new Map();
  for (const { spec, name = spec, plays, elo, ci95, level } of others) {
    const interval = ci95 && (ci95[0] === ci95[1] ? "the reference" : `95 % ${ci95.join(" to ").replaceAll("-", "−")}`);
    const detail = [spec, ci95 && `Elo ${elo}, ${interval}`.replace("Elo -", "Elo −")].filter(Boolean).join(" · ");
    const radio = Object.assign(element("input", "", { type: "radio", name: "opponent", value: spec }), { checked: spec === selected });
    const card = holding(element("label", "", { class: "level" }), [radio, element("b", name), element("span", plays), element("small", detail)]);
    if (!cards.has(spec)) cards.set(spec, { card, level });
  }
  const parts = (isLevel) => [...cards.values()].filter(({ level }) => Boolean(level) === isLevel).map(({ card }) => card);
  return group("Opponent", ...parts(true), holding(element("details", "", { class: "others" }), [element("summary", "Other opponents"), ...parts(false)]));
}

// Open a dialog with a choice of opponents and other parts; `act` gets the form when it is sent.
function showForm(game, title, verb, { selected, parts = [], buttons = [], act }) {
  const done = element("button", verb, { type: "submit", class: "done" });
  const form = holding(element("form", "", { class: "new" }), [rowOf(done, ...buttons), opponentChoice(game, selected), ...parts]);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act(form.elements.opponent.value);
  });
  openDialog(game, "start", title, [form]);
  done.focus();
  return form;
}

const cancel = (game) => button("Cancel", () => game.find("start").close(), { class: "cancel" });

// Open the dialog in which another opponent continues the game.
export function showChange(game) {
  const { seats, player } = game.state;
  const seat = game.human() === null ? (player ?? 0) : 1 - game.human();
  const act = (chosen) => {
    game.find("start").close();
    game.command("change_player", { seat, player: chosen });
  };
  showForm(game, "Change the opponent of this game", "Continue the game", { selected: seats[seat], buttons: [cancel(game)], act });
}

// Return the games that the browser keeps, apart from the one that is on, each with a button.
function keptGames(game) {
  const kept = storage.read("games", []).filter(({ id }) => id !== game.state.game || !game.state.is_chosen);
  const items = kept.map(({ id, record, title, time }) =>
    holding(element("li"), [button("Resume", () => game.resume(record, id), { class: "resume" }), ` ${title}, ${new Date(time).toLocaleString()}`]));
  return items.length ? [group("Games that this browser keeps", holding(element("ul", "", { class: "kept" }), items))] : [];
}

// Open the dialog that starts a game; the first level that was not beaten is selected.
export function showStart(game) {
  const { opponents, boards, board, is_chosen: isChosen } = game.state;
  const levels = opponents.filter(({ level }) => level !== null);
  const seat = selectOf("seat", [[0, "player_0, leads the first round"], [1, "player_1"]]);
  const name = selectOf("board-name", [...boards.map((one) => [one]), [`family:${Math.floor(Math.random() * 1e6)}`, "a random board of the family"]]);
  name.value = board;
  const chance = selectOf("chance", [["sampled", "dealt and rolled by the program"], ["explicit", "physical game: I enter rolls and draws"]]);
  const seed = element("input", "", { class: "seed", inputmode: "numeric", pattern: "[0-9]*", maxlength: 19, placeholder: "random" });
  const seatsWith = (opponent) => (seat.value === "1" ? [opponent, "human"] : ["human", opponent]);
  const form = showForm(game, isChosen ? "New game" : "Choose your opponent, or start at once", "Start game", {
    selected: levels[Math.min(storage.read("beaten", 0), levels.length - 1)].spec,
    buttons: [button("How to play", () => showHelp(game), { class: "to-help" }), ...(isChosen ? [cancel(game)] : [])],
    parts: [holding(element("div"), [
      ...keptGames(game),
      group("Game", labelled("You play as", seat), labelled("Dice and draws", chance), labelled("Board", name), labelled("Seed", seed)),
    ])],
    act: (opponent) => game.replace("new_game", { seats: seatsWith(opponent), board: name.value, seed: seed.value || null, chance: chance.value }),
  });
  const showPlayers = () => isChosen || game.showPlayers(seatsWith(form.elements.opponent.value));
  form.addEventListener("change", showPlayers);
  form.parentElement.addEventListener("close", () => game.showPlayers(game.state.seats));
  showPlayers();
}
