"""Run folders: resumed, up to where training would begin; lessons of an expert."""

import hashlib
import json
import os
import random
import shutil
import signal
import tomllib
from pathlib import Path
from typing import Any

import mutants
import numpy as np
import spoil
import torch
from fuzz import Cases, refusal
from networks import decisions, random_policy
from tokaido_env.learn.declared import RunError
from tokaido_env.learn.expert import ExpertSettings
from tokaido_env.learn.samples import legal_rows, load_samples

from tokaido_env.agent import AgentError
from tokaido_env.agents import make
from tokaido_env.agents.policy import Sizes
from tokaido_env.arena.ladder import LadderError
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.checks import SeedError
from tokaido_env.core.state import STATE
from tokaido_env.files import OutputError
from tokaido_env.learn import expert, ppo
from tokaido_env.learn.settings import Settings, load_settings, resume_run

VALUES: dict[str, Any] = {
    **{"games": 8, "rollout": 16, "minibatch": 64, "width": 8, "slots": 4, "agents": "greedy"},
    **{"steps": 128, "freeze_every": 64, "pool_size": 3, "rate_every": 0, "epochs": 1},
    **{"refit_games": 0},
}
LESSONS = ExpertSettings(rounds=1, games=4, width=8, positions=10, first_positions=10)
POINT = "checkpoints/000000128/"
# How often each is damaged.
PARTS = {
    **{"config.toml": 3, POINT + "state.json": 6, POINT + "games.npz": 6, "metrics.jsonl": 2},
    **{POINT + "learner.safetensors": 3, POINT + "optimizer.safetensors": 3, "best": 1, "last": 1},
    **{"pool/pool.json": 1, "pool/000000128": 1, "pool/000000000": 1, POINT + "SHA256SUMS": 1},
    **{"checkpoints": 0.2, "pool": 0.2, POINT.rstrip("/"): 0.2},
}


class _GoesOn(Exception):  # noqa: N818  not an error
    """Training would go on."""


