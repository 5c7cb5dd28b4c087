"""Tune the weights of the heuristic by games: `python benchmarks/tune_heuristic.py --help`.

Each round, tree search with the weights so far plays itself, now and then at random so that strange
positions occur too. The log-odds of winning are then fitted to all positions by logistic regression
with a small ridge penalty, as chess programs are tuned on the results of their games; a position's
label is the mean of the game's result and of what the search expected there, which has less noise.
The new weights play the old ones in paired games, and the fit goes on with the new ones. The same
command writes the same file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Actions, BoardRows, Keys, Legal, States
from tokaido_env.agents.eval_tables import (
    N_TERMS,
    TERMS,
    WEIGHT_UNIT,
    WEIGHTS_FILE,
    eval_tables_with_weights,
    load_weights,
)
from tokaido_env.agents.heuristic import MAX_GAME_PHASE, SCRATCH, count_terms, game_phase, quiescent
from tokaido_env.agents.registry import MAX_SIMS
from tokaido_env.agents.search import MctsAgent
from tokaido_env.arena.match import MAX_GAMES
from tokaido_env.arena.tournament import play_match
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.arguments import check_seed
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.jit import allocator, entry
from tokaido_env.core.state import END_TRIGGERS
from tokaido_env.files import check_outputs, write_text

Weights = npt.NDArray[np.float32]

_SIDE_BY_SIDE = 512  # games
_RANDOM_MOVES = 0.1
_RIDGE = 1e-4
_NEWTON_STEPS = 15


@dataclass(frozen=True)
class Positions:
    """What a fit is made from: n positions.

    Attributes:
        terms: float32 (n, N_TERMS), how far player_0 is ahead.
        taper: float32 (n,), 0 in the opening to 1 in the ending.
        label: float32 (n,), chance that player_0 wins.
    """

    terms: npt.NDArray[np.float32]
    taper: npt.NDArray[np.float32]
    label: npt.NDArray[np.float32]

    def design(self) -> npt.NDArray[np.float32]:
        """Return the terms for the opening and for the ending side by side, (n, 2 N_TERMS)."""
        taper = self.taper[:, None]
        return np.concatenate([self.terms * (1 - taper), self.terms * taper], axis=1)


class WeightedMcts(MctsAgent):
    """`MctsAgent` on one board with weights of its own."""

    def __init__(self, board: Board, weights: Weights, sims: int) -> None:
        super().__init__(sims)
        self.eval_tables = eval_tables_with_weights(board, weights)

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`."""
        return self.search(boards, self.eval_tables, states, legal, keys)[0]


def self_play(board: Board, weights: Weights, games: int, sims: int, seed: int) -> Positions:
    """Play games of the search against itself and return their positions."""
    parts = [
        _play_batch(board, weights, min(_SIDE_BY_SIDE, games - first), sims, seed + first)
        for first in range(0, games, _SIDE_BY_SIDE)
    ]
    return join(parts)


def join(parts: Sequence[Positions]) -> Positions:
    """Return the positions of all parts, in order."""
    return Positions(
        np.concatenate([part.terms for part in parts]),
        np.concatenate([part.taper for part in parts]),
        np.concatenate([part.label for part in parts]),
    )


