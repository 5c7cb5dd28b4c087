"""Suites and submissions: read, replayed and written back, or refused."""

import json
import os
import random
from pathlib import Path
from typing import Any

import mutants
from fuzz import refusal
from matches import finished

from tokaido_env.agent import AgentError
from tokaido_env.agents.registry import make
from tokaido_env.arena.ladder import hash_of
from tokaido_env.arena.records import Records
from tokaido_env.arena.suite import (
    Records as RecordsEntry,
    Submission,
    SubmissionError,
    Suite,
    sha256_of,
)
from tokaido_env.arena.tournament import play
from tokaido_env.arena.verifying import verify
from tokaido_env.record import RecordError

SMALL = Path(__file__).parent / "golden" / "small-suite.json"


class Cases:
    """A small suite and a submission to it; one of suite, submission and records is damaged."""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)  # paths in specs are from here
        self.suite, self.path = folder / "suite.json", folder / "mine.json"
        self.records = folder / "games.jsonl"
        self.whole = json.loads(SMALL.read_text(encoding="utf-8"))
        suite = Suite.load(SMALL)
        sheets = suite.sheets("greedy")
        records = Records(self.records, sheets)
        for sheet in sheets:
            play(sheet, make("greedy"), make(sheet.b))
            records.append(sheet, finished(sheet))
        self.games = self.records.read_bytes()
        entry = RecordsEntry.of(self.records, 24)
        self.told = Submission.of(suite.result(sheets), entry).to_dict()
        os.mkfifo(folder / "fifo")

    def check_sound(self) -> None:
        self._write(self.whole, self.told, self.games)
        assert verify(self.path, Suite.load(self.suite), make, share=1.0).games == 24

    def case(self, rng: random.Random) -> bool:
        kind = rng.randrange(3)
        with refusal(SubmissionError, RecordError, AgentError) as messages:
            try:
                (self._case_of_suite, self._case_of_submission, self._case_of_records)[kind](rng)
            finally:
                for path in (self.suite, self.path, self.records):
                    if path.is_symlink():
                        path.unlink()
        return not messages

    def _case_of_suite(self, rng: random.Random) -> None:
        suite = mutants.tree(rng, self.whole, 2)
        if rng.random() < 0.9 and isinstance(suite, dict):
            suite["hash"] = hash_of({key: one for key, one in suite.items() if key != "hash"})
        data = mutants.dumps(suite)
        self._stand(rng, self.suite, data if rng.random() < 0.9 else mutants.damaged(rng, data))
        loaded = Suite.load(self.suite)
        assert loaded.to_dict() == json.loads(self.suite.read_bytes())
        loaded.sheets("greedy")

    def _case_of_submission(self, rng: random.Random) -> None:
        self._write(self.whole, self.told, self.games)
        data = mutants.dumps(mutants.tree(rng, self.told, 2))
        self._stand(rng, self.path, data if rng.random() < 0.9 else mutants.damaged(rng, data))
        suite = Suite.load(self.suite)
        Submission.load(self.path, suite)
        verify(self.path, suite, make, share=rng.choice((0.0, 0.3)))

    def _case_of_records(self, rng: random.Random) -> None:
        """Altered games: refused, or their numbers are not those of the submission's."""
        self._write(self.whole, self.told, self.games)
        games = mutants.damaged(rng, self.games, 2)
        if rng.random() < 0.5:
            lines = self.games.splitlines()
            place = rng.randrange(len(lines))
            lines[place] = mutants.dumps(mutants.tree(rng, json.loads(lines[place]), 1))
            games = b"\n".join(lines) + b"\n"
        self._stand(rng, self.records, games)
        if not self.records.is_symlink() and rng.random() < 0.9:
            told = dict(self.told["records"], sha256=sha256_of(self.records))
            self.path.write_bytes(mutants.dumps(self.told | {"records": told}))
        verify(self.path, Suite.load(self.suite), make, share=0.0)

    def _write(self, suite: Any, told: Any, games: bytes) -> None:
        self.suite.write_bytes(mutants.dumps(suite))
        self.path.write_bytes(mutants.dumps(told))
        self.records.write_bytes(games)

    def _stand(self, rng: random.Random, path: Path, data: bytes) -> None:
        """Write a file, or let something else stand there."""
        if rng.random() < 0.02:
            path.unlink(missing_ok=True)
            path.symlink_to(rng.choice(("fifo", path.name, "/dev/zero", "missing", ".")))
        else:
            path.write_bytes(data)
