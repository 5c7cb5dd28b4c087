"""How a search chooses among the edges of a node: by a bound on their worth, or by odds.

- `select_by_value`: UCB1 (Kocsis and Szepesvári 2006), without a network.
- `select_by_policy`: PUCT (Silver et al. 2018, AlphaZero), by the mean value so far and the
  policy's probability for what was tried little.
- `select_by_odds`: where somebody else decides, whose odds are known: each edge as often as its
  odds say, in a fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.agents.search_tree import Tree
from tokaido_env.core.constants import Row
from tokaido_env.core.jit import int64, kernel

# UCB1.
UCB_C = np.float32(0.2)
_TABLE = 4096
_SQRT_LOG = np.sqrt(np.log(np.arange(1, _TABLE + 1))).astype(np.float32)

# PUCT.
C_PUCT = np.float32(0.6)  # in the policy's probabilities
FPU_REDUCTION = np.float32(0.1)  # what an action not tried yet is worth less than its node


@kernel
def select_ucb1(tree: Tree, node: Row, visits: int) -> int:
    """Return the edge of UCB1.

    An edge not visited yet counts as if its first value had been the node's own.
    """
    sign = np.float32(1 - 2 * int64(node["player"]))
    own = sign * node["value"]
    explore = UCB_C * _sqrt_log(visits)
    first = int64(node["first"])
    choice = first
    best = np.float32(-np.inf)
    for k in range(first, first + int64(node["edges"])):
        edge = tree.edges[k]
        bound = own + explore
        if int64(edge["visits"]) > 0:
            share = np.float32(1.0) / np.float32(edge["visits"])
            bound = sign * edge["total"] * share + explore * np.sqrt(share)
        if bound > best:
            best = bound
            choice = k
    return choice


@kernel
def _sqrt_log(visits: int) -> np.float32:
    """Return the square root of log(visits + 1)."""
    if visits < _TABLE:
        return np.float32(_SQRT_LOG[visits])
    return np.float32(np.sqrt(np.log(np.float64(visits + 1))))


@kernel
def select_puct(tree: Tree, node: Row, visits: int) -> int:
    """Return the edge of PUCT."""
    first = int64(node["first"])
    if int64(node["edges"]) == 1:
        return first
    sign = np.float32(1 - 2 * int64(node["player"]))
    untried = sign * node["value"] - FPU_REDUCTION
    explore = C_PUCT * np.sqrt(np.float32(visits))
    choice = first
    best = np.float32(-np.inf)
    for k in range(first, first + int64(node["edges"])):
        edge = tree.edges[k]
        tried = int64(edge["visits"])
        worth = untried
        if tried > 0:
            worth = sign * edge["total"] / np.float32(tried)
        bound = worth + explore * tree.priors[k] / np.float32(1 + tried)
        if bound > best:
            best = bound
            choice = k
    return choice


@kernel
def select_by_probability(tree: Tree, node: Row, visits: int) -> int:
    """Return the edge that is furthest behind its odds; one without odds never is."""
    first = int64(node["first"])
    choice = first
    best = np.float32(-np.inf)
    for k in range(first, first + int64(node["edges"])):
        behind = tree.priors[k] * np.float32(visits + 1) - np.float32(tree.edges[k]["visits"])
        if behind > best:
            best = behind
            choice = k
    return choice


@kernel
def write_priors(tree: Tree, node: Row, logits: Any, temperature: np.float32) -> None:
    """Write softmax(logits / temperature) of a node's actions as the priors of its edges."""
    priors = tree.priors
    first = int64(node["first"])
    last = first + int64(node["edges"])
    highest = np.float32(-np.inf)
    for k in range(first, last):
        highest = max(highest, logits[int64(tree.edges[k]["move"])])
    total = np.float32(0.0)
    for k in range(first, last):
        priors[k] = np.exp((logits[int64(tree.edges[k]["move"])] - highest) / temperature)
        total += priors[k]
    for k in range(first, last):
        priors[k] /= total
