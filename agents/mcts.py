"""Monte Carlo tree search with explicit chance nodes, compiled, the tree in arrays.

One simulation walks from the root to a node that it adds, and backs the node's value up:

- at a decision by UCB1 (Kocsis and Szepesvári 2006), each player for itself, however often it
  decides in a row;
- at chance through outcomes sampled with the odds of the rules. A node that was visited n times has
  about n**0.45 samples (progressive widening, Couëtoux et al. 2011), visited in turn, so that what
  lies behind them is searched and not only sampled. The j-th roll of a round is the same for all
  nodes of that round: actions are compared by equal dice.

The search samples its own luck from the key of the decision: it never sees the game's.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.actions import N_ACTIONS
from tokaido_env.agents.heuristic import SCRATCH, evaluate, guides_of
from tokaido_env.bots import lowest, random_action
from tokaido_env.jit import int64, kernel, parallel, subroutine
from tokaido_env.luck import LUCK, begin_luck, hash_bits, settle
from tokaido_env.rules import Row, apply, legal
from tokaido_env.state import NOBODY, OVER, STATE

NODE = np.dtype(
    [
        ("first", "<i4"),  # of its edges
        ("edges", "<i4"),
        ("room", "<i4"),  # edges there is room for, at chance
        ("visits", "<i4"),
        ("value", "<f4"),  # when it was new, for player_0
        ("player", "i1"),  # who decides; NOBODY at chance and at the end
        ("over", "i1"),
    ]
)
EDGE = np.dtype(
    [
        ("move", "<i4"),  # an action; at chance a hash of the position that the sample led to
        ("visits", "<i4"),
        ("total", "<f4"),  # of the values behind it, for player_0
        ("node", "<i4"),  # NO_NODE until visited
    ]
)
NO_NODE = -1

# What a search writes to besides its tree.
DESK = np.dtype(
    [
        ("nodes", "<i8"),  # of the tree so far
        ("edges", "<i8"),
        ("luck", LUCK),
        ("scratch", SCRATCH),
    ]
)

FULL = 400
"""Rounds of a playout that goes on to the end of the game: no game has more."""

_EXPLORATION = np.float32(0.2)
_FIRST_ROOM = 4  # samples of a chance node before it moves to a larger place
_EDGES_PER_NODE = N_ACTIONS + 15  # room for them: what is not used costs no memory
_SEARCH, _PLAYOUT, _PICK = 20, 21, 22  # purposes of random numbers

# After how many visits a chance node gets its k-th sample.
_WIDENING, _POWER = 0.7, 0.45
_VISITS_OF_SAMPLE = np.ceil((np.arange(1024) / _WIDENING) ** (1 / _POWER)).astype(np.int64)

_TABLE = 4096
_ROOT_OF_LOG = np.sqrt(np.log(np.arange(1, _TABLE + 1))).astype(np.float32)

_SIMS_AT_ONCE = 1 << 20  # in one call of the kernel, so that Ctrl-C is heard
_SIMS_OF_MATCH = 1 << 18  # in one round of decisions of all games of a match


class MctsAgent:
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

    def search(
        self,
        boards: npt.NDArray[np.void],
        guides: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Search n positions.

        Args:
            boards: `BOARD` (1,) for all, or (n,).
            guides: `GUIDE`, as many.
            states: `STATE` (n,), with a decision to take.
            legal: uint64 (n,), not 0.
            keys: uint64 (n,).

        Returns:
            The most visited actions, int64 (n,), and the results that player_0 can expect, float32
            (n,), in [-1, 1].
        """
        actions = np.empty(len(states), np.int64)
        values = np.empty(len(states), np.float32)
        trees = _trees(min(numba.get_num_threads(), len(states)), self.sims)
        step = max(1, _SIMS_AT_ONCE // self.sims)
        for first in range(0, len(states), step):
            part = slice(first, first + step)
            each = part if len(boards) > 1 else slice(None)
            _search_all(
                *trees,
                *(boards[each], guides[each], states[part], legal[part], keys[part]),
                *(self.sims, self.rollout, actions[part], values[part]),
            )
        return actions, values


def _trees(threads: int, sims: int) -> tuple[npt.NDArray[Any], ...]:
    """Return memory to search in: a tree for each thread, for one position after the other."""
    nodes = sims + 2
    return (
        np.zeros(threads, DESK),
        np.empty((threads, nodes), NODE),
        np.empty((threads, _EDGES_PER_NODE * nodes), EDGE),
        np.empty((threads, nodes), STATE),
        np.empty((threads, nodes), np.int64),
    )


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
) -> tuple[int, np.float32]:
    """Return the action of the root that was visited most, and the root's value for player_0.

    Ties go to the lowest id. A single legal action is not searched.
    """
    desk["nodes"] = 0
    desk["edges"] = 0
    states[0] = position
    _add_node(mask, nodes, edges, states, desk)
    root = nodes[0]
    root["value"] = evaluate(board, guide, position, desk["scratch"])
    if int64(root["edges"]) == 1:
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
    return _most_visited(root, edges), _mean_value(root, edges)


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
            at = _sample(board, key, at, visits, nodes, edges, states, desk)
        else:
            edge = _select(node, visits, edges)
            path[depth] = edge
            depth += 1
            at = _follow(board, at, edges[edge], nodes, edges, states, desk)
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


