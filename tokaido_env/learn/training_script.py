"""What training scripts share: a budget of decisions or minutes, options, and a last match."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import make
from tokaido_env.arena.tournament import play_match


class Budget:
    """Counts the decisions of a training until a budget of decisions or minutes is spent.

    A training ends at the first update that reaches its budget, which may exceed it.

    Args:
        decisions: of the learner; 0 leaves it untrained.
        minutes: instead of decisions, from now on.
        curve: folder for the weights at each tenth of the budget, for a learning curve. A file
            DECISIONS-SECONDS.pt is named by the decisions and the processor time until then.
        log: folder for TensorBoard's files (default: none).

    Attributes:
        decisions: number of decisions so far.
    """

    def __init__(
        self,
        decisions: int | None = None,
        minutes: float | None = None,
        curve: str | Path | None = None,
        log: str | Path | None = None,
    ) -> None:
        if (decisions is None) == (minutes is None):
            raise ValueError("expected either decisions or minutes")
        self._most, self._seconds = decisions, 60 * (minutes or 0)
        self._start, self._tenths = time.monotonic(), 0
        self._curve = None if curve is None else Path(curve)
        self._events = None if log is None else SummaryWriter(str(log))
        self.decisions = 0

    @property
    def left(self) -> float:
        """The share of the budget that is left, 1 at the start, 0 at the end."""
        if self._most is None:
            return max(0.0, 1 - (time.monotonic() - self._start) / self._seconds)
        return max(0.0, 1 - self.decisions / self._most) if self._most else 0.0

    def spend(self, decisions: int, module: nn.Module, **figures: float) -> None:
        """Count the decisions of an update; save the module's weights at each tenth.

        Figures of the update, by name, are printed, and written for TensorBoard if there is a log.
        """
        self.decisions += decisions
        tenths = int(10 * (1 - self.left) + 1e-9)
        if self._curve is not None and tenths > self._tenths:
            self._curve.mkdir(parents=True, exist_ok=True)
            name = f"{self.decisions:010d}-{time.process_time():.0f}.pt"
            torch.save(module.state_dict(), self._curve / name)
        self._tenths = tenths
        if figures:
            shown = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
            print(f"{self.decisions:>11,} decisions, {self.left:4.0%} left: {shown}", flush=True)
        if self._events is not None:
            for name, value in figures.items():
                self._events.add_scalar(name, value, self.decisions)
            self._events.flush()

    @classmethod
    def of(cls, options: argparse.Namespace) -> Budget:
        """Return the budget of `training_options`; its minutes start now."""
        decisions = options.decisions if options.minutes is None else None
        return cls(decisions, options.minutes, options.curve, getattr(options, "log", None))


def training_options(
    about: str, decisions: int, tracks: Iterable[str], track: str = "raw", settings: Any = None
) -> argparse.ArgumentParser:
    """Return a parser of the options that all training scripts have.

    Args:
        about: what the script does.
        decisions: of a training by default.
        tracks: what the network can read.
        track: the default one.
        settings: a named tuple of defaults, if it has figures to log; each field is an option.
    """
    show_defaults = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(description=about, formatter_class=show_defaults)
    add, budget = parser.add_argument, parser.add_mutually_exclusive_group()
    count = "decisions of the training, rounded up to whole updates"
    budget.add_argument("--decisions", type=int, default=decisions, help=count)
    minutes = "duration of the training, instead of decisions"
    budget.add_argument("--minutes", type=float, help=minutes)
    add("--curve", help="folder for the weights at each tenth of the budget")
    if settings:
        add("--log", help="folder for TensorBoard")
    add("--track", choices=tracks, default=track, help="what the network reads")
    add("--seed", type=int, default=1, help="random seed")
    for name, value in settings._asdict().items() if settings else ():
        option = f"--{name.replace('_', '-')}"
        add(option, type=type(value), default=value, help=f"see {type(settings).__name__}")
    add("--games", type=int, default=4000, help="games of the match at the end, even")
    add("--file", help="file for the weights")
    return parser


def save_and_play(options: argparse.Namespace, network: nn.Module, agent: Agent) -> None:
    """Save a trained network to `--file`, and print the result of its agent against `greedy`.

    The match is played on the boards of `--board`, if there is such an option.
    """
    if options.file:
        torch.save(network.state_dict(), options.file)
    board = getattr(options, "board", "shikoku")
    match = play_match(agent, make("greedy"), options.games, options.seed, board)
    low, high = match.interval
    print(f"against greedy: {match.score:.1%} ({low:.1%} - {high:.1%}, {options.games:,} games)")
