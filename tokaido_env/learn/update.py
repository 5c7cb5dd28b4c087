"""One update of a network: PPO on the decisions of some games, and the value of all their nodes.

Schulman et al. 2017, "Proximal policy optimization algorithms". The value is learnt as the odds of
winning, by cross entropy with the returns, which weighs what is nearly decided as much as the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from tokaido_env.learn.network import AUXILIARY, Moves, PolicyNetwork
from tokaido_env.learn.returns import Nodes, returns_of
from tokaido_env.learn.rollouts import STEP, Rollout, moves_of, padded, spread
from tokaido_env.learn.settings import SelfPlaySettings

_TRIGGERS = 5
_POINTS, _ROUNDS = 20.0, 10.0  # units of the auxiliary predictions


class Losses(NamedTuple):
    """Means over the minibatches of an update."""

    policy: float
    entropy: float
    value: float
    auxiliary: float
    divergence: float
    clipped: float


class Targets(NamedTuple):
    """What is learnt from games."""

    advantages: torch.Tensor
    values: torch.Tensor
    """(n + m,), of decisions, then chance, for who sees the node, in [-1, 1]."""
    weights: torch.Tensor
    """(n + m,), of the nodes in the value's loss, 1 in the mean."""
    auxiliary: torch.Tensor
    """(n + m, AUXILIARY - 4): numbers, and last which trigger it was."""


def targets_of(
    played: Rollout,
    settings: SelfPlaySettings,
    tensor: Callable[[npt.NDArray[Any]], torch.Tensor] = torch.from_numpy,
) -> Targets:
    """Return what is to be learnt from games; `tensor` makes a tensor of an array."""
    d, c = played.decisions, played.chances
    nodes = Nodes(d.game, d.mover, d.value, d.chance, c.value, played.results)
    found = returns_of(nodes, settings.value_lambda, settings.policy_lambda, settings.chance_weight)
    seat = np.concatenate([d.mover, c.viewer])
    game = np.concatenate([d.game, d.game[c.decision]])
    rounds = np.concatenate([d.round, d.round[c.decision]])
    weights = np.where(rounds >= settings.late_round_from, settings.late_round_weight, 1.0).astype(
        np.float32
    )
    return Targets(
        tensor(found.advantages),
        tensor(np.concatenate([found.targets, found.chance_targets]) * (1 - 2 * seat)),
        tensor(weights / weights.mean()),
        tensor(_auxiliary_targets(played, game, seat, rounds)),
    )


def _auxiliary_targets(
    played: Rollout, game: npt.NDArray[Any], seat: npt.NDArray[Any], rounds: npt.NDArray[Any]
) -> npt.NDArray[np.float32]:
    ends = played.ends[game].astype(np.float32)
    sides = ends[:, :6].reshape(-1, 2, 3)
    rows = np.arange(len(game))
    mine, theirs = sides[rows, seat], sides[rows, 1 - seat]
    margin = (mine.sum(1) - theirs.sum(1)) / _POINTS
    left = (ends[:, 6] - rounds) / _ROUNDS
    columns = (margin[:, None], mine / _POINTS, theirs / _POINTS, left[:, None], ends[:, 7:])
    return np.asarray(np.concatenate(columns, axis=1), np.float32)


class Minibatch(NamedTuple):
    """Some decisions, and nodes at chance beside them."""

    decisions: torch.Tensor
    """int64 (b,)."""
    chances: torch.Tensor
    """int64 (c,)."""


