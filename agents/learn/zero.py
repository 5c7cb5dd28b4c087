"""Expert iteration on any crew: players, a learner, a gate and a ledger.

python -m tokaido_env.agents.learn.zero --run runs/zero
python -m tokaido_env.agents.learn.zero --run runs/zero --crew ray:auto
python -m tokaido_env.agents.learn.zero --run runs/zero --replay

In each round the policy that holds the gate leads a search, which plays units of whole games
against itself (Silver et al. 2018, AlphaZero); the first is `mcts`, which needs none. The learner
goes on from the policy of the round before with the positions of the last rounds: how often the
search visited each action, and as value the mean of what it found and how the game ended. Then
the gate: paired games of the new policy against the one that holds it, until it is decided who is
better; a policy that is not shown to be worse passes.

On disk, everything written to a new file, then renamed:

    settings.json                  of all rounds
    units/<round>-<number>.npz     samples of a unit
    policies/<round>               policy files, one a round
    ledger.jsonl                   of each round, the units it learnt from, with their SHA-256, and
                                   that of its policy
    gate.jsonl                     of each round, the match and who holds the gate; ratings

Any process may be killed at any time: the same command goes on, and units that are there are not
played again. The bytes are the same whatever the crew; `--replay` learns everything again from the
ledger and compares.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from tokaido_env.agents.arena.crew import Crew, Here, mark_of
from tokaido_env.agents.arena.crews import KINDS, open_crew
from tokaido_env.agents.arena.ladder import Ladder, ladder_for, match_seed
from tokaido_env.agents.arena.playing import AgentFailed
from tokaido_env.agents.arena.series import play_series
from tokaido_env.agents.arena.tournament import Sheet
from tokaido_env.agents.learn.boards import (
    boards_seen,
    summary,
    told_splits,
)
from tokaido_env.agents.learn.declared import (
    COUNT,
    TEXT,
    RunError,
    differences,
    enough_memory,
    setting,
)
from tokaido_env.agents.learn.expert import MAX_SIMS, RATING_GAMES, learn
from tokaido_env.agents.learn.lessons import SearchSettings
from tokaido_env.agents.learn.network import MoveNetwork, frozen, load_weights, seed32
from tokaido_env.agents.learn.rating import place
from tokaido_env.agents.learn.samples import Samples, load_samples, save_samples
from tokaido_env.agents.learn.self_play import SelfPlayUnit
from tokaido_env.agents.learn.settings import MOST_DECISIONS, check_most, sweep
from tokaido_env.agents.players.policy import Policy, PolicyAgent, path_in_spec
from tokaido_env.agents.registry import Parameter, make
from tokaido_env.core.luck import arena_seed
from tokaido_env.files import locked, parse_json, read_json, write_text

LEDGER, GATE, SETTINGS = "ledger.jsonl", "gate.jsonl", "settings.json"

_SIMS = Parameter(int, 1, MAX_SIMS)
_FILES = r"ledger\.jsonl|gate\.jsonl|settings\.json|policies/\d{4}|units/\d{4}-\d{4}\.npz"
_GATE_ERROR = 0.05

_MOST_LINES = 64 << 20  # bytes of a file of one line a round

Figures = dict[str, Any]


def _is_learnt(one: Figures) -> bool:
    """Return whether a line of the ledger names units and a policy."""
    units = one.get("units")
    return (
        isinstance(units, dict)
        and all(re.fullmatch(r"\d{4}-\d{4}\.npz", name) for name in units)
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

    rounds: int = setting(8, Parameter(int, 1, 9999), "may grow")
    units: int = setting(16, Parameter(int, 1, 10_000), "of self-play in a round")
    games: int = setting(128, COUNT, "of a unit, played to their end")
    first_sims: int = setting(100, _SIMS, "simulations a decision of `mcts` in the first round")
    sims: int = setting(64, _SIMS, "simulations a decision of `policy_search` in the others")
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
        if self.gate_games % 2:
            raise RunError(f"gate_games: expected an even number, got {self.gate_games}")

    def network(self) -> MoveNetwork:
        """Return the network that the first round begins with."""
        start = Policy.load(self.start_from) if self.start_from else None
        torch.manual_seed(seed32(self.seed))
        network = MoveNetwork(
            start.sizes if start else self.sizes, boards_seen(self.pool, self.see_board)
        )
        if start:
            load_weights(network, start)
        return network


class Folder(NamedTuple):
    """Where the parts of a run lie."""

    path: Path

    def unit(self, number: int, index: int) -> Path:
        """Return the file of a unit of a round."""
        return self.path / "units" / f"{number:04d}-{index:04d}.npz"

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


def iterate(
    path: Path,
    settings: ZeroSettings,
    crew: Crew | None = None,
    report: Callable[[Figures], None] = lambda figures: None,
) -> Policy:
    """Go through all rounds, from the first that the folder does not have.

    Args:
        path: of the run's folder: new, or one that the same settings have made.
        settings: of all rounds; only `rounds` may grow.
        crew: who plays; None: this process.
        report: called with the figures of each round as it ends, JSON types.

    Returns:
        The policy that holds the gate in the end.

    Raises:
        RunError: if the folder was made with other settings, or is broken.
        InUseError: if another command works in it.
        AgentFailed: if a unit fails.
    """
    for part in (path, path / "units", path / "policies"):
        part.mkdir(parents=True, exist_ok=True)
    with locked(path), enough_memory(path):
        sweep(path, _FILES)
        _open(path, settings)
        folder = Folder(path)
        for number in range(1, settings.rounds + 1):
            figures = _round(folder, number, settings, crew or Here())
            if figures is not None:
                report(figures)
        holder = _holder(folder, settings.rounds + 1, settings)
        return Policy.load(holder or folder.policy(settings.rounds))


def _open(path: Path, settings: ZeroSettings) -> None:
    """Make the folder's settings, or see that it was made with the same but for its length."""
    file, asked = path / SETTINGS, asdict(settings)
    own = asdict(_settings_of(path)) if file.is_file() else asked
    length = {"rounds": settings.rounds}
    if differing := differences(own | length, asked):
        raise RunError(f"{path}: cannot go on with other settings: {differing}")
    if not file.is_file() or settings.rounds > own["rounds"]:
        write_text(file, json.dumps(asked, indent=1) + "\n")


