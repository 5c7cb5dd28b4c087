"""Tests of `tokaido_env.position`: round trips in every phase, and each error."""

import contextlib
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from positions import (
    DROP,
    Position,
    changed,
    other_board_data,
    position,
    random_move,
    random_phase,
    random_position,
    random_walk,
    write_board,
)

from tokaido_env import Board, Game
from tokaido_env.batch import Batch
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.core.state import Phase
from tokaido_env.core.state_validation import EASEL
from tokaido_env.position import PositionError

# Valid positions at phases other than MOVE
AT_DRAW = position(phase="DRAW", die="merchant", left=["artist"], pending=2)
AT_REVEAL = position(phase="REVEAL", die="artist", left=[], pending=3, origin="A7")
AT_SALE = position(
    phase="EFFECT", die="merchant", left=[], mine={"merchant": "C8", "wares": {"fan": 1}}
)
AT_GIFT = position(
    phase="EFFECT", die="artist", left=[], origin="A7", mine={"artist": "A8", "easel": ["moon"]}
)
AT_RETURN = position(phase="DISCARD", die="merchant", left=[], mine={"wares": {"fan": 6}})
AT_FORCED_RETURN = position(
    phase="DISCARD",
    die="pilgrim",
    left=["merchant", "artist"],
    mine={"pilgrim": 4},
    theirs={"wares": {"fan": 6}},
    waves={"merchant": ("robust", 0)},
    player=1,
)
AT_REPEAT = position(phase="REPEAT", die="pilgrim", left=["merchant"], lead=1, hot_spring=0)
AT_ROLL = position(phase="ROLL", left=[])
AT_END = position(phase="OVER", left=[], mine={"temple": 9}, end="triggers")
AT_CAP = position(phase="OVER", left=[], round=200, end="cap")
AT_START = Game(chance="explicit").to_dict()
AT_MOVE = position(mine={"easel": ["moon"], "gifted": 1})
RIGHT = {name: value for name, value in list(globals().items()) if re.fullmatch("AT_[A-Z_]+", name)}


# Round trips


def positions_of_games(games: int) -> Iterator[Game]:
    """Yield explicit-chance games at every step."""
    for seed in range(games):
        rng = random.Random(seed)
        game = Game(chance="explicit")
        while not game.is_over:
            yield game
            game.play(random_move(game, rng))
        yield game


def test_from_dict__inverts_to_dict_in_every_phase() -> None:
    phases = set()
    for game in positions_of_games(1 if INTERPRETED else 4):
        given = json.loads(json.dumps(game.to_dict()))
        again = Game.from_dict(given, chance="explicit")
        assert again == game
        assert bytes(again.state) == bytes(game.state)
        assert again.to_dict() == given
        assert again.legal_actions() == game.legal_actions()
        phases.add(game.phase)
    assert phases == set(Phase)


def with_numpy(value: Any) -> Any:
    """Return plain data with integers, flags, texts and lists of NumPy."""
    if isinstance(value, dict):
        return {np.str_(key): with_numpy(item) for key, item in value.items()}
    if isinstance(value, list):
        if not value or isinstance(value[0], dict | list) or len({*map(type, value)}) > 1:
            return tuple(map(with_numpy, value))
        return np.array(value)
    return value if value is None else np.array(value)[()]


def test_from_dict__accepts_numpy_in_every_phase() -> None:
    for given in RIGHT.values():
        assert Game.from_dict(with_numpy(given)).to_dict() == given
    board = Board.load()
    assert Board.from_dict(with_numpy(board.to_dict())).hash == board.hash
    wrong = {"round": np.float64(3.0)}, {"round": np.bool_(True)}, {"end_triggered": np.int64(0)}
    for change in wrong:
        with pytest.raises(PositionError, match=f"^{next(iter(change))}: Expected"):
            Game.from_dict(next(iter(RIGHT.values())) | change)


