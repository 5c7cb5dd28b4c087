"""Tests of the engine against the naive reference (`reference.py`), compared at every step.

`pytest --games 20000` sets the number of random games; a tenth as many boards of the family have
one game each (default: 200 boards).
"""

import copy
import functools
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from positions import (
    SHIKOKU,
    SIDES,
    WARES,
    Position,
    other_board_data,
    random_position,
    write_board,
)
from reference import Reference

from tokaido_env import Board, Game
from tokaido_env.boards.procedural import SPLITS
from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.constants import ICONS
from tokaido_env.core.jit import INTERPRETED

CHUNKS = 20
COUNTED = 3  # chunks of games for `test_walks__reach_every_event`
ENDS = {"temple": 9, "garden": 6, "gold": 6, "gifted": 10}

# Not `artist:stay`, which no board with dice up to 6 needs (see test_rules.py).
REACHED = {
    *LABELS,
    *(f"side:{character}={side}" for character, sides in SIDES.items() for side in sides),
    *("pilgrim:wave=tranquil", "pilgrim:wave=hasty", "gift on the way"),
    *("return of a ware by the opponent", "hot spring taken again"),
    *(f"end by {key}" for key in (*ENDS, "cap")),
} - {"artist:stay"}

Odds = list[tuple[str, float]]


def chunks(fast: int) -> list[Any]:
    """Return the chunks of games; all but the first `fast` are marked as slow."""
    slow = [pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(fast, CHUNKS)]
    return [*range(fast), *slow]


@pytest.mark.parametrize("chunk", chunks(fast=COUNTED))
def test_games__agree_with_the_reference(chunk: int, pytestconfig: pytest.Config) -> None:
    walk_chunk(chunk, pytestconfig.getoption("games"))


def test_games__agree_on_another_board() -> None:
    walk_another_board()


