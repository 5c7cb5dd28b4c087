"""Tune training settings with Ray Tune: many short runs, of which the better ones continue.

    python benchmarks/tune_with_ray.py --run runs/tune --method asha --trials 8 --rounds 4
    python benchmarks/tune_with_ray.py --run runs/pbt --method pbt --trials 4 --rounds 6

A trial is a run of `tokaido train` with random settings on one processor. After every round of
`--round-steps` steps the ladder rates it, and Tune decides by the rating:

- asha: the worse half stops after 1, 2, 4 … rounds (Li and others 2018, "Massively parallel
  hyperparameter tuning");
- pbt: after a round a trial of the worst quarter continues with the weights of one of the best and
  slightly changed settings (Jaderberg and others 2017, "Population based training"): as a new run
  that starts from that policy, without Adam's moments and the opponent pool.

The same command resumes after Ctrl-C or a crash. Needs Ray Tune: pip install 'ray[tune]'. Weights
pass between trials as policy files. Tune stores its own state as pickles: resume only your own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler, PopulationBasedTraining
from ray.tune.search.basic_variant import BasicVariantGenerator

from tokaido_env.arena.ratings import Rating
from tokaido_env.files import write_text
from tokaido_env.learn import run
from tokaido_env.learn.run_folder import CONFIG, extend, load_settings
from tokaido_env.learn.settings import PpoSettings

NEVER = 2**53 - 1  # the largest number that settings take
SPACE = {
    "learning_rate": tune.loguniform(1e-4, 4e-3),
    "entropy_coef": tune.loguniform(5e-4, 3e-2),
    "clip_range": tune.uniform(0.1, 0.3),
    "gae_lambda": tune.uniform(0.85, 1.0),
}
THREADS = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "RAY_CHDIR_TO_TRIAL_DIR": "0"}


class Training(tune.Trainable):  # type: ignore[misc]  # Ray is not typed
    """A trial: a run folder, and a new one each time it takes the weights of another trial.

    `config` has the random settings, "run", "round_steps", and the other settings as "fixed".
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Set up the counters; `step` begins the run, as weights may come from another trial."""
        self.number = 0  # of the run folder
        self.first_round = 0  # rounds done before this run folder

    def step(self) -> dict[str, Any]:
        """Train for one round; return the rating."""
        folder, steps = self._folder(), self.config["round_steps"]
        target = (self.iteration + 1 - self.first_round) * steps
        if not (folder / CONFIG).exists():
            run.begin(folder, settings_of(self.config, target, self._start()))
        elif load_settings(folder).length < target:
            extend(folder, {"steps": target})
        ratings: list[Rating | None] = []
        run.train(folder, lambda progress: ratings.append(progress.rating))
        rating = ratings[-1]
        assert rating is not None  # every run is rated at its end
        return {
            **{"elo": rating.elo, "low": rating.ci95[0], "high": rating.ci95[1]},
            "games": rating.games,
            "steps": (self.iteration + 1) * steps,
            "policy": str(folder / "last"),
        }

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Save the trial's position and its policy, for other trials; the run folder stays."""
        folder = Path(checkpoint_dir)
        shutil.copy(self._folder() / "last", folder / "last")
        trial = {"trial": self.trial_id, "number": self.number, "first_round": self.first_round}
        write_text(folder / "trial.json", json.dumps(trial | {"round": self.iteration}))

    def load_checkpoint(self, checkpoint: str) -> None:
        """Continue this trial's run, or prepare a run from the policy of another trial."""
        folder = Path(checkpoint)
        trial = json.loads((folder / "trial.json").read_text(encoding="utf-8"))
        if trial["trial"] == self.trial_id:
            self.number, self.first_round = trial["number"], trial["first_round"]
            return
        self.number = len([path for path in self._trial().glob("*") if path.is_dir()])
        self.first_round = trial["round"]
        shutil.copy(folder / "last", self._start_file())

    def _trial(self) -> Path:
        return Path(self.config["run"]) / "trials" / self.trial_id

    def _folder(self) -> Path:
        return self._trial() / str(self.number)

    def _start_file(self) -> Path:
        return self._trial() / f"{self.number}-from"

    def _start(self) -> str:
        return str(self._start_file()) if self._start_file().exists() else ""


