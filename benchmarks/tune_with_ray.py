"""Look for settings of `train.py` with Ray Tune: many short runs, of which the better go on.

    python benchmarks/tune_with_ray.py --run runs/tune --method asha --trials 8 --rounds 4
    python benchmarks/tune_with_ray.py --run runs/pbt --method pbt --trials 4 --rounds 6

A trial is a run of `train.py` with drawn settings, a processor for each. After every round of
`--round-steps` steps it is placed on the ladder, by which Tune decides:

- asha: the worse half stops after 1, 2, 4 … rounds (Li and others 2018, "Massively parallel
  hyperparameter tuning");
- pbt: after a round a trial of the worst quarter goes on from the weights of one of the best, with
  its settings a little changed (Jaderberg and others 2017, "Population based training"): as a new
  run that starts from that policy, so without Adam's moments and the pool.

The same command goes on after Ctrl-C or a crash. Needs Ray Tune: pip install 'ray[tune]'. Weights
pass between trials as policy files; Tune keeps its own state as pickles: resume your own only.
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
    """A trial: a run folder, and after each time that it takes on others' weights another.

    `config` has the drawn settings, "run", "round_steps" and "fixed", the other settings.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Begin nothing yet: weights may come from elsewhere."""
        self.number = 0  # of the run folder
        self.begun_at = 0  # rounds that were done before it

    def step(self) -> dict[str, Any]:
        """Train a round further, and tell the rating."""
        folder, steps = self._folder(), self.config["round_steps"]
        target = (self.iteration + 1 - self.begun_at) * steps
        if not (folder / CONFIG).exists():
            run.begin(folder, settings_of(self.config, target, self._start()))
        elif load_settings(folder).length < target:
            extend(folder, {"steps": target})
        ratings: list[Rating | None] = []
        run.train(folder, lambda progress: ratings.append(progress.rating))
        assert ratings[-1] is not None  # every run is rated at its end
        told = ratings[-1]
        return {
            **{"elo": told.elo, "low": told.ci95[0], "high": told.ci95[1], "games": told.games},
            "steps": (self.iteration + 1) * steps,
            "policy": str(folder / "last"),
        }

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Keep where the run is, and its policy for others: the run folder stays where it is."""
        folder = Path(checkpoint_dir)
        shutil.copy(self._folder() / "last", folder / "last")
        told = {"trial": self.trial_id, "number": self.number, "begun_at": self.begun_at}
        write_text(folder / "trial.json", json.dumps(told | {"round": self.iteration}))

    def load_checkpoint(self, checkpoint: str) -> None:
        """Go on with the own run, or begin one from the policy of another trial."""
        folder = Path(checkpoint)
        told = json.loads((folder / "trial.json").read_text(encoding="utf-8"))
        if told["trial"] == self.trial_id:
            self.number, self.begun_at = told["number"], told["begun_at"]
            return
        self.number = len([path for path in self._trial().glob("*") if path.is_dir()])
        self.begun_at = told["round"]
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
    """Return the settings of a trial's run: rated and saved at its end, or when it is resumed."""
    drawn = {name: float(config[name]) for name in SPACE}
    ends = {"rate_every": NEVER, "checkpoint_every": NEVER, "calibration_games": 0}
    return PpoSettings(**config["fixed"], **drawn, **ends, steps=steps, start_from=start_from)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tune, print the table; return the exit status."""
    options = _parser().parse_args(arguments)
    asked = {name: value for name, value in vars(options).items() if name not in ("run", "address")}
    folder = options.run.resolve()
    if wrong := _differing(folder, asked):
        print(f"tune: {folder}: begun with {wrong}: say the same, or --run", file=sys.stderr)
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
    """Return the trials as a table, those with most rounds first, by their rating."""
    names = list(SPACE)
    lines = [f"| trial | rounds | {' | '.join(names)} | Elo | 95 % interval | games |"]
    lines.append("|---" * (len(names) + 5) + "|")
    for told in sorted(results, key=lambda one: (-one["training_iteration"], -one["elo"])):
        drawn = " | ".join(f"{told['config'][name]:.2g}" for name in names)
        rating = f"{told['elo']:.0f} | {told['low']:.0f} – {told['high']:.0f} | {told['games']:,}"
        lines.append(f"| {told['trial_id']} | {told['training_iteration']} | {drawn} | {rating} |")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--run", type=Path, required=True, help="folder of all trials; all nodes must share it")
    add("--method", choices=("asha", "pbt"), default="asha", help="(asha)")
    add("--trials", type=int, default=8, help="at pbt: at once (8)")
    add("--rounds", type=int, default=4, help="of the best trials (4)")
    add("--round-steps", type=int, default=131_072, help="steps of a round (131,072)")
    add("--rating-games", type=int, default=400, help="against each of three opponents (400)")
    add("--board", default="shikoku", help="(shikoku)")
    add("--seed", type=int, default=0, help="of what is drawn, and of all runs (0)")
    add("--address", help="of a Ray cluster; without: this machine")
    return parser


def _differing(folder: Path, asked: dict[str, Any]) -> str:
    """Return what the folder was begun with, if it is not what is asked; note it if it is new."""
    path = folder / "asked.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(asked, indent=1) + "\n")
    begun = json.loads(path.read_text(encoding="utf-8"))
    return ", ".join(
        f"--{name.replace('_', '-')} {begun.get(name)}"
        for name, value in asked.items()
        if begun.get(name) != value
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
    return PopulationBasedTraining(  # synch=True waits for ever where a trial has ended
        perturbation_interval=1, hyperparam_mutations=dict(SPACE), custom_explore_fn=within
    )


def within(config: dict[str, Any]) -> dict[str, Any]:
    """Keep settings that were multiplied in the range that they were drawn from."""
    return config | {
        name: min(max(config[name], domain.lower), domain.upper) for name, domain in SPACE.items()
    }


if __name__ == "__main__":
    sys.exit(main())
