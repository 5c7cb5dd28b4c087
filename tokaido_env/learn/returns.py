"""What a game teaches: returns for the value, advantages for the policy, with chance told apart.

A game is a row of nodes: decisions, and between two of them chance, if the action led to it. Values
and returns are those of player_0. The return of a node is TD(λ) (Sutton 1988): λ of the next node's
return, the rest its value. The advantage of a decision is the sum of the steps in value behind it,
each next one weighed λ less (generalised advantage estimation, Schulman et al. 2016). A step from
chance to what it brought is luck: nothing that the mover did, and in the mean nothing. Of luck the
advantage takes a share: 1 is GAE as published, less is a control variate (as in AIVAT, Burch et al.
2018), with the bias that the value has at chance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tokaido_env.core.jit import entry


class Nodes(NamedTuple):
    """The decisions of games, those of a game in their order, and the nodes at chance between."""

    game: Any
    """int64 (n,), which game each decision is of."""
    mover: Any
    """int8 (n,), whose decision."""
    values: Any
    """float32 (n,), of decisions for player_0."""
    chance: Any
    """int64 (n,), which of the nodes at chance each action led to, -1 for none."""
    chance_values: Any
    """float32 (m,), for player_0."""
    results: Any
    """float32 (games,), of player_0."""


class Returns(NamedTuple):
    """What is learnt from games."""

    targets: Any
    """float32 (n,), of decisions for player_0."""
    chance_targets: Any
    """float32 (m,), of nodes at chance for player_0."""
    advantages: Any
    """float32 (n,), of decisions for the mover."""


def returns_of(
    nodes: Nodes, value_lambda: float, policy_lambda: float, luck: float = 1.0
) -> Returns:
    """Return what is to be learnt from games.

    Args:
        nodes: of the games.
        value_lambda: of the returns.
        policy_lambda: of the advantages.
        luck: the share of luck in advantages.
    """
    n, m, games = len(nodes.game), len(nodes.chance_values), len(nodes.results)
    found = Returns(*(np.empty(size, np.float32) for size in (n, m, n)))
    _write(found, nodes, value_lambda, policy_lambda, luck, np.empty((games, 3), np.float32))
    return found


@entry
def _write(
    out: Returns,
    nodes: Nodes,
    value_lambda: float,
    policy_lambda: float,
    luck: float,
    ahead: Any,
) -> None:
    """Write the returns, from the last node to the first; `ahead` is overwritten."""
    for g in range(len(nodes.results)):
        ahead[g, 0] = ahead[g, 1] = nodes.results[g]  # the next node's value and return
        ahead[g, 2] = 0.0  # the sum of the steps behind it
    for i in range(len(nodes.game) - 1, -1, -1):
        node = ahead[nodes.game[i]]
        value, target, steps = node[0], node[1], node[2]
        at_chance = nodes.chance[i]
        if at_chance >= 0:
            expected = nodes.chance_values[at_chance]
            target = value + value_lambda * (target - value)
            out.chance_targets[at_chance] = target
            steps = luck * (value - expected) + policy_lambda * steps
            value = expected
        node[1] = out.targets[i] = value + value_lambda * (target - value)
        node[2] = value - nodes.values[i] + policy_lambda * steps
        node[0] = nodes.values[i]
        out.advantages[i] = node[2] * (1 - 2 * nodes.mover[i])