def settings_of(config: Mapping[str, Any], steps: int, start_from: str) -> PpoSettings:
    """Return the settings of a trial's run, which is rated and saved only at its end."""
    drawn = {name: float(config[name]) for name in SPACE}
    ends = {"rate_every": NEVER, "checkpoint_every": NEVER, "calibration_games": 0}
    return PpoSettings(**config["fixed"], **drawn, **ends, steps=steps, start_from=start_from)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = _parser().parse_args(arguments)
    requested = {k: v for k, v in vars(options).items() if k not in ("run", "address")}
    folder = options.run.resolve()
    if expected := _differences(folder, requested):
        message = f"tune: {folder}: expected {expected}: give the same options, or another --run"
        print(message, file=sys.stderr)
        return 1
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address=options.address, include_dashboard=False, runtime_env={"env_vars": THREADS})
    try:
        grid = _tuner(folder, options).fit()
    finally:
        ray.shutdown()
    print(table([result.metrics for result in grid if "elo" in (result.metrics or {})]))
    return 1 if grid.errors else 0


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of the trials, ordered by number of rounds, then rating."""
    names = list(SPACE)
    lines = [f"| trial | rounds | {' | '.join(names)} | Elo | 95 % interval | games |"]
    lines.append("|---" * (len(names) + 5) + "|")
    for row in sorted(results, key=lambda row: (-row["training_iteration"], -row["elo"])):
        drawn = " | ".join(f"{row['config'][name]:.2g}" for name in names)
        rating = f"{row['elo']:.0f} | {row['low']:.0f} – {row['high']:.0f} | {row['games']:,}"
        lines.append(f"| {row['trial_id']} | {row['training_iteration']} | {drawn} | {rating} |")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--run", type=Path, required=True, help="folder of all trials, shared by all nodes")
    add("--method", choices=("asha", "pbt"), default="asha", help="scheduler (default: asha)")
    add(
        "--trials",
        type=int,
        default=8,
        help="number of trials; with pbt all run in parallel (default: 8)",
    )
    add("--rounds", type=int, default=4, help="rounds of the best trials (default: 4)")
    add("--round-steps", type=int, default=131_072, help="steps of a round (default: 131,072)")
    add(
        "--rating-games",
        type=int,
        default=400,
        help="games against each of three opponents (default: 400)",
    )
    add("--board", default="shikoku", help="board of the games (default: shikoku)")
    add("--seed", type=int, default=0, help="seed of settings and runs (default: 0)")
    add("--address", help="address of a Ray cluster (default: this machine)")
    return parser


def _differences(folder: Path, requested: dict[str, Any]) -> str:
    """Return the folder's options that differ from the requested ones; save those of a new one."""
    path = folder / "options.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(requested, indent=1) + "\n")
    saved = json.loads(path.read_text(encoding="utf-8"))
    return ", ".join(
        f"--{name.replace('_', '-')} {saved.get(name)}"
        for name, value in requested.items()
        if saved.get(name) != value
    )


def _tuner(folder: Path, options: argparse.Namespace) -> tune.Tuner:
    trainable = tune.with_resources(Training, {"cpu": 1})
    state = folder / "ray"
    if tune.Tuner.can_restore(state):
        return tune.Tuner.restore(
            str(state), trainable, resume_unfinished=True, resume_errored=True
        )
    fixed = {name: getattr(options, name) for name in ("board", "seed", "rating_games")}
    config = {"run": str(folder), "round_steps": options.round_steps, "fixed": fixed}
    return tune.Tuner(
        trainable,
        param_space=config | SPACE,
        tune_config=tune.TuneConfig(
            metric="elo",
            mode="max",
            num_samples=options.trials,
            scheduler=_scheduler(options),
            search_alg=BasicVariantGenerator(random_state=options.seed),
        ),
        run_config=tune.RunConfig(
            name="ray",
            storage_path=str(folder),
            stop={"training_iteration": options.rounds},
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1),
            failure_config=tune.FailureConfig(max_failures=2),
        ),
    )


def _scheduler(options: argparse.Namespace) -> Any:
    if options.method == "asha":
        return ASHAScheduler(max_t=options.rounds, grace_period=1, reduction_factor=2)
    return PopulationBasedTraining(  # synch=True waits for ever once a trial has ended
        perturbation_interval=1, hyperparam_mutations=dict(SPACE), custom_explore_fn=clip_settings
    )


def clip_settings(config: dict[str, Any]) -> dict[str, Any]:
    """Clip perturbed settings to the ranges of `SPACE`."""
    return config | {
        name: min(max(config[name], domain.lower), domain.upper) for name, domain in SPACE.items()
    }


if __name__ == "__main__":
    sys.exit(main())
