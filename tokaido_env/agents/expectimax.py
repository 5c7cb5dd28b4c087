"""Expectimax search to a depth of a few picks, with exact odds of rolls.

The depth counts picks: a die taken, its effect, and the repeat with the hot spring token. Depth 1
searches the own pick, depth 2 the reply too, and so on, into the next round. Each player takes the
best action for itself, also several times in a row. After the last pick the heuristic evaluates.

- Rolls are exact: all different rolls count by their odds.
- Of the wares or paintings that come up together, the first is exact. The others are sampled from
  the key of the decision, with the same numbers for all actions, so that the comparison is fair.
- Inside the search, players return wares one by one by the evaluation alone.

The search cuts off branches that cannot change the choice: alpha-beta at decisions, and at chance
Star1 (Ballard 1983, "The *-minimax search procedure for trees containing chance nodes"), which uses
that results lie in [-1, 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Actions, Agent, BoardRows, Keys, Legal, States
from tokaido_env.agents.inference import PositionBatch
from tokaido_env.core.bitmask import highest_action
from tokaido_env.core.constants import Mask, Row
from tokaido_env.core.jit import int64, kernel, pooled, subroutine
from tokaido_env.core.rng import LUCK, hash_bits, init_luck, sample
from tokaido_env.core.rules import MAX_OUTCOMES, apply, apply_outcome, outcome_weights
from tokaido_env.core.state import DISCARD, DRAW, MOVE, NO_PLAYER, OVER, REVEAL, ROLL, STATE
from tokaido_env.features.eval_tables import eval_tables_of
from tokaido_env.features.evaluation import SCRATCH, best_action, evaluate

MAX_DEPTH = 4

# A pick is at most a move, an effect, chance and four wares returned, and all of that again with
# the hot spring token: 14 rows. Four picks, a roll and the root.
_MAX_PATH = 60

# A position on the path being searched. Its value for player_0 matters only between the two bounds,
# which close in as the search goes through actions or outcomes.
NODE = np.dtype(
    [
        ("low", "<f8"),  # player_0 can get at least this, here or in another branch
        ("high", "<f8"),  # player_1 can hold it to this, here or in another branch
        ("total", "<f8"),  # at chance: sum of the values so far, by weight
        ("rest", "<f8"),  # at chance: weight of the outcomes not searched yet
        ("whole", "<f8"),  # at chance: weight of all outcomes
        ("odds", "<i8", MAX_OUTCOMES),  # at chance: weights of the outcomes
        ("mask", "<u8"),  # actions not searched yet
        ("picks", "<i4"),  # picks to search after the one that has begun
        ("player", "i1"),  # the player who decides; NO_PLAYER at chance and at a leaf
        ("leaf", "i1"),
        ("move", "<i2"),  # the action or outcome being searched, -1 before the first
        ("best", "<i2"),  # the best action so far
    ]
)
WORK = np.dtype(
    [
        ("states", STATE, _MAX_PATH),  # the path being searched, the root first
        ("nodes", NODE, _MAX_PATH),
        ("luck", LUCK),
        ("scratch", SCRATCH),
    ]
)
"""The memory of a search."""

_SAMPLED = 30  # purpose of random numbers
_INFINITY = 2.0  # above any result
_GAMES_AT_ONCE = (4096, 1024, 128, 16)  # by depth; Ctrl-C takes effect between calls


class ExpectimaxAgent(Agent):
    """Takes the best action by a search of a fixed number of picks.

    Args:
        depth: the number of picks, 1 to `MAX_DEPTH`; a pick that has begun counts.
    """

    may_fail = False

    def __init__(self, depth: int = 2) -> None:
        self.depth = depth
        self.spec = f"expectimax:depth={depth}"
        self.games_at_once = _GAMES_AT_ONCE[depth - 1]

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`."""
        return self.search(boards, states, legal, keys)[0]

    def search(
        self, boards: BoardRows, states: States, legal: Legal, keys: Keys
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return actions, int64 (n,), and the expected results of player_0, float64 (n,).

        The arguments are those of `act`. Ties go to the highest id. A single legal action is not
        searched; its value is NaN.
        """
        actions, values = np.empty(len(states), np.int64), np.empty(len(states))
        positions = PositionBatch(boards, eval_tables_of(boards), states, legal)
        for first in range(0, len(states), self.games_at_once):
            part = slice(first, first + self.games_at_once)
            found = actions[part], values[part]
            _search_each(len(keys[part]), *found, positions.part(part), keys[part], self.depth)
        return actions, values


@pooled(at_least=2)
def _search_each(
    first: int,
    last: int,
    actions: Any,
    values: Any,
    positions: PositionBatch,
    keys: Any,
    depth: int,
) -> None:
    """Write the best actions of games and their values."""
    work = np.empty(1, WORK)[0]
    for i in range(first, last):
        which = i if len(positions.boards) > 1 else 0
        board, tables = positions.boards[which], positions.eval_tables[which]
        state, mask = positions.states[i], positions.legal[i]
        actions[i], values[i] = _search(board, tables, state, mask, keys[i], depth, work)


@subroutine
def _search(
    board: Row, tables: Row, position: Row, mask: Mask, key: np.uint64, depth: int, work: Row
) -> tuple[int, float]:
    """Return the best action at a decision, and its value for player_0."""
    if mask & (mask - np.uint64(1)) == np.uint64(0):
        return highest_action(mask), np.nan
    nodes = work["nodes"]
    states = work["states"]
    states[0] = position
    picks = depth - int64(int(position["phase"]) != MOVE)  # a pick that has begun counts
    _enter(board, states[0], nodes[0], mask, picks, -_INFINITY, _INFINITY)
    at = 0
    while True:
        node = nodes[at]
        if int(node["leaf"]):
            value = float(evaluate(board, tables, states[at], work["scratch"]))
        elif _enter_child(board, tables, key, work, at):
            at += 1
            continue
        elif at == 0:
            return int64(node["best"]), _value(node)
        else:
            value = _value(node)
        at -= 1
        _back_up(nodes[at], value)


@kernel
def _enter(board: Row, s: Row, node: Row, mask: Mask, picks: int, low: float, high: float) -> None:
    """Begin to search a position.

    Args:
        mask: the legal actions as bits.
        picks: the picks to search from this position, without one that has begun.
        low, high: the bounds between which the value matters.
    """
    phase = int(s["phase"])
    node["low"] = low
    node["high"] = high
    node["mask"] = mask
    node["player"] = s["player"]
    node["picks"] = picks - int64(phase == MOVE)
    node["leaf"] = phase == OVER or (picks == 0 and phase in (MOVE, ROLL))
    node["move"] = -1
    if mask == np.uint64(0) and not int(node["leaf"]):
        _enter_chance(board, s, node)


@subroutine
def _enter_chance(board: Row, s: Row, node: Row) -> None:
    whole = 0
    for outcome in range(outcome_weights(board, s, node["odds"])):
        whole += int64(node["odds"][outcome])
    node["total"] = 0.0
    node["whole"] = whole
    node["rest"] = whole


@kernel
def _enter_child(board: Row, tables: Row, key: np.uint64, work: Row, at: int) -> bool:
    """Enter the next action or outcome of a node; return False if its value is known or a bound."""
    node = work["nodes"][at]
    if node["low"] >= node["high"]:
        return False
    if int(node["player"]) == NO_PLAYER:
        return node["rest"] > 0.0 and _enter_outcome(board, key, work, at)
    return node["mask"] != np.uint64(0) and _enter_action(board, tables, work, at)


@subroutine
def _enter_action(board: Row, tables: Row, work: Row, at: int) -> bool:
    node = work["nodes"][at]
    s = work["states"][at]
    mask = node["mask"]
    action = highest_action(mask)  # usually the best, which makes cut-offs likely
    node["mask"] = mask ^ np.uint64(1) << np.uint64(action)
    if int(s["phase"]) == DISCARD and at > 0:
        action = best_action(board, tables, s, mask, work["scratch"])
        node["mask"] = 0
    node["move"] = action
    work["states"][at + 1] = s
    after = work["states"][at + 1]
    mask = apply(board, after, action)
    _enter(
        board, after, work["nodes"][at + 1], mask, int64(node["picks"]), node["low"], node["high"]
    )
    return True


@subroutine
def _enter_outcome(board: Row, key: np.uint64, work: Row, at: int) -> bool:
    """Enter the next outcome; sample the wares or paintings that come up after the first."""
    node = work["nodes"][at]
    outcome = int64(node["move"]) + 1
    while int(node["odds"][outcome]) == 0:
        outcome += 1
    node["move"] = outcome
    node["rest"] -= node["odds"][outcome]
    low, high = _outcome_bounds(node)
    work["states"][at + 1] = work["states"][at]
    after = work["states"][at + 1]
    mask = apply_outcome(board, after, outcome)
    luck = work["luck"]
    init_luck(luck, hash_bits(key, _SAMPLED, int64(node["picks"]), outcome))
    while int(after["phase"]) in (DRAW, REVEAL):
        mask = apply_outcome(board, after, sample(board, after, luck))
    _enter(board, after, work["nodes"][at + 1], mask, int64(node["picks"]), low, high)
    return True


@kernel
def _back_up(node: Row, value: float) -> None:
    """Back up the value of the child that was entered last."""
    player = int(node["player"])
    if player == NO_PLAYER:
        _back_up_outcome(node, value)
    elif player == 0 and value > node["low"]:
        node["low"] = value
        node["best"] = node["move"]
    elif player == 1 and value < node["high"]:
        node["high"] = value
        node["best"] = node["move"]


@kernel
def _back_up_outcome(node: Row, value: float) -> None:
    """Add a value to the mean; close the bounds if the mean cannot lie between them."""
    low, high = _outcome_bounds(node)
    if value <= low:
        node["high"] = node["low"]
    elif value >= high:
        node["low"] = node["high"]
    node["total"] += value * np.float64(node["odds"][node["move"]])


@kernel
def _outcome_bounds(node: Row) -> tuple[float, float]:
    """Return the values of the current outcome between which the mean can lie in the bounds.

    The outcomes not searched yet have values from -1 to 1 (Star1).
    """
    weight = np.float64(node["odds"][node["move"]])
    low = (node["whole"] * node["low"] - node["total"] - node["rest"]) / weight
    high = (node["whole"] * node["high"] - node["total"] + node["rest"]) / weight
    return low, high


@kernel
def _value(node: Row) -> float:
    """Return the value of a node after its search, or the bound that the value cannot pass."""
    player = int(node["player"])
    if player == NO_PLAYER and node["low"] < node["high"]:
        return float(node["total"] / node["whole"])
    return float(node["high"] if player == 1 else node["low"])
