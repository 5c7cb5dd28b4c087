"""Fuzz of board files: valid ones are played, drawn and recorded; others are refused."""

import json
import random
import tomllib
from itertools import count
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mutants
import numpy as np
from fuzz import Cases, allow_refusal, run_command
from garbage import check
from positions import SHIKOKU, WARES, other_board_data, write_board

from tokaido_env import Board, BoardError, Game
from tokaido_env.__main__ import main as command
from tokaido_env.batch import Batch
from tokaido_env.boards.board import BOARDS_FOLDER
from tokaido_env.core.constants import (
    AREAS,
    CHARACTERS,
    COASTAL_TOWNS,
    ICONS,
    MAX_ROUNDS,
    RING_SIZES,
    STATIONS,
    TOWNS,
)
from tokaido_env.core.observation import SCALES
from tokaido_env.record import load, save
from tokaido_env.render import ansi, svg

GOLDEN = Path(__file__).with_name("golden") / "games.jsonl"
GAMES = 3
PLIES = 30
MOST_IN_BYTES = 255  # rounds


class Boards(Cases):
    """Built-in boards, mutants of them, and unusual valid boards."""

    def set_up(self) -> None:
        self.numbers = count()  # unique file names, as loaded boards are cached
        paths = sorted(BOARDS_FOLDER.glob("*.toml"))
        self.texts = [path.read_text(encoding="utf-8") for path in paths]
        self.texts += [self._drawn(number) for number in range(4)]
        self.tables = [_without_notes(tomllib.loads(text)) for text in self.texts] + [
            other_board_data()
        ]

    def check_valid(self) -> None:
        for text in self.texts:
            assert self._load_or_refuse(text.encode(), random.Random(0))
        check(Batch(1))  # compiled
        for seed in range(30):
            path = write_board(self._path(), self._unusual(random.Random(seed)))
            self._check_playable(path, random.Random(seed))
        _draw(Game(path, seed=0))
        assert not self._run(SHIKOKU)

    def case(self, rng: random.Random) -> bool:
        how = rng.random()
        if how < 0.03:
            return _spec(rng)
        if how < 0.25:
            return self._load_or_refuse(mutants.mutated_text(rng, rng.choice(self.texts), 2), rng)
        table = self._unusual(rng) if rng.random() < 0.4 else rng.choice(self.tables)
        if rng.random() < 0.2:
            return _from_data(rng, table)
        return self._load_or_refuse(mutants.mutated_toml(rng, table), rng)

    def _drawn(self, number: int) -> str:
        path = self._path()
        Board.generate(number).save(path)
        return path.read_text(encoding="utf-8")

    def _path(self) -> Path:
        return self.folder / f"{next(self.numbers)}.toml"

    def _load_or_refuse(self, line: bytes, rng: random.Random) -> bool:
        path = self._path()
        path.write_bytes(line)
        with allow_refusal(BoardError, names=path) as messages:
            Board.load(path)
        if messages:
            assert "expected" in messages[0] or "not a TOML file: " in messages[0], messages
        else:
            self._check_playable(path, rng)
        if rng.random() < 0.02:
            assert self._run(path) or not messages
        path.unlink()
        return not messages

    def _check_playable(self, path: Path, rng: random.Random) -> None:
        """Check that a valid board can be played, observed, drawn, recorded and read again."""
        board = Board.load(path)
        self._play_many(board, rng)
        if rng.random() < 0.08:
            self._play_one(board, path, rng)

    def _play_many(self, board: Board, rng: random.Random) -> None:
        kind = rng.choice(("float32", "uint8"))
        with allow_refusal(ValueError) as messages:
            batch = Batch(GAMES, board, autoreset=False, observation=kind)  # type: ignore[arg-type]
        assert bool(messages) == (kind == "uint8" and board.max_rounds > MOST_IN_BYTES), messages
        if messages:
            return
        turn = batch.reset(rng.randrange(1000))
        for _ in range(rng.randrange(PLIES)):
            turn = batch.play("random")
        if rng.random() < 0.1 and kind == "float32":
            check(batch)
        _check_observation(turn.observation)
        _check_observation(batch.finish(rng.choice(("random", "greedy"))).observation)
        assert batch.over.all()

    def _play_one(self, board: Board, path: Path, rng: random.Random) -> None:
        game = Game(path, seed=rng.randrange(1000))
        while not game.is_over:
            game.play(rng.choice(game.legal_actions()))
            if rng.random() < 0.01:
                given = json.loads(json.dumps(game.to_dict()))
                assert Game.from_dict(given, board=board).to_dict() == given
        if rng.random() < 0.1:
            _draw(game)
        records = path.with_suffix(".jsonl")
        save([game.record()], records)
        assert load(records, path)[0] == game.record()
        records.unlink()

    def _run(self, path: Path) -> str:
        """Run a command that refuses the board or finds that the games have another one."""
        wrong = run_command(command, ["replay", GOLDEN, "--quiet", "--board", path])
        assert not wrong or str(path) in wrong or "board_hash" in wrong
        return wrong

    def _unusual(self, rng: random.Random) -> dict[str, Any]:
        """Return a valid board with unusual values."""
        table: dict[str, Any] = json.loads(json.dumps(rng.choice(self.tables)))
        parts = _unusual_parts(rng, table)
        for where in rng.sample(sorted(parts), rng.randint(1, len(parts))):
            entry, _, key = where.partition(".")
            if key:
                table[entry] = table[entry] | {key: parts[where]}
            else:
                table[entry] = parts[where]
        while not _starts_apart(table):
            table["starts"] = table["starts"] | _starts(rng, len(table["ring"]["stations"]))
        return table


