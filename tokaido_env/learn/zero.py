"""Expert iteration on any executor: players, a learner, a gate and a ledger.

python -m tokaido_env.learn.zero --run runs/zero
python -m tokaido_env.learn.zero --run runs/zero --executor ray:auto
python -m tokaido_env.learn.zero --run runs/zero --replay

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

    tb/                            what TensorBoard shows

In a stream (`--mode stream`) nobody waits: units are learnt from as they come, by `stream`, and
their files are called `<round>-<number>-<round of the policy that played it>.npz`.

Any process may be killed at any time: the same command goes on, and units that are there are not
played again. In rounds the bytes are the same whatever the executor. `--replay` learns everything
again from the ledger and compares.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tokaido_env.agents.policy import Policy
from tokaido_env.arena.executors import EXECUTORS, Executor, SerialExecutor, open_executor
from tokaido_env.arena.playing import AgentFailed
from tokaido_env.files import locked
from tokaido_env.learn.declared import (
    enough_memory,
)
from tokaido_env.learn.samples import save_samples
from tokaido_env.learn.settings import sweep
from tokaido_env.learn.stream import stream
from tokaido_env.learn.zero_folder import (
    FILES,
    GATE,
    LEDGER,
    Figures,
    Folder,
    ZeroSettings,
    open_folder,
)
from tokaido_env.learn.zero_parts import (
    best_of,
    holder_of,
    learnt,
    meet_the_gate,
    note,
    replay,
    speed_of,
    unit_of,
)
from tokaido_env.learn.zero_table import heading, log, row

COMMAND = "python -m tokaido_env.learn.zero"  # as the examples above call it


def iterate(
    path: Path,
    settings: ZeroSettings,
    executor: Executor | None = None,
    report: Callable[[Figures], None] = lambda figures: None,
) -> Policy:
    """Go through all rounds, from the first that the folder does not have.

    Args:
        path: of the run's folder: new, or one that the same settings have made.
        settings: of all rounds; only `rounds` may grow.
        executor: who plays; None: this process.
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
        sweep(path, FILES)
        open_folder(path, settings)
        folder = Folder(path)
        if settings.mode == "stream":
            stream(folder, settings, executor or SerialExecutor(), report)
        else:
            for number in range(1, settings.rounds + 1):
                figures = _round(folder, number, settings, executor or SerialExecutor())
                if figures is not None:
                    report(figures)
        return best_of(folder, settings)


def _round(
    folder: Folder, number: int, settings: ZeroSettings, executor: Executor
) -> Figures | None:
    """Do what a round still has to do; return its figures, None if it was done."""
    if number <= len(folder.lines(GATE)):
        return None
    figures: Figures = {"round": number}
    if not folder.policy(number).is_file():
        figures |= _play(folder, number, settings, executor)
        policy, learning = learnt(folder, number, _window(folder, number, settings), settings)
        policy.save(folder.policy(number))
        figures |= learning
    if len(folder.lines(LEDGER)) < number:
        note(folder, number, _window(folder, number, settings))
    return figures | meet_the_gate(folder, number, settings, executor)


def _play(folder: Folder, number: int, settings: ZeroSettings, executor: Executor) -> Figures:
    """Play the units of a round that are not there; return how many and how fast."""
    missing = [i for i in range(settings.units) if not folder.unit(number, i).is_file()]
    positions, began = 0, time.perf_counter()
    holder = holder_of(folder, number)
    for done, samples in executor.map(
        unit_of(folder, number, i, holder, settings) for i in missing
    ):
        positions += len(samples.legal)
        save_samples(folder.unit(number, missing[done]), samples)
    return speed_of(len(missing), positions, time.perf_counter() - began)


def _window(folder: Folder, number: int, settings: ZeroSettings) -> list[Path]:
    """Return the files of the units that are learnt from in a round, in order."""
    rounds = range(max(1, number - settings.kept_rounds + 1), number + 1)
    return [folder.unit(n, i) for n in rounds for i in range(settings.units)]


def main(arguments: Sequence[str] | None = None, called: str = COMMAND) -> int:
    """Run the command, which the user called so; return the exit status."""
    parser = argparse.ArgumentParser(
        prog=called,
        description=(__doc__ or "").replace(COMMAND, called),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", type=Path, required=True, help="folder to begin or to go on with")
    parser.add_argument(
        "--executor", default="serial", help=f"runs games: {EXECUTORS} (default: serial)"
    )
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
        told = 0

        def report(figures: Figures) -> None:
            nonlocal told
            print(row(figures) if told else f"{heading()}\n{row(figures)}", flush=True)
            told += 1
            log(options.run, figures)

        with open_executor(options.executor) as executor:
            iterate(options.run, settings, executor, report)
    except (ValueError, OSError, AgentFailed) as error:
        print(f"zero: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("zero: stopped; the same command goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
