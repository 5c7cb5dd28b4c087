"""Tests of random numbers: the probabilities of outcomes, and the same dice for any moves."""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from positions import Position, position, random_move

from tokaido_env import Game, game_seed
from tokaido_env.core.arguments import MAX_SEED, check_seed
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.core.rng import episode_seed

SAMPLES = 300 if INTERPRETED else 5000

Labels = tuple[str, ...]

# My merchant may draw two wares, my artist in A1 may paint two, and my last effect can be passed.
TO_DRAW = position(
    phase="EFFECT",
    die="merchant",
    left=["artist"],
    lead=1,
    mine={"merchant": "M2", "wares": {"kimono": 3, "fan": 1}},
)
TO_PAINT = position(
    phase="EFFECT",
    die="artist",
    left=[],
    origin="A8",
    mine={"artist": "A1", "hidden": {"moon": 1, "waterfall": 3, "bamboo": 2}},
)
TO_ROLL = position(phase="EFFECT", die="pilgrim", left=[], mine={"pilgrim": 1})


def odds_after(start: Position, move: str, draws: int) -> dict[Labels, float]:
    """Return the probabilities, by `outcomes`, of the first draws after a move."""
    game = Game.from_dict(start, chance="explicit")
    game.play(move)
    odds: dict[Labels, float] = {(): 1.0}
    for _ in range(draws):
        odds = dict(with_another_draw(game, odds))
    return odds


def with_another_draw(game: Game, odds: Mapping[Labels, float]) -> Iterator[tuple[Labels, float]]:
    for drawn, chance in odds.items():
        branch = game.copy()
        for label in drawn:
            branch.play(label)
        for label, then in branch.outcomes():
            yield (*drawn, label), chance * then


def draws_after(copies: Iterable[Game], move: str, draws: int) -> Counter[Labels]:
    """Count the first draws after a move in copies of a game."""
    seen: Counter[Labels] = Counter()
    for game in copies:
        game.play(move)
        seen[tuple(game.events()[1 : draws + 1])] += 1
    return seen


def assert_fits(seen: Counter[Any], odds: Mapping[Any, float]) -> None:
    """Assert that Pearson's chi-square is within five standard deviations of its mean."""
    assert not set(seen) - set(odds)
    n = seen.total()
    chi_square = sum((seen[key] - n * p) ** 2 / (n * p) for key, p in odds.items())
    freedom = len(odds) - 1
    assert chi_square < freedom + 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("seeded", [True, False], ids=["seeds", "new luck"])
@pytest.mark.parametrize(
    ("start", "move", "draws"),
    [(TO_DRAW, "draw", 2), (TO_PAINT, "paint", 2), (TO_ROLL, "pass", 1)],
    ids=["wares", "tiles", "dice"],
)
def test_sample__has_the_probabilities_of_outcomes(
    start: Position, move: str, draws: int, seeded: bool
) -> None:
    game = Game.from_dict(start, seed=0, chance="sampled")
    copies = (game.copy(seed=seed) if seeded else game.copy() for seed in range(SAMPLES))
    assert_fits(draws_after(copies, move, draws), odds_after(start, move, draws))


def test_sample__has_the_probabilities_of_set_up() -> None:
    seen: list[Counter[str]] = [Counter() for _ in range(11)]
    sides: Counter[Labels] = Counter()
    side_and_roll: Counter[tuple[str, str]] = Counter()
    for seed in range(SAMPLES):
        events = Game(seed=seed).events()
        for step in range(11):
            seen[step][events[step].partition("=")[2]] += 1
        sides[tuple(events[8:11])] += 1
        side_and_roll[events[8], events[11][:6]] += 1
    tokens = {"kimono/4": 1 / 4, "pottery/4": 1 / 8, "pottery/3": 1 / 8}
    tokens |= {"doll/3": 1 / 8, "doll/2": 1 / 8, "fan/2": 1 / 4}
    for town in range(8):
        assert_fits(seen[town], tokens)
    assert len(sides) == 8
    assert_fits(sides, dict.fromkeys(sides, 1 / 8))
    rolls = {"roll:1": 1 / 6, "roll:2": 1 / 3, "roll:3": 1 / 3, "roll:4": 1 / 6}
    sides_of_one = ("side:pilgrim=tranquil", "side:pilgrim=hasty")
    odds = {(side, roll): rolls[roll] / 2 for side in sides_of_one for roll in rolls}
    assert_fits(side_and_roll, odds)


def dice_of_rounds(seed: int, moves: int) -> list[tuple[int, int, int]]:
    """Return the dice of each round of a game with random moves; `moves` is their seed."""
    rng = random.Random(moves)
    game = Game(seed=seed)
    dice = []
    while not game.is_over:
        if len(dice) < game.rounds:
            dice.append(tuple(game.to_dict()["dice"].values()))
        game.play(random_move(game, rng))
    return dice


def test_sample__rolls_independent_dice() -> None:
    rolls, pairs = Counter[Any](), Counter[Any]()
    for seed in range(4 if INTERPRETED else 100):
        dice = dice_of_rounds(seed, seed)
        rolls.update(dice)
        pairs.update((a[0], b[0]) for a, b in itertools.pairwise(dice))
    pilgrim = {1: 1 / 6, 2: 1 / 3, 3: 1 / 3, 4: 1 / 6}
    assert_fits(pairs, {(a, b): pilgrim[a] * pilgrim[b] for a in pilgrim for b in pilgrim})
    faces = (1, 2, 3)
    assert_fits(rolls, {(p, m, a): pilgrim[p] / 9 for p in pilgrim for m in faces for a in faces})


# Streams


def test_sample__rolls_the_same_dice_for_any_moves() -> None:
    first, second, other = (dice_of_rounds(*seeds) for seeds in ((3, 1), (3, 2), (103, 1)))
    together = min(len(first), len(second))
    assert first[:together] == second[:together] != other[:together]


# Episodes


def test_episode_seed__differs_between_episodes() -> None:
    seeds = [episode_seed(seed, episode) for seed in range(50) for episode in range(50)]
    assert len(set(seeds)) == 2500
    assert all(0 <= seed <= MAX_SEED for seed in seeds)
    games = {tuple(Game(seed=seed).events()) for seed in seeds[:50]}
    assert len(games) == 50


# Games of a seed


def splitmix64(key: int, count: int) -> int:
    """Return output `count` of SplitMix64, by the pseudocode of Steele, Lea and Flood (2014)."""
    z = (key + count * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def test_game_seed__is_a_frozen_hash() -> None:
    """Records, results and papers contain seeds, so their games must not change."""
    purpose = (11 << 56) + 1
    for seed, game in itertools.product((0, 1, 7, 2**32, MAX_SEED), (0, 1, 255, 10**6)):
        expected = splitmix64(splitmix64(seed, purpose), purpose + game) % 2**53
        assert game_seed(seed, game) == expected
    assert game_seed(10**400, 3) == game_seed(check_seed(10**400), 3)


def test_game_seed__seeds_at_any_distance_have_no_game_in_common() -> None:
    """SplitMix64's outputs of two keys are the same stream, shifted, at multiples of its step."""
    step = 0x9E3779B97F4A7C15
    far = [seed for k in range(100_000) if (seed := k * step % 2**64) <= MAX_SEED]
    assert len(far) > 10
    chosen = [*range(50), 10**9, *far[1:30], *(seed + 1 for seed in far[1:30])]
    seeds = [game_seed(seed, game) for seed in chosen for game in range(200)]
    assert len(set(seeds)) == len(seeds)
    assert abs(np.mean(seeds) / 2**52 - 1) < 0.02
