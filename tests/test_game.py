"""`Game`: playing by id and label, refusals, seeds, copies, and what holds in every random game."""

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from positions import (
    PAINTINGS,
    WARES,
    Position,
    game_at,
    position,
    random_move,
    random_walk,
)

import tokaido_env
from tokaido_env import Game, IllegalMove
from tokaido_env.core.actions import IDS, LABELS, N_ACTIONS
from tokaido_env.core.arguments import MAX_SEED, SeedError
from tokaido_env.core.jit import INTERPRETED

GAMES = 2 if INTERPRETED else 40


def play_on(game: Game, moves: int, seed: int = 0) -> list[str]:
    """Play random moves; return the labels of all events of the game."""
    rng = random.Random(seed)
    for _ in range(moves):
        if game.is_over:
            break
        game.play(random_move(game, rng))
    return game.events()


# Moves


def test_actions__ids_are_the_designs() -> None:
    assert N_ACTIONS == len(set(LABELS)) == 49
    places = {0: "pilgrim", 1: "pilgrim:wave", 2: "merchant:C1", 13: "merchant:M4"}
    places |= {14: "merchant:stay", 15: "artist:A1", 22: "artist:A8", 23: "artist:stay"}
    places |= {24: "pass", 25: "visit", 26: "take:pilgrim", 28: "take:artist", 29: "draw"}
    places |= {30: "draw:wave", 31: "sell:1", 36: "sell:6", 37: "sell:1:wave", 41: "sell:5:wave"}
    places |= {42: "paint", 43: "paint:wave", 44: "gift", 45: "discard:kimono", 48: "discard:fan"}
    assert {place: LABELS[place] for place in places} == places


@pytest.mark.parametrize("kind", [int, np.int8, np.int32, np.int64, np.uint8, np.intp])
def test_play__takes_ids_of_any_integer_type(kind: Callable[[int], Any]) -> None:
    by_id, by_label = game_at(), game_at()
    by_id.play(kind(IDS["artist:A2"]))
    by_label.play("artist:A2")
    assert by_id == by_label


def test_play__takes_labels_and_ids_of_outcomes() -> None:
    by_id, by_label = (Game.from_dict(position(phase="ROLL", left=[])) for _ in range(2))
    by_id.play(36 * (4 - 1) + 6 * (1 - 1) + (3 - 1))
    by_label.play("roll:4/1/3")
    assert by_id == by_label
    assert by_label.to_dict()["dice"] == {"pilgrim": 4, "merchant": 1, "artist": 3}


def test_legal_actions__are_the_ids_of_the_labels_in_order() -> None:
    for seed in range(60):
        game = random_walk(seed, 2 * seed)
        ids = game.legal_actions()
        assert ids == sorted(ids)
        assert game.legal_labels() == [LABELS[action] for action in ids]
        assert game.legal_mask == sum(1 << action for action in ids)
        assert all(type(action) is int for action in ids)


# Refusals

AT_ROLL = position(phase="ROLL", left=[])
AT_END = position(phase="OVER", left=[], mine={"temple": 9}, end="triggers")
ALL_KIMONO_HELD = position(
    phase="DRAW", die="merchant", left=[], pending=1, mine={"wares": {"kimono": 5}}
)


@pytest.mark.parametrize(
    ("where", "move", "message"),
    [
        (position(), "pass", "artist:A1 (15)"),
        (position(), 24, "artist:A1 (15)"),
        (position(), "somersault", "pilgrim (0)"),
        (position(), "0", "pilgrim (0)"),
        (position(), "roll:1/1/1", "pilgrim (0)"),
        (position(), -1, "pilgrim (0)"),
        (position(), 49, "pilgrim (0)"),
        (position(), 2**70, "pilgrim (0)"),
        (position(), True, "pilgrim (0)"),
        (position(), 0.0, "pilgrim (0)"),
        (position(), np.float32(0), "pilgrim (0)"),
        (position(), None, "pilgrim (0)"),
        (position(), [0], "pilgrim (0)"),
        (AT_ROLL, "roll:5/1/1", "roll:1/1/1"),
        (AT_ROLL, 216, "roll:1/1/1"),
        (AT_ROLL, -1, "roll:1/1/1"),
        (AT_ROLL, None, "roll:1/1/1"),
        (AT_ROLL, "ware:fan", "roll:1/1/1"),
        (ALL_KIMONO_HELD, "ware:kimono", "ware:pottery (1), ware:doll (2), ware:fan (3)"),
        (ALL_KIMONO_HELD, 0, "ware:pottery (1), ware:doll (2), ware:fan (3)"),
        (ALL_KIMONO_HELD, "tile:moon", "ware:pottery (1), ware:doll (2), ware:fan (3)"),
        (AT_END, "pilgrim", "the game is over"),
        (AT_END, 0, "the game is over"),
    ],
)
def test_illegal_move__changes_nothing_and_names_what_was_legal(
    where: Position, move: Any, message: str
) -> None:
    game = Game.from_dict(where, chance="explicit")
    before = (bytes(game.state), game.legal_actions(), game.outcomes(), game.player)
    with pytest.raises(IllegalMove) as error:
        game.play(move)
    assert message in str(error.value)
    assert repr(move) in str(error.value)
    assert (bytes(game.state), game.legal_actions(), game.outcomes(), game.player) == before
    assert game.events() == []


