"""Policy files: loaded, and what is taken judges, plays and searches; weights of the heuristic."""

import json
import os
import random
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mutants
import numpy as np
from fuzz import refusal
from networks import decisions, random_policy
from processes import ROOT

from tokaido_env.agents.guide import WEIGHTS_FILE, guide_of, load_weights
from tokaido_env.agents.policy import Policy, PolicyAgent, PolicyError, Sizes
from tokaido_env.agents.search import PolicySearchAgent
from tokaido_env.boards.board import Board
from tokaido_env.learn.samples import legal_rows

sys.path.insert(0, str(ROOT / "benchmarks"))

from tune_heuristic import weights_text

KINDS_OF_NUMBERS = (
    *("F64", "F16", "BF16", "F8_E5M2", "F8_E4M3", "F4", "I64", "I32", "I8", "U8", "BOOL", "C64"),
    *("U64", "U16", "f32", "F32 ", "", "F128", "object"),
)
NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 1e-45, 1e10, -1e10, 1e20, 1e30, -1e30, 3e38, -3e38),
    *(float("nan"), float("inf"), -float("inf")),
)
LENGTHS = (0, 1, 2, 7, 8, 10**8, 10**8 + 1, 2**31, 2**63, 2**64 - 1)
TEMPERATURES = (0.0, 1e-310, 0.01, 1.0, 10.0)

Header = dict[str, Any]


class File(NamedTuple):
    """A safetensors file: its length and its JSON, which are its header, and its numbers."""

    length: bytes
    header: bytes
    data: bytes

    @classmethod
    def of(cls, file: bytes) -> "File":
        end = 8 + int.from_bytes(file[:8], "little")
        return cls(file[:8], file[8:end], file[end:])

    @classmethod
    def made(cls, header: Any, data: bytes) -> "File":
        line = mutants.dumps(header)
        return cls(len(line).to_bytes(8, "little"), line, data)


