"""`Game`: playing by id and label, refusals, seeds and copies."""

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from positions import Position, game_at, position, random_move

from tokaido_env import Game, IllegalMove
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import MAX_SEED


def play_on(game: Game, moves: int, seed: int = 0) -> list[str]:
    """Play random moves; return the labels of all events of the game."""
    rng = random.Random(seed)
    for _ in range(moves):
        if game.is_over:
            break
        game.play(random_move(game, rng))
    return game.events()


# Moves


@pytest.mark.parametrize("kind", [int, np.int8, np.uint8, np.intp])
def test_play__takes_ids_of_any_integer_type(kind: Callable[[int], Any]) -> None:
    by_id, by_label = game_at(), game_at()
    by_id.play(kind(IDS["artist:A2"]))
    by_label.play("artist:A2")
    assert by_id == by_label


# Refusals

AT_ROLL = position(phase="ROLL", left=[])
AT_END = position(phase="OVER", left=[], mine={"temple": 9}, end="triggers")
ALL_KIMONO_HELD = position(
    phase="DRAW", die="merchant", left=[], pending=1, mine={"wares": {"kimono": 5}}
)


@pytest.mark.parametrize(
    ("where", "move", "legal"),
    [
        (position(), "pass", "artist:A1 (15)"),
        (position(), "somersault", "pilgrim (0)"),
        (AT_ROLL, "roll:5/1/1", "roll:1/1/1"),
        (ALL_KIMONO_HELD, "ware:kimono", "ware:pottery (1), ware:doll (2), ware:fan (3)"),
        (AT_END, "pilgrim", "the game is over"),
    ],
)
def test_illegal_move__changes_nothing_and_names_what_was_legal(
    where: Position, move: Any, legal: str
) -> None:
    game = Game.from_dict(where, chance="explicit")
    before = bytes(game.state)
    with pytest.raises(IllegalMove) as error:
        game.play(move)
    assert legal in str(error.value)
    assert bytes(game.state) == before
    assert game.events() == []


# Seeds


@pytest.mark.parametrize("seed", [0, MAX_SEED, np.array(7), np.uint64(MAX_SEED), np.int8(7)])
def test_seed__any_integer_that_json_keeps(seed: Any) -> None:
    assert Game(seed=seed).seed == int(seed)
    assert Game(seed=seed) == Game(seed=int(seed))


def test_seed__none_takes_one_that_can_be_read_back() -> None:
    game = Game()
    assert play_on(Game(seed=game.seed), 40) == play_on(game, 40)
    assert len({Game().seed for _ in range(20)}) == 20


# Explicit and sampled


def test_explicit__events_of_a_game_from_a_position_begin_there() -> None:
    game = game_at(dice=(1, 1, 1))
    moves = ["pilgrim", "visit", "merchant:M3", "draw", "ware:fan"]
    for move in moves:
        game.play(move)
    assert game.events() == moves
    assert game.start_position == position(dice=(1, 1, 1))
    assert Game(seed=1).start_position is None


# Copies


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


def test_observation__needs_a_seat_at_chance() -> None:
    game = Game(seed=7, chance="explicit")
    for seat in (None, 2):
        with pytest.raises(ValueError, match=r"^seat: expected "):
            game.observation(seat)  # type: ignore[arg-type]
    assert game.observation(1).shape == (337,)
    assert not game.mask().any()


def test_game__starts_in_eight_frames() -> None:
    """Built-in boards are looked up once; each of the calls is a step that a reader follows."""
    Game()
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(event) if event == "call" else None)
    try:
        Game()
    finally:
        sys.setprofile(None)
    assert len(calls) <= 8
