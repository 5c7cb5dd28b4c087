"""Tests of `tokaido_env.position`: round trips in every phase, and each error."""

import json
import pickle
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mutants import HostileInt, StrSubclass
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


def test_from_dict__inverts_to_dict_for_random_positions() -> None:
    for seed in range(300):
        made_up = random_position(random.Random(seed))
        assert Game.from_dict(made_up, chance="explicit").to_dict() == made_up


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
        with pytest.raises(PositionError, match=f"^{next(iter(change))}: expected"):
            Game.from_dict(next(iter(RIGHT.values())) | change)


def test_from_dict__inverts_to_dict_on_another_board(tmp_path: Path) -> None:
    path = write_board(tmp_path / "other.toml", other_board_data())
    game = random_walk(3, 60, path)
    assert game.to_dict()["board"] == "other"
    assert Game.from_dict(game.to_dict(), board=path, chance="explicit") == game
    with pytest.raises(PositionError, match="board: expected 'shikoku', got other"):
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
    (AT_MOVE, "bag.kimono", 4, "bag.kimono: expected so many that bag and players hold 5, got 4"),
    (AT_MOVE, "bag.fan", 9, "bag.fan: expected a whole number from 0 to 8"),
    (AT_MOVE, "players.1.wares.doll", 1, "bag.doll: expected so many that bag and players hold 7"),
    (AT_MOVE, "players.0.gifted", 2, "players[0].gifted: expected 1"),
    (AT_MOVE, "players.0.easel", ["moon"] * 4, "players[0].gifted"),
    (AT_MOVE, "players.0.easel", ["moon"] * 11, "players[0].easel: expected 10 paintings at most"),
    (AT_MOVE, "players.0.hidden.bamboo", 3, "players[0].hidden.bamboo: expected a whole number"),
    (AT_MOVE, "players.0.easel", ["bamboo"], "players[0].hidden.bamboo: expected 2 at most"),
    (AT_MOVE, "boutiques.C3", ["kimono", 4], "boutiques: expected 2 × ('kimono', 4) at most"),
    # beyond a limit
    (AT_MOVE, "players.0.coins", 10, "players[0].coins: expected less than 10"),
    (AT_MOVE, "players.1.temple", 0, "players[1].temple: expected a whole number from 1 to 9"),
    (AT_MOVE, "players.1.garden", 7, "players[1].garden: expected a whole number from 1 to 6"),
    (AT_MOVE, "players.1.gold", 7, "players[1].gold: expected a whole number from 0 to 6"),
    # places
    (
        AT_MOVE,
        "players.0.pilgrim",
        14,
        "players[1].pilgrim: expected no two characters",
    ),
    (
        AT_MOVE,
        "players.1.merchant",
        "C1",
        "players[1].merchant: expected no two characters",
    ),
    (AT_MOVE, "players.0.pilgrim", 28, "players[0].pilgrim: expected a whole number from 0 to 27"),
    (AT_MOVE, "players.0.merchant", "C9", "players[0].merchant: expected one of C1"),
    (AT_MOVE, "players.0.artist", "M1", "players[0].artist: expected one of A1"),
    # the turn
    (AT_MOVE, "phase", "DINNER", "phase: expected one of SETUP"),
    (AT_MOVE, "phase", "ROLL", "dice_left: expected no dice at ROLL"),
    (AT_MOVE, "player", 1, "player: expected 0 (the picker) at MOVE"),
    (AT_MOVE, "player", None, "player: expected 0 (the picker) at MOVE, got None"),
    (AT_MOVE, "player", False, "player: expected a whole number from 0 to 1"),
    (AT_MOVE, "lead", 1, "player: expected 1 (the picker) at MOVE"),
    (AT_MOVE, "lead", None, "lead: expected a whole number from 0 to 1"),
    (AT_MOVE, "round", 0, "dice: expected null before the first roll"),
    (AT_MOVE, "round", 201, "round: expected a whole number from 0 to 200"),
    (AT_MOVE, "dice", None, "dice: expected null before the first roll, and only then"),
    (AT_MOVE, "dice.pilgrim", 0, "dice.pilgrim: expected a whole number from 1 to 6"),
    (AT_MOVE, "dice.artist", DROP, "dice: expected the key 'artist'"),
    (AT_MOVE, "dice_left", [], "dice_left: expected 1 to 3 dice at MOVE, got []"),
    (AT_MOVE, "dice_left", ["monk"], "dice_left: expected one of pilgrim, merchant, artist"),
    (AT_MOVE, "dice_left", ["artist"] * 2, "dice_left"),
    (AT_MOVE, "dice_left", ["artist"] * 10**6, "dice_left: expected 3 dice at most, got 1000000"),
    (AT_MOVE, "die", "pilgrim", "die: expected null at MOVE"),
    (AT_MOVE, "origin", "A1", "origin: expected null except"),
    (AT_MOVE, "pending", 1, "pending: expected 0 at MOVE"),
    (AT_REPEAT, "dice_left", ["pilgrim"], "dice_left: expected all dice but the selected one"),
    (AT_REPEAT, "die", None, "die: expected one at REPEAT"),
    (AT_MOVE | {"dice": None}, "round", 0, "round: expected 1 or more at MOVE"),
    (AT_START | {"dice": AT_MOVE["dice"]}, "round", 1, "round: expected 0 at SETUP"),
    (AT_GIFT, "origin", "A8", "origin: expected an area as far from A8 as the artist's die says"),
    (AT_GIFT, "origin", None, "origin: expected an area at EFFECT"),
    (AT_SALE, "origin", "A1", "origin: expected null except"),
    (AT_DRAW, "player", 1, "player: expected null at DRAW"),
    (AT_DRAW, "players.1.merchant", "C2", "players[1].merchant: expected a mountain town"),
    (AT_DRAW, "pending", 6, "pending: expected 1 to 3 at DRAW"),
    (AT_DRAW, "die", "pilgrim", "die: expected merchant at DRAW"),
    (AT_REVEAL, "pending", 11, "pending: expected a whole number from 0 to 10"),
    (AT_REVEAL | {"players": AT_MOVE["players"]}, "pending", 9, "pending: expected 1 to 8"),
    (AT_REVEAL, "die", "merchant", "die: expected artist at REVEAL"),
    (AT_ROLL, "round", 200, "round: expected less than 200 at ROLL"),
    # phases without a choice
    (AT_GIFT, "players.0.easel.0", "bamboo", "players[0]"),
    (AT_SALE, "players.0.merchant", "C1", "players[0].merchant: expected no two characters"),
    (
        AT_SALE,
        "players.0.merchant",
        "C2",
        "phase: expected something to choose besides pass",
    ),
    (AT_REPEAT, "hot_spring", 1, "hot_spring: expected 0 at REPEAT, got 1"),
    (AT_RETURN, "player", 1, "player: expected the picker after a draw"),
    (AT_FORCED_RETURN, "player", 0, "player: expected the picker after a draw"),
    (AT_RETURN | {"die": "artist"}, "dice_left", [], "player: expected the picker after a draw"),
    (AT_RETURN, "waves.merchant", {"side": "robust", "owner": 0}, "expected more than 6"),
    # tokens
    (AT_MOVE, "boutiques.C1", None, "boutiques.C1: expected a token"),
    (AT_MOVE, "boutiques.C1", ["kimono", 3], "boutiques.C1: expected one of ('kimono', 4)"),
    (AT_MOVE, "boutiques.C1", ["kimono", 4.0], "boutiques.C1: expected one of ('kimono', 4)"),
    (AT_MOVE, "boutiques.C8", ["fan", 2, 2], "boutiques.C8: expected one of ('kimono', 4)"),
    (AT_MOVE, "boutiques.C1", "kimono/4", "boutiques.C1: expected a list"),
    (AT_MOVE, "boutiques.C8", DROP, "boutiques: expected the key 'C8'"),
    (AT_MOVE, "waves.artist.side", None, "phase: expected SETUP until all"),
    (AT_MOVE, "waves.pilgrim.side", None, "waves.pilgrim.side: expected a side"),
    (AT_MOVE, "waves.artist.side", "hasty", "waves.artist.side: expected one of proficient"),
    (AT_MOVE, "waves.artist.owner", "me", "waves.artist.owner: expected a whole number"),
    (AT_MOVE, "waves.artist", None, "waves.artist: expected an object"),
    (AT_START, "boutiques.C2", ["fan", 2], "boutiques.C1: expected a token"),
    (AT_START, "round", 1, "dice: expected null before the first roll"),
    (AT_MOVE | {"phase": "SETUP"}, "dice_left", [], "phase: expected no more SETUP"),
    # the end
    (AT_MOVE, "end_triggered", True, "end_triggered: expected False"),
    (AT_MOVE, "players.0.temple", 9, "end_triggered: expected True"),
    (AT_MOVE, "end_triggered", 0, "end_triggered: expected true or false"),
    (AT_MOVE, "end", "triggers", "end: expected None at MOVE"),
    (AT_END, "end", None, "end: expected triggers at OVER"),
    (AT_END, "end", "cap", "end: expected triggers at OVER"),
    (AT_END, "phase", "ROLL", "end: expected None at ROLL"),
    (AT_END | {"end": None}, "phase", "ROLL", "phase: expected OVER once a round ended triggered"),
    (AT_CAP, "round", 5, "round: expected 200 at the cap"),
    (AT_CAP, "end", "triggers", "end: expected cap at OVER"),
    # not a position
    (AT_MOVE, "weather", "rain", "the position: expected only the keys board"),
    (AT_MOVE, "lead", DROP, "the position: expected the key 'lead'"),
    (AT_MOVE, "board", DROP, "the position: expected an object with the key 'board'"),
    (AT_MOVE, "players", AT_MOVE["players"][:1], "players: expected 2 of them"),
    (AT_MOVE, "players", {}, "players: expected a list"),
    (AT_MOVE, "players.1", None, "players[1]: expected an object"),
    (AT_MOVE, "players.1.hat", "red", "players[1]: expected only the keys"),
    (AT_MOVE, "players.1.coins", 1.0, "players[1].coins: expected a whole number"),
    (AT_MOVE, "players.1.easel", ["sun"], "players[1].easel: expected one of moon"),
]