def test_from_dict__inverts_to_dict_on_another_board(tmp_path: Path) -> None:
    path = write_board(tmp_path / "other.toml", other_board_data())
    game = random_walk(3, 60, path)
    assert game.to_dict()["board"] == "other"
    assert Game.from_dict(game.to_dict(), board=path, chance="explicit") == game
    with pytest.raises(PositionError, match="board: expected 'shikoku', got 'other'"):
        Game.from_dict(game.to_dict(), board="shikoku")


@pytest.mark.parametrize("name", RIGHT)
def test_from_dict__keeps_the_phase(name: str) -> None:
    """The default is explicit chance at a chance phase and sampled chance elsewhere."""
    game = Game.from_dict(RIGHT[name])
    at_chance = RIGHT[name]["phase"] in ("SETUP", "ROLL", "DRAW", "REVEAL")
    assert game.chance == ("explicit" if at_chance else "sampled")
    sampled = Game.from_dict(RIGHT[name], seed=1, chance="sampled")
    assert bool(sampled.legal_actions()) == (not sampled.is_over)


# Errors

MISTAKES = [
    # lost or extra pieces
    (AT_MOVE, "bag.kimono", 4, "bag"),
    (AT_MOVE, "bag.fan", 9, "bag"),
    (AT_MOVE, "players.0.gifted", 2, "players[0].gifted"),
    (AT_MOVE, "players.0.easel", ["moon"] * 11, "players[0].easel"),
    (AT_MOVE, "players.0.hidden.bamboo", 3, "hidden"),
    (AT_MOVE, "players.0.easel", ["bamboo"], "players[0].hidden"),
    (AT_MOVE, "boutiques.C3", ["kimono", 4], "boutiques"),
    # beyond a limit
    (AT_MOVE, "players.0.coins", 10, "players[0].coins"),
    (AT_MOVE, "players.1.temple", 0, "temple"),
    # places
    (AT_MOVE, "players.0.pilgrim", 14, "players[1]"),
    (AT_MOVE, "players.1.merchant", "C1", "players[1]"),
    (AT_MOVE, "players.0.merchant", "C9", "players[0].merchant"),
    # the turn
    (AT_MOVE, "phase", "DINNER", "phase"),
    (AT_MOVE, "phase", "ROLL", "dice_left"),
    (AT_MOVE, "player", 1, "player"),
    (AT_MOVE, "player", None, "player"),
    (AT_MOVE, "player", False, "player"),
    (AT_MOVE, "hot_spring", -1, "hot_spring"),
    (AT_MOVE, "lead", 2, "lead"),
    (AT_MOVE, "round", 0, "dice"),
    (AT_MOVE, "round", 201, "round"),
    (AT_MOVE, "dice_left", [], "dice_left"),
    (AT_MOVE, "dice_left", ["pilgrim"] * 2, "dice_left"),
    (AT_MOVE, "dice_left", ["artist"] * 10**6, "dice_left"),
    (AT_MOVE, "die", "pilgrim", "die"),
    (AT_MOVE, "origin", "A1", "origin"),
    (AT_MOVE, "pending", 1, "pending"),
    (AT_REPEAT, "dice_left", ["pilgrim"], "dice_left"),
    (AT_MOVE | {"dice": None}, "round", 0, "round"),
    (AT_START | {"dice": AT_MOVE["dice"]}, "round", 1, "round"),
    (AT_GIFT, "origin", "A8", "origin"),
    (AT_GIFT, "origin", None, "origin"),
    (AT_DRAW, "players.1.merchant", "C2", "players[1]"),
    (AT_DRAW, "pending", 6, "pending"),
    (AT_DRAW, "die", "pilgrim", "die"),
    (AT_REVEAL | {"players": AT_MOVE["players"]}, "pending", 9, "pending"),
    (AT_ROLL, "round", 200, "round"),
    # phases without a choice
    (AT_SALE, "players.0.merchant", "C1", "players[0]"),
    (AT_SALE, "players.0.merchant", "C2", "phase"),
    (AT_REPEAT, "hot_spring", 1, "hot_spring"),
    (AT_RETURN, "player", 1, "player"),
    (AT_FORCED_RETURN, "player", 0, "player"),
    (AT_RETURN | {"die": "artist"}, "dice_left", [], "player"),
    (AT_RETURN, "waves.merchant", {"side": "robust", "owner": 0}, "players[0].wares"),
    (position(theirs={"wares": {"fan": 6}}), "round", 1, "players[1].wares"),
    (
        position(phase="DRAW", die="merchant", left=[], pending=3, mine={"wares": {"fan": 7}}),
        "round",
        1,
        "players[0].wares",
    ),
    # tokens
    (AT_MOVE, "boutiques.C1", None, "boutiques"),
    (AT_MOVE, "boutiques.C1", ["kimono", 3], "boutiques"),
    (AT_MOVE, "boutiques.C1", "kimono/4", "boutiques"),
    (AT_MOVE, "waves.artist.side", None, "phase"),
    (AT_MOVE, "waves.pilgrim.side", None, "waves"),
    (AT_MOVE, "waves.artist.side", "hasty", "waves.artist.side"),
    (AT_START, "boutiques.C2", ["fan", 2], "boutiques"),
    (AT_MOVE | {"phase": "SETUP"}, "dice_left", [], "phase"),
    # the end
    (AT_MOVE, "end_triggered", True, "end_triggered"),
    (AT_MOVE, "players.0.temple", 9, "end_triggered"),
    (AT_MOVE, "end", "triggers", "end"),
    (AT_END, "end", None, "end"),
    (AT_END, "phase", "ROLL", "end"),
    (AT_END | {"end": None}, "phase", "ROLL", "phase"),
    (AT_CAP, "round", 5, "round"),
    (AT_CAP, "end", "triggers", "end"),
    # not a position
    (AT_MOVE, "weather", "rain", "weather"),
    (AT_MOVE, "board", DROP, "board"),
    (AT_MOVE, "players.1.easel", ["sun"], "players[1].easel[0]"),
]


