"""Ladders: read, placed on up to the games, gone on with, or refused."""

import json
import os
import random
from pathlib import Path
from typing import Any

import mutants
import numpy as np
from fuzz import refusal
from networks import random_policy

from tokaido_env.agent import AgentError
from tokaido_env.agents.registry import cost_of
from tokaido_env.arena.ladder import LADDER, Ladder, LadderError, hash_of, make_ladder
from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.placing import rate
from tokaido_env.arena.rating_models import RatingError
from tokaido_env.arena.ratings import rate_steps
from tokaido_env.boards.board import Board

SPECS = (
    *("random", "greedy", "policy:best", "policy:other", "policy:../best", "mcts:sims=999999"),
    *("champion", "policy:fifo", "nobody", "expectimax:depth=4", "mcts:sims=0"),
    *("python:subprocess:Popen,args=echo", "python:outsiders:Trace,path=trace"),
)


class Cases:
    """The ladder of this project, and a short one."""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)  # paths in specs are from here
        self.path = folder / "ladder.json"
        self.board = Board.load()
        whole = json.loads(LADDER.read_text(encoding="utf-8"))
        few = {"greedy", "heuristic", "mcts:sims=100", "champion"}
        short = whole | {
            "anchor": "greedy",
            "agents": [one for one in whole["agents"] if one["agent"] in few],
            "matches": [one for one in whole["matches"] if few >= {one["a"], one["b"]}],
        }
        played = {one[side] for one in short["matches"] for side in "ab"}
        short["agents"] = [one for one in short["agents"] if one["agent"] in played]
        unfinished = short | {"agents": [], "fit": None}
        self.ladders = (whole, short, unfinished)
        random_policy().save(folder / "best")
        os.mkfifo(folder / "fifo")

    def check_sound(self) -> None:
        for data in self.ladders:
            self.path.write_bytes(mutants.dumps(_sealed(data)))
            self._check_ladder(random.Random(0))
        assert len(self.ladders[1]["agents"]) > 2

    def case(self, rng: random.Random) -> bool:
        self._write(rng)
        with refusal(LadderError, AgentError, names=self.path) as messages:
            self._check_ladder(rng)
        return not messages

    def _write(self, rng: random.Random) -> None:
        """Write a damaged ladder, with its hash made anew mostly."""
        if rng.random() < 0.01:
            return self._write_none(rng)
        data: Any = rng.choices(self.ladders, (1, 9, 3))[0]
        if rng.random() < 0.2:
            data = _renamed(rng, data)
        data = mutants.tree(rng, data, 2)
        if rng.random() < 0.9 and isinstance(data, dict):
            data = _sealed(data)
        line = mutants.dumps(data)
        self.path.write_bytes(line if rng.random() < 0.9 else mutants.damaged(rng, line))
        return None

    def _write_none(self, rng: random.Random) -> None:
        """Let something else stand there."""
        self.path.unlink(missing_ok=True)
        if rng.random() < 0.5:
            self.path.symlink_to(rng.choice(("fifo", "ladder.json", "/dev/zero", "missing", ".")))

    def _check_ladder(self, rng: random.Random) -> None:
        try:
            board = rng.choice((None, self.board))
            ladder = Ladder.load(self.path, board)
        finally:
            if self.path.is_symlink():
                self.path.unlink()
        again = self.path.with_name("again.json")
        ladder.save(again)
        ladder = Ladder.load(again, board)
        assert ladder.to_dict() == json.loads(again.read_bytes())
        if rng.random() < 0.15:
            self._place(rng, ladder)
        if rng.random() < 0.15:
            self._go_on(rng, ladder, again)

    def _place(self, rng: random.Random, ladder: Ladder) -> None:
        """An agent is placed, by games that are made up, or there is a reason that says why not."""
        for one in ladder.agents:
            assert cost_of(one.agent) >= 0
        with refusal(LadderError, RatingError):
            rate_steps(ladder.matches, seed=ladder.seed, resamples=10)
            rated = rate(
                *("heuristic", ladder), play=_made_up, opponents=rng.randint(1, 3), resamples=10
            )
            low, high = rated.rating.ci95
            assert low <= high
            json.dumps(rated.to_dict(), allow_nan=False)

    def _go_on(self, rng: random.Random, ladder: Ladder, path: Path) -> None:
        """It is gone on with, by games that are made up, or there is a reason that says why not."""
        names = list(dict.fromkeys(name for match in ladder.matches for name in (match.a, match.b)))
        rng.shuffle(names)
        agents = [*names[: rng.randint(2, 9)], "heuristic"][-4:]
        before = path.read_bytes()
        with refusal(LadderError, RatingError, ValueError) as messages:
            made = make_ladder(agents, lambda a, b: 2, ladder.seed, self.board, _made_up, path)
            assert {one.agent for one in made.agents} == set(agents)
        if messages and "settle" not in messages[0]:
            assert path.read_bytes() == before


def _made_up(a: str, b: str, games: int, seed: int) -> Match:
    """A match of which every second pair is won."""
    data = np.zeros((games // 2, 2), GAME)
    data["seed"] = np.arange(games // 2)[:, None]
    data["result"][::2] = 1.0
    return Match(a, b, data, np.zeros((games // 2, 2, 0), np.int8))


def _renamed(rng: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    """The same ladder with another agent in the place of one."""
    old = rng.choice(data["matches"])["a"]
    text = json.dumps(data).replace(json.dumps(old), json.dumps(rng.choice(SPECS)))
    renamed: dict[str, Any] = json.loads(text)
    return renamed


def _sealed(data: dict[str, Any]) -> dict[str, Any]:
    """The same ladder with the hash of what it holds."""
    body = {key: value for key, value in data.items() if key != "hash"}
    return body | {"hash": hash_of(body)}
