"""Fuzz cases of run folders: damaged runs are resumed up to the start of training."""

import json
import os
import random
import shutil
import signal
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import checkpoint_files
import damaged_arrays
import mutants
import numpy as np
import torch
from fuzz import Cases, allow_refusal
from safetensors.numpy import load, save

from tokaido_env.agent import AgentError
from tokaido_env.agents import make
from tokaido_env.arena.ladder import LadderError
from tokaido_env.boards.reader import BoardError
from tokaido_env.core.arguments import SeedError
from tokaido_env.files import OutputError
from tokaido_env.learn import alphazero, run
from tokaido_env.learn.network import PolicyNetwork
from tokaido_env.learn.replay_buffer import load_samples
from tokaido_env.learn.run_folder import extend, load_settings
from tokaido_env.learn.settings import METHODS, RunSettings
from tokaido_env.learn.settings_schema import RunError

TINY: dict[str, dict[str, Any]] = {
    "ppo": {
        **{"games": 8, "n_steps": 16, "minibatch_size": 64, "opponent_slots": 4, "epochs": 1},
        **{"agents": "greedy", "steps": 128, "snapshot_every": 64},
        **{"rate_every": 0, "calibration_games": 0},
    },
    "td": {"updates": 1, "games": 4, "minibatch_size": 64, "epochs": 1, "snapshot_every": 1},
    "alphazero": {
        **{"rounds": 1, "shards": 1, "games": 2, "first_sims": 2},
        **{"minibatch_size": 64, "samples_per_position": 0.1},
    },
}
# Weights of the parts to damage; `*` is the newest.
PARTS = {
    **{"config.toml": 3, "checkpoints/*.safetensors": 18, "shards/*.safetensors": 6},
    **{"metrics.jsonl": 2, "best": 1, "last": 1, "policies/*": 2},
    **{"checkpoints": 0.2, "policies": 0.2},
}


class _WouldTrain(Exception):  # noqa: N818  not an error
    """Ends a resume before training; its argument is whether training would follow."""


class Finished(NamedTuple):
    """A finished run: its settings and files."""

    settings: RunSettings
    files: dict[str, bytes]