def _settings_of(path: Path) -> ZeroSettings:
    """Read the settings of a run."""
    file = path / SETTINGS
    own, known = read_json(file), ZeroSettings.defaults()
    if not isinstance(own, dict) or own.keys() != known.keys():
        raise RunError(f"{file}: expected an object of the settings {', '.join(known)}")
    return ZeroSettings(**own)


def _round(folder: Folder, number: int, settings: ZeroSettings, crew: Crew) -> Figures | None:
    """Do what a round still has to do; return its figures, None if it was done."""
    gate = {one["round"]: one for one in folder.lines(GATE)}
    if number in gate:
        return None
    figures: Figures = {"round": number}
    if not folder.policy(number).is_file():
        figures |= _play(folder, number, settings, crew)
        figures |= _learn(folder, number, settings)
    _note(folder, number, settings)
    figures |= _gate(folder, number, settings, crew)
    return figures


# Players


def _play(folder: Folder, number: int, settings: ZeroSettings, crew: Crew) -> Figures:
    """Play the units of a round that are not there; return how many and how fast."""
    missing = [i for i in range(settings.units) if not folder.unit(number, i).is_file()]
    positions, began = 0, time.perf_counter()

    def take(done: int, samples: Samples) -> None:
        nonlocal positions
        positions += len(samples.legal)
        save_samples(folder.unit(number, missing[done]), samples)

    crew.run(_units(folder, number, settings, missing), take)
    seconds = time.perf_counter() - began
    return {"units": len(missing), "positions": positions, "seconds": round(seconds, 1)}


def _units(
    folder: Folder, number: int, settings: ZeroSettings, indices: Sequence[int]
) -> Iterator[SelfPlayUnit]:
    """Yield units of a round."""
    holder = _holder(folder, number, settings)
    expert = f"mcts:sims={settings.first_sims}"
    if holder is not None:
        expert = make(f"policy_search:{path_in_spec(str(holder))},sims={settings.sims}").spec
    mark, pool = mark_of(expert), settings.pool
    round_seed = int(arena_seed(settings.seed, number))
    for index in indices:
        yield SelfPlayUnit(
            *(expert, mark, pool, settings.games, int(arena_seed(round_seed, index))),
            *(settings.sampled, settings.uniform),
        )


def _holder(folder: Folder, number: int, settings: ZeroSettings) -> Path | None:
    """Return the policy that holds the gate when a round begins, None before the first."""
    passed = [one["round"] for one in folder.lines(GATE) if one["passed"] and one["round"] < number]
    if passed:
        return folder.policy(passed[-1])
    return Path(settings.start_from) if settings.start_from else None


# The learner


def _learn(folder: Folder, number: int, settings: ZeroSettings) -> Figures:
    """Learn from the units of a round and of those before it."""
    policy, figures = _learnt(folder, number, _window(folder, number, settings), settings)
    policy.save(folder.policy(number))
    return figures


def _window(folder: Folder, number: int, settings: ZeroSettings) -> list[Path]:
    """Return the files of the units that are learnt from in a round, in order."""
    rounds = range(max(1, number - settings.kept_rounds + 1), number + 1)
    return [folder.unit(n, i) for n in rounds for i in range(settings.units)]