# Seeds


INTEGERS = [np.dtype(code).type for code in np.typecodes["AllInteger"]]


@pytest.mark.parametrize(
    "seed", [0, 1, MAX_SEED, np.array(7), np.uint64(MAX_SEED), *(kind(7) for kind in INTEGERS)]
)
def test_seed__any_integer_that_json_keeps(seed: Any) -> None:
    assert Game(seed=seed).seed == int(seed)
    assert Game(seed=seed) == Game(seed=int(seed))


@pytest.mark.parametrize(
    "seed", [-1, -(2**70), np.int64(-1), 1.0, "7", True, np.bool_(True), [7], b"7"]
)
def test_seed__anything_else_is_refused(seed: Any) -> None:
    message = "^seed: expected an integer from 0, got "
    with pytest.raises(SeedError, match=message):
        Game(seed=seed)
    with pytest.raises(SeedError, match=message):
        Game.from_dict(position(), seed=seed)
    with pytest.raises(SeedError, match=message):
        Game(seed=1).copy(seed=seed)


def test_seed__none_takes_one_that_can_be_read_back() -> None:
    game = Game()
    assert play_on(Game(seed=game.seed), 40) == play_on(game, 40)
    assert len({Game().seed for _ in range(20)}) == 20


# Explicit and sampled


@pytest.mark.parametrize("seed", range(3))
def test_explicit__replaying_the_events_reaches_the_same_state(seed: int) -> None:
    sampled = Game(seed=seed)
    play_on(sampled, 10_000, seed)
    assert sampled.is_over
    explicit = Game(chance="explicit")
    for event in sampled.events():
        explicit.play(event)
    assert bytes(explicit.state) == bytes(sampled.state)
    assert explicit.events() == sampled.events()
    assert (explicit.winner(), explicit.end) == (sampled.winner(), sampled.end)


def test_explicit__events_of_a_game_from_a_position_begin_there() -> None:
    game = game_at(dice=(1, 1, 1))
    moves = ["pilgrim", "visit", "merchant:M3", "draw", "ware:fan"]
    for move in moves:
        game.play(move)
    assert game.events() == moves
    assert game.start_position == position(dice=(1, 1, 1))
    assert Game(seed=1).start_position is None


# Copies


