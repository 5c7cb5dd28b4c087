"""TD(λ) value targets and GAE advantages, with explicit chance nodes.

A game is a sequence of nodes: decisions, each followed by a chance node if its action leads to one.
Values and targets are for player_0. The target of a node is TD(λ) (Sutton 1988): the next node's
target with weight λ, its value with weight 1 - λ. The advantage of a decision is the sum of the
later changes of value, with weights that fall by λ (generalised advantage estimation, Schulman et
al. 2016). The change from a chance node to its outcome is luck: the mover did not cause it, and its
expectation is 0. `chance_weight` scales it: 1 is published GAE; less is a control variate (as in
AIVAT, Burch et al. 2018), biased by the errors of the value at chance nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tokaido_env.core.jit import entry


class Nodes(NamedTuple):
    """The decisions of games, in the order of play within a game, and their chance nodes."""

    game: Any
    """int64 (n,), index of each decision's game."""
    mover: Any
    """int8 (n,), the player to decide."""
    values: Any
    """float32 (n,), of decisions, for player_0."""
    chance: Any
    """int64 (n,), index of the chance node after each action; -1: none."""
    chance_values: Any
    """float32 (m,), of chance nodes, for player_0."""
    results: Any
    """float32 (games,), of player_0."""


class Returns(NamedTuple):
    """Value targets and advantages of games."""

    targets: Any
    """float32 (n,), of decisions, for player_0."""
    chance_targets: Any
    """float32 (m,), of chance nodes, for player_0."""
    advantages: Any
    """float32 (n,), of decisions, for the mover."""


def returns_of(
    nodes: Nodes, value_lambda: float, policy_lambda: float, chance_weight: float = 1.0
) -> Returns:
    """Return value targets and advantages of games.

    Args:
        nodes: of the games.
        value_lambda: λ of the targets.
        policy_lambda: λ of the advantages.
        chance_weight: weight of chance outcomes in the advantages.
    """
    n, m, games = len(nodes.game), len(nodes.chance_values), len(nodes.results)
    returns = Returns(*(np.empty(size, np.float32) for size in (n, m, n)))
    ahead = np.empty((games, 3), np.float32)
    _write(returns, nodes, value_lambda, policy_lambda, chance_weight, ahead)
    return returns


@entry
def _write(
    out: Returns,
    nodes: Nodes,
    value_lambda: float,
    policy_lambda: float,
    chance_weight: float,
    ahead: Any,
) -> None:
    """Write the returns, from the last node to the first; `ahead` is scratch memory."""
    for g in range(len(nodes.results)):
        ahead[g, 0] = ahead[g, 1] = nodes.results[g]  # the next node's value and target
        ahead[g, 2] = 0.0  # the weighted sum of later changes of value
    for i in range(len(nodes.game) - 1, -1, -1):
        node = ahead[nodes.game[i]]
        value, target, steps = node[0], node[1], node[2]
        at_chance = nodes.chance[i]
        if at_chance >= 0:
            expected = nodes.chance_values[at_chance]
            target = value + value_lambda * (target - value)
            out.chance_targets[at_chance] = target
            steps = chance_weight * (value - expected) + policy_lambda * steps
            value = expected
        node[1] = out.targets[i] = value + value_lambda * (target - value)
        node[2] = value - nodes.values[i] + policy_lambda * steps
        node[0] = nodes.values[i]
        out.advantages[i] = node[2] * (1 - 2 * nodes.mover[i])
