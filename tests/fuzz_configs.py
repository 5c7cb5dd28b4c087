"""Fuzz cases of training settings, in files, Python and on command lines, and of agent specs."""

import json
import random
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from unittest.mock import patch

import mutants
from cyclopts import CycloptsError
from fuzz import Cases, allow_refusal, run_command
from networks import random_policy
from positions import shikoku_data, write_board

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.registry import check_spec_in_file, make
from tokaido_env.arena.ladder import LADDER, LadderError
from tokaido_env.boards.reader import BoardError
from tokaido_env.cli import train
from tokaido_env.cli.command import parse
from tokaido_env.core.arguments import SeedError
from tokaido_env.learn.run_folder import create_folder, extend, load_settings, read_config
from tokaido_env.learn.settings import METHODS, RunSettings
from tokaido_env.learn.settings_schema import RunError

SPECS = (
    *("random", "greedy", "greedy:epsilon=0.1", "heuristic", "rusher", "hoarder"),
    *("mcts", "mcts:25,rollout=full", "champion", "generalist:sims=8"),
    *("policy:best", "policy:best,temperature=1", "policy:\"a,b='c'\",temperature=0.5"),
    *("policy_search:best,sims=8", "policy:path=best", 'policy_search:path="run",sims=2'),
    *("policy:run", "policy:a b", "policy:missing", "policy:fifo", "policy:link"),
    *("python:custom_agents:Trace,path=trace", "python:subprocess:Popen,args=echo"),
    *("exec:touch trace", "exec:true --a=b,c"),
)
FILES = ("board.toml", "ladder.json", "best", "run", "fifo", "link", "my.toml", "/dev/zero")
WORDS = (
    *("sims=", "temperature=", "path=", ",", ":", '"', "\\", "=", "policy:", "../", "/", "'", " "),
)
TINY: dict[str, Any] = {
    **{"games": 8, "n_steps": 16, "minibatch_size": 64, "width": 8, "opponent_slots": 4},
    **{"agents": "greedy 'mcts:sims=8'", "rate_every": 0, "calibration_games": 0, "steps": 128},
}
ALL = [METHODS["ppo"](**TINY), *(METHODS[name](width=8) for name in ("td", "alphazero"))]


