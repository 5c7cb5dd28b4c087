"""Fit the value of a trained policy anew to how its games against itself end.

python -m tokaido_env.learn.value_calibration runs/mine --out mine

Only the value's last layer changes, one number for each unit of the layer before and a bias:
the policy's moves stay the same bytes, and a forward pass costs what it did. With these units given
a value is a logistic regression of the result, which has one best answer: no learning rate, no
order of samples. It is fitted by Newton's method (McCullagh and Nelder 1989) to three quarters of
the games and compared with the old one on the others; a value that is no better is not written.
Where the units cannot tell the rounds, the likeliest value may be too high in some and too low in
others: the squared mean error of each three rounds is held down with it (`--balance`), which costs
next to no likelihood.

The policy plays its likeliest actions, as it does when it is measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.eval_tables import eval_tables_of
from tokaido_env.agents.inference import Floats
from tokaido_env.agents.network_inputs import encode_positions
from tokaido_env.agents.policy import BOARD_TENSOR, Policy, PolicyAgent
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.ladder import match_seed
from tokaido_env.arena.match import MAX_GAMES
from tokaido_env.arena.tournament import pair_seeds, play_selfplay
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.arguments import check_seed
from tokaido_env.core.board_features import board_blocks
from tokaido_env.core.state import copy_rows
from tokaido_env.files import check_outputs
from tokaido_env.learn.settings import CALIBRATION_GAMES, MIN_CALIBRATION_GAMES
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.report.progress import match_bar
from tokaido_env.trajectory import Trajectory, replay_chunks

MOST_BOARDS = 100
BALANCE = 10.0
ROUNDS = (1, 4, 7, 10, 13, 16, 19, 22, 25)
"""The first rounds of the groups in which a value is to be right; the last group has no end."""

_EVERY = 3  # of a game's decisions, which tell alike, one is kept
_HELD_OUT = 4  # one game in so many compares old and new
_MOST_BALANCE = 1000
_RIDGE = 1e-6  # weight of the penalty on squared weights, of units scaled to a spread of 1
_NEWTON_STEPS = 50
_CONVERGED = 1e-10  # of the loss
_ROWS = 2**14  # positions that are read at once

Values = npt.NDArray[np.float64]


class Positions(NamedTuple):
    """Decisions of games that a policy played against itself, n of them.

    Attributes:
        games: int64 (n,), the numbers of the games.
        rounds: int64 (n,), from 1.
        units: float32 (n, value_second), of the layer below the value.
        results: float64 (n,), of the player to decide: 1, 0 or -1.
    """

    games: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    units: Floats
    results: Values

    def part(self, rows: npt.NDArray[np.bool_]) -> Positions:
        """Return some of them."""
        units, results = self.units[rows], self.results[rows]
        return Positions(self.games[rows], self.rounds[rows], units, results)


class Refit(NamedTuple):
    """A policy with a new value, and its mean squared error on games that did not make it.

    Attributes:
        policy: with the new value.
        before, after: of the old value and of the new one.
        bias: of the new one there: mean of value less result.
        games: on which these are.
    """

    policy: Policy
    before: float
    after: float
    bias: float
    games: int

    @property
    def is_better(self) -> bool:
        """Whether the new value is nearer to the results."""
        return self.after < self.before

    def __str__(self) -> str:
        told = f"squared error {self.after:.4f}, it was {self.before:.4f}, bias {self.bias:+.4f}"
        return f"{told}, on {self.games:,} games that did not make it"


def refit(
    policy: Policy,
    boards: Boards = "shikoku",
    games: int = CALIBRATION_GAMES,
    seed: int = 0,
    progress: Callable[[int], None] = lambda games: None,
    balance: float = BALANCE,
) -> Refit:
    """Fit the value of a policy to the results of its games against itself.

    Args:
        policy: that plays; it stays as it is.
        boards: of the games: one, or a pool, with as many games on each board; of a pool of more
            than `MOST_BOARDS` so many from one end to the other.
        games: at least so many; from `MIN_CALIBRATION_GAMES`.
        seed: of their luck, 0 to 2**53 - 1.
        progress: called with the number of games finished now and then.
        balance: weight of the mean errors of each three rounds, 0 to 1,000: see `fit`.

    Raises:
        ValueError: if a number is out of range.
    """
    check_seed(seed)
    if not 0 <= balance <= _MOST_BALANCE:
        raise ValueError(f"balance: expected 0 to {_MOST_BALANCE:,}, got {balance}")
    check_games("games", games)
    pool = BoardPool.load(boards)
    positions = self_play(policy, pool, games, seed, progress)
    held_out: npt.NDArray[np.bool_] = positions.games % _HELD_OUT == 0
    weights = fit(positions.part(~held_out), balance)
    tensors = {
        "value.1.weight": weights[None, :-1].astype(np.float32),
        "value.1.bias": weights[-1:].astype(np.float32),
    }
    told = {"board": pool.name, "hash": pool.hash, "games": games, "seed": seed}
    told |= {"balance": balance}
    made = Policy(policy.tensors | tensors, policy.training | {"value": told})
    rest = positions.part(held_out)
    errors = [values_of(one, rest.units) - rest.results for one in (policy, made)]
    before, after = (float((error**2).mean()) for error in errors)
    return Refit(made, before, after, float(errors[1].mean()), len(np.unique(rest.games)))


def check_games(name: str, games: int) -> None:
    """Raise `RunError` unless a value can be fitted to so many games."""
    if not MIN_CALIBRATION_GAMES <= games <= MAX_GAMES:
        raise RunError(f"{name}: expected {MIN_CALIBRATION_GAMES} to {MAX_GAMES:,}, got {games:,}")


def self_play(
    policy: Policy, pool: BoardPool, games: int, seed: int, progress: Callable[[int], None]
) -> Positions:
    """Let a policy play both sides of games, board after board; return decisions of them."""
    chosen = range(0, len(pool), -(-len(pool) // MOST_BOARDS))
    agent, each, parts = PolicyAgent.from_policy(policy, "policy"), -(-games // len(chosen)), []
    for number, index in enumerate(chosen):
        board = pool[index]
        seeds = pair_seeds(match_seed(seed, "refit", board.name), each)
        for first in range(0, each, agent.games_at_once):
            some = seeds[first : first + agent.games_at_once]
            played, actions = play_selfplay(agent, board, some, progress)
            for which, part in replay_chunks(board, some, actions):
                results = 2 * played["result"][which] - 1
                parts.append(_read(policy, part, results, number * each + first + which))
    return Positions(*map(np.concatenate, zip(*parts, strict=True)))


def _read(
    policy: Policy, played: Trajectory, results: Values, numbers: npt.NDArray[np.int64]
) -> Positions:
    rows = np.flatnonzero(played.decided)[::_EVERY]
    own, board = played.games[rows], played.board
    units = [
        units_of(policy, board, copy_rows(played.states, some), played.legal[some])
        for some in _chunks(rows)
    ]
    signs = 1 - 2 * played.movers[rows].astype(np.int64)
    rounds = played.states["round"][rows].astype(np.int64)
    return Positions(numbers[own], rounds, np.concatenate(units), signs * results[own])


def _chunks(rows: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    return iter(np.split(rows, range(_ROWS, len(rows), _ROWS)))


def units_of(
    policy: Policy, board: Board, states: npt.NDArray[np.void], legal: npt.NDArray[np.uint64]
) -> Floats:
    """Return the layer below a policy's value, float32 (n, its units).

    Args:
        policy: with the layers.
        board: of all positions.
        states: `STATE` (n,), with a decision to take.
        legal: uint64 (n,), the legal actions as bits.
    """
    t = policy.tensors
    bias = t["trunk.0.bias"]
    if policy.uses_board_features:
        bias = bias + board_blocks(board.record)[0] @ t[BOARD_TENSOR].T
    here = np.zeros(len(states), np.int64)
    inputs, _ = encode_positions(board.record, eval_tables_of(board.record), here, states, legal)
    weight = t["value.0.weight"]
    first = np.maximum(inputs @ t["trunk.0.weight"].T + bias, 0)[:, -weight.shape[1] :]
    units: Floats = np.maximum(first @ weight.T + t["value.0.bias"], 0)
    return units


def values_of(policy: Policy, units: Floats) -> Values:
    """Return the values of positions whose units are known, float64 (n,)."""
    weight, bias = (policy.tensors[f"value.1.{name}"] for name in ("weight", "bias"))
    values: Values = np.tanh((units @ weight[0] + bias[0]).astype(float))
    return values


class _Task(NamedTuple):
    """What is fitted: units with a column of ones, as wins 0 to 1, and which rounds they are of."""

    x: Values
    y: Values
    groups: npt.NDArray[np.int64]
    balance: float

    def biases(self, chance: Values) -> Values:
        """Return the mean error of each group, 0 of one that is empty."""
        return np.bincount(self.groups, chance - self.y) / self.sizes()

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return how many positions each group has, at least 1."""
        return np.maximum(np.bincount(self.groups), 1)


