"""The tree of a search, in arrays: nodes, their edges, and samples of chance.

A chance node has outcomes sampled with the odds of the rules. The j-th roll of a round is the same
for all nodes of that round, so that the search compares actions by equal dice.

- A search without a network draws samples as a game draws its own, about 0.7 n**0.45 in n visits
  (progressive widening, Couëtoux et al. 2011). Other visits go through the samples in turn, so that
  the tree behind them grows deep.
- A search with a network draws a sample at every visit: its values need less depth. It stratifies
  rolls: each die shows each of its six faces once in samples 0 to 5 of a round, once in samples 6
  to 11, and so on, in an order drawn for each die and each six samples (a Latin hypercube; McKay,
  Beckman, Conover 1979). A roll still has the odds of the rules, and the mean of a few rolls is
  nearer to the expectation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bitmask import lowest_action
from tokaido_env.core.constants import ARTIST, MERCHANT, PILGRIM, Mask, Row
from tokaido_env.core.jit import allocator, int64, kernel, subroutine
from tokaido_env.core.rng import (
    LUCK,
    hash_bits,
    init_luck,
    outcome_of_roll,
    random_below,
    resolve_chance,
    sample,
)
from tokaido_env.core.rules import apply, apply_outcome, is_chance, picker
from tokaido_env.core.state import MAX_PENDING, NO_PLAYER, OVER, ROLL, STATE

NODE = np.dtype(
    [
        ("first", "<i4"),  # index of its first edge
        ("edges", "<i4"),  # number of its edges
        ("capacity", "<i4"),  # at chance, edges that fit before they move
        ("visits", "<i4"),
        ("value", "<f4"),  # evaluation when the node was new, for player_0
        ("player", "i1"),  # the player who decides; NO_PLAYER at chance and at the end
        ("over", "i1"),
    ]
)
EDGE = np.dtype(
    [
        ("move", "<i4"),  # an action; at chance a hash of the sampled position
        ("visits", "<i4"),
        ("total", "<f4"),  # sum of the values backed up, for player_0
        ("squares", "<f4"),  # sum of their squares; only in a search with a network
        ("node", "<i4"),  # the child, NO_NODE until the first visit
    ]
)
NO_NODE = -1

SIZE = np.dtype([("nodes", "<i8"), ("edges", "<i8")])
"""How many nodes and edges of a tree are in use."""


class Tree(NamedTuple):
    """The tree of one thread, root first.

    Attributes:
        size: `SIZE` (1,).
        luck: `LUCK` (1,), for samples of chance.
        nodes: `NODE` (nodes,).
        edges: `EDGE` (edges,); those of a node are next to each other, from `NODE.first` on.
        priors: float32, the prior of each edge; (0,) in a search without a network.
        values: float32, the network's value behind each edge for player_0, NaN if its node was not
            evaluated; (0,) in a search without a network.
        states: `STATE` (nodes,), the position of each node.
        path: int64 (nodes,), the edges of a simulation.
    """

    size: Any
    luck: Any
    nodes: Any
    edges: Any
    priors: Any
    values: Any
    states: Any
    path: Any


_FIRST_CAPACITY = 4
_EDGES_PER_NODE = N_ACTIONS + 15  # unused memory costs nothing: the system maps pages when touched
_SEARCH, _STRATA = 20, 23  # purposes of random numbers
_FACES = 6
_FACE_ORDERS = 720

# Progressive widening: number of samples = C * visits**ALPHA. Neither constant was tuned; with a
# network and 64 simulations, a sample at every visit scored 53.3 % (51.4 to 55.2) against it.
WIDENING_C, WIDENING_ALPHA = 0.7, 0.45
_VISITS_OF_SAMPLE = np.ceil((np.arange(1024) / WIDENING_C) ** (1 / WIDENING_ALPHA)).astype(np.int64)


@allocator
def new_tree(nodes: int, with_priors: bool) -> Tree:
    """Return a tree with room for so many nodes.

    Args:
        nodes: the number of nodes.
        with_priors: whether edges have priors and values.
    """
    edges = _EDGES_PER_NODE * nodes
    priors = edges if with_priors else 0
    return Tree(
        np.empty(1, SIZE),
        np.empty(1, LUCK),
        np.empty(nodes, NODE),
        np.empty(edges, EDGE),
        np.empty(priors, np.float32),
        np.empty(priors, np.float32),
        np.empty(nodes, STATE),
        np.empty(nodes, np.int64),
    )


@kernel
def reset_tree(tree: Tree, position: Row, mask: Mask) -> None:
    """Empty a tree and make a position its root.

    Args:
        tree: changed in place; its luck is kept.
        position: a row of `STATE`, copied.
        mask: the legal actions of the position as bits; 0 at chance.
    """
    tree.size[0]["nodes"] = 0
    tree.size[0]["edges"] = 0
    tree.states[0] = position
    add_node(tree, mask)


@kernel
def expand(board: Row, tree: Tree, at: int, edge: Row) -> int:
    """Return the index of the node behind an edge of a decision; make it if it is new.

    Args:
        board: a row of `BOARD`.
        tree: the tree.
        at: index of the node that decides.
        edge: one of its edges, a row of `EDGE`.
    """
    if int64(edge["node"]) == NO_NODE:
        new = int64(tree.size[0]["nodes"])
        tree.states[new] = tree.states[at]
        mask = apply(board, tree.states[new], int64(edge["move"]))
        edge["node"] = new
        add_node(tree, mask)
    return int64(edge["node"])


@kernel
def sample_chance(
    board: Row, key: np.uint64, tree: Tree, at: int, visits: int, with_network: bool
) -> int:
    """Return the index of the node behind a chance node's sample: a new one, or an earlier in turn.

    Args:
        board: a row of `BOARD`.
        key: of the search's random numbers.
        tree: the tree.
        at: index of the chance node.
        visits: earlier visits of the node.
        with_network: whether every visit draws a sample, with stratified rolls.
    """
    node = tree.nodes[at]
    samples = int64(node["edges"])
    widens = samples < len(_VISITS_OF_SAMPLE) and visits >= _VISITS_OF_SAMPLE[samples]
    if not (widens or with_network) or not _ensure_capacity(tree, node):
        return int64(tree.edges[int64(node["first"]) + visits % samples]["node"])
    new = int64(tree.size[0]["nodes"])
    tree.states[new] = tree.states[at]
    # With a network the first visit ends at the node, and draws nothing.
    luck, number = tree.luck[0], visits - 1 if with_network else samples
    init_luck(luck, hash_bits(key, _SEARCH, int64(tree.states[at]["round"]), number))
    if with_network:
        mask = _resolve_chance_stratified(board, tree.states[new], luck, key, number)
    else:
        mask = resolve_chance(board, tree.states[new], luck, np.uint64(0))
    outcome = _chance_hash(tree.states[new])
    child = _node_of_outcome(tree, node, outcome)
    if child == NO_NODE or not with_network:
        edge = tree.edges[int64(node["first"]) + samples]
        node["edges"] = samples + 1
        edge["move"] = outcome
        edge["node"] = new if child == NO_NODE else child
    if child == NO_NODE:
        child = new
        add_node(tree, mask)
    return child


@subroutine
def _resolve_chance_stratified(
    board: Row, s: Row, luck: Row, key: np.uint64, sample_number: int
) -> Mask:
    """Sample chance until a decision or the end; return the legal actions as bits, 0 at the end.

    `luck` gives wares and tiles; the search's `key` and the number of the node's sample give the
    dice, stratified.
    """
    seat = picker(s)
    # A player who draws twice in a round spends the hot spring token between the draws (R8.2), so
    # the token gives the second draw other random numbers. Tiles differ by how many lie open.
    luck["drawn"][seat] = MAX_PENDING * int64(int(s["hot_spring"]) != seat)
    mask = np.uint64(0)
    while is_chance(s):
        if int(s["phase"]) == ROLL:
            outcome = outcome_of_roll(board, stratified_roll(key, int64(s["round"]), sample_number))
        else:
            outcome = sample(board, s, luck)
        mask = apply_outcome(board, s, outcome)
    return mask


@kernel
def stratified_roll(key: np.uint64, round_number: int, sample_number: int) -> int:
    """Return one of the 216 stratified rolls, for `rng.outcome_of_roll`.

    Args:
        key: of the search's random numbers.
        round_number: of the game.
        sample_number: from 0; each die shows its six faces once in samples 0 to 5, 6 to 11, ….
    """
    block, turn = sample_number // _FACES, sample_number % _FACES
    roll = 0
    for die in range(3):
        order = random_below(hash_bits(key, _STRATA, round_number, 3 * block + die), _FACE_ORDERS)
        roll = _FACES * roll + _face_in_turn(order, turn)
    return roll


@kernel
def _face_in_turn(order: int, turn: int) -> int:
    """Return the face, 0 to 5, at a turn, 0 to 5, of one of the 720 orders of faces."""
    faces = 0x543210  # the remaining faces, four bits each
    face = 0
    for seen in range(turn + 1):
        left = _FACES - seen
        place = 4 * (order % left)
        order //= left
        face = faces >> place & 15
        faces = faces & (1 << place) - 1 | faces >> place + 4 << place
    return face


@kernel
def _node_of_outcome(tree: Tree, node: Row, outcome: int) -> int:
    """Return the node that an earlier sample led to by the same outcomes, or NO_NODE."""
    first = int64(node["first"])
    for k in range(first, first + int64(node["edges"])):
        if int64(tree.edges[k]["move"]) == outcome:
            return int64(tree.edges[k]["node"])
    return NO_NODE


@kernel
def _ensure_capacity(tree: Tree, node: Row) -> bool:
    """Return whether a chance node can take one more sample; move its edges to more room if needed.

    Room that the nodes still to come may need for their actions is not used.
    """
    samples = int64(node["edges"])
    if samples < int64(node["capacity"]):
        return True
    first = int64(tree.size[0]["edges"])
    free = len(tree.edges) - N_ACTIONS * (len(tree.nodes) - int64(tree.size[0]["nodes"]))
    if first + 2 * samples > free:
        return False
    for k in range(samples):
        tree.edges[first + k] = tree.edges[int64(node["first"]) + k]
    node["first"] = first
    node["capacity"] = 2 * samples
    tree.size[0]["edges"] = first + 2 * samples
    return True


@kernel
def add_node(tree: Tree, mask: Mask) -> None:
    """Append a node, with an edge for each action in `mask`, the legal actions as bits.

    The node's state must already be in `tree.states`.
    """
    new = int64(tree.size[0]["nodes"])
    last = int64(tree.size[0]["edges"])
    node = tree.nodes[new]
    node["player"] = tree.states[new]["player"]
    node["over"] = int(tree.states[new]["phase"]) == OVER
    node["visits"] = 0
    node["first"] = last
    while mask != np.uint64(0):
        edge = tree.edges[last]
        edge["move"] = lowest_action(mask)
        edge["visits"] = 0
        edge["total"] = 0.0
        edge["squares"] = 0.0
        edge["node"] = NO_NODE
        if len(tree.values):
            tree.values[last] = np.float32(np.nan)
        last += 1
        mask &= mask - np.uint64(1)
    node["edges"] = last - int64(node["first"])
    if int(node["player"]) == NO_PLAYER:
        node["capacity"] = _FIRST_CAPACITY
        last += _FIRST_CAPACITY
    tree.size[0]["nodes"] = new + 1
    tree.size[0]["edges"] = last


@kernel
def edge_mask(tree: Tree, node: Row) -> Mask:
    """Return the actions of the edges of a node, a row of `NODE`, as bits of a uint64."""
    mask = np.uint64(0)
    first = int64(node["first"])
    for k in range(first, first + int64(node["edges"])):
        mask |= np.uint64(1) << np.uint64(tree.edges[k]["move"])
    return mask


@kernel
def back_up(tree: Tree, depth: int, value: np.float32, squares: bool) -> None:
    """Add a leaf's value to each edge on the path of a simulation.

    Args:
        tree: the tree.
        depth: number of edges on the path.
        value: of the leaf, for player_0.
        squares: whether to add its square too.
    """
    for d in range(depth):
        edge = tree.edges[tree.path[d]]
        edge["visits"] += 1
        edge["total"] += value
        if squares:
            edge["squares"] += value * value


@kernel
def write_visits(tree: Tree, out: Any) -> None:
    """Write the visits of the root's actions to `out`, numbers (N_ACTIONS,); others stay."""
    first = int64(tree.nodes[0]["first"])
    for k in range(first, first + int64(tree.nodes[0]["edges"])):
        out[int64(tree.edges[k]["move"])] = tree.edges[k]["visits"]


@kernel
def root_value(tree: Tree) -> np.float32:
    """Return the mean of the values backed up to the root: player_0's result in [-1, 1]."""
    total = np.float32(0.0)
    visits = 0
    first = int64(tree.nodes[0]["first"])
    for k in range(first, first + int64(tree.nodes[0]["edges"])):
        total += tree.edges[k]["total"]
        visits += int64(tree.edges[k]["visits"])
    return total / np.float32(visits)


@kernel
def _chance_hash(s: Row) -> int:
    """Return a hash of the parts of a state that chance can change, 0 to 2**31 - 1."""
    dice = (
        int64(s["dice"][PILGRIM]) | int64(s["dice"][MERCHANT]) << 3 | int64(s["dice"][ARTIST]) << 6
    )
    wares = 0
    for ware in range(4):
        wares |= int64(s["bag"][ware]) << 9 + 4 * ware
    bits = hash_bits(np.uint64(dice | wares), 0, 0, 0)
    bits = hash_bits(bits ^ np.uint64(int64(s["easel"][0])), 0, 0, 0)
    bits = hash_bits(bits ^ np.uint64(int64(s["easel"][1])), 0, 0, 0)
    return int64(bits >> np.uint64(33))
