"""Expectimax against a naive search over copies of `Game` without cut-offs."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from evaluated import value_of
from networks import decisions
from positions import game_at, play, random_position

from tokaido_env import Game, Phase
from tokaido_env.agents.expectimax import _SAMPLED, ExpectimaxAgent
from tokaido_env.core.actions import IDS
from tokaido_env.core.constants import ICONS, WARES
from tokaido_env.core.jit import INTERPRETED, entry
from tokaido_env.core.rng import LUCK, hash_bits, init_luck, sample

KEY = 1234567
PIECES = (Phase.DRAW, Phase.REVEAL)


@entry
def _piece(boards: Any, states: Any, lucks: Any) -> int:
    return sample(boards[0], states[0], lucks[0])


@entry
def _begin(lucks: Any, key: int, picks: int, outcome: int) -> None:
    init_luck(lucks[0], hash_bits(np.uint64(key), _SAMPLED, picks, outcome))


def after(game: Game, move: int | str) -> Game:
    child = game.copy()
    child.play(move)
    return child


def after_draw(game: Game, first: int, picks: int) -> Game:
    """Return the game after a draw: the first ware or painting is given, the others are sampled."""
    lucks = np.zeros(1, LUCK)
    _begin(lucks, KEY, picks, first)
    game = after(game, first)
    while game.phase in PIECES:
        game.play(_piece(game.boards, game.states, lucks))
    return game


def expected(game: Game, picks: int, *, exact: bool = False) -> float:
    """Return the expected result of player_0 by a search without cut-offs.

    Args:
        picks: the picks to search after the one that has begun.
        exact: whether all draws are exact, none sampled.
    """
    if game.is_over or (picks == 0 and game.phase in (Phase.MOVE, Phase.ROLL)):
        return value_of(game.state)
    if game.phase == Phase.ROLL or (exact and game.phase in PIECES):
        each = ((odds, after(game, label)) for label, odds in game.outcomes())
        return sum(odds * expected(child, picks, exact=exact) for odds, child in each)
    if game.phase in PIECES:
        kinds = WARES if game.phase == Phase.DRAW else ICONS
        pieces = [(kinds.index(label[5:]), odds) for label, odds in game.outcomes()]
        return sum(odds * expected(after_draw(game, k, picks), picks) for k, odds in pieces)
    best = max if game.player == 0 else min
    if game.phase == Phase.DISCARD:
        ware = best(game.legal_actions(), key=lambda ware: value_of(after(game, ware).state))
        return expected(after(game, ware), picks, exact=exact)
    picks -= game.phase == Phase.MOVE
    return best(expected(after(game, a), picks, exact=exact) for a in game.legal_actions())


def perfect_result(game: Game) -> int:
    """Return the result of perfect play in a last round in which draws cannot matter."""
    if game.is_over:
        return {0: 1, 1: -1, None: 0}[game.winner()]
    if not game.legal_mask:
        return perfect_result(after(game, game.outcomes()[0][0]))
    best = max if game.player == 0 else min
    return best(perfect_result(after(game, action)) for action in game.legal_actions())


def searched(game: Game, depth: int, key: int = KEY) -> tuple[int, float]:
    mask, keys = np.array([game.legal_mask], np.uint64), np.array([key], np.uint64)
    actions, values = ExpectimaxAgent(depth).search(game.boards, game.states, mask, keys)
    return int(actions[0]), float(values[0])


def check_against_naive(game: Game, depth: int) -> None:
    picks = depth - 1
    values = {action: expected(after(game, action), picks) for action in game.legal_actions()}
    best = max(values.values()) if game.player == 0 else min(values.values())
    action, value = searched(game, depth)
    assert value == pytest.approx(best, abs=1e-9)
    assert values[action] == pytest.approx(best, abs=1e-9)


def likely_game(seed: int, decisions: int) -> Game:
    """Return a game at a choice, after decisions at random or by a search of one pick."""
    rng = random.Random(seed)
    game = Game(seed=seed)
    while decisions > 0 or game.legal_mask.bit_count() < 2:
        game.play(rng.choice([searched(game, 1)[0], *game.legal_actions()]))
        decisions -= 1
    return Game.from_dict(game.to_dict(), chance="explicit")


# Against the naive search


@pytest.mark.parametrize(
    ("depth", "seed", "decisions"),
    [(1, seed, 3 * seed) for seed in range(4 if INTERPRETED else 40)]
    + [(2, seed, 5 * seed) for seed in range(2 if INTERPRETED else 12)],
)
def test_search__agrees_with_a_naive_search(depth: int, seed: int, decisions: int) -> None:
    """Some replies at depth 2 come after the roll of a new round."""
    check_against_naive(likely_game(seed, decisions), depth)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("seed", range(2 if INTERPRETED else 10))
def test_search__agrees_with_a_naive_search_in_unlikely_positions(seed: int, depth: int) -> None:
    """Full hands, held tokens and pegs at the end bring rare rules into play."""
    rng = random.Random(seed)
    changes = random_position(rng)
    while len(changes["dice_left"]) == 1:  # a naive search of all rolls would take long
        changes = random_position(rng)
    check_against_naive(Game.from_dict(changes, chance="explicit"), depth)


@pytest.mark.parametrize("depth", [1, 2])
def test_search__lets_a_player_repeat_a_pick(depth: int) -> None:
    """With a 2 the merchant draws in M2, and by the hot spring token sells in C1."""
    game = game_at(
        dice=(1, 2, 1),
        hot_spring=0,
        mine={"merchant": "M4", "wares": {"pottery": 3}, "coins": 5},
        left=["merchant", "artist"],
        lead=1,
    )
    check_against_naive(game, depth)
    play(game, "merchant:M2", "draw", "ware:fan", "ware:fan")
    assert (game.phase, game.player) == (Phase.REPEAT, 0)
    check_against_naive(game, depth)


@pytest.mark.parametrize("depth", [1, 2])
def test_search__lets_the_opponent_return_a_ware_in_a_pick(depth: int) -> None:
    game = game_at(
        dice=(4, 2, 2),
        left=["pilgrim", "artist"],
        lead=1,
        waves={
            "pilgrim": ("tranquil", 1),
            "merchant": ("robust", 1),
            "artist": ("proficient", 1),
        },
        theirs={"wares": {"kimono": 3, "fan": 3}},
    )
    check_against_naive(game, depth)
    play(game, "pilgrim", "take:merchant")
    assert (game.phase, game.player) == (Phase.DISCARD, 1)
    check_against_naive(game, depth)
    assert searched(game, depth)[0] == IDS["discard:fan"]


def close_endings() -> Iterator[tuple[Game, set[int]]]:
    """Yield games with two picks left and their best actions, where other actions are worse.

    Without the hot spring token no action repeats, so that draws do not matter.
    """
    rng = random.Random(0)
    found = 0
    while found < (2 if INTERPRETED else 12):
        game = Game.from_dict(random_position(rng) | {"hot_spring": None}, chance="explicit")
        mine, theirs = (score["total"] for score in game.scores())
        row = game.states[0]
        last = bool(row["end_triggered"]) and int(row["dice_left"]).bit_count() == 2
        if last and abs(mine - theirs) <= 8:
            results = {
                action: perfect_result(after(game, action)) for action in game.legal_actions()
            }
            best = max(results.values()) if game.player == 0 else min(results.values())
            right = {action for action, result in results.items() if result == best}
            if len(right) < len(results):
                found += 1
                yield game, right


def test_depth_2__plays_the_last_two_picks_perfectly() -> None:
    for game, right in close_endings():
        assert searched(game, 2)[0] in right


def test_depth_2__finds_a_reply_that_depth_1_cannot_find() -> None:
    """A gift leads by 7, but lets the other pilgrim earn the fifth slab; take its die instead."""
    game = game_at(
        dice=(2, 2, 2),
        left=["pilgrim", "artist"],
        lead=1,
        mine={"pilgrim": 6, "temple": 9, "gold": 1, "gifted": 6, "easel": ["bamboo"]},
        theirs={"pilgrim": 26, "temple": 4, "gold": 4, "coins": 8},
    )
    assert searched(game, 1)[0] in (IDS["artist:A2"], IDS["artist:A7"])
    assert searched(game, 2) == (IDS["pilgrim"], 1.0)
    assert perfect_result(after(game, "pilgrim")) == 1
    assert (
        perfect_result(after(game, "artist:A2")) == perfect_result(after(game, "artist:A7")) == -1
    )


@pytest.mark.parametrize(
    ("moves", "changes"),
    [
        (("merchant:M2", "draw"), {"mine": {"merchant": "M1", "wares": {"fan": 1}}}),
        (("merchant:M3", "draw"), {"mine": {"merchant": "M2", "wares": {"fan": 3}}}),
        (("artist:A1", "paint"), {"theirs": {"pilgrim": 1, "merchant": "M2"}}),
    ],
)
def test_search__samples_draws_with_the_exact_mean(
    moves: tuple[str, str], changes: dict[str, Any]
) -> None:
    """If the same action is best for all keys, the mean over keys is the exact expectation."""
    game = game_at(dice=(1, 1, 1), **changes)
    move, effect = moves
    play(game, move)
    n = 20 if INTERPRETED else 4000
    keys = np.random.default_rng(0).integers(2**64, size=n, dtype=np.uint64)
    states, masks = np.repeat(game.states, n), np.full(n, game.legal_mask, np.uint64)
    actions, values = ExpectimaxAgent(1).search(game.boards, states, masks, keys)
    assert set(actions.tolist()) == {IDS[effect]}
    wanted = expected(after(game, effect), 0, exact=True)
    assert 0 < values.std() < 0.1
    assert abs(values.mean() - wanted) <= 4 * values.std() / n**0.5


# Parts and specs


def test_search__does_not_depend_on_its_parts() -> None:
    boards, states, legal = decisions(("shikoku", "family:7"), games=6)
    keys = np.arange(len(states), dtype=np.uint64)
    agent = ExpectimaxAgent(1)
    together = agent.act(boards, states, legal, keys)
    agent.games_at_once = 5
    assert (agent.act(boards, states, legal, keys) == together).all()


def test_depths_3_and_4__equal_depth_2_at_the_last_two_picks() -> None:
    """With two picks left, every depth from 2 is the same search."""
    for game, _ in itertools.islice(close_endings(), 4):
        assert searched(game, 2) == searched(game, 3) == searched(game, 4)