@pytest.mark.parametrize(("right", "key", "value", "wanted"), MISTAKES)
def test_from_dict__names_the_wrong_key(right: Position, key: str, value: Any, wanted: str) -> None:
    with pytest.raises(PositionError) as error:
        Game.from_dict(changed(right, key, value))
    assert wanted in str(error.value)
    places = {re.sub(r"\.(\d+)", r"[\1]", place) for place in keys_of(right)}
    assert error.value.key in places | {"weather", "players[1].hat", "players[1].wares.silk"}


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("players.1.coins", 1.0, "players[1].coins"),
        ("players.1.easel", ["sun"], "players[1].easel"),
        ("players.0.wares.fan", 1, "bag.fan"),
        ("players.0.hidden.moon", DROP, "players[0].hidden.moon"),
        ("players.1.hat\n", "red", "players[1].hat\\n"),
        ("x" * 9999, 1, "x" * 99 + "…"),
        ("boutiques.C8", ["fan", 3], "boutiques.C8"),
        ("waves.artist.side", None, "phase"),
        ("waves.artist", None, "waves.artist"),
        ("player", None, "player"),
        ("die", "merchant", "die"),
        ("phase", "DRAW", "die"),
        ("board", DROP, "board"),
    ],
)
def test_error__has_the_wrong_key(key: str, value: Any, place: str) -> None:
    with pytest.raises(PositionError) as error:
        Game.from_dict(changed(AT_MOVE, key, value))
    assert error.value.key == place
    copied = pickle.loads(pickle.dumps(error.value))
    assert (str(copied), copied.key) == (str(error.value), place)
    with pytest.raises(PositionError) as error:
        Batch(1).reset(0, [changed(AT_MOVE, key, value)])
    assert error.value.key == place


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("board", np.array(["a", "b"]), "board: expected 'shikoku', got"),
        ("round", np.float64(1), "round: expected a whole number from 0 to 200, got 1.0$"),
        (
            "die",
            StrSubclass("artist"),
            "die: expected one of pilgrim, .*, got artist of type StrSubclass$",
        ),
        ("dice_left", np.array("artist"), "dice_left: expected a list, got artist$"),
        ("waves", [], "waves: expected an object, got \\[\\]$"),
    ],
)
def test_from_dict__refuses_values_that_json_lacks(key: str, value: Any, wanted: str) -> None:
    with pytest.raises(PositionError, match=f"^{wanted}"):
        Game.from_dict(AT_MOVE | {key: value}, board="shikoku")


