"""Self-play training: MaskablePPO against frozen copies of itself, resumable."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

from tokaido_env.agents.arena import play_match
from tokaido_env.agents.base import Agent, make
from tokaido_env.agents.policy import Layers, Policy, PolicyAgent
from tokaido_env.agents.run import Progress, RunError, Settings, load_settings
from tokaido_env.luck import arena_seed
from tokaido_env.record import write_text
from tokaido_env.sb3 import TokaidoVecEnv

OPPONENT_TEMPERATURE = 1.0  # frozen copies play as the learner explores
KEPT_CHECKPOINTS = 2

# What reading a cut, foreign or incomplete checkpoint can raise.
BROKEN = (
    *(OSError, ValueError, KeyError, TypeError, RuntimeError, EOFError),
    *(BadZipFile, SafetensorError),
)


def train(folder: str | Path, report: Callable[[Progress], None] = lambda progress: None) -> bool:
    """Train a run to its end, from its newest checkpoint if it has one.

    Ctrl-C saves a checkpoint at the next update and stops.

    Returns:
        Whether the run is complete.
    """
    folder = Path(folder)
    settings = load_settings(folder)
    run = _Run(folder, settings)
    run.resume()
    with _interruptible() as stop:
        callback = _Keeper(run, stop, report)
        try:
            run.model.learn(
                settings.steps - run.model.num_timesteps, callback, reset_num_timesteps=False
            )
        except _Stopped:
            return False
    run.save()
    run.close()
    return True


class _Run:
    """A learner with its games, its opponents and its folder."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings
        self.pool: list[Path] = []
        self.best_score = -1.0
        self.last_score: float | None = None
        self.frozen_at = 0
        self.saved_at = 0
        first: list[Agent] = [make("random")] * settings.slots
        self.env = TokaidoVecEnv(settings.games, first, settings.seed, settings.board)
        self.model = _new_learner(self.env, settings)
        self.env.seed(settings.seed)  # SB3 has handed on its own, of 32 bits
        self.rng = np.random.Generator(np.random.PCG64(settings.seed))
        (folder / "pool").mkdir(exist_ok=True)
        (folder / "checkpoints").mkdir(exist_ok=True)

    def resume(self) -> None:
        """Take up the newest checkpoint; without one, begin."""
        checkpoints = _checkpoints(self.folder)
        if checkpoints:
            self._load(checkpoints[-1])
        else:
            self.model._last_obs = self.env.reset()
            self.model._last_episode_starts = np.ones(self.env.num_envs, bool)
            self.freeze()
        self.metrics = _JsonLines(self.folder / "metrics.jsonl", self.model.num_timesteps)
        outputs = [self.metrics, TensorBoardOutputFormat(str(self.folder / "tb"))]
        self.model.set_logger(Logger(str(self.folder), outputs))

    def freeze(self) -> None:
        """Add a frozen copy to the pool; it takes one slot, copies of any age the others."""
        path = self.folder / "pool" / f"{self.model.num_timesteps:09d}"
        policy_of(self.model).save(path)
        self.pool.append(path)
        self.frozen_at = self.model.num_timesteps
        others = self.rng.integers(len(self.pool), size=self.settings.slots - 1)
        self._seat_opponents([path, *(self.pool[i] for i in others)])

    def evaluate(self) -> None:
        """Play the learner against greedy; keep it as `best` if none did better."""
        settings = self.settings
        agent = PolicyAgent.of(policy_of(self.model), "learner")
        seed = int(arena_seed(settings.seed, self.model.num_timesteps))
        match = play_match(agent, make("greedy"), settings.eval_games, seed, settings.board)
        self.model.logger.record("eval/greedy", match.score)
        self.last_score = match.score
        if match.score > self.best_score:
            self.best_score = match.score
            agent.policy.save(self.folder / "best")

    def save(self) -> None:
        """Write a checkpoint and `last`: whole or not at all."""
        steps = self.model.num_timesteps
        if self.saved_at == steps:
            return
        self.evaluate()
        self.saved_at = steps
        final = self.folder / "checkpoints" / f"{steps:09d}"
        unfinished = final.with_name(final.name + ".tmp")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        save_file(self.model.policy.state_dict(), unfinished / "learner.safetensors")
        save_file(_optimizer_tensors(self.model), unfinished / "optimizer.safetensors")
        np.savez(unfinished / "games.npz", **self._arrays())
        write_text(unfinished / "state.json", json.dumps(self._counters(), indent=1))
        shutil.rmtree(final, ignore_errors=True)
        unfinished.replace(final)
        policy_of(self.model).save(self.folder / "last")
        for old in _checkpoints(self.folder)[:-KEPT_CHECKPOINTS]:
            shutil.rmtree(old)

    def close(self) -> None:
        """Flush the logs."""
        self.model.logger.dump(self.model.num_timesteps)
        self.model.logger.close()

    def _load(self, checkpoint: Path) -> None:
        try:
            self._restore(checkpoint)
        except BROKEN as error:
            raise RunError(f"{checkpoint}: broken checkpoint: {error!r}") from None
        self._seat_opponents(self.seated)

    def _restore(self, checkpoint: Path) -> None:
        model = self.model
        counters = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
        model.policy.load_state_dict(load_file(checkpoint / "learner.safetensors"))
        _restore_optimizer(model, load_file(checkpoint / "optimizer.safetensors"))
        with (checkpoint / "games.npz").open("rb") as file, np.load(file) as arrays:
            games = dict(arrays)
        model._last_episode_starts = games.pop("episode_starts")
        self.env.restore(games)
        model._last_obs = self.env.observe()
        model.num_timesteps = self.saved_at = counters["steps"]
        model._n_updates = counters["updates"]
        self.frozen_at = counters["frozen_at"]
        self.best_score = counters["best_score"]
        self.rng.bit_generator.state = counters["rng"]
        _set_numpy_state(counters["numpy"])
        self.pool = [self.folder / "pool" / name for name in counters["pool"]]
        self.seated = [self.folder / "pool" / name for name in counters["seated"]]

    def _seat_opponents(self, paths: list[Path]) -> None:
        """Load each frozen copy once, even if it sits in several slots."""
        agents = {
            path: PolicyAgent.of(Policy.load(path), f"policy:{path}", OPPONENT_TEMPERATURE)
            for path in dict.fromkeys(paths)
        }
        self.seated = paths
        self.env.assign([agents[path] for path in paths])

    def _arrays(self) -> dict[str, Any]:
        return self.env.snapshot() | {"episode_starts": self.model._last_episode_starts}

    def _counters(self) -> dict[str, Any]:
        return {
            "steps": self.model.num_timesteps,
            "updates": self.model._n_updates,
            "frozen_at": self.frozen_at,
            "best_score": self.best_score,
            "pool": [path.name for path in self.pool],
            "seated": [path.name for path in self.seated],
            "rng": self.rng.bit_generator.state,
            "numpy": _numpy_state(),
        }


