"""Positions with a known value: the last picks of the last round, solved by exhaustive search."""

import itertools
from collections.abc import Iterator

from networks import random_play

from tokaido_env import Game
from tokaido_env.core.state import CHANCE_PHASES

MAX_POSITIONS = 1000  # behind one that is solved

_results: dict[tuple[str, bytes], float] = {}


def last_positions(dice: int = 1) -> Iterator[Game]:
    """Yield last picks of the last round with level scores, where not all actions are equally good.

    Args:
        dice: the highest number of dice left; with two the other player decides too.
    """
    for game, _ in random_play(games=200, max_rounds=30):
        if game.phase in CHANCE_PHASES or len(game.legal_actions()) < 2:
            continue
        if len(game.to_dict()["dice_left"]) <= dice:
            level = game.copy()
            for name in ("temple", "garden", "gold", "gifted", "coins"):
                level.states[name] = level.states[name][:, :1]
            level.states["end_triggered"] = 1
            if is_small(level) and len({round(v, 6) for v in solve(level).values()}) > 1:
                yield level


def is_small(game: Game) -> bool:
    """Return whether solving a position takes at most a second."""
    behind = itertools.islice(positions_behind(game), MAX_POSITIONS)
    return sum(1 for _ in behind) < MAX_POSITIONS


def solve(game: Game) -> dict[int, float]:
    """Return the expected result of player_0 under best play, by legal action."""
    values = {}
    for action in game.legal_actions():
        after = game.copy()
        after.play(action)
        values[action] = expected_result(after)
    return values


def expected_result(game: Game) -> float:
    """Return the expected result of player_0 under best play, computed once for a position."""
    key = game.board.hash, game.states.tobytes()
    if key not in _results:
        _results[key] = _expected_result(game)
    return _results[key]


def _expected_result(game: Game) -> float:
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
    """Return the best of the values of actions for the player to decide."""
    return (max if game.player == 0 else min)(values.values())


def decides_twice(game: Game) -> bool:
    """Return whether the player to decide may decide again at once."""
    player = game.player
    for action in game.legal_actions():
        after = game.copy()
        after.play(action)
        if not after.is_over and after.player == player:
            return True
    return False


def positions_behind(game: Game) -> Iterator[Game]:
    """Yield a position and all positions that it can lead to."""
    yield game
    if game.is_over:
        return
    chance = game.phase in CHANCE_PHASES
    for move in [label for label, _ in game.outcomes()] if chance else game.legal_actions():
        after = game.copy()
        after.play(move)
        yield from positions_behind(after)