def _note(folder: Folder, number: int, settings: ZeroSettings) -> None:
    """See that a round that was learnt stands in the ledger."""
    if len(folder.lines(LEDGER)) < number:
        units = {file.name: _sha256(file) for file in _window(folder, number, settings)}
        policy = _sha256(folder.policy(number))
        folder.append(LEDGER, {"round": number, "units": units, "policy": policy})


def _learnt(
    folder: Folder, number: int, files: Sequence[Path], settings: ZeroSettings
) -> tuple[Policy, Figures]:
    """Return the policy of a round, learnt from units in their order, and its figures."""
    parts = [load_samples(file, settings.pool) for file in files]
    new = sum(len(part.legal) for part in parts[-settings.units :])
    network = settings.network()
    if number > 1:
        load_weights(network, Policy.load(folder.policy(number - 1)))
    steps = max(1, round(settings.samples * new / settings.minibatch))
    loss = learn(network, Samples.join(parts), steps, _seed_of_learning(number, settings), settings)
    asked = asdict(settings)
    del asked["rounds"]  # may grow, the policy is the same
    begun = Policy.load(settings.start_from).training if settings.start_from else {}
    boards = summary(settings.pool, told_splits(begun))
    training = {"zero": asked, "round": number, "board": boards}
    figures: Figures = {"window": sum(len(part.legal) for part in parts), "loss": round(loss, 5)}
    figures["samples_a_position"] = round(steps * settings.minibatch / new, 2)
    return frozen(network, training), figures


def _seed_of_learning(number: int, settings: ZeroSettings) -> int:
    return match_seed(settings.seed, "zero", "learn", str(number))


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def replay(path: Path) -> int:
    """Learn every round again from the ledger's units.

    Returns:
        How many rounds gave the policy that stands in the ledger.

    Raises:
        RunError: naming the first round or unit that is another now, or is gone.
    """
    folder, settings = Folder(path), _settings_of(path)
    lines = folder.lines(LEDGER)
    for one in lines:
        files = [path / "units" / name for name in one["units"]]
        for file in files:
            if not file.is_file() or _sha256(file) != one["units"][file.name]:
                raise RunError(f"{file}: is not the unit of round {one['round']} in the ledger")
        policy, _ = _learnt(folder, one["round"], files, settings)
        with tempfile.TemporaryDirectory() as scratch:
            again = Path(scratch) / "policy"
            policy.save(again)
            same = _sha256(again) == one["policy"] == _sha256(folder.policy(one["round"]))
        if not same:
            raise RunError(f"{path}: round {one['round']} gives another policy than the ledger's")
    return len(lines)


# The gate


def _gate(folder: Folder, number: int, settings: ZeroSettings, crew: Crew) -> Figures:
    """Let a policy meet the one that holds the gate; note whether it passes."""
    holder, new = _holder(folder, number, settings), folder.policy(number)
    figures: Figures = {"round": number, "passed": True}
    if holder is not None and settings.gate_games:
        a, b = (make(f"policy:{path_in_spec(str(path))}") for path in (new, holder))
        seed = match_seed(settings.seed, "zero", "gate", str(number))
        sheet = Sheet(a.spec, b.spec, settings.gate_games, seed, settings.pool)
        results, stopped = play_series([(a, b)], [sheet], error=_GATE_ERROR, crew=crew)
        if stopped is not None:
            raise stopped
        match, decided = results[0]
        figures |= {"games": int(match.results.size), "score": round(match.score, 4)}
        figures["passed"] = decided != "b"
    if settings.rate_every and number % settings.rate_every == 0:
        ladder = Ladder.load(ladder_for(settings.pool), settings.pool)
        agent = PolicyAgent.of(Policy.load(new), "learner")
        rating = place(agent, ladder, RATING_GAMES, settings.seed)
        figures |= {"elo": round(rating.elo, 1), "ci95": [round(x, 1) for x in rating.ci95]}
    folder.append(GATE, figures)
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tokaido_env.agents.learn.zero",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", type=Path, required=True, help="folder to begin or to go on with")
    parser.add_argument("--crew", default="here", help=f"who plays: {KINDS} (here)")
    parser.add_argument(
        "--replay", action="store_true", help="learn again from the ledger, compare"
    )
    ZeroSettings.add_options(parser.add_argument_group("settings"))
    options = parser.parse_args(arguments)
    try:
        if options.replay:
            print(f"{options.run}: {replay(options.run)} rounds give the policies of the ledger")
            return 0
        settings = ZeroSettings(**ZeroSettings.given(options))
        with open_crew(options.crew) as crew:
            iterate(options.run, settings, crew, lambda one: print(json.dumps(one), flush=True))
    except (ValueError, OSError, AgentFailed) as error:
        print(f"zero: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("zero: stopped; the same command goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
