"""Tests of the engine against the naive reference (`reference.py`), compared at every step.

`pytest --games 20000` sets the number of random games; a tenth as many boards of the family have
one game each (default: 200 boards).
"""

import copy
import functools
import random
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
from tokaido_env.core.actions import IDS
from tokaido_env.core.constants import ICONS
from tokaido_env.core.jit import INTERPRETED

CHUNKS = 20
Odds = list[tuple[str, float]]


def chunks(fast: int) -> list[Any]:
    """Return the chunks of games; all but the first `fast` are marked as slow."""
    slow = [pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(fast, CHUNKS)]
    return [*range(fast), *slow]


@pytest.mark.parametrize("chunk", chunks(fast=3))
def test_games__agree_with_the_reference(chunk: int, pytestconfig: pytest.Config) -> None:
    games = pytestconfig.getoption("games")
    for seed in range(games * chunk // CHUNKS, games * (chunk + 1) // CHUNKS):
        walk(Game(chance="explicit"), reference_at(shikoku()), seed)


def test_games__agree_on_another_board(tmp_path: Path) -> None:
    path = write_board(tmp_path / "other.toml", other_board_data())
    board, reference = Board.load(path), Reference(path)
    for seed in range(10 if INTERPRETED else 100):
        walk(Game(board, chance="explicit"), reference_at(reference), seed)


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
    """Rich, crowded and nearly won positions, which random games seldom reach."""
    for seed in range(50 if INTERPRETED else 1200):
        position = random_position(random.Random(seed))
        game = Game.from_dict(position, chance="explicit")
        walk(game, reference_at(shikoku(), position), seed, steps=25)


@functools.cache
def shikoku() -> Reference:
    return Reference(SHIKOKU)


def reference_at(start: Reference, position: Position | None = None) -> Reference:
    """Return a reference on the same board, without reading it again."""
    other = copy.copy(start)
    other.position = copy.deepcopy(position or start.position)
    return other


def walk(game: Game, reference: Reference, seed: int, steps: int = 10_000) -> None:
    """Play and compare until the end or for `steps` moves.

    Moves are random; in games with odd seeds, `pass` only if it is the only choice. One game in
    three is played by label, the others by id.
    """
    rng = random.Random(seed)
    for step in range(steps):
        legal, odds = compare(game, reference, f"game seed {seed}, step {step}")
        if reference.position["phase"] == "OVER":
            break
        move = choose(rng, legal, odds, eager=seed % 2 == 1)
        game.play(move if seed % 3 == 0 else move_id(game.board, move))
        reference.play(move)


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
