"""Tests of random numbers: the probabilities of outcomes, and independent streams."""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from positions import Position, changed, position, random_move

from tokaido_env import Game
from tokaido_env.core.arguments import MAX_SEED
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


def test_assert_fits__fails_for_other_probabilities() -> None:
    game = Game.from_dict(TO_DRAW, seed=0, chance="sampled")
    seen = draws_after((game.copy() for _ in range(SAMPLES)), "draw", 1)
    even = {(f"ware:{ware}",): 1 / 4 for ware in ("kimono", "pottery", "doll", "fan")}
    with pytest.raises(AssertionError):
        assert_fits(seen, even)


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


@pytest.mark.parametrize("seed", range(5))
def test_sample__rolls_the_same_dice_for_any_moves(seed: int) -> None:
    first, second = (dice_of_rounds(seed, moves) for moves in (1, 2))
    together = min(len(first), len(second))
    assert first[:together] == second[:together]
    assert dice_of_rounds(seed + 100, 1)[:together] != first[:together]


def drawn(start: Position, move: str, seed: int, draws: int = 1) -> list[str]:
    game = Game.from_dict(start, seed=seed, chance="sampled")
    game.play(move)
    return game.events()[1 : draws + 1]


def test_sample__draws_the_same_wares_after_other_draws() -> None:
    """The wares come from the same numbers at once or after a visit and a painting."""
    start = position(dice=(1, 1, 1))
    for seed in range(20):
        earlier = Game.from_dict(start, seed=seed)
        later = earlier.copy(luck="same")
        for move in ("merchant:M2", "draw"):
            earlier.play(move)
        for move in ("artist:A1", "paint", "pilgrim", "visit", "merchant:M2", "draw"):
            later.play(move)
        wares = [game.to_dict()["players"][0]["wares"] for game in (earlier, later)]
        assert wares[0] == wares[1]


def test_sample__draws_wares_from_a_stream_for_each_seat() -> None:
    """Seats 0 and 1 make the same draw from the same bag."""
    mirrored = position(
        phase="EFFECT",
        die="merchant",
        left=["artist"],
        theirs={"merchant": "M2", "wares": {"kimono": 3, "fan": 1}},
    )
    assert mirrored["bag"] == TO_DRAW["bag"]
    pairs = [(drawn(TO_DRAW, "draw", s), drawn(mirrored, "draw", s)) for s in range(20)]
    assert any(mine != theirs for mine, theirs in pairs)


def test_sample__counts_the_wares_drawn_not_those_held() -> None:
    """With a full hand: draw two wares, return them, and draw from the same bag again."""
    full = {"merchant": "M3", "wares": {"doll": 1, "fan": 4}}
    differ = 0
    for seed in range(20):
        game = Game.from_dict(position(dice=(1, 1, 1), hot_spring=0, mine=full), seed=seed)
        first = draw_and_return(game, "M2", number=2)
        again = draw_and_return(game, "M3", number=4)
        differ += first != again[:2]
    assert differ > 0


def draw_and_return(game: Game, town: str, number: int) -> list[str]:
    """Draw the wares of a town and return the same wares; return their names."""
    bag = game.to_dict()["bag"]
    game.play(f"merchant:{town}")
    game.play("draw")
    wares = [event.partition(":")[2] for event in game.events()[-number:]]
    for ware in wares:
        game.play(f"discard:{ware}")
    assert game.to_dict()["bag"] == bag
    return wares


def test_sample__reveals_the_same_tiles_in_other_positions() -> None:
    later = changed(TO_PAINT, "round", 9)
    later["players"][1]["temple"] = 5
    for seed in range(20):
        assert drawn(TO_PAINT, "paint", seed, 2) == drawn(later, "paint", seed, 2)


# Episodes


def test_episode_seed__differs_between_episodes() -> None:
    seeds = [episode_seed(seed, episode) for seed in range(50) for episode in range(50)]
    assert len(set(seeds)) == 2500
    assert all(0 <= seed <= MAX_SEED for seed in seeds)
    games = {tuple(Game(seed=seed).events()) for seed in seeds[:50]}
    assert len(games) == 50