@pytest.mark.parametrize(("right", "key", "value", "place"), MISTAKES)
def test_from_dict__names_the_wrong_key(right: Position, key: str, value: Any, place: str) -> None:
    with pytest.raises(PositionError) as error:
        Game.from_dict(changed(right, key, value))
    assert place in str(error.value)
    assert str(error.value).isprintable()
    with pytest.raises(PositionError, match=f"^game 0: {re.escape(str(error.value))}"):
        Batch(1).reset(0, [changed(right, key, value)])


def test_mistakes__reach_each_reason() -> None:
    """Only the paintings beyond an easel's size are nothing that a position can say."""
    found = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "tokaido_env.position.fault_error", lambda board, row, fault: found.add(fault >> 8)
        )
        for right, key, value, _ in MISTAKES:
            with contextlib.suppress(PositionError, TypeError):
                Game.from_dict(changed(right, key, value))
    assert found == set(range(1, 25)) - {EASEL}


def reads(given: Position) -> Position | None:
    """Return the position as read, or None if it is refused."""
    try:
        return Game.from_dict(given, board="shikoku").to_dict()
    except PositionError:
        return None


def test_from_dict__accepts_only_playable_positions() -> None:
    accepted = 0
    for seed in range(100 if INTERPRETED else 1500):
        rng = random.Random(seed)
        given = random_phase(random_position(rng), rng)
        if reads(given) is None:
            continue
        accepted += 1
        game = Game.from_dict(given, chance="explicit")
        for step in range(20):
            if game.is_over:
                break
            game.play(random_move(game, rng))
            assert reads(game.to_dict()) == game.to_dict(), f"seed {seed}, step {step}"
    assert accepted > 10
