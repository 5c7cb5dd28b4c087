// The storage of the browser, the keys, and the dialog that starts a game.
import { openDialog } from "./dialogs.js";
import { button, element, holding, rowOf, svgOf } from "./dom.js";

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

const KEYS = {
  "1 to 9": "make that choice", u: "undo", n: "new game", a: "get advice", r: "review the game",
  space: "pause or resume agents", "← → Home End": "show an earlier position", Escape: "return to the game, or close a dialog",
  "Tab, Enter": "go to a control and use it; a choice with the focus shows its gain on the map", "?": "this list",
};

export function showKeys(game) {
  const list = holding(element("dl", "", { class: "keys-list" }), Object.entries(KEYS).flatMap(([key, text]) => [element("dt", key), element("dd", text)]));
  const dialog = openDialog(game, "Keys", [list, rowOf(button("Close", () => dialog.close(), { class: "done" }))]);
}

const signed = (number) => `${number < 0 ? "−" : "+"}${Math.abs(number)}`;
const ratingText = (elo, [low, high]) => (low === high ? `Elo ${elo}, the reference` : `Elo ${signed(elo)}, 95 % ${signed(low)} to ${signed(high)}`);
const labelled = (text, ...inputs) => holding(element("label", text), inputs);
const group = (title, ...parts) => holding(element("fieldset"), [element("legend", title), ...parts]);
const selectOf = (name, options) => holding(element("select", "", { class: name }), options.map(([value, text = value]) => element("option", text, { value })));

// Open the dialog that starts a game; the first level that was not beaten is selected.
export function showStart(game) {
  const { opponents, boards, board, seats, is_chosen: isChosen } = game.state;
  const levels = opponents.filter(({ level }) => level !== null);
  const next = levels[Math.min(storage.read("beaten", 0), levels.length - 1)];
  const radio = (value, chosen) => Object.assign(element("input", "", { type: "radio", name: "opponent", value }), { checked: value === chosen });
  const cards = levels.map(({ spec, level, plays, elo, ci95, thinks }) => {
    const texts = [plays, `${ratingText(elo, ci95)}; ${thinks}`].map((text) => element("span", text));
    return holding(element("label", "", { class: "level" }), [radio(spec, next.spec), element("b", `${level}. ${spec}`), ...texts]);
  });
  const players = [...new Set(["human", ...opponents.map(({ spec }) => spec), ...seats])].map((spec) => [spec]);
  const [others, player, other] = [selectOf("others", players), selectOf("player", players), radio("")];
  others.setAttribute("aria-label", "Another opponent");
  others.addEventListener("change", () => (other.checked = true));
  const seat = selectOf("seat", [[0, "player_0, leads the first round"], [1, "player_1"]]);
  const name = selectOf("board-name", [...boards.map((one) => [one]), [`family:${Math.floor(Math.random() * 1e6)}`, "a random board of the family"]]);
  name.value = board;
  const chance = selectOf("chance", [["sampled", "dealt and rolled by the program"], ["explicit", "physical game: I enter rolls and draws"]]);
  const seed = element("input", "", { class: "seed", inputmode: "numeric", pattern: "[0-9]*", maxlength: 16, placeholder: "random" });
  const picture = svgOf({ viewBox: "0 0 640 470", role: "img", "aria-label": "Map of the board", class: `${game.themeClass()} board-map` }, "");
  const draw = () => game.attempt(async () => (picture.innerHTML = await game.query("map", { board: name.value })));
  name.addEventListener("change", draw);
  draw();
  const done = element("button", "Start game", { type: "submit", class: "done" });
  const row = rowOf(done, ...(isChosen ? [button("Cancel", () => dialog.close(), { class: "cancel" })] : []));
  const last = storage.read("last", null);
  if (last && last.record !== game.record) row.append(button(`Resume ${last.title}`, () => game.replace("load_record", { record: last.record }), { class: "resume" }));
  const form = holding(element("form", "", { class: "new" }), [
    row, group("Opponent", ...cards, labelled("", other, element("b", "Another"), others)),
    group("Game", labelled("You play as", seat), labelled("Dice and draws", chance), labelled("Board", name), picture, labelled("Seed", seed), labelled("In your seat", player)),
  ]);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const pair = [player.value, form.elements.opponent.value || others.value];
    const seats = seat.value === "1" ? pair.reverse() : pair;
    game.replace("new_game", { seats, board: name.value, seed: seed.value === "" ? null : Number(seed.value), chance: chance.value });
  });
  const dialog = openDialog(game, isChosen ? "New game" : "Choose your opponent, or start at once", [form], "start");
  done.focus();
}
