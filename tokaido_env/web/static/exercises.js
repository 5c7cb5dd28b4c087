// The end of a game: its result, graph and moments; and exercises from one's own games.
import { button, element, holding, percent, rowOf } from "./dom.js";
import { storage } from "./start.js";

const MOST = 100; // stored exercises

export function resultOf(game) {
  const { review, seats, opponents, winner, requested } = game.snapshot;
  const human = game.human();
  const level = opponents.find(({ spec }) => spec === seats[1 - human])?.level;
  const beaten = human !== null && winner === human && level;
  if (beaten && level > storage.read("beaten", 0)) game.store("beaten", level);
  const table = holding(element("table", "", { class: "score" }), game.scoreRows(game.end));
  const buttons = { Review: "review-game", Exercises: "exercises", Download: "save", ...(beaten && { "Next level": "new-game" }) };
  const row = rowOf(
    button("Rematch", () => game.replace("new_game", { chance: game.snapshot.chance }), { class: "rematch" }),
    ...Object.entries(buttons).map(([text, name]) => button(text, () => game.find(name).click(), { class: `to-${name}` })),
  );
  if (!review) return [table, row, element("p", requested === "review" ? "The win probabilities and moments follow …" : "")];
  const moments = review.moments.map(({ title, event, text }) => holding(element("li"), [button(title, () => game.step(event + 1)), ` ${text}`]));
  return [table, row, ...game.graphs(), holding(element("ol", "", { class: "moments" }), moments)];
}

const keyOf = ({ board_hash: board, position }) => `${board} ${JSON.stringify(position)}`;

// Store the exercises of a review; those that are stored already stay as they are.
export function keepExercises(game, found) {
  const kept = storage.read("exercises", []);
  const added = found.filter((one) => !kept.some((other) => keyOf(other) === keyOf(one)));
  if (added.length) game.store("exercises", [...kept, ...added].slice(-MOST));
}

// Show the next exercise; unsolved ones come first.
export async function showExercises(game) {
  const kept = storage.read("exercises", []);
  if (!kept.length) throw new Error("exercises: none yet; finish or review a game in which a decision of yours lost more than its interval");
  const after = kept.findIndex((one) => keyOf(one) === game.next) + 1;
  const order = [...kept.slice(after), ...kept.slice(0, after)].sort((a, b) => Boolean(a.solved) - Boolean(b.solved));
  const { board, board_hash, position } = order[0];
  game.next = keyOf(order[0]);
  const answer = await game.query("exercise", { board, board_hash, position });
  game.showExercise({ ...order[0], ...answer, key: keyOf(order[0]), title: `Exercise ${kept.indexOf(order[0]) + 1} of ${kept.length}` });
}

// Store whether a choice solves the shown exercise; return its verdict and the odds of all choices.
export function answerOf(game, label) {
  const { key, title, odds, played, judge, choices } = game.exercise;
  const solved = odds[label][2];
  game.store("exercises", storage.read("exercises", []).map((one) => (keyOf(one) === key ? { ...one, solved } : one)));
  const lines = choices.toSorted((a, b) => odds[b.label][0] - odds[a.label][0]).map(({ label: one, group, name, text }) => {
    const [win, error, isGood] = odds[one];
    const remarks = [one === label && "your choice", one === played && "played in the game", isGood && "good"].filter(Boolean);
    const wins = element("b", `wins ${percent(win, 1)} ± ${percent(error, 1)}`);
    return holding(element("li", `${group}: ${[name, text].filter(Boolean).join(", ")}: `), [wins, remarks.length ? ` (${remarks.join(", ")})` : ""]);
  });
  return [`${title}: ${solved ? "solved" : "not solved"}. Odds by ${judge}, 95 % intervals.`, holding(element("ol", "", { class: "odds" }), lines)];
}