class Runs(Cases):
    """A finished run, and an expert's folder."""

    errors = (RunError, AgentError, BoardError, LadderError, SeedError, OutputError)
    name = "run"

    def make(self) -> None:
        torch.set_num_threads(1)
        ppo.begin(self.path, Settings(**VALUES))
        assert ppo.train(self.path)
        shutil.rmtree(self.path / "tb")
        self.files = _files_of(self.path)
        self.expert = self.folder / "expert"
        self.lessons = self._begin_expert()

    def _begin_expert(self) -> dict[str, Any]:
        self.expert.mkdir()
        settings = json.dumps({name: getattr(LESSONS, name) for name in LESSONS.defaults()})
        (self.expert / "settings.json").write_text(settings, encoding="utf-8")
        random_policy(Sizes.of_width(8)).save(self.expert / "01")
        _, states, legal = decisions(games=4, moves=20, most=4)
        visits = legal_rows(legal).astype(np.uint16)
        zeros = np.zeros(len(legal), np.float32)
        raw = states.view(np.uint8).reshape(-1, STATE.itemsize)
        rest = {"legal": legal, "visits": visits, "values": zeros, "results": zeros}
        return {"states": raw, **rest}

    def check_sound(self) -> None:
        assert set(PARTS) <= {*self.files, "checkpoints", "pool", POINT.rstrip("/")}
        self.check(random.Random(0))
        self._restore()
        resume_run(self.path, {"steps": 256})
        assert self._goes_on()
        self._restore()
        self._write_lessons(spoil.npz(self.lessons))
        self._check_lessons()
        expert.iterate(self.expert, LESSONS)

    def case(self, rng: random.Random) -> bool:
        if rng.random() < 0.15:
            return self._expert_case(rng)
        try:
            self.damage(rng)
            with refusal(*self.errors) as messages:
                os.chdir(self.folder)
                self.check(rng)
            known = ("run", "board", "ladder", "seed", *VALUES)
            assert not messages or any(name in messages[0] for name in known), messages
            return not messages
        finally:
            self._restore()

    # Damage

    def damage(self, rng: random.Random) -> None:
        for _ in range(rng.choice((1, 1, 1, 2))):
            self._damage_part(rng, rng.choices(list(PARTS), list(PARTS.values()))[0])
        if rng.random() < 0.95:
            resealed(self.path)

    def _damage_part(self, rng: random.Random, part: str) -> None:
        path = self.path / part
        if not os.path.lexists(path):
            return
        if path.is_dir() or rng.random() < 0.06:
            _replace(rng, path)
            return
        data = self.files[part]
        if path.suffix in (".toml", ".json", ".jsonl") and rng.random() < 0.9:
            path.write_bytes(_as_text(rng, path.suffix, data))
        elif path.suffix == ".npz" and rng.random() < 0.9:
            path.write_bytes(spoil.damaged_npz(rng, data))
        elif path.suffix == ".safetensors" and rng.random() < 0.9:
            path.write_bytes(spoil.damaged_tensors(rng, data))
        else:
            path.write_bytes(mutants.damaged(rng, data))

    def _restore(self) -> None:
        """Put the run back."""
        if self.path.is_symlink() or _files_of(self.path) != self.files:
            shutil.rmtree(self.path)
            for name, data in self.files.items():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                (self.path / name).write_bytes(data)

    # What is taken

    def check(self, rng: random.Random) -> None:
        run = Path("run")
        settings = load_settings(run)
        if rng.random() < 0.2:
            make("policy:run")
        if rng.random() < 0.5:
            resume_run(run, {"steps": settings.steps + 64})
        self._goes_on()

    def _goes_on(self) -> bool:
        """Take a run up as the command does; return whether it would train."""

        def stop(progress: Any) -> None:
            json.dumps(progress.win_rates, allow_nan=False)
            float(progress.rating.elo if progress.rating else 0)
            raise _GoesOn

        before = signal.getsignal(signal.SIGINT)
        try:
            ppo.train(Path("run"), stop)
        except _GoesOn:
            return load_settings(Path("run")).steps > 128
        finally:
            signal.signal(signal.SIGINT, before)
        return False

    # The expert's

    def _write_lessons(self, data: bytes) -> Path:
        path = self.expert / "lessons-01.npz"
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        return path

    def _expert_case(self, rng: random.Random) -> bool:
        if rng.random() < 0.2:
            return self._expert_folder(rng)
        path = self._write_lessons(spoil.damaged_npz(rng, spoil.npz(self.lessons)))
        if rng.random() < 0.05:
            _replace(rng, path)
        with refusal(RunError, names=path) as messages:
            self._check_lessons()
        return not messages

    def _check_lessons(self) -> None:
        """What is learnt from can be learnt from."""
        samples = load_samples(self.expert / "lessons-01.npz", LESSONS.board)
        network = LESSONS.network()
        assert np.isfinite(expert.learn(network, samples, 1, 0, LESSONS))

    def _expert_folder(self, rng: random.Random) -> bool:
        """A finished round is taken, or it is told that the settings are others."""
        path = self.expert / rng.choice(("settings.json", "01"))
        before = path.read_bytes()
        text = path.suffix == ".json"
        path.write_bytes(mutants.as_json(rng, json.loads(before)) if text else b"x" + before)
        try:
            with refusal(RunError, AgentError, ValueError, names=self.expert) as messages:
                expert.iterate(self.expert, LESSONS)
        finally:
            path.write_bytes(before)
        return not messages


def resealed(run: Path) -> None:
    """Make the checksums of a run's checkpoints anew."""
    for point in run.glob("checkpoints/*"):
        if (point / "SHA256SUMS").is_file():
            files = [path for path in sorted(point.iterdir()) if path.is_file()]
            files = [path for path in files if path.stat().st_size < 2**30]
            sums = [(hashlib.sha256(path.read_bytes()).hexdigest(), path.name) for path in files]
            text = "".join(f"{digest}  {name}\n" for digest, name in sums if name != "SHA256SUMS")
            (point / "SHA256SUMS").write_text(text, encoding="utf-8")


def _files_of(run: Path) -> dict[str, bytes]:
    """Everything in a run: what is no file is none of them."""
    found = {}
    for path in sorted(run.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 2**20:
            found[path.relative_to(run).as_posix()] = path.read_bytes()
        elif not path.is_dir() or path.is_symlink() or path.name == "tb":
            found[path.relative_to(run).as_posix()] = b"\xff none"
    return found


def _replace(rng: random.Random, path: Path) -> None:
    """Let nothing, or something else, stand there."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    kind = rng.randrange(5)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind == 2:
        path.symlink_to(rng.choice(("/dev/zero", "missing", path.name, "..", "config.toml")))
    elif kind == 3:
        with path.open("wb") as file:
            file.truncate(rng.choice((0, 1, 2**20, 2**36)))


def _as_text(rng: random.Random, suffix: str, data: bytes) -> bytes:
    if suffix == ".toml":
        return mutants.as_toml(rng, tomllib.loads(data.decode()))
    if suffix == ".json":
        return mutants.as_json(rng, json.loads(data))
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    lines[at] = mutants.as_json(rng, json.loads(lines[at])) + rng.choice((b"\n", b"", b"\r\n"))
    return b"".join(lines)
