// The storage of the browser, and the dialogs that start a game, change its opponent and explain it.
import { openDialog } from "./dialogs.js";
import { button, element, holding, rowOf, svgOf } from "./dom.js";
import { HELP } from "./help.js";

const memory = {}; // if the browser stores nothing

export const storage = {
  read(name, none) {
    try {
      return memory[name] ?? JSON.parse(localStorage.getItem(`tokaido.${name}`)) ?? none;
    } catch {
      return none;
    }
  },
  // Store a value, at least until the page is closed; return whether the browser keeps it.
  write(name, value) {
    try {
      localStorage.setItem(`tokaido.${name}`, JSON.stringify(value));
      return delete memory[name];
    } catch {
      memory[name] = value;
      return false;
    }
  },
};

// Return the name of a player as pages show it.
export function playerName(game, spec) {
  if (spec === "human") return game.human() === null ? spec : "You";
  return game.state.opponents.find((one) => one.spec === spec)?.name ?? spec;
}

const signed = (number) => `${number < 0 ? "−" : "+"}${Math.abs(number)}`;
const ratingText = (elo, [low, high]) => (low === high ? `Elo ${elo}, the reference` : `Elo ${signed(elo)}, 95 % ${signed(low)} to ${signed(high)}`);
const labelled = (text, ...inputs) => holding(element("label", text), inputs);
const group = (title, ...parts) => holding(element("fieldset"), [element("legend", title), ...parts]);
const selectOf = (name, options) => holding(element("select", "", { class: name }), options.map(([value, text = value]) => element("option", text, { value })));

export function showHelp(game) {
  const text = element("div", "", { class: "help-text" });
  text.innerHTML = HELP;
  const dialog = openDialog(game, "How to play", [text, rowOf(button("Close", () => dialog.close(), { class: "done" }))]);
}

// Return a choice of opponents: a card for each level, and a list of all players.
function opponentChoice(game, selected) {
  const { opponents, seats } = game.state;
  const levels = opponents.filter(({ level }) => level !== null);
  const radio = (value, chosen) => Object.assign(element("input", "", { type: "radio", name: "opponent", value }), { checked: value === chosen });
  const cards = levels.map(({ spec, name, plays, elo, ci95, thinks }) => {
    const detail = `${spec} · ${ratingText(elo, ci95)} · ${thinks}`;
    return holding(element("label", "", { class: "level" }), [radio(spec, selected), element("b", name), element("span", plays), element("small", detail)]);
  });
  const players = [...new Set(["human", ...opponents.map(({ spec }) => spec), ...seats])];
  const others = selectOf("others", players.map((spec) => [spec, spec === "human" ? "a person at this computer" : playerName(game, spec)]));
  const other = radio("");
  others.setAttribute("aria-label", "Another opponent");
  others.addEventListener("change", () => (other.checked = true));
  return { others, parts: [...cards, labelled("", other, element("b", "Another"), others)] };
}

// Open the dialog in which another opponent continues the game.
export function showChange(game) {
  const { seats, player } = game.state;
  const seat = game.human() === null ? (player ?? 0) : 1 - game.human();
  const { others, parts } = opponentChoice(game, seats[seat]);
  const done = element("button", "Continue the game", { type: "submit", class: "done" });
  const form = holding(element("form", "", { class: "new" }), [rowOf(done, button("Cancel", () => dialog.close(), { class: "cancel" })), group("Opponent", ...parts)]);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    dialog.close();
    game.command("change_player", { seat, player: form.elements.opponent.value || others.value });
  });
  const dialog = openDialog(game, "Change the opponent of this game", [form], "start");
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
  const { opponents, boards, board, seats: current, is_chosen: isChosen } = game.state;
  const levels = opponents.filter(({ level }) => level !== null);
  const next = levels[Math.min(storage.read("beaten", 0), levels.length - 1)];
  const { others, parts } = opponentChoice(game, next.spec);
  const player = selectOf("player", [...new Set(["human", ...opponents.map(({ spec }) => spec), ...current])].map((spec) => [spec, spec === "human" ? "you" : playerName(game, spec)]));
  const seat = selectOf("seat", [[0, "player_0, leads the first round"], [1, "player_1"]]);
  const name = selectOf("board-name", [...boards.map((one) => [one]), [`family:${Math.floor(Math.random() * 1e6)}`, "a random board of the family"]]);
  name.value = board;
  const chance = selectOf("chance", [["sampled", "dealt and rolled by the program"], ["explicit", "physical game: I enter rolls and draws"]]);
  const seed = element("input", "", { class: "seed", inputmode: "numeric", pattern: "[0-9]*", maxlength: 19, placeholder: "random" });
  const picture = svgOf({ viewBox: "0 0 640 470", role: "img", "aria-label": "Map of the board", class: `${game.themeClass()} board-map` }, "");
  const draw = () => game.attempt(async () => (picture.innerHTML = await game.query("map", { board: name.value })));
  name.addEventListener("change", draw);
  draw();
  const done = element("button", "Start game", { type: "submit", class: "done" });
  const row = rowOf(done, button("How to play", () => showHelp(game), { class: "to-help" }), ...(isChosen ? [button("Cancel", () => dialog.close(), { class: "cancel" })] : []));
  const form = holding(element("form", "", { class: "new" }), [
    row, group("Opponent", ...parts),
    holding(element("div"), [
      ...keptGames(game),
      group("Game", labelled("You play as", seat), labelled("Dice and draws", chance), labelled("Board", name), picture, labelled("Seed", seed), labelled("In your seat", player)),
    ]),
  ]);
  const seats = () => {
    const pair = [player.value, form.elements.opponent.value || others.value];
    return seat.value === "1" ? pair.reverse() : pair;
  };
  if (!isChosen) form.addEventListener("change", () => game.showPlayers(seats()));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    game.replace("new_game", { seats: seats(), board: name.value, seed: seed.value || null, chance: chance.value });
  });
  const dialog = openDialog(game, isChosen ? "New game" : "Choose your opponent, or start at once", [form], "start");
  if (!isChosen) game.showPlayers(seats());
  done.focus();
}