@pytest.mark.parametrize(
    "duplicate",
    [
        lambda game: game.copy(luck="same"),
        copy.deepcopy,
        lambda game: pickle.loads(pickle.dumps(game)),
    ],
    ids=["copy(luck='same')", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("moves", [0, 1, 50, 10_000])
def test_copy__with_the_same_luck_goes_on_identically(
    duplicate: Callable[[Game], Game], moves: int
) -> None:
    game = Game(seed=3)
    play_on(game, moves)
    game.copy()  # an earlier copy has no effect
    other = duplicate(game)
    assert other == game
    assert (other.seed, other.chance, other.board) == (game.seed, game.chance, game.board)
    assert play_on(other, 100, seed=1) == play_on(game, 100, seed=1)
    assert bytes(other.state) == bytes(game.state)
    assert other.copy() == game.copy()
    assert play_on(other.copy(), 100) == play_on(game.copy(), 100)


def test_copy__with_fresh_luck_has_a_future_of_its_own() -> None:
    game = Game(seed=3)
    futures = [tuple(play_on(game.copy(), 40)) for _ in range(20)]
    futures.append(tuple(play_on(game.copy(luck="same"), 40)))
    assert len(set(futures)) == 21
    again = Game(seed=3)
    assert futures[:20] == [tuple(play_on(again.copy(), 40)) for _ in range(20)]


def test_copy__takes_the_luck_of_a_seed() -> None:
    game = Game(seed=3)
    first, second, third = (game.copy(seed=seed) for seed in (8, 8, 9))
    assert first == game
    assert play_on(first, 40) == play_on(second, 40) != play_on(third, 40)


def test_equality__is_of_positions_and_boards() -> None:
    assert Game.from_dict(position(), seed=1) == Game.from_dict(position(), seed=2)
    assert Game.from_dict(position()) != Game.from_dict(position(round=2))
    assert Game(seed=1) != "a game"


def test_repr__tells_where_the_game_is() -> None:
    assert repr(game_at(round=3)) == "<Game 'shikoku', round 3, MOVE, player 0 to decide>"


def test_observation__equals_that_of_the_environments() -> None:
    env = tokaido_env.env()
    env.reset(seed=7)
    game, rng = Game(seed=7), random.Random(0)
    for _ in range(100):
        seen = env.observe(f"player_{game.player}")
        assert game.observation().dtype == seen["observation"].dtype
        assert (game.observation() == seen["observation"]).all()
        assert game.mask().dtype == seen["action_mask"].dtype
        assert (game.mask() == seen["action_mask"]).all()
        other = 1 - int(game.player or 0)
        observation = env.observe(f"player_{other}")["observation"]
        assert (game.observation(other) == observation).all()
        move = rng.choice(game.legal_actions())
        game.play(move)
        env.step(move)


def test_observation__needs_a_seat_at_chance() -> None:
    game = Game(seed=7, chance="explicit")
    with pytest.raises(
        ValueError, match=r"^seat: expected 0 or 1 at SETUP, where nobody decides, got None$"
    ):
        game.observation()
    with pytest.raises(ValueError, match=r"^seat: expected one of 0, 1, got 2$"):
        game.observation(2)
    assert game.observation(1).shape == (337,)
    assert not game.mask().any()


# Invariants of random games


def test_every_game__wares_and_paintings_are_conserved() -> None:
    for seed in range(GAMES):
        rng = random.Random(seed)
        game = Game(seed=seed)
        while not game.is_over:
            game.play(random_move(game, rng))
            now = game.to_dict()
            for ware, count in WARES.items():
                held = [player["wares"][ware] for player in now["players"]]
                assert min(held) >= 0
                assert now["bag"][ware] + sum(held) == count
            for seat, mine in enumerate(now["players"]):
                left = {i: mine["hidden"][i] + mine["easel"].count(i) for i in PAINTINGS[seat]}
                assert all(left[icon] <= n for icon, n in PAINTINGS[seat].items())
                assert sum(left.values()) + mine["gifted"] == 10


def test_every_game__odds_are_positive_sum_to_1_and_are_listed_once() -> None:
    for seed in range(GAMES // 2):
        rng = random.Random(seed)
        game = Game(chance="explicit")
        while not game.is_over:
            outcomes = game.outcomes()
            if outcomes:
                labels, odds = zip(*outcomes, strict=True)
                assert sum(odds) == pytest.approx(1, abs=1e-12)
                assert min(odds) > 0
                assert len(set(labels)) == len(labels)
            game.play(random_move(game, rng))


def test_every_game__ends_by_itself_with_a_right_winner() -> None:
    ends = set()
    for seed in range(GAMES):
        game = Game(seed=seed)
        play_on(game, 10_000, seed)
        assert game.is_over
        ends.add(game.end)
        ranks = [
            (score["total"], player["coins"])
            for score, player in zip(game.scores(), game.to_dict()["players"], strict=True)
        ]
        best = None if ranks[0] == ranks[1] else ranks.index(max(ranks))
        assert game.winner() == (best if game.end == "triggers" else None)
    assert "triggers" in ends


def test_record__of_half_a_character_is_refused() -> None:
    """It could not be written to a file."""
    with pytest.raises(ValueError, match=r"^players, board: expected valid Unicode, got"):
        Game(seed=1).record(("\ud800", "b"))