class _Stopped(Exception):  # noqa: N818  not an error
    """Raised through SB3's loop when a run was interrupted and has been saved."""


class _Keeper(BaseCallback):
    """Freezes copies, saves checkpoints and reports, always between two updates."""

    def __init__(
        self, run: _Run, stop: Callable[[], bool], report: Callable[[Progress], None]
    ) -> None:
        super().__init__()
        self.run = run
        self.stop = stop
        self.report = report

    def _on_rollout_start(self) -> None:
        run, steps = self.run, self.model.num_timesteps
        if steps - run.frozen_at >= run.settings.freeze_every:
            run.freeze()
        stopping = self.stop()
        if stopping or steps - run.saved_at >= run.settings.checkpoint_every:
            run.save()
        if stopping:
            run.close()
            raise _Stopped

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        results = [episode["r"] for episode in self.model.ep_info_buffer or ()]
        won = float((np.mean(results) + 1) / 2) if results else None
        total = self.run.settings.steps
        self.report(Progress(min(self.model.num_timesteps, total), total, won, self.run.last_score))


class _JsonLines(KVWriter):
    """Appends what is logged to a file, one object a line; drops what a resumed run repeats."""

    def __init__(self, path: Path, steps: int) -> None:
        kept = []
        if path.is_file():
            lines = path.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if json.loads(line)["steps"] <= steps]
        write_text(path, "".join(line + "\n" for line in kept))
        self.file = path.open("a", encoding="utf-8")

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0
    ) -> None:
        """Append one line."""
        values = {k: v for k, v in sorted(key_values.items()) if isinstance(v, int | float)}
        self.file.write(json.dumps({"steps": step} | values) + "\n")
        self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _new_learner(env: TokaidoVecEnv, settings: Settings) -> MaskablePPO:
    layers = [settings.width, settings.width]
    return MaskablePPO(
        "MlpPolicy",
        env,
        learning_rate=settings.learning_rate,
        n_steps=settings.rollout,
        batch_size=settings.minibatch,
        n_epochs=settings.epochs,
        gamma=1.0,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip,
        ent_coef=settings.entropy,
        policy_kwargs={"net_arch": layers, "activation_fn": torch.nn.Tanh},
        # SB3 takes 32 bits.
        seed=int(np.random.SeedSequence(settings.seed).generate_state(1)[0]),
        device="cpu",
    )


def policy_of(model: MaskablePPO) -> Policy:
    """Return a frozen copy of the learner's networks."""
    extractor = model.policy.mlp_extractor
    return Policy(
        policy=_layers([*extractor.policy_net, model.policy.action_net]),
        value=_layers([*extractor.value_net, model.policy.value_net]),
    )


def _layers(modules: list[torch.nn.Module]) -> Layers:
    linear = [module for module in modules if isinstance(module, torch.nn.Linear)]
    return [
        (module.weight.detach().numpy().copy(), module.bias.detach().numpy().copy())
        for module in linear
    ]


def _optimizer_tensors(model: MaskablePPO) -> dict[str, torch.Tensor]:
    """Return Adam's moments by parameter number, and PyTorch's random state."""
    tensors = {"torch_rng": torch.get_rng_state()}
    for number, moments in model.policy.optimizer.state_dict()["state"].items():
        for name, tensor in moments.items():
            tensors[f"{number}.{name}"] = tensor.clone()
    return tensors


def _restore_optimizer(model: MaskablePPO, tensors: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(tensors.pop("torch_rng"))
    state = model.policy.optimizer.state_dict()
    state["state"] = {}
    for key, tensor in tensors.items():
        number, name = key.split(".")
        state["state"].setdefault(int(number), {})[name] = tensor
    model.policy.optimizer.load_state_dict(state)


def _numpy_state() -> list[Any]:
    """Return NumPy's global random state, which SB3 shuffles minibatches with, as JSON types."""
    name, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return [str(name), [int(key) for key in keys], position, has_gauss, gauss]


def _set_numpy_state(state: list[Any]) -> None:
    name, keys, position, has_gauss, gauss = state
    np.random.set_state((name, np.array(keys, np.uint32), position, has_gauss, gauss))  # noqa: NPY002


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag; the second interrupts at once."""
    pressed = False

    def press(signum: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, previous)


def _checkpoints(folder: Path) -> list[Path]:
    """Return the finished checkpoints, oldest first."""
    return sorted(path for path in (folder / "checkpoints").glob("*") if path.name.isdigit())
