"""Train and measure the baselines of the tracks of Tokaido-100, and add their rows.

    python benchmarks/tracks.py                        four learners, five seeds: 70 minutes
    python benchmarks/tracks.py --only td --seeds 1   one seed of one learner
    python benchmarks/tracks.py --list                 print only the commands
    python benchmarks/tracks.py --docs                 also write the rows of finished baselines

Called again, it resumes, and repeats nothing. The folder `--results` has for each seed the policy,
the submission (`.json` with its `.jsonl` of records) and the cost of the training (`.cost.json`).
Everything runs on one thread: the bytes of policy and submission depend on method, budget and seed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import track_results
from options import parser_of
from training_runs import ROOT, Run, Words, run_python, train

BOARDS, WIDTH = "family:train/1000", "64"
TD_GAMES, MOST_DECISIONS = 64, 190  # games of an update; decisions of a game, at most on average
ONE_FILE_UPDATE, TORCHRL_UPDATE = 1024 * 64, 256 * 64  # decisions


def updates_of(decisions: int, update: int) -> int:
    """Return the number of updates within a budget."""
    if decisions < update:
        raise ValueError(f"decisions: expected {update} or more, got {decisions}")
    return decisions // update


def train_run(path: Path, method: str, seed: int, decisions: int) -> Run:
    """Return a run of `tokaido train`; a started one is resumed."""
    update = TD_GAMES * MOST_DECISIONS
    updates = updates_of(decisions, update)
    count = updates * update
    words = ["--updates", str(updates), "--games", str(TD_GAMES)]
    words = ["--method", method, "--board", BOARDS, "--seed", str(seed), *words]
    words += ["--width", WIDTH, "--threads", "1"]
    started = (ROOT / path / "config.toml").is_file()
    start = ["--resume", str(path)] if started else ["--run", str(path), *words]
    return Run(path, f"policy:{path}/last", ["-m", "tokaido_env", "train", *start], count)


def script_run(path: Path, script: str, update: int, seed: int, decisions: int) -> Run:
    """Return a run of a training script of this repository."""
    updates, file = updates_of(decisions, update), f"{path}.pt"
    words = ["--decisions", str(updates * update), "--seed", str(seed), "--board", BOARDS]
    words += ["--width", WIDTH, "--file", file]
    spec = f"python:{script}:NetworkAgent,file={file}"
    return Run(path, spec, [script, *words, "--games", "100"], updates * update)


def run_of(results: Path, method: str, seed: int, decisions: int) -> Run:
    """Return the run of a method, a seed and a budget."""
    path = results / f"{method}-{decisions}-seed-{seed}"
    if method == "one_file_ppo":
        return script_run(path, "agents/one_file_ppo.py", ONE_FILE_UPDATE, seed, decisions)
    if method == "torchrl_ppo":
        return script_run(path, "docs/recipes/torchrl_ppo.py", TORCHRL_UPDATE, seed, decisions)
    return train_run(path, method, seed, decisions)


METHODS = {
    "one_file_ppo": "PPO in one file, `agents/one_file_ppo.py`",
    "td": "TD(λ), `tokaido train --method td`",
    "torchrl_ppo": "TorchRL PPO, `docs/recipes/torchrl_ppo.py`",
}


def measure(run: Run, options: Sequence[str] = ()) -> Words:
    """Return the command that measures a trained agent."""
    words = ["-m", "tokaido_env", "generalise", run.spec, "--no-gap"]
    pairs = ["--pairs", str(track_results.PAIRS[track_results.LIMITED])]
    files = ["--json", f"{run.path}.json", "--records", f"{run.path}.jsonl"]
    return [*words, *pairs, *options, *files]


def add_rows(methods: Sequence[str], results: Path, seeds: int, decisions: int) -> None:
    """Write the rows of the methods with all submissions, and the tables of the page."""
    full = track_results.LIMITED
    for method in methods:
        runs = [run_of(results, method, seed, decisions) for seed in range(seeds)]
        files = [ROOT / f"{run.path}.json" for run in runs]
        if all(file.is_file() for file in files):
            costs = [
                json.loads((ROOT / f"{run.path}.cost.json").read_text(encoding="utf-8"))
                for run in runs
            ]
            track_results.add_row(
                files,
                method=METHODS[method],
                track=full if seeds == track_results.SEEDS else track_results.INCOMPLETE,
                check=True,
                decisions=max(cost["decisions"] for cost in costs),
                hours=round(sum(cost["seconds"] for cost in costs) / 3600, 3),
                command=f"python benchmarks/tracks.py --only {method} --decisions {decisions}",
                by="the authors",
            )
    track_results.write_page()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the remaining commands; return the exit status of the first that fails, or 0."""
    options = _parser().parse_args(arguments)
    sizes = [] if options.boards is None else ["--boards", str(options.boards)]
    if not options.list:
        (ROOT / options.results).mkdir(parents=True, exist_ok=True)
    for seed in range(options.seeds):
        for method in options.only:
            run = run_of(options.results, method, seed, options.decisions)
            if options.list:
                for words in (run.training, measure(run, sizes)):
                    print("python", shlex.join(words))
            elif not (ROOT / f"{run.path}.json").is_file():
                status = train(run) or run_python(measure(run, sizes))
                if status:
                    return status
    if options.docs:
        add_rows(options.only, options.results, options.seeds, options.decisions)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__, "runs/tracks", METHODS)
    add = parser.add_argument
    most = track_results.MOST_DECISIONS
    add("--decisions", type=int, default=most, help="of each training (default: %(default)s)")
    add("--seeds", type=int, default=track_results.SEEDS, help="number (default: %(default)s)")
    add("--boards", type=int, help="number of test boards, for a trial (default: 100)")
    add("--list", action="store_true", help="print the commands only (default: off)")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