class Runs(Cases):
    """Damaged copies of a finished run of each method."""

    errors = (RunError, AgentError, BoardError, LadderError, SeedError, OutputError)
    name = "run"

    def set_up(self) -> None:
        torch.set_num_threads(1)
        self.damaged: list[Path] = []
        self.runs = [self._trained(method) for method in METHODS]

    def _trained(self, method: str) -> Finished:
        settings = METHODS[method](width=8, **TINY[method])
        run.begin(self.path, settings)
        assert run.train(self.path)
        shutil.rmtree(self.path / "tb")
        files = _files_of(self.path)
        shutil.rmtree(self.path)
        return Finished(settings, files)

    def check_valid(self) -> None:
        for finished in self.runs:
            self.finished = finished
            length = self.finished.settings.LENGTH
            self._restore()
            self.check(random.Random(0))
            extend(self.path, {length: 3 * self.finished.settings.length})
            assert self._would_train()
            samples = list(self.path.glob("shards/*"))
            assert len(samples) == (length == "rounds")
            for path in samples:
                self._check_samples(path)

    def case(self, rng: random.Random) -> bool:
        self.finished = rng.choice(self.runs)
        self._restore()
        self.damage(rng)
        os.chdir(self.folder)
        with allow_refusal(*self.errors) as messages:
            self.check(rng)
        known = ("run", "board", "ladder", *self.finished.settings.defaults())
        assert not messages or any(name in messages[0] for name in known), messages
        return not messages

    # Damage

    def damage(self, rng: random.Random) -> None:
        self.damaged.clear()
        for _ in range(rng.choice((1, 1, 1, 2))):
            part = rng.choices(list(PARTS), list(PARTS.values()))[0]
            if found := sorted(self.path.glob(part)):
                self.damaged.append(found[-1])
                self._damage_part(rng, found[-1])
        if rng.random() < 0.95:
            resealed(self.path)

    def _damage_part(self, rng: random.Random, path: Path) -> None:
        if not path.is_file() or rng.random() < 0.06:
            _replace(rng, path)
            return
        data = self.finished.files[path.relative_to(self.path).as_posix()]
        how = mutants.mutated_bytes
        if rng.random() < 0.9:
            kinds = {".toml": _as_toml, ".safetensors": _as_tensors, ".jsonl": _as_lines}
            how = kinds.get(path.suffix, how)
        path.write_bytes(how(rng, data))

    def _restore(self) -> None:
        """Restore the files of the finished run."""
        if self.path.is_symlink() or _files_of(self.path) != self.finished.files:
            shutil.rmtree(self.path, ignore_errors=True)
            for name, data in self.finished.files.items():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                (self.path / name).write_bytes(data)

    # Resume

    def check(self, rng: random.Random) -> None:
        folder = Path("run")
        settings = load_settings(folder)
        if rng.random() < 0.2:
            make("policy:run")
        if rng.random() < 0.5:
            extend(folder, {settings.LENGTH: 3 * settings.length})
        self._would_train()
        for path in self.damaged:
            if path.parent.name == "shards" and os.path.lexists(path):
                with allow_refusal(RunError, names=path) as messages:
                    self._check_samples(path)
                if messages:
                    raise RunError(messages[0])

    def _would_train(self) -> bool:
        """Resume the run as the command does; return whether it would train."""

        def stop(progress: run.Progress) -> None:
            json.dumps(progress.figures, allow_nan=False)
            float(progress.rating.elo if progress.rating else 0)
            raise _WouldTrain(progress.done < progress.total)

        before = signal.getsignal(signal.SIGINT)
        try:
            run.train(Path("run"), stop)
        except _WouldTrain as stopped:
            return bool(stopped.args[0])
        finally:
            signal.signal(signal.SIGINT, before)
        raise AssertionError("nothing was reported")

    def _check_samples(self, path: Path) -> None:
        """Load samples and train on them."""
        settings = self.finished.settings
        assert isinstance(settings, alphazero.AlphaZeroSettings)
        samples, boards = load_samples(path, settings.pool), settings.pool.records
        network = PolicyNetwork(settings.sizes)
        assert np.isfinite(alphazero.learn(network, boards, samples, 1, 0, settings)).all()


def resealed(folder: Path) -> None:
    """Write the checksums of a run's checkpoints again, where they can be read."""
    for path in folder.glob("checkpoints/*.safetensors"):
        with suppress(OSError, ValueError):
            checkpoint_files.rewrite(path)


def _files_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a run; links and special files have other content than any file."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 2**20:
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
        elif not path.is_dir() or path.is_symlink() or path.name == "tb":
            found[path.relative_to(folder).as_posix()] = b"\xff none"
    return found


def _replace(rng: random.Random, path: Path) -> None:
    """Replace a file or folder by nothing, a folder, a pipe, a link or an empty or huge file."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
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


def _as_toml(rng: random.Random, data: bytes) -> bytes:
    return mutants.mutated_toml(rng, tomllib.loads(data.decode()))


def _as_tensors(rng: random.Random, data: bytes) -> bytes:
    """Damage the state in the header, an array, or the file of tensors."""
    if rng.random() < 0.3:
        return damaged_arrays.damaged_safetensors(rng, data)
    header = damaged_arrays.safetensors_parts(data)[0].get("__metadata__", {})
    arrays = load(data)
    if "state" in header and rng.random() < 0.5:
        state = mutants.mutated_json(rng, json.loads(header["state"]))
        return save(arrays, header | {"state": state.decode(errors="replace")})
    names = [name for name, array in arrays.items() if array.ndim]
    for name in rng.choices(names, k=rng.randint(1, 2)):
        damaged = damaged_arrays.damaged_array(rng, arrays[name])
        if damaged.dtype.kind in "biuf":
            arrays[name] = np.asarray(damaged, order="C")
    return save(arrays, header)


def _as_lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    lines[at] = mutants.mutated_json(rng, json.loads(lines[at])) + rng.choice((b"\n", b"", b"\r\n"))
    return b"".join(lines)