def fit(positions: Positions, balance: float = BALANCE) -> Values:
    """Return the weights of the value's layer, its bias last, that make the results likeliest.

    tanh(x) is 2 / (1 + exp(-2 x)) - 1, so that (1 + value) / 2 is a chance; a shared victory counts
    as half a win. To the mean of -log likelihood `balance` / 2 times the squared mean errors of
    each three rounds are added.
    """
    units = positions.units.astype(np.float64)
    spread = units.std(axis=0)
    scale = np.append(np.where(spread > 0, spread, 1.0), 1.0)
    x = np.concatenate([units, np.ones((len(units), 1))], axis=1) / scale
    groups = np.digitize(positions.rounds, ROUNDS) - 1
    task = _Task(x, (1 + positions.results) / 2, groups, balance)
    weights = np.zeros(x.shape[1])
    loss = _loss(task, weights)
    for _ in range(_NEWTON_STEPS):
        step = _newton_step(task, weights)
        lower = _loss(task, weights - step)
        while lower > loss and np.abs(step).max() > _CONVERGED:
            step /= 2
            lower = _loss(task, weights - step)
        if loss - lower < _CONVERGED:
            break
        weights, loss = weights - step, lower
    found: Values = weights / scale / 2
    return found


def _loss(task: _Task, weights: Values) -> float:
    z = task.x @ weights
    unlikely = float(np.mean(np.logaddexp(0, z) - task.y * z))
    biases = task.biases(_chance(z))
    held = _RIDGE * float(weights @ weights) + task.balance * float(biases @ biases)
    return unlikely + held / 2


