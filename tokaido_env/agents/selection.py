"""Selection in a search: of the edges of a simulation, and of the root's action.

A simulation selects an edge

- by UCB1 (Kocsis and Szepesvári 2006) without a network;
- by PUCT (Silver et al. 2018, AlphaZero) with a network's priors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokaido_env.agents.search_tree import Tree
from tokaido_env.core.constants import Action, Row
from tokaido_env.core.jit import int64, kernel

UCB_C = np.float32(0.2)
"""The exploration constant of UCB1. In paired games 0.1 scored 45.0 % against it; 0.15 and 0.3 were
even."""

FPU_REDUCTION = np.float32(0.1)
"""First-play urgency: the value of an unvisited edge is its node's value less this. Not tuned."""

BOUND_ERRORS, BOUND_SHARE = np.float32(5.0), np.float32(0.15)
"""Constants of `highest_bound`. With a network of 2026-11-24 and 64 simulations the bound
scored 52.1 % against the most visited action
(50.2 – 54.0, 2,000 games)."""

_PRIOR_SQUARES = np.float32(0.02)  # so that two equal values do not count as certain

_TABLE_SIZE = 4096
_SQRT_LOG = np.sqrt(np.log(np.arange(1, _TABLE_SIZE + 1))).astype(np.float32)


@kernel
def select_ucb1(tree: Tree, node: Row, visits: int) -> int:
    """Return the index in `tree.edges` of the highest UCB1 bound (Kocsis and Szepesvári 2006).

    An unvisited edge has the bound of one visit with the value of its node.

    Args:
        tree: the tree.
        node: at a decision, a row of `NODE`.
        visits: earlier visits of the node.
    """
    sign = np.float32(1 - 2 * int64(node["player"]))
    node_value = sign * node["value"]
    explore = UCB_C * _sqrt_log(visits)
    first = int64(node["first"])
    choice = first
    best = np.float32(-np.inf)
    for k in range(first, first + int64(node["edges"])):
        edge = tree.edges[k]
        bound = node_value + explore
        if int64(edge["visits"]) > 0:
            inverse = np.float32(1.0) / np.float32(edge["visits"])
            bound = sign * edge["total"] * inverse + explore * np.sqrt(inverse)
        if bound > best:
            best = bound
            choice = k
    return choice


@kernel
def _sqrt_log(visits: int) -> np.float32:
    """Return the square root of log(visits + 1)."""
    if visits < _TABLE_SIZE:
        return np.float32(_SQRT_LOG[visits])
    return np.float32(np.sqrt(np.log(np.float64(visits + 1))))


@kernel
def select_puct(tree: Tree, node: Row, visits: int, c_puct: np.float32) -> int:
    """Return the edge with the highest PUCT bound (Silver et al. 2018): its index in `tree.edges`.

    Args:
        tree: the tree, with priors.
        node: at a decision, a row of `NODE`.
        visits: earlier visits of the node.
        c_puct: the exploration constant.
    """
    first = int64(node["first"])
    if int64(node["edges"]) == 1:
        return first
    sign = np.float32(1 - 2 * int64(node["player"]))
    first_play = sign * node["value"] - FPU_REDUCTION
    explore = c_puct * np.sqrt(np.float32(visits))
    choice = first
    best = np.float32(-np.inf)
    for k in range(first, first + int64(node["edges"])):
        edge = tree.edges[k]
        edge_visits = int64(edge["visits"])
        value = first_play
        if edge_visits > 0:
            value = sign * edge["total"] / np.float32(edge_visits)
        bound = value + explore * tree.priors[k] / np.float32(1 + edge_visits)
        if bound > best:
            best = bound
            choice = k
    return choice


@kernel
def write_priors(tree: Tree, node: Row, logits: Any, temperature: np.float32) -> None:
    """Write softmax(logits / temperature) over a node's actions as the priors of its edges.

    Args:
        tree: the tree; its priors are written.
        node: at a decision, a row of `NODE`.
        logits: float32 (N_ACTIONS,).
        temperature: above 0.
    """
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


@kernel
def most_visited(tree: Tree) -> Action:
    """Return the most visited action of the root; ties go to the lowest id."""
    root = tree.nodes[0]
    first = int64(root["first"])
    choice = first
    for k in range(first + 1, first + int64(root["edges"])):
        if int64(tree.edges[k]["visits"]) > int64(tree.edges[choice]["visits"]):
            choice = k
    return int64(tree.edges[choice]["move"])


@kernel
def highest_bound(tree: Tree) -> Action:
    """Return the action of the root with the highest lower confidence bound (Wu 2019, KataGo).

    The bound is the mean value less `BOUND_ERRORS` standard errors; only actions with
    `BOUND_SHARE` of the most visits count. Ties go to the lowest id.
    """
    root = tree.nodes[0]
    sign = np.float32(1 - 2 * int64(root["player"]))
    first = int64(root["first"])
    most = 0
    for k in range(first, first + int64(root["edges"])):
        most = max(most, int64(tree.edges[k]["visits"]))
    best = np.float32(-np.inf)
    choice = first
    for k in range(first, first + int64(root["edges"])):
        edge = tree.edges[k]
        visits = np.float32(edge["visits"])
        if visits > 0 and visits >= BOUND_SHARE * np.float32(most):
            mean = edge["total"] / visits
            squares = max(edge["squares"] - visits * mean * mean, np.float32(0.0))
            variance = (squares + _PRIOR_SQUARES) / (visits + np.float32(1.0))
            bound = sign * mean - BOUND_ERRORS * np.sqrt(variance / visits)
            if bound > best:
                best = bound
                choice = k
    return int64(tree.edges[choice]["move"])


@kernel
def is_decided(tree: Tree, left: int, by_bound: bool) -> bool:
    """Return whether the root's most visited action stays so, whatever the simulations left visit.

    Args:
        tree: the tree.
        left: the number of simulations left.
        by_bound: whether the action must also have the highest lower confidence bound.
    """
    first = int64(tree.nodes[0]["first"])
    most = int64(0)
    second = int64(0)
    for k in range(first, first + int64(tree.nodes[0]["edges"])):
        visits = int64(tree.edges[k]["visits"])
        second = max(second, min(most, visits))
        most = max(most, visits)
    return most - second > left and not (by_bound and highest_bound(tree) != most_visited(tree))