def minibatches(n: int, m: int, size: int, generator: torch.Generator) -> Iterator[Minibatch]:
    """Deal n decisions and m nodes at chance, in an order that is drawn, to minibatches.

    All have `size` decisions, those left are dropped.
    """
    decisions = torch.randperm(n, generator=generator)
    chances = torch.randperm(m, generator=generator)
    count = max(1, n // size)
    of_chance = m // count
    for i in range(count):
        yield Minibatch(
            decisions[i * size : (i + 1) * size], chances[i * of_chance : (i + 1) * of_chance]
        )


def update(
    network: PolicyNetwork,
    optimizer: torch.optim.Optimizer,
    played: Rollout,
    settings: SelfPlaySettings,
    generator: torch.Generator,
) -> Losses:
    """Improve a network by games that it has played.

    Raises:
        FloatingPointError: naming the minibatch, if a loss is not finite; the weights are those
            before it.
    """
    targets = targets_of(played, settings, network.tensor)
    data = _Data(played, network)
    n, m = len(played.decisions.game), len(played.chances.decision)
    sums, count = torch.zeros(len(Losses._fields)), 0
    for _ in range(settings.epochs):
        for rows in minibatches(n, m, settings.minibatch_size, generator):
            optimizer.zero_grad()
            on = Minibatch(*(each.to(data.board.device) for each in rows))
            loss, told = _losses(network, data, targets, on, settings)
            if not torch.isfinite(loss):
                raise FloatingPointError(f"minibatch {count + 1}: the loss is {loss.item()}")
            loss.backward()  # type: ignore[no-untyped-call]
            for group in optimizer.param_groups:
                torch.nn.utils.clip_grad_norm_(group["params"], settings.max_grad_norm)
            optimizer.step()
            sums += told.cpu()
            count += 1
    return Losses(*(sums / count).tolist())


class _Data:
    """The decisions and the nodes at chance of games, to take rows from."""

    def __init__(self, played: Rollout, network: PolicyNetwork) -> None:
        d = played.decisions
        self.played, self._tensor = played, network.tensor
        self.counts = np.bitwise_count(d.legal).astype(np.int64)
        self.begins = np.cumsum(self.counts) - self.counts
        self.board = self._tensor(d.board)
        self.chance_board = self._tensor(d.board[played.chances.decision])
        self.action = self._tensor(d.action)
        self.log_odds = self._tensor(d.log_odds)

    def moves(self, decisions: torch.Tensor) -> tuple[Moves, int]:
        """Return the legal actions of decisions, padded, and how many there are."""
        d, rows = self.played.decisions, decisions.cpu().numpy()
        position, action = moves_of(d.legal[rows])
        first = self.begins[rows] - (np.cumsum(self.counts[rows]) - self.counts[rows])
        k = len(position)
        where = first[position] + np.arange(k)
        to = -(-k // (4 * STEP)) * 4 * STEP
        places, *moves = (padded(self._tensor(x), to) for x in (where, position, action))
        return Moves(d.results.index_select(0, places), *moves), k


def _losses(
    network: PolicyNetwork,
    data: _Data,
    targets: Targets,
    rows: Minibatch,
    settings: SelfPlaySettings,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of a minibatch, and `Losses` of it."""
    d, c = data.played.decisions, data.played.chances
    inputs = d.inputs.index_select(0, rows.decisions)
    board = data.board[rows.decisions]
    moves, k = data.moves(rows.decisions)
    scores, values, auxiliary = network(inputs, moves, board)
    position, action = moves.position[:k], moves.action[:k]
    log_policy = torch.log_softmax(spread(scores[:k], position, action, len(inputs)), 1)
    policy, entropy, divergence, clipped = _policy_loss(
        log_policy,
        log_policy[position, action],
        data.action[rows.decisions],
        data.log_odds[rows.decisions],
        targets.advantages[rows.decisions],
        settings.clip_range,
    )
    of_chance = network.values(
        c.inputs.index_select(0, rows.chances), data.chance_board[rows.chances]
    )
    nodes = torch.cat([rows.decisions, len(d.game) + rows.chances])
    odds, weight = (targets.values[nodes] + 1) / 2, targets.weights[nodes]
    logits = 2 * torch.cat([values, of_chance[0]])
    value = binary_cross_entropy_with_logits(logits, odds, weight=weight)
    beside = _auxiliary_loss(torch.cat([auxiliary, of_chance[1]]), targets.auxiliary[nodes])
    loss = policy - settings.entropy_coef * entropy + value + settings.auxiliary_weight * beside
    told = torch.stack([policy, entropy, value, beside, divergence, clipped])
    return loss, told.detach()


def _policy_loss(
    log_policy: torch.Tensor,
    of_legal: torch.Tensor,
    action: torch.Tensor,
    log_odds: torch.Tensor,
    advantages: torch.Tensor,
    clip: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the clipped loss, the entropy, how far the policy has gone, and the share clipped."""
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    change = log_policy.gather(1, action[:, None])[:, 0] - log_odds
    ratio = change.exp()
    near = ratio.clamp(1 - clip, 1 + clip)
    loss = -torch.minimum(ratio * advantages, near * advantages).mean()
    entropy = -(of_legal.exp() * of_legal).sum() / len(action)
    divergence = (ratio - 1 - change).mean()
    return loss, entropy, divergence, (ratio != near).float().mean()


def _auxiliary_loss(told: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    numbers = AUXILIARY - _TRIGGERS
    error = torch.nn.functional.smooth_l1_loss(told[:, :numbers], truth[:, :numbers])
    return error + cross_entropy(told[:, numbers:], truth[:, numbers].long())