class Cases:
    """Policies of few units, with eyes for the board and without, and positions of all phases."""

    def __init__(self, folder: Path) -> None:
        os.chdir(folder)
        self.path = folder / "policy"
        self.files = tuple(self._written(sees_board) for sees_board in (False, True))
        boards, states, legal = decisions(("shikoku", "family:7"), games=6, moves=40, most=2)
        self.positions = boards, states, legal, np.arange(len(states), dtype=np.uint64)
        self.rows = legal_rows(legal)
        self.board = Board.load()
        self.weights = WEIGHTS_FILE.read_text(encoding="utf-8")
        os.mkfifo(folder / "fifo")

    def _written(self, sees_board: bool) -> File:
        random_policy(Sizes(8, 3, 2), sees_board=sees_board).save(self.path)
        return File.of(self.path.read_bytes())

    def check_sound(self) -> None:
        assert len(np.unique(self.positions[1]["phase"])) > 2
        for file in self.files:
            self.path.write_bytes(b"".join(file))
            self._check_file(random.Random(0))
            self._search(Policy.load(self.path))
        self.path.write_text(self.weights, encoding="utf-8")
        self._check_weights()

    def case(self, rng: random.Random) -> bool:
        if rng.random() < 0.1:
            return self._weights_case(rng)
        damages: tuple[Callable[[random.Random], File], ...]
        damages = (self._text, self._tree, self._entry, self._numbers, self._bits, self._training)
        self.file = rng.choice(self.files)
        self.header: Header = json.loads(self.file.header)
        file = rng.choice(damages)(rng)
        if rng.random() < 0.03:
            file = file._replace(length=rng.choice(LENGTHS).to_bytes(8, "little"))
        self.path.unlink(missing_ok=True)
        if rng.random() < 0.01:
            self.path.symlink_to(rng.choice(("fifo", "policy", "/dev/zero", "missing", ".")))
        else:
            self.path.write_bytes(b"".join(file))
        if rng.random() < 0.01 and self.path.is_file():
            os.truncate(self.path, rng.choice((0, 8, 2**20, 2**35)))
        with refusal(PolicyError, names="" if self.path.is_symlink() else self.path) as messages:
            self._check_file(rng)
        return not messages

    # Damage

    def _text(self, rng: random.Random) -> File:
        """A wrong text, of the length that is told or not."""
        line = mutants.damaged(rng, self.file.header)
        length = self.file.length if rng.random() < 0.2 else len(line).to_bytes(8, "little")
        return File(length, line, self.file.data)

    def _tree(self, rng: random.Random) -> File:
        return File.made(mutants.tree(rng, self.header, 2), self.file.data)

    def _entry(self, rng: random.Random) -> File:
        """Tensors of another kind, shape or place, or others' bytes."""
        header: Header = json.loads(self.file.header)
        data = self.file.data
        for _ in range(rng.randint(1, 2)):
            name = rng.choice([name for name in header if name != "__metadata__"])
            entry = header[name]
            kind = rng.randrange(6)
            if kind == 0:
                entry["dtype"] = rng.choice(KINDS_OF_NUMBERS)
            elif kind == 1:
                entry["shape"] = rng.choice((entry["shape"][::-1], [*entry["shape"], 1], []))
            elif kind == 2:
                entry["shape"] = [rng.choice((0, 1, 2**32, 10**12, 2**63 - 1, -1)), *entry["shape"]]
            elif kind == 3:
                entry["data_offsets"] = header[rng.choice(list(header)[1:])]["data_offsets"]
            elif kind == 4:
                entry["data_offsets"] = [x + rng.choice((-4, 0, 4)) for x in entry["data_offsets"]]
            else:
                data = mutants.damaged(rng, data, 1)
        return File.made(header, data)

    def _numbers(self, rng: random.Random) -> File:
        """Numbers at the ends of what there is, of some tensors, or all numbers larger."""
        data = np.frombuffer(self.file.data, "<f4").copy()
        if rng.random() < 0.3:
            data *= np.float32(rng.choice((-1, 1)) * 10.0 ** rng.randint(-20, 12))
        for _ in range(rng.randint(0, 3)):
            name = rng.choice(list(self.header)[1:])
            first, end = self.header[name]["data_offsets"]
            some = slice(first // 4, end // 4) if rng.random() < 0.5 else rng.randrange(len(data))
            data[some] = rng.choice(NUMBERS)
        return self.file._replace(data=data.tobytes())

    def _bits(self, rng: random.Random) -> File:
        """Bits that flipped."""
        data = bytearray(self.file.data)
        for _ in range(rng.choice((1, 2, 100))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return self.file._replace(data=bytes(data))

    def _training(self, rng: random.Random) -> File:
        """Another summary of the training, or another word of the rest of it."""
        told = dict(self.header["__metadata__"])
        key = "training" if rng.random() < 0.7 else rng.choice(list(told))
        text = mutants.as_json(rng, {"steps": 3, "settings": {"agents": "greedy", "games": 8}})
        told[key] = text.decode("utf-8", "replace")
        return File.made(self.header | {"__metadata__": told}, self.file.data)

    # What is taken

    def _check_file(self, rng: random.Random) -> None:
        """A policy that is taken gives odds and values of all positions, and comes back."""
        policy = Policy.load(self.path)
        policy.save(self.path.with_name("again"))
        again = Policy.load(self.path.with_name("again"))
        assert json.dumps(again.training) == json.dumps(policy.training)
        for name, tensor in policy.tensors.items():
            assert again.tensors[name].tobytes() == tensor.tobytes()
        for temperature in rng.sample(TEMPERATURES, 2):
            agent = PolicyAgent.of(policy, "policy:x", temperature)
            chosen = agent.act(*self.positions)
            assert self.rows[np.arange(len(chosen)), chosen].all()
        odds, values = agent.judge(*self.positions)
        assert np.allclose(odds.sum(axis=1), 1, atol=1e-4)
        assert (odds[~self.rows] == 0).all()
        assert (np.abs(values) <= 1).all()
        if rng.random() < 0.05:
            self._search(policy)

    def _search(self, policy: Policy) -> None:
        chosen = PolicySearchAgent.of(policy, "x", 4).act(*self.positions)
        assert self.rows[np.arange(len(chosen)), chosen].all()

    # Weights

    def _weights_case(self, rng: random.Random) -> bool:
        self.path.unlink(missing_ok=True)  # it may be a link
        if rng.random() < 0.5:
            self.path.write_bytes(mutants.as_toml(rng, tomllib.loads(self.weights)))
        else:
            self.path.write_bytes(mutants.text(rng, self.weights, 2))
        with refusal(ValueError, names=self.path) as messages:
            self._check_weights()
        return not messages

    def _check_weights(self) -> None:
        weights = load_weights(self.path)
        guide = guide_of(self.board, weights)
        assert np.abs(guide["weights"] / 4096 - weights).max() <= 1 / 8192
        self.path.write_text(weights_text(weights, "x"), encoding="utf-8")
        assert np.abs(load_weights(self.path) - weights).max() <= 1 / 4096
