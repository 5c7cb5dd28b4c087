"""Self-play at scale: thousands of whole games side by side, then an update of the network.

tokaido train --method scale --run runs/scale --board family:train/1000 --updates 1000
tokaido train --method scale --run runs/scale --board family:train/1000 --updates 2000

The same command goes on with a run, and makes the same bytes wherever it was stopped: an update
depends on the weights before it and its number alone. Ctrl-C stops after the update in hand.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tokaido_env.agents.policy import Policy, PolicyAgent, check_tensors
from tokaido_env.arena.ladder import Ladder, ladder_for
from tokaido_env.core.luck import arena_seed
from tokaido_env.files import locked
from tokaido_env.learn.boards import summary, told_splits
from tokaido_env.learn.checkpoint import (
    BROKEN,
    Checkpoint,
    broken,
    check_links,
    check_moments,
    checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from tokaido_env.learn.declared import RunError, enough_memory
from tokaido_env.learn.games import Played, play_games
from tokaido_env.learn.interrupting import interruptible
from tokaido_env.learn.metrics import Events, Lines
from tokaido_env.learn.network import repeatable, seed32, torch_threads
from tokaido_env.learn.rating import place
from tokaido_env.learn.scale_settings import (
    FILES,
    METRICS,
    PRECISIONS,
    TIMES,
    ScaleSettings,
    open_folder,
)
from tokaido_env.learn.settings import sweep
from tokaido_env.learn.sighted import SightedNetwork, frozen, load_weights
from tokaido_env.learn.update import Losses, update

COMMAND = "tokaido train --method scale"  # as the examples above call it

Figures = dict[str, Any]

_GAMES, _ORDER = 1, 2  # purposes of seeds
_MEAN = "mean."  # what averaged weights are called in a checkpoint


def train(
    path: Path, settings: ScaleSettings, report: Callable[[Figures], None] = lambda figures: None
) -> bool:
    """Train a run to its end, from its newest checkpoint if it has one.

    Args:
        path: of the run's folder: new, or one that the same settings have made.
        settings: of the run; only `updates` may grow.
        report: called with the figures of each update, JSON types.

    Returns:
        Whether the run is complete; if not, it was interrupted, and saved.

    Raises:
        RunError: if the folder was made with other settings, or is broken, or a number in the
            training is not finite: the last checkpoint is whole then.
        InUseError: if another command works in the folder.
    """
    for part in (path, path / "policies"):
        part.mkdir(parents=True, exist_ok=True)
    with locked(path), enough_memory(path):
        sweep(path, FILES, r"checkpoints/\d+")
        open_folder(path, settings)
        with (
            torch_threads(settings.threads),
            repeatable(),
            interruptible() as stop,
            closing(_Run(path, settings)) as run,
        ):
            while run.number < settings.updates and not stop():
                report(run.update())
            run.save()
            return run.number == settings.updates


class _Run:
    """A network, its optimizer, and the folder of their run."""

    def __init__(self, path: Path, settings: ScaleSettings) -> None:
        check_links(path)
        self.path, self.settings, self.pool = path, settings, settings.pool
        self.number = self.steps = 0  # updates and decisions so far
        self.saved = -1
        self.best: float | None = None  # Elo
        self.ladder: Ladder | None = None
        if settings.rate_every:
            self.ladder = Ladder.load(ladder_for(self.pool), self.pool)
        torch.manual_seed(seed32(settings.seed))
        self.beside = settings.pool_beside
        boards = settings.boards_seen
        precision = PRECISIONS[settings.precision]
        self.network = SightedNetwork(settings.sizes, boards, precision).to(settings.on)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), settings.learning_rate, eps=1e-5, fused=True
        )
        self.splits: list[str] = []  # of the boards of the policy that it begins as
        if settings.start_from:
            start = Policy.load(settings.start_from)
            load_weights(self.network, start)
            self.splits = told_splits(start.training)
        self.averaged = deepcopy(self.network)
        if found := checkpoints(path):
            self._restore(found[-1])
        self.metrics = Lines(path / METRICS, self.steps)
        self.times = Lines(path / TIMES, self.steps)
        self.events = Events(path / "tb")

    def update(self) -> Figures:
        """Play games, learn from them, do what is due then; return what there is to tell."""
        settings, began = self.settings, time.perf_counter()
        self._set_learning_rate()
        seed = int(arena_seed(settings.seed, _GAMES))
        is_beside = self.number % settings.beside_every == settings.beside_every - 1
        played = play_games(
            self.network,
            self.beside if is_beside else self.pool,
            settings.games,
            int(arena_seed(seed, self.number)),
        )
        at = time.perf_counter()
        losses = self._learn(played)
        self._average()
        self.number += 1
        self.steps += len(played.decisions.game)
        figures: Figures = {"update": self.number, **losses._asdict(), **_told(played)}
        seconds = time.perf_counter() - began
        times = {"playing": at - began, "seconds": seconds}
        times["steps_a_second"] = len(played.decisions.game) / seconds
        if self.ladder and self.number % settings.rate_every == 0:
            figures |= self._rate(self.ladder)
        self.metrics.write(self.steps, figures)
        self.times.write(self.steps, times)
        both = figures | times
        self.events.write(self.steps, both)
        if self.number % settings.freeze_every == 0:
            self.policy().save(self.path / "policies" / f"{self.steps:011d}")
        if self.number % settings.checkpoint_every == 0:
            self.save()
        return {"steps": self.steps, **both}

    def save(self) -> None:
        """Write `last`, and a checkpoint: whole or not at all."""
        if self.saved == self.number:
            return
        policy = self.policy()
        policy.save(self.path / "last")
        if self.best is None:
            policy.save(self.path / "best")
        self.metrics.sync()
        write_checkpoint(self.path, self._checkpoint())
        self.saved = self.number

    def close(self) -> None:
        """Close the files."""
        for log in (self.metrics, self.times, self.events):
            log.close()

    def policy(self) -> Policy:
        """Return the network as it is now, with a summary of its training."""
        settings = asdict(self.settings)
        del settings["updates"]  # may grow, the policy is the same
        training = {"steps": self.steps, "updates": self.number, "scale": settings}
        splits = [*self.splits, *summary(self.beside)["splits"]]
        return frozen(self.averaged, training | {"board": summary(self.pool, splits)})

    def _set_learning_rate(self) -> None:
        settings = self.settings
        left = max(0.0, 1 - self.number / settings.updates)
        share = settings.final_learning_rate + (1 - settings.final_learning_rate) * left
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * share

    def _learn(self, played: Played) -> Losses:
        seed = int(arena_seed(self.settings.seed, _ORDER))
        generator = torch.Generator()
        generator.manual_seed(int(arena_seed(seed, self.number)))
        try:
            return update(self.network, self.optimizer, played, self.settings, generator)
        except FloatingPointError as error:
            kept = checkpoints(self.path)
            advice = f"{kept[-1]} is the last one before it" if kept else "there is no checkpoint"
            raise RunError(
                f"{self.path}: update {self.number + 1}, {error}: {advice}; a lower learning_rate "
                "may help"
            ) from None

    @torch.no_grad()
    def _average(self) -> None:
        """Move the averaged weights towards the network's."""
        share = 1 - self.settings.average
        pairs = zip(self.averaged.parameters(), self.network.parameters(), strict=True)
        for mean, weight in pairs:
            mean.lerp_(weight, share)

    def _rate(self, ladder: Ladder) -> Figures:
        """Place the network on the ladder; keep it as `best` if it never stood higher."""
        policy = self.policy()
        agent = PolicyAgent.of(policy, "learner")
        rating = place(agent, ladder, self.settings.rating_games, self.settings.seed)
        if self.best is None or rating.elo > self.best:
            self.best = rating.elo
            policy.save(self.path / "best")
        return {"elo": rating.elo, "low": rating.ci95[0], "high": rating.ci95[1]}

    def _checkpoint(self) -> Checkpoint:
        state = self.optimizer.state_dict()["state"]
        moments = {number: dict(own) for number, own in state.items()}
        counters = {"update": self.number, "best": self.best}
        weights = self.network.state_dict()
        weights |= {_MEAN + name: mean for name, mean in self.averaged.state_dict().items()}
        return Checkpoint(self.steps, self.number, weights, moments, {}, counters)

    def _restore(self, path: Path) -> None:
        try:
            found = read_checkpoint(path)
            weights = dict(found.weights)
            means = {name: weights.pop(_MEAN + name) for name in self.network.state_dict()}
            self.network.load_state_dict(weights)
            self.averaged.load_state_dict(means)
            seen = self.network.board is not None
            for network in (self.network, self.averaged):
                check_tensors("learner.safetensors", frozen(network).tensors, seen)
            check_moments(self.optimizer.param_groups[0]["params"], found.moments)
            state = self.optimizer.state_dict() | {"state": found.moments}
            self.optimizer.load_state_dict(state)
            self.steps, self.number = found.steps, int(found.counters["update"])
            self.best = found.counters["best"]
        except BROKEN as error:
            older = checkpoints(self.path)[:-1]
            advice = f"delete it to go on from {older[-1]}" if older else "train anew"
            raise broken(path, error, advice) from None
        self.saved = self.number