def fit(positions: Positions, ridge: float = _RIDGE) -> tuple[Weights, float]:
    """Return the weights, float32 (2, N_TERMS), under which the labels are likeliest; and the loss.

    Args:
        positions: what to fit.
        ridge: weight of the penalty on squared weights, of terms scaled to a spread of 1.
    """
    design = positions.design()
    scale = design.std(axis=0, dtype=np.float64) + 1e-9
    x = design / scale
    y = positions.label.astype(np.float64)
    penalty = ridge * len(x)
    weights = np.zeros(x.shape[1])
    for _ in range(_NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (chance - y) + penalty * weights
        curvature = (x * (chance * (1 - chance))[:, None]).T @ x
        weights -= np.linalg.solve(curvature + penalty * np.eye(len(weights)), gradient)
    chance = 1 / (1 + np.exp(-x @ weights))
    loss = -np.mean(y * np.log(chance) + (1 - y) * np.log(1 - chance))
    return (weights / scale).reshape(2, N_TERMS).astype(np.float32), float(loss)


def weights_text(weights: Weights, command: str) -> str:
    """Return a weights file."""
    rows = []
    for k, (name, meaning) in enumerate(TERMS):
        opening, ending = (float(np.rint(w[k] / WEIGHT_UNIT) * WEIGHT_UNIT) for w in weights)
        rows.append(f"{name} = [{opening:.4f}, {ending:.4f}] # {meaning}\n")
    return (
        "# Weights of the heuristic, in log-odds of winning for each unit that a player is ahead:\n"
        "# [in the opening, in the ending]. Made by\n"
        f"#     {command}\n\n[weights]\n" + "".join(rows)
    )


def _play_batch(board: Board, weights: Weights, games: int, sims: int, seed: int) -> Positions:
    agent = WeightedMcts(board, weights, sims)
    rng = np.random.default_rng(seed)
    batch = Batch(games, board, chance="explicit", autoreset=False, observation=None)
    batch.reset(seed=seed)
    expected = np.zeros(games, np.float32)
    seen: list[tuple[npt.NDArray[Any], ...]] = []
    while not batch.over.all():
        deciding = np.flatnonzero(batch.legal)
        moves = batch.sample_outcomes()
        if len(deciding):
            moves[deciding], expected[deciding] = _choose(agent, batch, deciding, rng)
        running = np.flatnonzero(~batch.over & (batch.states["round"] > 0))
        terms, taper = _terms_of(agent, batch, running)
        seen.append((running, terms, taper, expected[running]))
        going = np.flatnonzero(~batch.over)
        batch.advance(going, moves[going])
    return _labelled(batch, seen)


def _choose(
    agent: WeightedMcts, batch: Batch, games: npt.NDArray[np.int64], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return a move of each game, some of them random, and what the search expects."""
    legal = batch.legal[games]
    actions, values, _ = agent.search(
        batch.boards, agent.eval_tables, batch.states[games], legal, batch.keys(games)
    )
    for j in np.flatnonzero(rng.random(len(games)) < _RANDOM_MOVES):
        actions[j] = rng.choice(actions_of(int(legal[j])))
    return actions, values


def _terms_of(
    agent: WeightedMcts, batch: Batch, games: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    terms = np.zeros((len(games), N_TERMS), np.float32)
    taper = np.zeros(len(games), np.float32)
    _count_each(games, batch.boards, agent.eval_tables, batch.states, terms, taper)
    return terms, taper


def _labelled(batch: Batch, seen: list[tuple[npt.NDArray[Any], ...]]) -> Positions:
    """Return what was seen with its labels; games that reached the cap have no result."""
    finished = batch.states["end"] == END_TRIGGERS
    results = batch.rewards(np.arange(len(batch)))[:, 0]
    parts = []
    for games, terms, taper, expected in seen:
        kept = finished[games]
        value = (results[games] + expected) / 2
        parts.append(Positions(terms[kept], taper[kept], (value[kept] + 1) / 2))
    return join(parts)


@entry
def _count_each(
    games: Any, boards: Any, eval_tables: Any, states: Any, terms: Any, taper: Any
) -> None:
    """Write how far player_0 is ahead in each term, float32 (k, N_TERMS), and the taper (k,)."""
    for j in range(len(games)):
        _count_one(boards[0], eval_tables[0], states[games[j]], terms[j], taper[j : j + 1])


@allocator
def _count_one(board: Any, tables: Any, s: Any, terms: Any, taper: Any) -> None:
    scratch = np.empty(1, SCRATCH)[0]
    quiet = quiescent(board, s, scratch)
    count_terms(board, tables, quiet, scratch["terms"])
    for k in range(N_TERMS):
        terms[k] = scratch["terms"][0, k] - scratch["terms"][1, k]
    taper[0] = game_phase(quiet) / MAX_GAME_PHASE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    command = " ".join(["python benchmarks/tune_heuristic.py", *(arguments or sys.argv[1:])])
    try:
        _check(options)
        _tune(options, command)
    except (ValueError, OSError) as error:
        print(f"tune: {error}", file=sys.stderr)
        return 1
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse what can be refused before a game is played."""
    for name, most in (("rounds", 1000), ("games", MAX_GAMES), ("sims", MAX_SIMS)):
        got = getattr(options, name)
        if not 1 <= got <= most:
            raise ValueError(f"--{name}: expected a number from 1 to {most:,}, got {got}")
    check_seed(options.seed)
    check_outputs(options.out, read=[options.board])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/tune_heuristic.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rounds", type=int, default=4, help="of self-play and fit (4)")
    add("--games", type=int, default=4096, help="of self-play in a round (4096)")
    add("--sims", type=int, default=200, help="of the search (200)")
    add("--seed", type=int, default=0, help="of the luck (0)")
    add("--board", default="shikoku", help="a built-in board or a file (shikoku)")
    add("--zero", action="store_true", help="begin from points alone")
    add("--out", type=Path, default=WEIGHTS_FILE, help="the weights file, written each round")
    return parser


def _tune(options: argparse.Namespace, command: str) -> None:
    board = Board.load(options.board)
    weights = _first_weights() if options.zero else load_weights()
    last: list[Positions] = []
    for number in range(options.rounds):
        seed = options.seed + number * options.games
        last = [*last[-1:], self_play(board, weights, options.games, options.sims, seed)]
        if not len(last[-1].label):
            raise ValueError("no game had a result: expected more --games, or more --sims")
        fitted, loss = fit(join(last))
        match = play_match(
            WeightedMcts(board, fitted, options.sims),
            WeightedMcts(board, weights, options.sims),
            min(options.games, 1000),
            options.seed,
            board,
        )
        low, high = match.interval
        result = f"{match.score:.1%} ({low:.1%} to {high:.1%}) against the weights before"
        print(
            f"round {number}: {len(last[-1].label)} positions, loss {loss:.4f}, {result}",
            flush=True,
        )
        weights = fitted
        write_text(options.out, weights_text(weights, command))


def _first_weights() -> Weights:
    """Return weights that count points alone, from which tuning can begin."""
    weights = np.zeros((2, N_TERMS), np.float32)
    weights[:, [name in ("faith", "commerce", "culture") for name, _ in TERMS]] = 0.1
    return weights


if __name__ == "__main__":
    sys.exit(main())
