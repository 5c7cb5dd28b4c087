"""Tune the weights of the heuristic by self-play: `python benchmarks/tune_heuristic.py --help`.

In each round tree search with the current weights plays itself; some moves are random, so that
unusual positions occur too. Logistic regression with a small ridge penalty then fits the log-odds
of winning to all positions, as chess programs tune their evaluation. The label of a position is the
mean of the game's result and of the search's expected result there, which has less noise. The new
weights play the old ones in paired games, and replace them. The same command writes the same file.
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
from tokaido_env.features.eval_tables import (
    N_TERMS,
    TERMS,
    WEIGHT_UNIT,
    WEIGHTS_FILE,
    eval_tables_with_weights,
    load_weights,
)
from tokaido_env.features.evaluation import (
    MAX_GAME_PHASE,
    SCRATCH,
    count_terms,
    game_phase,
    quiescent,
)
from tokaido_env.files import check_outputs, write_text

Weights = npt.NDArray[np.float32]

_GAMES_AT_ONCE = 512
_RANDOM_SHARE = 0.1  # of moves
_RIDGE = 1e-4
_NEWTON_STEPS = 15


@dataclass(frozen=True)
class Samples:
    """The data of a fit: n positions.

    Attributes:
        terms: float32 (n, N_TERMS), the terms of player_0 less those of player_1.
        phase: float32 (n,), the game phase, 0 in the opening to 1 in the ending.
        label: float32 (n,), the probability that player_0 wins.
    """

    terms: npt.NDArray[np.float32]
    phase: npt.NDArray[np.float32]
    label: npt.NDArray[np.float32]

    def design(self) -> npt.NDArray[np.float32]:
        """Return the design matrix (n, 2 N_TERMS): the terms of the opening, then of the ending."""
        phase = self.phase[:, None]
        return np.concatenate([self.terms * (1 - phase), self.terms * phase], axis=1)


class WeightedMcts(MctsAgent):
    """`MctsAgent` on one board with other weights."""

    def __init__(self, board: Board, weights: Weights, sims: int) -> None:
        super().__init__(sims)
        self.eval_tables = eval_tables_with_weights(board.record, weights)

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`."""
        return self.search(boards, self.eval_tables, states, legal, keys)[0]


def self_play(board: Board, weights: Weights, games: int, sims: int, seed: int) -> Samples:
    """Play games of the search against itself; return their positions."""
    parts = [
        _play_batch(board, weights, min(_GAMES_AT_ONCE, games - first), sims, seed + first)
        for first in range(0, games, _GAMES_AT_ONCE)
    ]
    return join(parts)


def join(parts: Sequence[Samples]) -> Samples:
    """Return the positions of all parts in order."""
    return Samples(
        np.concatenate([part.terms for part in parts]),
        np.concatenate([part.phase for part in parts]),
        np.concatenate([part.label for part in parts]),
    )


def fit(positions: Samples, ridge: float = _RIDGE) -> tuple[Weights, float]:
    """Return the maximum-likelihood weights, float32 (2, N_TERMS), and the loss.

    Args:
        positions: the data.
        ridge: the penalty on squared weights, for terms scaled to a standard deviation of 1.
    """
    design = positions.design()
    scale = design.std(axis=0, dtype=np.float64) + 1e-9
    x = design / scale
    y = positions.label.astype(np.float64)
    penalty = ridge * len(x)
    weights = np.zeros(x.shape[1])
    for _ in range(_NEWTON_STEPS):
        probability = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (probability - y) + penalty * weights
        curvature = (x * (probability * (1 - probability))[:, None]).T @ x
        weights -= np.linalg.solve(curvature + penalty * np.eye(len(weights)), gradient)
    probability = 1 / (1 + np.exp(-x @ weights))
    loss = -np.mean(y * np.log(probability) + (1 - y) * np.log(1 - probability))
    return (weights / scale).reshape(2, N_TERMS).astype(np.float32), float(loss)


def weights_text(weights: Weights, command: str) -> str:
    """Return the text of a weights file."""
    rows = []
    for k, (name, meaning) in enumerate(TERMS):
        opening, ending = (float(np.rint(w[k] / WEIGHT_UNIT) * WEIGHT_UNIT) for w in weights)
        rows.append(f"{name} = [{opening:.4f}, {ending:.4f}] # {meaning}\n")
    return (
        "# Weights of the heuristic, in log-odds of winning for each unit that a player is ahead:\n"
        "# [in the opening, in the ending]. Made by\n"
        f"#     {command}\n\n[weights]\n" + "".join(rows)
    )