def _from_data(rng: random.Random, table: dict[str, Any]) -> bool:
    """Load a board from damaged data; a valid one survives a round trip."""
    damage = rng.choice((mutants.mutated_tree, mutants.with_lookalikes))
    with allow_refusal(BoardError, names="the board: ") as messages:
        board = Board.from_dict(damage(rng, table))
    if not messages:
        again = Board.from_dict(tomllib.loads(board.to_toml()))
        assert (again, again.provenance, again.notes) == (board, board.provenance, board.notes)
    return not messages


def _check_observation(observation: Any) -> None:
    most = SCALES if observation.dtype == np.uint8 else 1
    assert (observation >= 0).all()
    assert (observation <= most).all()


def _unusual_parts(rng: random.Random, table: dict[str, Any]) -> dict[str, Any]:
    label = {"provenance": "reconstruction"}
    return {
        "name": rng.choice(
            [text for text in mutants.TEXTS if 0 < len(text) < 1000 and text != "\ud800"]
        ),
        "max_rounds": rng.choice((1, 2, 3, 20, 200, 255, 256, MAX_ROUNDS)),
        "dice": {name: {"faces": _faces(rng), **label} for name in CHARACTERS},
        "ring.stations": _ring(rng),
        "routes.pairs": _relabelled(rng, table["routes"]["pairs"]),
        "mountains.numbers": {f"M{i}": rng.randint(2, 4) for i in range(1, 5)},
        "areas.icons": dict(zip(AREAS, rng.choices(ICONS[: rng.randint(1, 4)], k=8), strict=True)),
        "boutiques.tokens": [[rng.choice(sorted(WARES)), rng.randint(2, 4)] for _ in range(8)],
        "commerce.points": _numbers(rng, 7),
        "culture.points": _numbers(rng, 11),
        "temple.numbers": _numbers(rng, 9),
        "garden.numbers": _numbers(rng, 6),
    }


def _faces(rng: random.Random) -> list[int]:
    return rng.choices(rng.sample(range(1, 7), rng.randint(1, 6)), k=6)


def _ring(rng: random.Random) -> list[str]:
    """Return a ring on which towns may be neighbours and stations may be of one kind."""
    kinds = rng.sample(STATIONS[1:], rng.randint(1, len(STATIONS) - 1))
    others = rng.choices(kinds, k=rng.randint(*RING_SIZES) - len(COASTAL_TOWNS))
    ring = [None] * len(others) + list(COASTAL_TOWNS)
    rng.shuffle(ring)
    ring = ring[(at := next(i for i, town in enumerate(ring) if town)) :] + ring[:at]
    towns, rest = iter(COASTAL_TOWNS), iter(others)
    return [next(towns if town else rest) for town in ring]


def _relabelled(rng: random.Random, pairs: list[list[str]]) -> list[list[str]]:
    """Return the same routes with other town names, without new crossings."""
    turn, hills = rng.randrange(8), rng.sample(TOWNS[8:], 4)
    names = {town: COASTAL_TOWNS[(i + turn) % 8] for i, town in enumerate(COASTAL_TOWNS)}
    names |= dict(zip(TOWNS[8:], hills, strict=True))
    return [rng.sample([names.get(a, a), names.get(b, b)], 2) for a, b in pairs]


def _starts(rng: random.Random, ring: int) -> dict[str, Any]:
    return {
        f"player_{seat}": {
            "pilgrim": rng.randrange(ring),
            "merchant": rng.choice(TOWNS),
            "artist": rng.choice(AREAS),
        }
        for seat in range(2)
    }


def _starts_apart(table: dict[str, Any]) -> bool:
    """Return whether all characters start on different stations."""
    ring = table["ring"]["stations"]
    starts = [table["starts"][f"player_{seat}"] for seat in range(2)]
    spaces = [start["pilgrim"] for start in starts]
    spaces = [ring.index(space) if isinstance(space, str) else space for space in spaces]
    spaces += [ring.index(s["merchant"]) for s in starts if s["merchant"] in COASTAL_TOWNS]
    return max(spaces) < len(ring) and len(set(spaces)) == len(spaces)


def _numbers(rng: random.Random, length: int) -> list[int]:
    return sorted(rng.choices(range(rng.choice((1, 10, 256))), k=length))


def _draw(game: Game) -> None:
    """Draw the SVG, which must be XML, and the text."""
    ElementTree.fromstring(svg.draw(game.scene()))
    lines = ansi.draw(game.scene(), color=False).split("\n")
    assert all(line.isprintable() and len(line) <= ansi.WIDTH for line in lines)


def _spec(rng: random.Random) -> bool:
    """Refuse a value that is no name, path or `Board`."""
    spec = rng.choice((mutants.wrong_value, mutants.foreign_value, _path_like))(rng)
    if isinstance(spec, str) and spec == "shikoku":
        return True
    with allow_refusal(BoardError) as messages:
        Game(spec)
    assert "expected" in messages[0] or "no such board file" in messages[0], messages
    return False


def _path_like(rng: random.Random) -> str:
    return rng.choice(mutants.TEXTS) + rng.choice((".toml", "/", ".TOML", "\n.toml", "/x.toml"))


def _without_notes(table: dict[str, Any]) -> dict[str, Any]:
    """Return a board file without notes, which take most of the time to read."""
    return {
        key: _without_notes(item) if isinstance(item, dict) else item
        for key, item in table.items()
        if key != "note"
    }