def _newton_step(task: _Task, weights: Values) -> Values:
    """Return the step of Newton's method; of Gauss's for the mean errors."""
    x, y, groups, balance = task
    chance = _chance(x @ weights)
    slope = x * (chance * (1 - chance))[:, None]
    gradient = x.T @ (chance - y) / len(y) + _RIDGE * weights
    curvature = x.T @ slope / len(y) + _RIDGE * np.eye(len(weights))
    if balance:
        sums = [slope[groups == group].sum(axis=0) for group in range(groups.max() + 1)]
        slopes = np.stack(sums) / task.sizes()[:, None]
        gradient += balance * task.biases(chance) @ slopes
        curvature += balance * slopes.T @ slopes
    step: Values = np.linalg.solve(curvature, gradient).astype(float)
    return step


def _chance(z: Values) -> Values:
    chance: Values = (1 + np.tanh(z / 2)) / 2
    return chance


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        check_outputs(options.out, read=[options.board])
        policy = Policy.load(options.policy)
        with match_bar("refit", options.games, 0) as progress:
            made = refit(
                policy, options.board, options.games, options.seed, progress, options.balance
            )
        if not made.is_better:
            raise RunError(f"{options.policy}: no better value was found: {made}: nothing written")
        made.policy.save(options.out)
        print(f"{options.out}: {made}")
    except (ValueError, OSError, AgentFailed) as error:
        print(f"refit: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("refit: stopped, nothing written", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tokaido_env.learn.value_calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("policy", type=Path, metavar="POLICY", help="a policy file, or a run folder for its best")
    add("--out", type=Path, required=True, metavar="FILE", help="policy file to write")
    add(
        "--games",
        type=int,
        default=CALIBRATION_GAMES,
        help=f"against itself, from {MIN_CALIBRATION_GAMES} ({CALIBRATION_GAMES})",
    )
    add("--seed", type=int, default=0, help="of their luck, 0 to 2**53 - 1 (0)")
    add(
        "--balance",
        type=float,
        default=BALANCE,
        help=f"how much the mean error of each three rounds weighs, 0 to 1,000 ({BALANCE:g})",
    )
    add("--board", default="shikoku", help="a built-in board, a file, or a pool (shikoku)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
