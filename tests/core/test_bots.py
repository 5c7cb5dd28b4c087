"""Tests of the random and the greedy bot."""

import random
from collections import Counter

import numpy as np
import numpy.typing as npt
from positions import random_position

from tokaido_env import Game, Phase
from tokaido_env.core.actions import IDS, N_ACTIONS
from tokaido_env.core.bots import greedy_actions, random_actions
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.core.state import STATE

POSITIONS = 40 if INTERPRETED else 400
KEYS = 30 if INTERPRETED else 200  # enough for each of several tied actions to occur


def keys(n: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(0).integers(2**64, size=n, dtype=np.uint64)


def greedy_choices(game: Game, n: int = KEYS) -> set[int]:
    """Return the actions of the greedy bot in a position over many keys."""
    actions = np.empty(n, np.int64)
    masks = np.full(n, game.legal_mask, np.uint64)
    states = np.repeat(game.states, n)
    greedy_actions(game.boards, states, masks, keys(n), np.empty(2, STATE), actions)
    assert (states == game.states).all()
    return set(actions.tolist())


# Random


def test_random_actions__picks_by_the_high_bits_of_the_key() -> None:
    """For any mask and any key."""
    rng = random.Random(0)
    masks = [rng.getrandbits(64) & rng.getrandbits(64) | 1 << rng.randrange(64) for _ in range(500)]
    masks += [1 << place for place in range(64)] + [2**64 - 1] * 50 + [(1 << N_ACTIONS) - 1] * 50
    bits = [rng.getrandbits(64) for _ in masks[2:]] + [0, 2**64 - 1]
    actions = np.empty(len(masks), np.int64)
    random_actions(np.array(masks, np.uint64), np.array(bits, np.uint64), actions)
    for mask, key, action in zip(masks, bits, actions.tolist(), strict=True):
        possible = [place for place in range(64) if mask >> place & 1]
        assert action == possible[len(possible) * (key >> 32) // 2**32]


# Greedy


def value(game: Game, seat: int) -> tuple[int, int]:
    """Return the margin in points, then in coins."""
    mine, theirs = game.scores()[seat]["total"], game.scores()[1 - seat]["total"]
    coins = [player["coins"] for player in game.to_dict()["players"]]
    return mine - theirs, coins[seat] - coins[1 - seat]


def after(game: Game, label: str) -> Game:
    other = game.copy()
    other.play(label)
    return other


def action_value(game: Game, label: str, seat: int) -> tuple[int, int, bool]:
    """Return the value of an action with its best effect, and whether an effect is used."""
    then = after(game, label)
    used = game.phase == Phase.EFFECT and label != "pass"
    options = [(*value(then, seat), used)]
    if game.phase != Phase.EFFECT and then.phase == Phase.EFFECT:
        effects = [effect for effect in then.legal_labels() if effect != "pass"]
        options += [(*value(after(then, effect), seat), True) for effect in effects]
    return max(options)


def best_actions(game: Game) -> set[int]:
    """Return the best actions by a one-ply search over copies of the game."""
    assert game.player is not None
    values = {label: action_value(game, label, game.player) for label in game.legal_labels()}
    return {IDS[label] for label, value in values.items() if value == max(values.values())}


def test_greedy_actions__agree_with_a_search_in_random_positions() -> None:
    for seed in range(POSITIONS):
        game = Game.from_dict(random_position(random.Random(seed)), chance="explicit")
        assert greedy_choices(game) == best_actions(game), f"seed {seed}"


def test_greedy_actions__agree_with_a_search_in_every_phase() -> None:
    phases: Counter[Phase] = Counter()
    rng = random.Random(0)
    playing = Game(seed=0)
    while phases.total() < 2 * POSITIONS:
        if playing.is_over:
            playing = Game(seed=phases.total())
        if playing.phase != Phase.MOVE or rng.random() < 0.3:
            game = Game.from_dict(playing.to_dict(), chance="explicit")
            assert greedy_choices(game) == best_actions(game), playing.to_dict()
            phases[game.phase] += 1
        playing.play(rng.choice(playing.legal_actions()))
    assert INTERPRETED or set(phases) == {Phase.MOVE, Phase.EFFECT, Phase.DISCARD, Phase.REPEAT}
