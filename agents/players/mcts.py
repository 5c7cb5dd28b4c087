"""Monte Carlo tree search with explicit chance nodes, compiled, the tree in arrays.

One simulation walks from the root to a node that it adds, and backs the node's value up:

- at a decision by UCB1 (Kocsis and Szepesvári 2006), each player for itself, however often it
  decides in a row;
- at chance through outcomes sampled with the odds of the rules, as `tree` tells.

The search samples its own luck from the key of the decision: it never sees the game's.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.agent import Agent
from tokaido_env.agents.players.heuristic import evaluate, guides_of
from tokaido_env.agents.players.tree import (
    add_node,
    follow,
    make_trees,
    mean_value,
    most_visited,
    note_visits,
    sample_chance,
    shares,
)
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bits import lowest
from tokaido_env.core.bots import random_action
from tokaido_env.core.jit import int64, kernel, parallel, subroutine
from tokaido_env.core.luck import begin_luck, hash_bits, settle
from tokaido_env.core.rules import Row, apply, legal
from tokaido_env.core.state import NOBODY, OVER

FULL = 400
"""Rounds of a playout that goes on to the end of the game: no game has more."""

_EXPLORATION = np.float32(0.2)
_PLAYOUT, _PICK = 21, 22  # purposes of random numbers

_TABLE = 4096
_ROOT_OF_LOG = np.sqrt(np.log(np.arange(1, _TABLE + 1))).astype(np.float32)

_SIMS_AT_ONCE = 1 << 20  # in one call of the kernel, so that Ctrl-C is heard
_SIMS_OF_MATCH = 1 << 18  # in one round of decisions of all games of a match


class MctsAgent(Agent):
    """Monte Carlo tree search with a fixed number of simulations for each decision.

    Args:
        sims: simulations for a decision, from 1.
        rollout: what a new node is worth: 0 its evaluation, n that after n rounds of random play,
            "full" the end of a random game.
    """

    def __init__(self, sims: int = 400, rollout: int | str = 0) -> None:
        self.sims = sims
        self.rollout = FULL if rollout == "full" else int(rollout)
        self.spec = f"mcts:sims={sims}" + (f",rollout={rollout}" if self.rollout else "")
        self.games_at_once = max(16, min(1024, _SIMS_OF_MATCH // sims // 2 * 2))

    def act(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        return self.search(boards, guides_of(boards), states, legal, keys)[0]

    def judge(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the shares of the visits and the value, as `Agent.judge`."""
        _, values, visits = self.search(boards, guides_of(boards), states, legal, keys)
        return shares(visits), values

    def search(
        self,
        boards: npt.NDArray[np.void],
        guides: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.int32]]:
        """Search n positions.

        Args:
            boards: `BOARD` (1,) for all, or (n,).
            guides: `GUIDE`, as many.
            states: `STATE` (n,), with a decision to take.
            legal: uint64 (n,), not 0.
            keys: uint64 (n,).

        Returns:
            The most visited actions, int64 (n,), the results that player_0 can expect, float32
            (n,), in [-1, 1], and how often each action was visited, int32 (n, N_ACTIONS).
        """
        actions = np.empty(len(states), np.int64)
        values = np.empty(len(states), np.float32)
        visits = np.zeros((len(states), N_ACTIONS), np.int32)
        trees = make_trees(min(numba.get_num_threads(), len(states)), self.sims + 2)
        step = max(1, _SIMS_AT_ONCE // self.sims)
        for first in range(0, len(states), step):
            part = slice(first, first + step)
            each = part if len(boards) > 1 else slice(None)
            _search_all(
                *trees,
                *(boards[each], guides[each], states[part], legal[part], keys[part]),
                *(self.sims, self.rollout, actions[part], values[part], visits[part]),
            )
        return actions, values, visits


def _search_each(
    desks: Any,
    nodes: Any,
    edges: Any,
    states: Any,
    paths: Any,
    boards: Any,
    guides: Any,
    positions: Any,
    masks: Any,
    keys: Any,
    sims: int,
    rollout: int,
    actions: Any,
    values: Any,
    visits: Any,
) -> None:
    """Search n positions; worker w takes every len(desks)-th from w, in its own tree."""
    for w in prange(len(desks)):
        for i in range(w, len(actions), len(desks)):
            actions[i], values[i] = _search(
                boards[i if len(boards) > 1 else 0],
                guides[i if len(boards) > 1 else 0],
                positions[i],
                masks[i],
                keys[i],
                sims,
                rollout,
                nodes[w],
                edges[w],
                states[w],
                paths[w],
                desks[w],
                visits[i],
            )


_search_all: Any = parallel(_search_each, at_least=2)


@subroutine
def _search(
    board: Row,
    guide: Row,
    position: Row,
    mask: np.uint64,
    key: np.uint64,
    sims: int,
    rollout: int,
    nodes: Any,
    edges: Any,
    states: Any,
    path: Any,
    desk: Row,
    visits: Any,
) -> tuple[int, np.float32]:
    """Return the action of the root that was visited most, and the root's value for player_0.

    Ties go to the lowest id. A single legal action is not searched.
    """
    desk["nodes"] = 0
    desk["edges"] = 0
    states[0] = position
    add_node(mask, nodes, edges, states, desk)
    root = nodes[0]
    root["value"] = evaluate(board, guide, position, desk["scratch"])
    if int64(root["edges"]) == 1:
        visits[lowest(mask)] = sims
        return lowest(mask), root["value"]
    for sim in range(sims):
        leaf, depth = _walk(board, key, nodes, edges, states, path, desk)
        node = nodes[leaf]
        if int64(node["visits"]) == 0:
            bits = hash_bits(key, _PLAYOUT, 0, sim)
            node["value"] = _worth(board, guide, states[leaf], rollout, bits, desk)
        node["visits"] += 1
        for d in range(depth):
            edge = edges[path[d]]
            edge["visits"] += 1
            edge["total"] += node["value"]
    note_visits(root, edges, visits)
    return most_visited(root, edges), mean_value(root, edges)


@kernel
def _walk(
    board: Row, key: np.uint64, nodes: Any, edges: Any, states: Any, path: Any, desk: Row
) -> tuple[int, int]:
    """Go from the root to a new node or an end; return it and the number of decisions before."""
    at = 0
    depth = 0
    while True:
        node = nodes[at]
        if int(node["over"]):
            return at, depth
        visits = int64(node["visits"])
        node["visits"] = visits + 1
        new = int64(desk["nodes"])
        if int(node["player"]) == NOBODY:
            at = sample_chance(board, key, at, visits, nodes, edges, states, desk)
        else:
            edge = _select(node, visits, edges)
            path[depth] = edge
            depth += 1
            at = follow(board, at, edges[edge], nodes, edges, states, desk)
        if at == new:
            return at, depth


@kernel
def _select(node: Row, visits: int, edges: Any) -> int:
    """Return the edge with the highest upper bound for the player who decides (UCB1).

    An edge not visited yet counts as if its first value had been the node's own.
    """
    sign = np.float32(1 - 2 * int64(node["player"]))
    own = sign * node["value"]
    explore = _EXPLORATION * _ROOT_OF_LOG[min(visits, _TABLE - 1)]
    first = int64(node["first"])
    choice = first
    best = np.float32(-np.inf)
    for k in range(first, first + int64(node["edges"])):
        edge = edges[k]
        bound = own + explore
        if int64(edge["visits"]) > 0:
            share = np.float32(1.0) / np.float32(edge["visits"])
            bound = sign * edge["total"] * share + explore * np.sqrt(share)
        if bound > best:
            best = bound
            choice = k
    return choice


@subroutine
def _worth(
    board: Row, guide: Row, leaf: Row, rollout: int, bits: np.uint64, desk: Row
) -> np.float32:
    """Return the value of a new node for player_0: its evaluation, or that after a playout."""
    scratch = desk["scratch"]
    if rollout == 0 or int(leaf["phase"]) == OVER:
        return evaluate(board, guide, leaf, scratch)
    scratch["states"][0] = leaf
    s = scratch["states"][0]
    luck = desk["luck"]
    begin_luck(luck, bits)
    last = int64(s["round"]) + rollout
    mask = settle(board, s, luck, legal(board, s))
    number = 0
    while mask != np.uint64(0) and (int64(s["round"]) <= last or rollout == FULL):
        action = random_action(mask, hash_bits(bits, _PICK, 0, number))
        mask = settle(board, s, luck, apply(board, s, action))
        number += 1
    return evaluate(board, guide, s, scratch)
