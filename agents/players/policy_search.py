"""Tree search led by a trained network: its policy proposes, its value judges.

One simulation walks from the root to a decision that is not in the tree yet, and backs the value of
the network there up (Silver et al. 2018, AlphaZero):

- at a decision by PUCT: the mean value so far, and the policy's probability for what was tried
  little, each player for itself, however often it decides in a row;
- at chance through samples, as `tree` tells; a simulation goes on through them, and through
  decisions that leave no choice, so that each ends where the network was trained.

The search samples its own luck from the key of the decision: it never sees the game's.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import prange

from tokaido_env.agent import Agent
from tokaido_env.agents.players.heuristic import final_result, guides_of
from tokaido_env.agents.players.policy import Network, Policy, forward, make_rooms, path_in_spec
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
from tokaido_env.core.jit import int64, kernel, parallel, subroutine
from tokaido_env.core.rules import Row
from tokaido_env.core.state import NOBODY

_EXPLORATION = np.float32(0.6)
_FIRST_PLAY = np.float32(0.1)  # what an action not tried yet is worth less than its node

# A new decision, often the chance before it, and what forced decisions take: a simulation goes
# through those only while two nodes remain for each simulation to come.
_NODES_PER_SIM = 3

_SIMS_AT_ONCE = 1 << 17  # in one call of the kernel, so that Ctrl-C is heard
_SIMS_OF_MATCH = 1 << 17  # in one round of decisions of all games of a match


class PolicySearchAgent(Agent):
    """Tree search by a policy file.

    Args:
        path: a policy file, or a run folder for its best.
        sims: simulations for a decision, from 1.
    """

    def __init__(self, path: str, sims: int = 400) -> None:
        self._begin(Policy.load(path), f"policy_search:{path_in_spec(path)},sims={sims}", sims)

    @classmethod
    def of(cls, policy: Policy, spec: str, sims: int) -> PolicySearchAgent:
        """Make an agent from a policy in memory."""
        agent = cls.__new__(cls)
        agent._begin(policy, spec, sims)
        return agent

    def act(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        return search(self._network, self.sims, boards, states, legal, keys)[0]

    def judge(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the shares of the visits and the value, as `Agent.judge`."""
        _, values, visits = search(self._network, self.sims, boards, states, legal, keys)
        return shares(visits), values

    def _begin(self, policy: Policy, spec: str, sims: int) -> None:
        self.policy = policy
        self.spec = spec
        self.sims = sims
        self._network = policy.network()
        self.games_at_once = max(16, min(1024, _SIMS_OF_MATCH // sims // 2 * 2))


def search(
    network: Network,
    sims: int,
    boards: npt.NDArray[np.void],
    states: npt.NDArray[np.void],
    legal: npt.NDArray[np.uint64],
    keys: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """Search n positions.

    Args:
        network: of a policy.
        sims: simulations for each position.
        boards: `BOARD` (1,) for all, or (n,).
        states: `STATE` (n,), with a decision to take.
        legal: uint64 (n,), not 0.
        keys: uint64 (n,).

    Returns:
        The most visited actions, int64 (n,), the results that player_0 can expect, float32 (n,), in
        [-1, 1], and how often each action was visited, int32 (n, N_ACTIONS).
    """
    actions = np.empty(len(states), np.int64)
    values = np.empty(len(states), np.float32)
    visits = np.zeros((len(states), N_ACTIONS), np.int32)
    guides = guides_of(boards)
    threads = min(numba.get_num_threads(), len(states))
    trees = make_trees(threads, _NODES_PER_SIM * sims + 2)
    priors = np.empty(trees[2].shape, np.float32)
    rooms = make_rooms(threads, network)
    logits = np.empty((threads, N_ACTIONS), np.float32)
    step = max(1, _SIMS_AT_ONCE // sims)
    for first in range(0, len(states), step):
        part = slice(first, first + step)
        each = part if len(boards) > 1 else slice(None)
        _search_all(
            *trees,
            *(priors, *rooms, logits, network),
            *(boards[each], guides[each], states[part], legal[part], keys[part], sims),
            *(actions[part], values[part], visits[part]),
        )
    return actions, values, visits


def _search_each(
    desks: Any,
    nodes: Any,
    edges: Any,
    states: Any,
    paths: Any,
    priors: Any,
    scratches: Any,
    rooms: Any,
    results: Any,
    units: Any,
    active: Any,
    logits: Any,
    network: Any,
    boards: Any,
    guides: Any,
    positions: Any,
    masks: Any,
    keys: Any,
    sims: int,
    actions: Any,
    values: Any,
    visits: Any,
) -> None:
    """Search n positions; worker w takes every len(desks)-th from w, in its own tree."""
    for w in prange(len(desks)):
        for i in range(w, len(actions), len(desks)):
            actions[i], values[i] = _search(
                network,
                boards[i if len(boards) > 1 else 0],
                guides[i if len(boards) > 1 else 0],
                positions[i],
                masks[i],
                keys[i],
                sims,
                nodes[w],
                edges[w],
                priors[w],
                states[w],
                paths[w],
                desks[w],
                scratches[w],
                (rooms[w], results[w], units[w], active[w], logits[w]),
                visits[i],
            )


_search_all: Any = parallel(_search_each, at_least=2)


@subroutine
def _search(
    network: Any,
    board: Row,
    guide: Row,
    position: Row,
    mask: np.uint64,
    key: np.uint64,
    sims: int,
    nodes: Any,
    edges: Any,
    priors: Any,
    states: Any,
    path: Any,
    desk: Row,
    scratch: Row,
    room: Any,
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
    root["visits"] = 1
    root["value"] = _judge(network, board, guide, position, root, edges, priors, scratch, room)
    if int64(root["edges"]) == 1:
        visits[lowest(mask)] = sims
        return lowest(mask), root["value"]
    for sim in range(sims):
        free = len(nodes) - 2 * (sims - 1 - sim)
        leaf, depth = _walk(board, key, nodes, edges, priors, states, path, desk, free)
        node = nodes[leaf]
        if int64(node["visits"]) == 0:
            if int(node["over"]):
                node["value"] = final_result(board, states[leaf])
            else:
                node["value"] = _judge(
                    network, board, guide, states[leaf], node, edges, priors, scratch, room
                )
        node["visits"] += 1
        for d in range(depth):
            edge = edges[path[d]]
            edge["visits"] += 1
            edge["total"] += node["value"]
    note_visits(root, edges, visits)
    return most_visited(root, edges), mean_value(root, edges)


@kernel
def _walk(
    board: Row,
    key: np.uint64,
    nodes: Any,
    edges: Any,
    priors: Any,
    states: Any,
    path: Any,
    desk: Row,
    free: int,
) -> tuple[int, int]:
    """Go from the root to a new decision or an end; return it and the number of decisions before.

    When the tree would have more than `free` nodes, it may be a decision that leaves no choice.
    """
    at = 0
    depth = 0
    while True:
        node = nodes[at]
        visits = int64(node["visits"])
        if int(node["over"]):
            return at, depth
        chance = int(node["player"]) == NOBODY
        if visits == 0 and not chance:
            forced = int64(node["edges"]) == 1
            if not forced or int64(desk["nodes"]) + 2 > free:
                return at, depth
        node["visits"] = visits + 1
        if chance:
            at = sample_chance(board, key, at, visits, nodes, edges, states, desk)
        else:
            edge = _select(node, visits, edges, priors)
            path[depth] = edge
            depth += 1
            at = follow(board, at, edges[edge], nodes, edges, states, desk)


@kernel
def _select(node: Row, visits: int, edges: Any, priors: Any) -> int:
    """Return the edge with the highest bound for the player who decides (PUCT)."""
    first = int64(node["first"])
    if int64(node["edges"]) == 1:
        return first
    sign = np.float32(1 - 2 * int64(node["player"]))
    untried = sign * node["value"] - _FIRST_PLAY
    explore = _EXPLORATION * np.sqrt(np.float32(visits))
    choice = first
    best = np.float32(-np.inf)
    for k in range(first, first + int64(node["edges"])):
        edge = edges[k]
        tried = int64(edge["visits"])
        worth = untried
        if tried > 0:
            worth = sign * edge["total"] / np.float32(tried)
        bound = worth + explore * priors[k] / np.float32(1 + tried)
        if bound > best:
            best = bound
            choice = k
    return choice


@subroutine
def _judge(
    network: Any,
    board: Row,
    guide: Row,
    s: Row,
    node: Row,
    edges: Any,
    priors: Any,
    scratch: Row,
    room: Any,
) -> np.float32:
    """Ask the network about a decision: write its priors, return its value for player_0.

    Args:
        room: what `forward` writes to, the logits last.
    """
    layers, results, units, active, logits = room
    mask = _mask_of(node, edges)
    value = forward(network, board, guide, s, mask, scratch, layers, results, units, active, logits)
    _propose(node, edges, priors, logits)
    return np.float32(1 - 2 * int64(node["player"])) * value


@kernel
def _propose(node: Row, edges: Any, priors: Any, logits: Any) -> None:
    """Write the policy's probabilities of a node's actions."""
    first = int64(node["first"])
    last = first + int64(node["edges"])
    highest = np.float32(-np.inf)
    for k in range(first, last):
        highest = max(highest, logits[int64(edges[k]["move"])])
    total = np.float32(0.0)
    for k in range(first, last):
        priors[k] = np.exp(logits[int64(edges[k]["move"])] - highest)
        total += priors[k]
    for k in range(first, last):
        priors[k] /= total


@kernel
def _mask_of(node: Row, edges: Any) -> np.uint64:
    """Return the actions of a node's edges as bits."""
    mask = np.uint64(0)
    first = int64(node["first"])
    for k in range(first, first + int64(node["edges"])):
        mask |= np.uint64(1) << np.uint64(edges[k]["move"])
    return mask