def _play_batch(board: Board, weights: Weights, games: int, sims: int, seed: int) -> Samples:
    agent = WeightedMcts(board, weights, sims)
    rng = np.random.default_rng(seed)
    batch = Batch(games, board, chance="explicit", autoreset=False, observation=None)
    batch.reset(seed=seed)
    expected = np.zeros(games, np.float32)
    recorded: list[tuple[npt.NDArray[Any], ...]] = []
    while not batch.over.all():
        deciding = np.flatnonzero(batch.legal)
        moves = batch.sample_outcomes()
        if len(deciding):
            moves[deciding], expected[deciding] = _choose(agent, batch, deciding, rng)
        running = np.flatnonzero(~batch.over & (batch.states["round"] > 0))
        terms, phase = _terms_of(agent, batch, running)
        recorded.append((running, terms, phase, expected[running]))
        going = np.flatnonzero(~batch.over)
        batch.advance(going, moves[going])
    return _labelled(batch, recorded)


def _choose(
    agent: WeightedMcts, batch: Batch, games: npt.NDArray[np.int64], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return an action for each game, some of them random, and the expected results of player_0."""
    legal = batch.legal[games]
    actions, values, _ = agent.search(
        batch.boards, agent.eval_tables, batch.states[games], legal, batch.keys(games)
    )
    for j in np.flatnonzero(rng.random(len(games)) < _RANDOM_SHARE):
        actions[j] = rng.choice(actions_of(int(legal[j])))
    return actions, values


def _terms_of(
    agent: WeightedMcts, batch: Batch, games: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    terms = np.zeros((len(games), N_TERMS), np.float32)
    phase = np.zeros(len(games), np.float32)
    _count_each(games, batch.boards, agent.eval_tables, batch.states, terms, phase)
    return terms, phase


def _labelled(batch: Batch, recorded: list[tuple[npt.NDArray[Any], ...]]) -> Samples:
    """Return the positions with labels, without games that ended at the cap of rounds."""
    finished = batch.states["end"] == END_TRIGGERS
    results = batch.rewards(np.arange(len(batch)))[:, 0]
    parts = []
    for games, terms, phase, expected in recorded:
        kept = finished[games]
        value = (results[games] + expected) / 2
        parts.append(Samples(terms[kept], phase[kept], (value[kept] + 1) / 2))
    return join(parts)


@entry
def _count_each(
    games: Any, boards: Any, eval_tables: Any, states: Any, terms: Any, phase: Any
) -> None:
    """Write the terms of player_0 less those of player_1, (k, N_TERMS), and the phase, (k,)."""
    for j in range(len(games)):
        _count_one(boards[0], eval_tables[0], states[games[j]], terms[j], phase[j : j + 1])


@allocator
def _count_one(board: Any, tables: Any, s: Any, terms: Any, phase: Any) -> None:
    scratch = np.empty(1, SCRATCH)[0]
    quiet = quiescent(board, s, scratch)
    count_terms(board, tables, quiet, scratch["terms"])
    for k in range(N_TERMS):
        terms[k] = scratch["terms"][0, k] - scratch["terms"][1, k]
    phase[0] = game_phase(quiet) / MAX_GAME_PHASE


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
    """Check the options before any game is played."""
    for name, most in (("rounds", 1000), ("games", MAX_GAMES), ("sims", MAX_SIMS)):
        got = getattr(options, name)
        if not 1 <= got <= most:
            raise ValueError(f"--{name}: expected a number from 1 to {most:,}, got {got}")
    options.seed = check_seed(options.seed)
    check_outputs(options.out, read=[options.board])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/tune_heuristic.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--rounds", type=int, default=4, help="rounds of self-play and fit (default: 4)")
    add("--games", type=int, default=4096, help="games of self-play in a round (default: 4096)")
    add("--sims", type=int, default=200, help="simulations for a decision (default: 200)")
    add("--seed", type=int, default=0, help="random seed (default: 0)")
    add("--board", default="shikoku", help="built-in board or board file (default: shikoku)")
    add("--zero", action="store_true", help="start from weights of points alone")
    out = "weights file, written after each round (default: the shipped file)"
    add("--out", type=Path, default=WEIGHTS_FILE, help=out)
    return parser


def _tune(options: argparse.Namespace, command: str) -> None:
    board = Board.load(options.board)
    weights = _first_weights() if options.zero else load_weights()
    last: list[Samples] = []
    for number in range(options.rounds):
        seed = options.seed + number * options.games
        last = [*last[-1:], self_play(board, weights, options.games, options.sims, seed)]
        if not len(last[-1].label):
            raise ValueError("no game had a result: use more --games or more --sims")
        fitted, loss = fit(join(last))
        match = play_match(
            WeightedMcts(board, fitted, options.sims),
            WeightedMcts(board, weights, options.sims),
            min(options.games, 1000),
            options.seed,
            board,
        )
        low, high = match.interval
        result = f"{match.score:.1%} ({low:.1%} to {high:.1%}) against the previous weights"
        print(
            f"round {number}: {len(last[-1].label)} positions, loss {loss:.4f}, {result}",
            flush=True,
        )
        weights = fitted
        write_text(options.out, weights_text(weights, command))


def _first_weights() -> Weights:
    """Return weights that count points alone."""
    weights = np.zeros((2, N_TERMS), np.float32)
    weights[:, [name in ("faith", "commerce", "culture") for name, _ in TERMS]] = 0.1
    return weights


if __name__ == "__main__":
    sys.exit(main())
