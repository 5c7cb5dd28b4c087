"""Calibrate a trained policy's value to the results of its games against itself.

    result = calibrate_value(Policy.load("runs/mine/best"))
    if result.is_better:
        result.policy.save("mine.safetensors")

12,000 games of a policy of width 256 take about a minute on two cores.

Only the value's last layer changes, one weight per unit of the layer before and a bias: the
policy's moves stay the same bytes. Given these units, the value is a logistic regression of the
result, which has one optimum: no learning rate, no order of samples. Newton's method
(`scipy.optimize`) fits it to three quarters of the games; the others compare it with the old value.
Where the units do not identify the round, the most likely value may be too high in some rounds and
too low in others: a penalty on the squared mean error of each three rounds (`BIAS_PENALTY`) reduces
that and costs hardly any likelihood.

The policy plays its most likely actions, as in evaluations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.policy import BOARD_TENSOR, Policy, PolicyAgent
from tokaido_env.agents.weights import Floats
from tokaido_env.arena.match import MAX_GAMES, match_seed
from tokaido_env.arena.tournament import pair_seeds, play_selfplay
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.arguments import check_seed
from tokaido_env.core.board_features import board_features_of
from tokaido_env.core.state import copy_rows
from tokaido_env.features.eval_tables import eval_tables_of
from tokaido_env.features.network_inputs import encode_positions
from tokaido_env.learn.settings import CALIBRATION_GAMES, MIN_CALIBRATION_GAMES
from tokaido_env.learn.settings_schema import RunError
from tokaido_env.trajectory import Trajectory, replay_chunks

MAX_BOARDS = 100
BIAS_PENALTY = 10.0  # not tuned
ROUNDS = (1, 4, 7, 10, 13, 16, 19, 22, 25)
"""The first rounds of the groups with a mean error each; the last group is open-ended."""

_STRIDE = 3  # every third decision of a game is used: neighbours carry the same information
_HELD_OUT = 4  # every fourth game compares old and new value
_RIDGE = 1e-6  # weight of the penalty on squared weights, for units of standard deviation 1
_CONVERGED = {"gtol": 1e-8}
_ROWS = 2**14  # positions per pass

Values = npt.NDArray[np.float64]


class Sample(NamedTuple):
    """Decisions of self-play games, n of them.

    Attributes:
        games: int64 (n,), index of the game.
        rounds: int64 (n,), from 1.
        units: float32 (n, value_second), outputs of the layer before the value.
        results: float64 (n,), for the player to decide: 1, 0 or -1.
    """

    games: npt.NDArray[np.int64]
    rounds: npt.NDArray[np.int64]
    units: Floats
    results: Values

    def select(self, rows: npt.NDArray[np.bool_]) -> Sample:
        """Return the decisions where `rows`, bool (n,), is True."""
        units, results = self.units[rows], self.results[rows]
        return Sample(self.games[rows], self.rounds[rows], units, results)


class CalibratedPolicy(NamedTuple):
    """A policy with a calibrated value, and its errors on held-out games.

    Attributes:
        policy: the policy with the new value.
        before: mean squared error of the old value.
        after: mean squared error of the new value.
        bias: mean of new value minus result.
        games: number of held-out games.
    """

    policy: Policy
    before: float
    after: float
    bias: float
    games: int

    @property
    def is_better(self) -> bool:
        """Whether the new value has the smaller squared error."""
        return self.after < self.before

    def __str__(self) -> str:
        errors = (
            f"squared error {self.after:.4f} (before: {self.before:.4f}), bias {self.bias:+.4f}"
        )
        return f"{errors}, on {self.games:,} held-out games"


def calibrate_value(
    policy: Policy,
    boards: Boards = "shikoku",
    games: int = CALIBRATION_GAMES,
    seed: int = 0,
) -> CalibratedPolicy:
    """Fit a policy's value to the results of its games against itself.

    Args:
        policy: plays the games; it stays as it is.
        boards: a board, or a pool, with as many games on each board; at most `MAX_BOARDS` boards,
            evenly spaced in the pool.
        games: the least number of games, from `MIN_CALIBRATION_GAMES`.
        seed: of the games, as for `Game`.

    Raises:
        ValueError: if a number is out of range.
    """
    seed = check_seed(seed)
    if not MIN_CALIBRATION_GAMES <= games <= MAX_GAMES:
        limits = f"{MIN_CALIBRATION_GAMES} to {MAX_GAMES:,}"
        raise RunError(f"games: expected {limits}, got {games:,}")
    pool = BoardPool.load(boards)
    sample = self_play(policy, pool, games, seed)
    held_out: npt.NDArray[np.bool_] = sample.games % _HELD_OUT == 0
    weights = fit(sample.select(~held_out))
    tensors = {
        "value.1.weight": weights[None, :-1].astype(np.float32),
        "value.1.bias": weights[-1:].astype(np.float32),
    }
    summary = {"board": pool.name, "hash": pool.hash, "games": games, "seed": seed}
    summary |= {"bias_penalty": BIAS_PENALTY}
    calibrated = Policy(policy.tensors | tensors, policy.training | {"value": summary})
    rest = sample.select(held_out)
    errors = [values_of(each, rest.units) - rest.results for each in (policy, calibrated)]
    before, after = (float((error**2).mean()) for error in errors)
    bias, count = float(errors[1].mean()), len(np.unique(rest.games))
    return CalibratedPolicy(calibrated, before, after, bias, count)


def self_play(policy: Policy, pool: BoardPool, games: int, seed: int) -> Sample:
    """Play games of a policy against itself, board after board; return some of the decisions."""
    chosen = range(0, len(pool), -(-len(pool) // MAX_BOARDS))
    agent, each, parts = PolicyAgent.from_policy(policy, "policy"), -(-games // len(chosen)), []
    for number, index in enumerate(chosen):
        board = pool[index]
        seeds = pair_seeds(match_seed(seed, "refit", board.name), each)
        for first in range(0, each, agent.games_at_once):
            batch = seeds[first : first + agent.games_at_once]
            played, actions = play_selfplay(agent, board, batch)
            for which, part in replay_chunks(board, batch, actions):
                results = 2 * played["result"][which] - 1
                parts.append(_sample_of(policy, part, results, number * each + first + which))
    return Sample(*map(np.concatenate, zip(*parts, strict=True)))


def _sample_of(
    policy: Policy, played: Trajectory, results: Values, numbers: npt.NDArray[np.int64]
) -> Sample:
    rows = np.flatnonzero(played.decided)[::_STRIDE]
    games, board = played.games[rows], played.board
    units = [
        units_of(policy, board, copy_rows(played.states, chunk), played.legal[chunk])
        for chunk in np.split(rows, range(_ROWS, len(rows), _ROWS))
    ]
    signs = 1 - 2 * played.movers[rows].astype(np.int64)
    rounds = played.states["round"][rows].astype(np.int64)
    return Sample(numbers[games], rounds, np.concatenate(units), signs * results[games])


def units_of(
    policy: Policy, board: Board, states: npt.NDArray[np.void], legal: npt.NDArray[np.uint64]
) -> Floats:
    """Return the outputs of the layer before a policy's value, float32 (n, value_second).

    Args:
        policy: has the layers.
        board: the board of all positions.
        states: `STATE` (n,), with a decision to take.
        legal: uint64 (n,), the legal actions as bits.
    """
    t = policy.tensors
    bias = t["trunk.0.bias"]
    if policy.uses_board_features:
        bias = bias + board_features_of(board.record)[0] @ t[BOARD_TENSOR].T
    which = np.zeros(len(states), np.int64)
    inputs, _ = encode_positions(board.record, eval_tables_of(board.record), which, states, legal)
    weight = t["value.0.weight"]
    first = np.maximum(inputs @ t["trunk.0.weight"].T + bias, 0)[:, -weight.shape[1] :]
    units: Floats = np.maximum(first @ weight.T + t["value.0.bias"], 0)
    return units


def values_of(policy: Policy, units: Floats) -> Values:
    """Return the values of a policy by the units before its value, float64 (n,) in [-1, 1].

    Args:
        policy: has the layer of the value.
        units: float32 (n, value_second), from `units_of`.
    """
    weight, bias = (policy.tensors[f"value.1.{name}"] for name in ("weight", "bias"))
    values: Values = np.tanh((units @ weight[0] + bias[0]).astype(float))
    return values


class _Regression(NamedTuple):
    """Data of the logistic regression: scaled units with a column of ones, wins, round groups."""

    x: Values
    y: Values
    groups: npt.NDArray[np.int64]
    bias_penalty: float

    def biases(self, wins: Values) -> Values:
        """Return the mean error of each group; 0 for an empty one."""
        return np.bincount(self.groups, wins - self.y) / self.sizes()

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of positions in each group, at least 1."""
        return np.maximum(np.bincount(self.groups), 1)


