"""The tree of a search, in arrays: nodes, the edges from them, and samples of chance.

At chance a node has outcomes sampled with the odds of the rules. A node that was visited n times
has about n**0.45 samples (progressive widening, Couëtoux et al. 2011), visited in turn, so that
what lies behind them is searched and not only sampled. The j-th roll of a round is the same for all
nodes of that round: actions are compared by equal dice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agents.players.heuristic import SCRATCH
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bits import lowest
from tokaido_env.core.jit import int64, kernel
from tokaido_env.core.luck import LUCK, begin_luck, hash_bits, settle
from tokaido_env.core.rules import Row, apply
from tokaido_env.core.state import NOBODY, OVER, STATE

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

_FIRST_ROOM = 4  # samples of a chance node before it moves to a larger place
_EDGES_PER_NODE = N_ACTIONS + 15  # room for them: what is not used costs no memory
_SEARCH = 20  # purpose of random numbers

# After how many visits a chance node gets its k-th sample.
_WIDENING, _POWER = 0.7, 0.45
_VISITS_OF_SAMPLE = np.ceil((np.arange(1024) / _WIDENING) ** (1 / _POWER)).astype(np.int64)


def make_trees(threads: int, nodes: int) -> tuple[npt.NDArray[Any], ...]:
    """Return memory to search in, a tree of so many nodes for each thread.

    Returns:
        `DESK` (threads,), `NODE` and `EDGE` (threads, …), `STATE` and int64 (threads, nodes): the
        positions, and room for the edges of a path.
    """
    return (
        np.zeros(threads, DESK),
        np.empty((threads, nodes), NODE),
        np.empty((threads, _EDGES_PER_NODE * nodes), EDGE),
        np.empty((threads, nodes), STATE),
        np.empty((threads, nodes), np.int64),
    )


@kernel
def follow(board: Row, at: int, edge: Row, nodes: Any, edges: Any, states: Any, desk: Row) -> int:
    """Return the node behind an action, made if it is new."""
    if int64(edge["node"]) == NO_NODE:
        new = int64(desk["nodes"])
        states[new] = states[at]
        mask = apply(board, states[new], int64(edge["move"]))
        edge["node"] = new
        add_node(mask, nodes, edges, states, desk)
    return int64(edge["node"])


@kernel
def sample_chance(
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
        add_node(mask, nodes, edges, states, desk)
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
def add_node(mask: np.uint64, nodes: Any, edges: Any, states: Any, desk: Row) -> None:
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


@kernel
def most_visited(root: Row, edges: Any) -> int:
    """Return the action of the root that was visited most; ties go to the lowest id."""
    first = int64(root["first"])
    choice = first
    for k in range(first + 1, first + int64(root["edges"])):
        if int64(edges[k]["visits"]) > int64(edges[choice]["visits"]):
            choice = k
    return int64(edges[choice]["move"])


@kernel
def note_visits(root: Row, edges: Any, out: Any) -> None:
    """Write how often each action of the root was visited, (N_ACTIONS,)."""
    for k in range(int64(root["first"]), int64(root["first"]) + int64(root["edges"])):
        out[int64(edges[k]["move"])] = edges[k]["visits"]


def shares(visits: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    """Return visits (n, N_ACTIONS) as shares of each row's sum: float32 (n, N_ACTIONS)."""
    return np.asarray(visits / visits.sum(axis=1, keepdims=True), np.float32)


@kernel
def mean_value(root: Row, edges: Any) -> np.float32:
    """Return the mean of the values behind the root, for player_0."""
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
