"""Settings and folder of a run of expert iteration: what stands where, and how it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tokaido_env.agents.registry import Parameter
from tokaido_env.files import parse_json, read_json, write_text
from tokaido_env.learn.declared import (
    COUNT,
    SHARE,
    TEXT,
    RunError,
    differences,
    setting,
)
from tokaido_env.learn.expert import MAX_SIMS
from tokaido_env.learn.lessons import SearchSettings
from tokaido_env.learn.settings import MOST_DECISIONS, check_most

LEDGER, GATE, SETTINGS = "ledger.jsonl", "gate.jsonl", "settings.json"

_SIMS = Parameter(int, 1, MAX_SIMS)
_UNIT = r"\d{4}-\d{4}(-\d{4})?\.npz"
FILES = rf"ledger\.jsonl|gate\.jsonl|settings\.json|policies/\d{{4}}|units/{_UNIT}"
"""What may stand in a run's folder, besides what a kill has left."""

MODES = ("rounds", "stream")

_MOST_LINES = 64 << 20  # bytes of a file of one line a round

Figures = dict[str, Any]


def _is_learnt(one: Figures) -> bool:
    """Return whether a line of the ledger names units and a policy."""
    units = one.get("units")
    return (
        isinstance(units, dict)
        and all(re.fullmatch(_UNIT, name) for name in units)
        and isinstance(one.get("policy"), str)
    )


_LINES: dict[str, Callable[[Figures], bool]] = {
    LEDGER: _is_learnt,
    GATE: lambda one: isinstance(one.get("passed"), bool),
}


@dataclass(frozen=True)
class ZeroSettings(SearchSettings):
    """What is learnt, and how.

    Raises:
        RunError: naming the setting, what was expected and what it is.
    """

    mode: str = setting(
        "rounds",
        Parameter(str, words=MODES),
        "learn when all of a round have played, or stream: from whatever comes, while they play on",
    )
    rounds: int = setting(8, Parameter(int, 1, 9999), "may grow")
    units: int = setting(16, Parameter(int, 1, 10_000), "of self-play in a round")
    games: int = setting(128, COUNT, "of a unit, played to their end")
    first_sims: int = setting(100, _SIMS, "simulations a decision of `mcts` in the first round")
    sims: int = setting(64, _SIMS, "simulations a decision of `policy_search` in the others")
    full: float = setting(
        1.0, SHARE, "share of decisions searched by all simulations: the policy learns from these"
    )
    cheap_sims: int = setting(
        0,
        Parameter(int, 0, MAX_SIMS),
        "simulations of the other decisions, unless they find another action best than the policy "
        "does; 0: all are searched alike",
    )
    start_from: str = setting("", TEXT, "policy file to begin with; empty: mcts and random weights")
    kept_rounds: int = setting(4, COUNT, "rounds whose positions are learnt from together")
    samples: float = setting(
        4.0, Parameter(float, 0.01, 1000), "learnt from, for each new position of a round"
    )
    minibatch: int = setting(1024, COUNT, "positions")
    gate_games: int = setting(
        1000,
        Parameter(int, 0),
        "at most, even, of a new policy against the one that plays; 0: none",
    )
    rate_every: int = setting(0, Parameter(int, 0), "rounds between ratings on the ladder; 0: none")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_most("games", self.games, MOST_DECISIONS)
        check_most("minibatch", self.minibatch, MOST_DECISIONS)
        if self.full < 1 and not self.cheap_sims:
            raise RunError("full: expected 1, as cheap_sims = 0 searches all decisions alike")
        if self.gate_games % 2:
            raise RunError(f"gate_games: expected an even number, got {self.gate_games}")


class Folder(NamedTuple):
    """Where the parts of a run lie."""

    path: Path

    def unit(self, number: int, index: int, by: int | None = None) -> Path:
        """Return the file of a unit of a round, in a stream with the round of who played it."""
        player = "" if by is None else f"-{by:04d}"
        return self.path / "units" / f"{number:04d}-{index:04d}{player}.npz"

    def policy(self, number: int) -> Path:
        """Return the policy file of a round."""
        return self.path / "policies" / f"{number:04d}"

    def lines(self, name: str) -> list[Figures]:
        """Return what stands in a file of one line a round.

        Raises:
            RunError: if a line is not what this command writes.
        """
        path = self.path / name
        if not path.is_file():
            return []
        if path.stat().st_size > _MOST_LINES:
            raise RunError(f"{path}: expected at most {_MOST_LINES:,} bytes")
        try:
            found = [parse_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except ValueError:
            raise RunError(f"{path}: expected JSON, one object a line") from None
        for number, one in enumerate(found, start=1):
            if not isinstance(one, dict) or one.get("round") != number or not _LINES[name](one):
                raise RunError(f"{path}, line {number}: expected round {number}, as written here")
        return found

    def append(self, name: str, figures: Figures) -> None:
        """Add a line to such a file: whole, or not at all."""
        lines = [json.dumps(one) for one in [*self.lines(name), figures]]
        write_text(self.path / name, "\n".join(lines) + "\n")


def open_folder(path: Path, settings: ZeroSettings) -> None:
    """Make the folder's settings, or see that it was made with the same but for its length."""
    file, asked = path / SETTINGS, asdict(settings)
    own = asdict(settings_of(path)) if file.is_file() else asked
    length = {"rounds": settings.rounds}
    if differing := differences(own | length, asked):
        raise RunError(f"{path}: cannot go on with other settings: {differing}")
    if not file.is_file() or settings.rounds > own["rounds"]:
        write_text(file, json.dumps(asked, indent=1) + "\n")


def settings_of(path: Path) -> ZeroSettings:
    """Read the settings of a run."""
    file = path / SETTINGS
    own, known = read_json(file), ZeroSettings.defaults()
    if not isinstance(own, dict) or own.keys() != known.keys():
        raise RunError(f"{file}: expected an object of the settings {', '.join(known)}")
    return ZeroSettings(**own)
