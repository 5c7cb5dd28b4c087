"""Positions whose value can be computed: the last picks of the last round, solved by hand."""

import itertools
from collections.abc import Iterator

import numpy as np

from tokaido_env import Game
from tokaido_env.core.state import CHANCE_PHASES

MOST_BEHIND = 1000  # positions behind one that is solved here


def last_positions(dice: int = 1) -> Iterator[Game]:
    """The last picks of the last round, scores level, where not every action is as good.

    Args:
        dice: at most so many are left. The other player decides too if there are two.
    """
    for seed in range(200):
        game, rng = Game(seed=seed, chance="explicit"), np.random.default_rng(seed)
        while not game.is_over and game.rounds < 30:
            if game.phase in CHANCE_PHASES:
                labels, odds = zip(*game.outcomes(), strict=True)
                game.play(labels[rng.choice(len(labels), p=odds)])
                continue
            if len(game.to_dict()["dice_left"]) <= dice and len(game.legal_actions()) > 1:
                level = game.copy()
                for name in ("temple", "garden", "gold", "gifted", "coins"):
                    level.states[name] = level.states[name][:, :1]
                level.states["end_triggered"] = 1
                if is_small(level) and len({round(v, 6) for v in solve(level).values()}) > 1:
                    yield level
            labels = [label for label in game.legal_labels() if label != "pass"]
            game.play(labels[rng.integers(len(labels))] if labels else "pass")


def is_small(game: Game) -> bool:
    """Whether solving a position takes no more than a second."""
    behind = itertools.islice(positions_behind(game), MOST_BEHIND)
    return sum(1 for _ in behind) < MOST_BEHIND


def solve(game: Game) -> dict[int, float]:
    """The result that player_0 can expect under best play after each legal action."""
    values = {}
    for action in game.legal_actions():
        after = game.copy()
        after.play(action)
        values[action] = expected_result(after)
    return values


def expected_result(game: Game) -> float:
    if game.is_over:
        return {0: 1.0, 1: -1.0, None: 0.0}[game.winner()]
    if game.phase in CHANCE_PHASES:
        total = 0.0
        for label, chance in game.outcomes():
            after = game.copy()
            after.play(label)
            total += chance * expected_result(after)
        return total
    return best(game, solve(game))


def best(game: Game, values: dict[int, float]) -> float:
    """The best of the values of actions, for the player to decide."""
    return (max if game.player == 0 else min)(values.values())


def decides_twice(game: Game) -> bool:
    """Whether the player to decide may decide again at once."""
    player = game.player
    for action in game.legal_actions():
        after = game.copy()
        after.play(action)
        if not after.is_over and after.player == player:
            return True
    return False


def positions_behind(game: Game) -> Iterator[Game]:
    """A position and all that can come of it."""
    yield game
    if game.is_over:
        return
    chance = game.phase in CHANCE_PHASES
    for move in [label for label, _ in game.outcomes()] if chance else game.legal_actions():
        after = game.copy()
        after.play(move)
        yield from positions_behind(after)