@pytest.mark.parametrize("chunk", chunks(fast=2))
def test_games__agree_on_generated_boards(
    chunk: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    games = pytestconfig.getoption("games")
    boards = min(games // 5, max(200, games // 10))
    for number in range(boards * chunk // CHUNKS, boards * (chunk + 1) // CHUNKS):
        walk_generated_board(number, tmp_path)


def test_games__agree_on_boards_unlike_those_of_training(tmp_path: Path) -> None:
    for number in SPLITS["far"][::10]:
        walk_generated_board(number, tmp_path)


def walk_generated_board(number: int, folder: Path) -> None:
    """Walk a game on a board of the family, and read the board from its file."""
    board, path = Board.generate(number), folder / f"{number}.toml"
    board.save(path)
    assert Board.load(path).hash == board.hash
    walk(Game(board, chance="explicit"), Reference(path), number)


def test_games__agree_from_random_positions() -> None:
    walk_from_random_positions()


def test_walks__reach_every_event(pytestconfig: pytest.Config) -> None:
    """The games of the tests above contain every action, side, end and rare event."""
    games = pytestconfig.getoption("games")
    if games < 1000:
        pytest.skip("rare events need the default of 1000 games")
    seen = walk_another_board() + walk_from_random_positions()
    for chunk in range(COUNTED):
        seen += walk_chunk(chunk, games)
    assert not REACHED - set(seen)


@functools.cache
def walk_another_board() -> Counter[str]:
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = write_board(Path(folder) / "other.toml", other_board_data())
        board, reference = Board.load(path), Reference(path)
    for seed in range(10 if INTERPRETED else 100):
        seen += walk(Game(board, chance="explicit"), reference_at(reference), seed)
    return seen


@functools.cache
def walk_from_random_positions() -> Counter[str]:
    """Walk from rich, crowded and nearly won positions, which random games seldom reach."""
    seen: Counter[str] = Counter()
    for seed in range(50 if INTERPRETED else 1200):
        position = random_position(random.Random(seed))
        game = Game.from_dict(position, chance="explicit")
        seen += walk(game, reference_at(shikoku(), position), seed, steps=25)
    return seen


@functools.cache
def shikoku() -> Reference:
    return Reference(SHIKOKU)


@functools.cache
def walk_chunk(chunk: int, games: int) -> Counter[str]:
    """Walk a twentieth of the games; count the events."""
    seen: Counter[str] = Counter()
    for seed in range(games * chunk // CHUNKS, games * (chunk + 1) // CHUNKS):
        seen += walk(Game(chance="explicit"), reference_at(shikoku()), seed)
    return seen


def reference_at(start: Reference, position: Position | None = None) -> Reference:
    """Return a reference on the same board, without reading it again."""
    other = copy.copy(start)
    other.position = copy.deepcopy(position or start.position)
    return other


def walk(game: Game, reference: Reference, seed: int, steps: int = 10_000) -> Counter[str]:
    """Play and compare until the end or for `steps` moves; count the events.

    Moves are random; in games with odd seeds, `pass` only if it is the only choice. One game in
    three is played by label, the others by id.
    """
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    second = False  # in the second move of a pick
    for step in range(steps):
        legal, odds = compare(game, reference, f"game seed {seed}, step {step}")
        position = reference.position
        if position["phase"] == "OVER":
            seen.update(triggers(position))
            break
        move = choose(rng, legal, odds, eager=seed % 2 == 1)
        if position["phase"] in ("MOVE", "REPEAT"):
            second = position["phase"] == "REPEAT"
        seen.update(events_of(game.board, position, move, second))
        game.play(move if seed % 3 == 0 else move_id(game.board, move))
        reference.play(move)
    return seen


def compare(game: Game, reference: Reference, where: str) -> tuple[list[str], Odds]:
    """Compare all public facts of a game; return its legal actions and outcomes."""
    legal, odds = game.legal_labels(), game.outcomes()
    assert game.to_dict() == reference.position, where
    assert legal == reference.legal_labels(), where
    assert odds == [(o, p.numerator / p.denominator) for o, p in reference.outcomes()], where
    assert game.scores() == reference.scores(), where
    assert game.winner() == reference.winner(), where
    return legal, odds


def choose(rng: random.Random, legal: list[str], odds: Odds, eager: bool) -> str:
    if odds:
        labels, probabilities = zip(*odds, strict=True)
        return rng.choices(labels, probabilities)[0]
    if eager and legal[-1:] != ["pass"]:
        legal = [label for label in legal if label != "pass"]
    return rng.choice(legal)


def move_id(board: Board, label: str) -> int:
    """Return the id of an action or outcome, computed from its label."""
    verb, _, rest = label.partition(":")
    value = rest.partition("=")[2]
    if verb == "roll":
        pilgrim, merchant, artist = map(int, rest.split("/"))
        return 36 * (pilgrim - 1) + 6 * (merchant - 1) + artist - 1
    if verb == "boutique":
        ware, price = value.split("/")
        return board.kinds.index((ware, int(price)))
    if verb == "side":
        return next(sides.index(value) for sides in SIDES.values() if value in sides)
    if verb in ("ware", "tile"):
        return list(WARES if verb == "ware" else ICONS).index(rest)
    return IDS[label]


def events_of(board: Board, position: Position, move: str, second: bool) -> list[str]:
    """Return the move and the rare events that it is."""
    seen = [move]
    mine = position["players"][position["player"] or 0]
    if move == "pilgrim:wave":
        seen.append(f"{move}={position['waves']['pilgrim']['side']}")
    if move == "gift" and mine["easel"][0] != board.area_icons[int(mine["artist"][1]) - 1]:
        seen.append("gift on the way")
    if position["phase"] == "DISCARD" and position["die"] == "pilgrim":
        seen.append("return of a ware by the opponent")
    if second and move == "visit" and board.stations[mine["pilgrim"]] == "hot spring":
        seen.append("hot spring taken again")
    return seen


def triggers(position: Position) -> list[str]:
    """Return the causes of the end of a game."""
    ends = [key for key, n in ENDS.items() for p in position["players"] if p[key] == n]
    return [f"end by {key}" for key in ends] or ["end by cap"]