class Configs(Cases):
    """Damaged `config.toml` of each method, with the files that it may name."""

    errors = (RunError, AgentError, BoardError, LadderError, SeedError)
    name = "my.toml"

    def set_up(self) -> None:
        self.run = self.folder / "new"
        self._create_files()
        self.texts = []
        for settings in ALL:
            create_folder(self.run, settings)
            self.texts.append((self.run / "config.toml").read_text(encoding="utf-8"))
            shutil.rmtree(self.run)

    def _create_files(self) -> None:
        """Create valid and invalid files that settings and specs may name."""
        (self.folder / "run").mkdir()
        for name in ("best", "a,b='c'", "a b", "run/best"):
            random_policy().save(self.folder / name)
        (self.folder / "link").symlink_to("/etc/hostname")
        write_board(self.folder / "board.toml", shikoku_data() | {"max_rounds": 40})
        shutil.copy(LADDER, self.folder / "ladder.json")

    def check_valid(self) -> None:
        for text, settings in zip(self.texts, ALL, strict=True):
            self.path.write_text(text, encoding="utf-8")
            self.check(random.Random(0))
            self._check_settings(type(settings), asdict(settings))
            assert not self._command([])
        for spec in SPECS[:-7]:
            self._check_spec(spec, None)

    def case(self, rng: random.Random) -> bool:
        kinds = (self._case_of_file, self._values, self._texts, self._spec, self._command_line)
        return rng.choices(kinds, (8, 3, 3, 8, 1))[0](rng)

    # Files

    def _case_of_file(self, rng: random.Random) -> bool:
        """Check that a message names its setting, agent or file."""
        self.damage(rng)
        with allow_refusal(*self.errors) as messages:
            self.check(rng)
        names = [name for settings in ALL for name in settings.defaults()]
        check_names(messages, [*names, "agent", "policy", self.path.name])
        return not messages

    def damage(self, rng: random.Random) -> None:
        """Write a damaged configuration: mostly a wrong value, or wrong text."""
        text = rng.choice(self.texts)
        if rng.random() < 0.8:
            self.path.write_bytes(mutants.mutated_toml(rng, _renamed(rng, tomllib.loads(text))))
        else:
            self.path.write_bytes(mutants.mutated_text(rng, text, 2))

    def check(self, rng: random.Random) -> None:
        """Check that an accepted file begins a run with the same settings."""
        with allow_refusal(RunError, AgentError, names=self.path) as messages:
            method, values = read_config(self.path)
        if messages:
            raise RunError(messages[0])
        tiny = TINY if method in (None, "ppo") else {"width": 8}
        settings = METHODS[method or "ppo"](**tiny | values)
        try:
            create_folder(self.run, settings)
            assert load_settings(self.run) == settings
            config = (self.run / "config.toml").read_bytes()
            extend(self.run, values)
            assert (self.run / "config.toml").read_bytes() == config
        finally:
            shutil.rmtree(self.run, ignore_errors=True)

    # Values and texts

    def _values(self, rng: random.Random) -> bool:
        settings = rng.choice(ALL)
        names = list(settings.defaults())
        changed = {rng.choice(names): mutants.wrong_value(rng) for _ in range(rng.randint(1, 3))}
        with allow_refusal(RunError, SeedError) as messages:
            self._check_settings(type(settings), asdict(settings) | changed)
        check_names(messages, names)
        return not messages

    def _check_settings(self, kind: type[RunSettings], values: Mapping[str, Any]) -> None:
        settings = kind(**values)
        assert kind(**asdict(settings)) == settings
        for name, value in asdict(settings).items():
            assert typed(kind, name, str(value)) == value

    def _texts(self, rng: random.Random) -> bool:
        kind = type(rng.choice(ALL))
        name = rng.choice(list(kind.defaults()))
        if rng.random() < 0.3:
            text = str(mutants.wrong_value(rng))
        else:
            text = mutants.mutated_text(rng, str(getattr(kind(), name)), 2).decode(
                errors="surrogateescape"
            )
        with allow_refusal(RunError, CycloptsError) as messages:
            value = kind.checked(name, typed(kind, name, text))
            assert kind.checked(name, value) == value
            json.dumps(value, allow_nan=False)
        return not messages

    # Specs

    def _spec(self, rng: random.Random) -> bool:
        spec = rng.choice(SPECS)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            at = rng.randrange(len(spec) + 1)
            if rng.random() < 0.6:
                added = rng.choice((*WORDS, *mutants.TEXTS, str(mutants.wrong_value(rng))[:2000]))
                spec = spec[:at] + added + spec[at:]
            else:
                spec = mutants.mutated_text(rng, spec, 1).decode(errors="surrogateescape")
        with allow_refusal(AgentError) as messages:
            self._check_spec(spec, rng)
        return not messages

    def _check_spec(self, spec: str, rng: random.Random | None) -> None:
        """Check that an accepted spec runs no code, stays in its folder and makes an agent."""
        where = "x"
        if rng is None or rng.random() < 0.7 or spec.startswith(("python:", "exec:")):
            with allow_refusal(AgentError, names=f"{where}: ") as messages:
                spec = check_spec_in_file(spec, where, self.folder)
                assert not spec.startswith(("python:", "exec:"))
            if messages:
                raise AgentError(messages[0])
        agent = make(spec)
        assert isinstance(agent, Agent)
        again = make(agent.spec)
        assert (again.spec, again.cost) == (agent.spec, agent.cost)

    # The command line

    def _command_line(self, rng: random.Random) -> bool:
        self.damage(rng)
        names = [rng.choice(list(RunSettings.defaults())) for _ in range(rng.randint(0, 2))]
        flags = [f"--{name.replace('_', '-')}={mutants.wrong_value(rng)}" for name in names]
        return not self._command(flags)

    def _command(self, words: list[str]) -> str:
        """Run `train` without the training itself."""
        try:
            with patch.object(train, "_train", return_value=0):
                arguments = ["--run", self.run, "--config", self.path, *words]
                wrong = run_command(train.main, arguments, "train: ")
            assert self.run.exists() == (not wrong)
        finally:
            shutil.rmtree(self.run, ignore_errors=True)
        return wrong


def typed(kind: type[RunSettings], name: str, text: str) -> Any:
    """Return the value of a setting that is written as an option."""
    words = ["--method", kind.METHOD, f"--{name.replace('_', '-')}={text}"]
    return getattr(parse(train.main.app(words), words), name)


def check_names(messages: list[str], names: list[str]) -> None:
    assert not messages or any(name in messages[0] for name in names), messages


def _renamed(rng: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with the name of another file or agent."""
    if rng.random() < 0.6:
        return data
    key = rng.choice(("board", "ladder", "start_from", "agents", "agents"))
    name = rng.choice(FILES)
    if key == "agents":
        name = " ".join(rng.sample(SPECS, rng.randint(1, 3)))
    changed = {key: name, "rate_every": rng.choice((0, 100))}
    return data | {"settings": data["settings"] | changed}
