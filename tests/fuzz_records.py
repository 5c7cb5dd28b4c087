"""Record files: read, verified, told and exported, or refused."""

import io
import json
import random
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import mutants
from fuzz import check_message, refusal

from tokaido_env import Game
from tokaido_env.__main__ import main as command
from tokaido_env.record import Forfeit, Record, RecordError, load, save

GOLDEN = Path(__file__).with_name("golden") / "games.jsonl"
COMMANDS = (("replay",), ("replay", "--quiet"), ("export",), ("replay", "--html"))


def forfeited() -> Record:
    """A game that a seat failed to play on."""
    game = Game(seed=0)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    seat = int(game.player == 1)
    lost = Forfeit(seat, "crash", "RuntimeError: no idea")
    return replace(game.record(), forfeit=lost, end="forfeit", winner=1 - seat)


class Cases:
    """The golden games, and unfinished ones that begin as they do."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "games.jsonl"
        self.records = load(GOLDEN)
        self.games = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
        self.games.append(json.loads(forfeited().to_json()))

    def check_sound(self) -> None:
        for game in self.games:
            self.path.write_bytes(mutants.dumps(game) + b"\n")
            assert len(load(self.path)) == 1
            for words in COMMANDS:
                assert self._run(words) == 0

    def case(self, rng: random.Random) -> bool:
        if rng.random() < 0.05:
            return self._made(rng)
        game: Any = rng.choice(self.games)
        lines = mutants.as_json(rng, game) + b"\n"
        if rng.random() < 0.2:
            lines = mutants.dumps(rng.choice(self.games)) + b"\n" + lines
        self.path.write_bytes(lines)
        with refusal(RecordError, names=self.path) as messages:
            records = load(self.path)
            self._check_taken(records, rng)
        if rng.random() < 0.1:
            status = self._run(rng.choice(COMMANDS))
            assert status == bool(messages)
        return not messages

    def _made(self, rng: random.Random) -> bool:
        """A record of players with other names, saved: it can be read, or there is none."""
        game = self.records[rng.randrange(len(self.records))]
        name = rng.choice((mutants.value, mutants.stranger))(rng)
        players: Any = rng.choice((name, (name, "b"), (mutants.value(rng), name)))
        with refusal(RecordError) as messages:
            save([replace(game, players=players)], self.path)
            with refusal(RecordError, names=self.path) as refused:
                self._check_taken(load(self.path), rng)
        return not messages and not refused

    def _check_taken(self, records: Any, rng: random.Random) -> None:
        """What was taken is written as it was read, and is taken again."""
        again = self.path.with_name("again.jsonl")
        save(records, again)
        assert load(again) == records

    def _run(self, words: tuple[str, ...]) -> int:
        """Run a command on the file: it says in a line what is wrong, or nothing."""
        name, *options = words
        out = {"export": ["out.npz"], "--html": ["out.html"]}.get(words[-1], [])
        paths = [str(self.path.with_name(each)) for each in out]
        told, wrong = io.StringIO(), io.StringIO()
        with redirect_stdout(told), redirect_stderr(wrong):
            status = command([name, str(self.path), *options, *paths])
        if status:
            check_message(wrong.getvalue().removesuffix("\n"), self.path)
            assert not any(Path(path).exists() for path in paths)
        for path in paths:
            Path(path).unlink(missing_ok=True)
        return status