def fit(sample: Sample, bias_penalty: float = BIAS_PENALTY) -> Values:
    """Return the most likely weights of the value's layer, float64 (value_second + 1,), bias last.

    tanh(x) is 2 / (1 + exp(-2 x)) - 1, so that (1 + value) / 2 is a win probability; a shared
    victory counts as half a win. The loss is the mean negative log likelihood plus
    `bias_penalty` / 2 times the sum of the squared mean errors of each three rounds.

    Args:
        sample: the decisions.
        bias_penalty: weight of the squared mean errors.
    """
    from scipy.optimize import minimize

    units = sample.units.astype(np.float64)
    spread = units.std(axis=0)
    scale = np.append(np.where(spread > 0, spread, 1.0), 1.0)
    x = np.concatenate([units, np.ones((len(units), 1))], axis=1) / scale
    groups = np.digitize(sample.rounds, ROUNDS) - 1
    task = _Regression(x, (1 + sample.results) / 2, groups, bias_penalty)
    start = np.zeros(x.shape[1])
    optimum = minimize(_loss, start, (task,), "trust-exact", True, _curvature, options=_CONVERGED)
    found: Values = optimum.x / scale / 2
    return found


def _loss(weights: Values, task: _Regression) -> tuple[float, Values]:
    """Return the loss of scaled weights and its gradient."""
    x, y, groups, bias_penalty = task
    z = x @ weights
    wins = (1 + np.tanh(z / 2)) / 2
    biases = task.biases(wins)
    penalty = _RIDGE * float(weights @ weights) + bias_penalty * float(biases @ biases)
    slopes = bias_penalty * (biases / task.sizes())[groups] * wins * (1 - wins)
    gradient: Values = x.T @ ((wins - y) / len(y) + slopes) + _RIDGE * weights
    return float(np.mean(np.logaddexp(0, z) - y * z)) + penalty / 2, gradient


def _curvature(weights: Values, task: _Regression) -> Values:
    """Return the second derivatives of `_loss`.

    The units are correlated: with gradients alone, the fit takes thousands of steps.
    """
    x, y, groups, bias_penalty = task
    wins = (1 + np.tanh(x @ weights / 2)) / 2
    slopes = wins * (1 - wins)
    sizes = task.sizes()
    pulls = bias_penalty * (task.biases(wins) / sizes)[groups] * (1 - 2 * wins)
    curved: Values = (x.T * (slopes * (1 / len(y) + pulls))) @ x
    shifts = np.stack([slopes[groups == one] @ x[groups == one] for one in range(len(sizes))])
    shifts /= sizes[:, None]
    curved += bias_penalty * shifts.T @ shifts + _RIDGE * np.eye(x.shape[1])
    return curved
