"""Luck: what chance draws has the odds that `outcomes` gives, in streams split by purpose."""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from positions import Position, changed, position, some_move

from tokaido_env import Game
from tokaido_env.core.arguments import MAX_SEED
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.core.rng import episode_seed

SAMPLES = 300 if INTERPRETED else 5000

Labels = tuple[str, ...]

# My merchant is about to draw two, my artist in A1 to paint two, my last die to be passed over.
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


def odds_after(where: Position, move: str, draws: int) -> dict[Labels, float]:
    """What `outcomes` says of so many draws after a move, one after the other."""
    game = Game.from_dict(where, chance="explicit")
    game.play(move)
    odds: dict[Labels, float] = {(): 1.0}
    for _ in range(draws):
        odds = dict(with_one_draw_more(game, odds))
    return odds


def with_one_draw_more(game: Game, odds: Mapping[Labels, float]) -> Iterator[tuple[Labels, float]]:
    for drawn, chance in odds.items():
        branch = game.copy()
        for label in drawn:
            branch.play(label)
        for label, then in branch.outcomes():
            yield (*drawn, label), chance * then


def draws_after(copies: Iterable[Game], move: str, draws: int) -> Counter[Labels]:
    """What chance draws after a move, in each of some copies of a game."""
    seen: Counter[Labels] = Counter()
    for game in copies:
        game.play(move)
        seen[tuple(game.events()[1 : draws + 1])] += 1
    return seen


def assert_fits(seen: Counter[Any], odds: Mapping[Any, float]) -> None:
    """Assert that Pearson's chi-square lies within five deviations of what chance gives."""
    assert not set(seen) - set(odds)
    n = seen.total()
    chi_square = sum((seen[key] - n * p) ** 2 / (n * p) for key, p in odds.items())
    freedom = len(odds) - 1
    assert chi_square < freedom + 5 * (2 * freedom) ** 0.5


CHANCES = pytest.mark.parametrize(
    ("where", "move", "draws"),
    [(TO_DRAW, "draw", 2), (TO_PAINT, "paint", 2), (TO_ROLL, "pass", 1)],
    ids=["wares", "tiles", "dice"],
)


@CHANCES
def test_sampled_outcomes_have_the_odds_of_outcomes(where: Position, move: str, draws: int) -> None:
    game = Game.from_dict(where, seed=0, chance="sampled")
    copies = (game.copy(seed=seed) for seed in range(SAMPLES))
    assert_fits(draws_after(copies, move, draws), odds_after(where, move, draws))


@CHANCES
def test_fresh_copies_have_the_odds_of_outcomes(where: Position, move: str, draws: int) -> None:
    game = Game.from_dict(where, seed=0, chance="sampled")
    copies = (game.copy() for _ in range(SAMPLES))
    assert_fits(draws_after(copies, move, draws), odds_after(where, move, draws))


def test_the_check_of_odds_can_fail() -> None:
    game = Game.from_dict(TO_DRAW, seed=0, chance="sampled")
    seen = draws_after((game.copy() for _ in range(SAMPLES)), "draw", 1)
    even = {(f"ware:{ware}",): 1 / 4 for ware in ("kimono", "pottery", "doll", "fan")}
    with pytest.raises(AssertionError):
        assert_fits(seen, even)


def test_set_up_has_its_odds() -> None:
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
    """The dice of each round of a game, played with random moves of a seed of their own."""
    rng = random.Random(moves)
    game = Game(seed=seed)
    dice = []
    while not game.is_over:
        if len(dice) < game.rounds:
            dice.append(tuple(game.to_dict()["dice"].values()))
        game.play(some_move(game, rng))
    return dice


def test_the_dice_of_a_game_are_independent_of_each_other() -> None:
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
def test_dice_are_the_same_whatever_is_played(seed: int) -> None:
    first, second = (dice_of_rounds(seed, moves) for moves in (1, 2))
    together = min(len(first), len(second))
    assert first[:together] == second[:together]
    assert dice_of_rounds(seed + 100, 1)[:together] != first[:together]


def drawn(where: Position, move: str, seed: int, draws: int = 1) -> list[str]:
    game = Game.from_dict(where, seed=seed, chance="sampled")
    game.play(move)
    return game.events()[1 : draws + 1]


def test_wares_are_the_same_before_and_after_other_draws() -> None:
    """My two wares come from the same numbers, first thing or after a visit and a painting."""
    where = position(dice=(1, 1, 1))
    for seed in range(20):
        early = Game.from_dict(where, seed=seed)
        late = early.copy(luck="same")
        for move in ("merchant:M2", "draw"):
            early.play(move)
        for move in ("artist:A1", "paint", "pilgrim", "visit", "merchant:M2", "draw"):
            late.play(move)
        wares = [game.to_dict()["players"][0]["wares"] for game in (early, late)]
        assert wares[0] == wares[1]


def test_wares_of_the_seats_are_different_streams() -> None:
    """The same bag and the same draw, by seat 0 and by seat 1."""
    mirrored = position(
        phase="EFFECT",
        die="merchant",
        left=["artist"],
        theirs={"merchant": "M2", "wares": {"kimono": 3, "fan": 1}},
    )
    assert mirrored["bag"] == TO_DRAW["bag"]
    pairs = [(drawn(TO_DRAW, "draw", s), drawn(mirrored, "draw", s)) for s in range(20)]
    assert any(mine != theirs for mine, theirs in pairs)


def test_wares_go_by_how_many_were_drawn_not_by_how_many_are_held() -> None:
    """With a full hand: draw two and return them, go and draw from the same bag again."""
    full = {"merchant": "M3", "wares": {"doll": 1, "fan": 4}}
    differ = 0
    for seed in range(20):
        game = Game.from_dict(position(dice=(1, 1, 1), hot_spring=0, mine=full), seed=seed)
        first = draw_and_return(game, "M2", number=2)
        again = draw_and_return(game, "M3", number=4)
        differ += first != again[:2]
    assert differ > 0


def draw_and_return(game: Game, town: str, number: int) -> list[str]:
    """Go to a town, draw its wares and return the same; their names."""
    bag = game.to_dict()["bag"]
    game.play(f"merchant:{town}")
    game.play("draw")
    wares = [event.partition(":")[2] for event in game.events()[-number:]]
    for ware in wares:
        game.play(f"discard:{ware}")
    assert game.to_dict()["bag"] == bag
    return wares


def test_tiles_do_not_depend_on_the_rest_of_the_game() -> None:
    later = changed(TO_PAINT, "round", 9)
    later["players"][1]["temple"] = 5
    for seed in range(20):
        assert drawn(TO_PAINT, "paint", seed, 2) == drawn(later, "paint", seed, 2)


# Episodes


def test_episode_seed__all_episodes_are_other_games() -> None:
    seeds = [episode_seed(seed, episode) for seed in range(50) for episode in range(50)]
    assert len(set(seeds)) == 2500
    assert all(0 <= seed <= MAX_SEED for seed in seeds)
    games = {tuple(Game(seed=seed).events()) for seed in seeds[:50]}
    assert len(games) == 50