@kernel
def _follow(board: Row, at: int, edge: Row, nodes: Any, edges: Any, states: Any, desk: Row) -> int:
    """Return the node behind an action, made if it is new."""
    if int64(edge["node"]) == NO_NODE:
        new = int64(desk["nodes"])
        states[new] = states[at]
        mask = apply(board, states[new], int64(edge["move"]))
        edge["node"] = new
        _add_node(mask, nodes, edges, states, desk)
    return int64(edge["node"])


@kernel
def _sample(
    board: Row,
    key: np.uint64,
    at: int,
    visits: int,
    nodes: Any,
    edges: Any,
    states: Any,
    desk: Row,
) -> int:
    """Return the node behind one of the samples of chance, the next in turn or a new one."""
    node = nodes[at]
    samples = int64(node["edges"])
    wanted = samples < len(_VISITS_OF_SAMPLE) and visits >= _VISITS_OF_SAMPLE[samples]
    if not wanted or not _has_room(node, nodes, edges, desk):
        return int64(edges[int64(node["first"]) + visits % samples]["node"])
    new = int64(desk["nodes"])
    states[new] = states[at]
    luck = desk["luck"]
    begin_luck(luck, hash_bits(key, _SEARCH, int64(states[at]["round"]), samples))
    mask = settle(board, states[new], luck, np.uint64(0))
    node["edges"] = samples + 1
    edge = edges[int64(node["first"]) + samples]
    edge["move"] = _hash(states[new])
    edge["node"] = _sampled_before(edge, node, edges)
    if int64(edge["node"]) == NO_NODE:
        edge["node"] = new
        _add_node(mask, nodes, edges, states, desk)
    return int64(edge["node"])


@kernel
def _sampled_before(edge: Row, node: Row, edges: Any) -> int:
    """Return the node that an earlier sample led to by the same outcomes, or NO_NODE."""
    first = int64(node["first"])
    for k in range(first, first + int64(node["edges"]) - 1):
        if int64(edges[k]["move"]) == int64(edge["move"]):
            return int64(edges[k]["node"])
    return NO_NODE


@kernel
def _has_room(node: Row, nodes: Any, edges: Any, desk: Row) -> bool:
    """Return whether a chance node can take one more sample; move it to a larger place if need be.

    What decisions may still need is left alone.
    """
    samples = int64(node["edges"])
    if samples < int64(node["room"]):
        return True
    first = int64(desk["edges"])
    free = len(edges) - N_ACTIONS * (len(nodes) - int64(desk["nodes"]))
    if first + 2 * samples > free:
        return False
    for k in range(samples):
        edges[first + k] = edges[int64(node["first"]) + k]
    node["first"] = first
    node["room"] = 2 * samples
    desk["edges"] = first + 2 * samples
    return True


@kernel
def _add_node(mask: np.uint64, nodes: Any, edges: Any, states: Any, desk: Row) -> None:
    """Make a node of the state that stands in the next place, with an edge for each action."""
    new = int64(desk["nodes"])
    last = int64(desk["edges"])
    node = nodes[new]
    node["player"] = states[new]["player"]
    node["over"] = int(states[new]["phase"]) == OVER
    node["visits"] = 0
    node["first"] = last
    while mask != np.uint64(0):
        edge = edges[last]
        edge["move"] = lowest(mask)
        edge["visits"] = 0
        edge["total"] = 0.0
        edge["node"] = NO_NODE
        last += 1
        mask &= mask - np.uint64(1)
    node["edges"] = last - int64(node["first"])
    if int(node["player"]) == NOBODY:
        node["room"] = _FIRST_ROOM
        last += _FIRST_ROOM
    desk["nodes"] = new + 1
    desk["edges"] = last


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


@kernel
def _most_visited(root: Row, edges: Any) -> int:
    first = int64(root["first"])
    choice = first
    for k in range(first + 1, first + int64(root["edges"])):
        if int64(edges[k]["visits"]) > int64(edges[choice]["visits"]):
            choice = k
    return int64(edges[choice]["move"])


@kernel
def _mean_value(root: Row, edges: Any) -> np.float32:
    total = np.float32(0.0)
    visits = 0
    for k in range(int64(root["first"]), int64(root["first"]) + int64(root["edges"])):
        total += edges[k]["total"]
        visits += int64(edges[k]["visits"])
    return total / np.float32(visits)


@kernel
def _hash(s: Row) -> int:
    """Return a hash of what chance can change, 0 to 2**31 - 1."""
    dice = int64(s["dice"][0]) | int64(s["dice"][1]) << 3 | int64(s["dice"][2]) << 6
    wares = 0
    for ware in range(4):
        wares |= int64(s["bag"][ware]) << 9 + 4 * ware
    bits = hash_bits(np.uint64(dice | wares), 0, 0, 0)
    bits = hash_bits(bits ^ np.uint64(int64(s["easel"][0])), 0, 0, 0)
    bits = hash_bits(bits ^ np.uint64(int64(s["easel"][1])), 0, 0, 0)
    return int64(bits >> np.uint64(33))