def _told(played: Played) -> Figures:
    ends = played.ends.astype(float)
    return {
        "result": float(played.results.mean()),
        "rounds": float(ends[:, 6].mean()),
        "points": float(ends[:, :6].sum() / (2 * len(ends))),
    }


_ROW = "{update:6}  {steps:13,}  {steps_a_second:8,.0f}  {value:.4f}  {entropy:.4f}  {points:5.1f}"
_HEAD = "update          steps   steps/s   value  entropy  points"


def main(arguments: Sequence[str] | None = None, called: str = COMMAND) -> int:
    """Run the command, which the user called so; return the exit status."""
    parser = argparse.ArgumentParser(
        prog=called,
        description=(__doc__ or "").replace(COMMAND, called),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", type=Path, required=True, help="folder to begin or to go on with")
    ScaleSettings.add_options(parser.add_argument_group("settings"))
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # the same bytes on a GPU
    told = 0

    def report(figures: Figures) -> None:
        nonlocal told
        rating = " {elo:.0f} ({low:.0f} to {high:.0f})" if "elo" in figures else ""
        line = (_ROW + rating).format(**figures)
        print(line if told else f"{_HEAD}\n{line}", flush=True)
        told += 1

    try:
        complete = train(options.run, ScaleSettings(**ScaleSettings.given(options)), report)
    except (ValueError, OSError) as error:
        print(f"train: {error}", file=sys.stderr)
        return 1
    if not complete:
        print("train: stopped and saved; the same command goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