def test_from_dict__refuses_values_without_a_repr() -> None:
    with pytest.raises(
        PositionError,
        match=r"^round: expected a whole number .*, got HostileInt .* of type HostileInt",
    ):
        Game.from_dict(AT_MOVE | {"round": HostileInt(1)})


FANS = {"wares": {"fan": 6}}
DOLLS = {"doll": 6}
ROBUST = {"merchant": ("robust", 1)}


@pytest.mark.parametrize(
    ("wrong", "wanted"),
    [
        (
            position(theirs=FANS),
            "players[1].wares: expected 5 at most, got {",
        ),
        (
            position(theirs={"wares": {"fan": 7}}, waves=ROBUST),
            "players[1].wares: expected 6 at most",
        ),
        (
            position(phase="DRAW", die="merchant", left=[], pending=3, theirs=FANS),
            "players[1].wares: expected 5 at most",
        ),
        (
            position(phase="DRAW", die="merchant", left=[], pending=3, mine={"wares": {"fan": 7}}),
            "players[0].wares: expected 5 at most",
        ),
        (
            position(phase="DISCARD", die="merchant", left=[], mine=FANS, theirs={"wares": DOLLS}),
            "players[1].wares: expected 5 at most",
        ),
    ],
)
def test_from_dict__limits_wares_by_phase(wrong: Position, wanted: str) -> None:
    """Only a player who draws or returns wares may exceed the capacity, up to 11."""
    with pytest.raises(PositionError) as error:
        Game.from_dict(wrong)
    assert wanted in str(error.value)


@pytest.mark.parametrize("given", [None, [], "shikoku", 7])
def test_from_dict__refuses_non_objects(given: Any) -> None:
    with pytest.raises(PositionError, match="the position: expected an object"):
        Game.from_dict(given)


def keys_of(table: Any, prefix: str = "") -> Iterator[str]:
    """Yield the keys of all values in a position, including list items."""
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        yield f"{prefix}{key}"
        if isinstance(value, dict | list):
            yield from keys_of(value, f"{prefix}{key}.")


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
