"""The registry of agents: spec strings, their parameters, and `make`."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.content import module_file, program_files, sha256_of_files
from tokaido_env.agents.policy import quote_path
from tokaido_env.core.arguments import MAX_NAME_CHARS, escape_text, repr_short, unknown_name
from tokaido_env.files import FOLDER, expand_home, file_kind


@dataclass(frozen=True)
class Parameter:
    """The type and the range of a parameter.

    Attributes:
        type: int, float or str.
        low: the least number allowed.
        high: the greatest number allowed.
        choices: the allowed texts; empty for any.
    """

    type: type
    low: float = -inf
    high: float = inf
    choices: tuple[str, ...] = ()

    def parse(self, text: str) -> int | float | str:
        """Return the value of a text.

        Raises:
            ValueError: if the value is not allowed; the message says which are.
        """
        if self.type is str and (text in self.choices or not self.choices):
            return text
        number: int | float = nan
        with suppress(ValueError):
            number = nan if self.type is str else self.type(text)
        if self.allows(number):
            return number
        raise ValueError(f"expected {self.expected}, got {repr_short(text)}")

    def allows(self, number: float) -> bool:
        """Return whether a number is finite and in the range; integers may have any size."""
        return -inf < number < inf and self.low <= number <= self.high

    @property
    def expected(self) -> str:
        """The allowed values in words."""
        if self.choices:
            return " or ".join(map(repr, self.choices))
        noun = {int: "an integer", float: "a number", str: "a text"}[self.type]
        noun += f" from {self.low}" * (self.low > -inf) + f" to {self.high}" * (self.high < inf)
        return noun


@dataclass(frozen=True)
class AgentKind:
    """A kind of agent: its class and the grammar of its spec string.

    Attributes:
        module: module of `tokaido_env.agents` with the class.
        name: the class, or the function that makes the agent; called with the parameters by name.
        usage: the grammar, such as "mcts[:sims=N][,rollout=full]".
        meaning: a sentence for lists of agents.
        parameters: by name; a spec may give the first one without its name.
        required: whether a spec has to give the first parameter.
        is_user_code: whether the agent runs code from outside this package, which takes any other
            parameters.
        cost: returns the simulations of `mcts` that take as long as a decision, by the parameters.
    """

    module: str
    name: str
    usage: str
    meaning: str
    parameters: dict[str, Parameter]
    required: bool = False
    is_user_code: bool = False
    cost: Callable[[Mapping[str, Any]], int] = lambda parameters: 0


MAX_SIMS = 1_000_000
DEFAULT_SIMS = 400

# Costs are in simulations of `mcts`; these are measured times of a simulation in that unit.
NETWORK_SIM_COST = 16
RESPONSE_SIM_COST = 2 * NETWORK_SIM_COST

_ENDINGS = Parameter(str, choices=("exact", "network"))
_NETWORK_SEARCH: dict[str, Parameter] = {
    "sims": Parameter(int, 1, MAX_SIMS),
    "temperature": Parameter(float, 0.1, 10),
    "c_puct": Parameter(float, 0.001, 100),
    "endings": _ENDINGS,
}

KINDS = {
    "random": AgentKind(
        "baselines",
        "RandomAgent",
        "random",
        "Takes each legal action with equal probability.",
        {},
    ),
    "greedy": AgentKind(
        "baselines",
        "GreedyAgent",
        "greedy[:epsilon=E]",
        "Takes the move and effect that gain most in score margin at once; with probability E a "
        "random action (default: 0).",
        {"epsilon": Parameter(float, 0, 1)},
    ),
    "heuristic": AgentKind(
        "heuristic",
        "HeuristicAgent",
        "heuristic",
        "Takes the move and effect with the best hand-written evaluation; its weights were tuned "
        "by self-play.",
        {},
    ),
    "rusher": AgentKind(
        "heuristic",
        "RusherAgent",
        "rusher",
        "Gives paintings to end the game soon: the heuristic with other weights. It scores 26 % "
        "against heuristic.",
        {},
    ),
    "hoarder": AgentKind(
        "heuristic",
        "HoarderAgent",
        "hoarder",
        "Collects wares, coins and slabs: the heuristic with other weights. It scores 31 % "
        "against heuristic.",
        {},
    ),
    "mcts": AgentKind(
        "search",
        "MctsAgent",
        "mcts[:sims=N][,rollout=full]",
        "Runs Monte Carlo tree search of N simulations a decision (default: 400); evaluates leaves "
        "by the heuristic, or with rollout=full by random play to the end.",
        {"sims": Parameter(int, 1, MAX_SIMS), "rollout": Parameter(str, choices=("full",))},
        cost=lambda parameters: int(parameters.get("sims", DEFAULT_SIMS)),
    ),
    "champion": AgentKind(
        "champion",
        "make_champion",
        "champion[:sims=N[,...]][:endings=network]",
        "Plays the strongest network of this package on the default board, without search; with N, "
        "tree search with that network. Other parameters are those of policy_search.",
        _NETWORK_SEARCH,
        cost=lambda parameters: NETWORK_SIM_COST * int(parameters.get("sims", 0)),
    ),
    "generalist": AgentKind(
        "champion",
        "make_generalist",
        "generalist[:sims=N[,...]]",
        "Plays the strongest network of this package for boards that it was not trained on. "
        "Parameters are those of champion.",
        _NETWORK_SEARCH,
        cost=lambda parameters: NETWORK_SIM_COST * int(parameters.get("sims", 0)),
    ),
    "policy_search": AgentKind(
        "search",
        "PolicySearchAgent",
        "policy_search:PATH[,sims=N][,temperature=T][,c_puct=C][,endings=network]",
        "Runs tree search of N simulations a decision (default: 400) with the network of a policy "
        "file or of a run's best policy. Logits, 16 times the values of afterstates, divided by T "
        "(default: 1) give the priors; C (default: 0.3) is the exploration constant. Results after "
        "an end trigger are exact, or the network's values. 400 simulations take some "
        "milliseconds.",
        {"path": Parameter(str), **_NETWORK_SEARCH},
        required=True,
        cost=lambda parameters: NETWORK_SIM_COST * int(parameters.get("sims", DEFAULT_SIMS)),
    ),
    "exploiter": AgentKind(
        "champion",
        "ExploiterAgent",
        "exploiter:VICTIM[,sims=N]",
        "Searches for a best response to the agent VICTIM, with N simulations a decision "
        "(default: 400, some milliseconds). VICTIM is random, greedy, heuristic, champion, "
        "generalist or policy:PATH.",
        {"victim": Parameter(str), "sims": Parameter(int, 1, MAX_SIMS)},
        required=True,
        cost=lambda parameters: RESPONSE_SIM_COST * int(parameters.get("sims", DEFAULT_SIMS)),
    ),
    "policy": AgentKind(
        "policy",
        "PolicyAgent",
        "policy:PATH[,temperature=T][,endings=network]",
        "Plays the trained network of a policy file or of a run's best policy. T=0 takes the "
        "action with the best afterstate value (default: 0), T=1 samples from the softmax of the "
        "logits, 16 times these values.",
        {"path": Parameter(str), "temperature": Parameter(float, 0, 10), "endings": _ENDINGS},
        required=True,
    ),
    "python": AgentKind(
        "python_agent",
        "make_python_agent",
        "python:MODULE:CLASS[,NAME=VALUE...]",
        "Plays a class of your own with act(boards, states, legal, keys), or with "
        "choose(game, rng) for one game at a time. MODULE may be the path of a file, such as "
        "bots/my_bot.py. The class gets the other parameters.",
        {"class": Parameter(str)},  # not a name of a parameter in Python
        required=True,
        is_user_code=True,
    ),
    "exec": AgentKind(
        "exec_agent",
        "make_exec_agent",
        "exec:PROGRAM [ARGS]",
        "Plays a program of your own in any language, which reads positions and writes actions as "
        "lines of JSON.",
        {"command": Parameter(str)},
        required=True,
        is_user_code=True,
    ),
}


COMMAND = "command"  # a parameter that is all of its spec
# Parameters that a spec may give without their name, although they hold equals signs.
PATH, VICTIM, CLASS = "path", "victim", "class"
# A value with a comma stands in double quotes: a name, a text in quotes, the rest up to a comma.
_PART = re.compile(r'(?:([^,="]*)=)?("(?:[^"\\]|\\.)*")?([^,]*),')
_QUOTES = 'put a value with a comma in double quotes, such as {}:"a,b"'


def make(spec: str) -> Agent:
    """Make an agent from a spec string such as `random` or `policy:runs/a/best,temperature=1`.

    Raises:
        AgentError: if a kind or a parameter is unknown, or a value is out of range.
    """
    if not isinstance(spec, str):
        got = f"{type(spec).__name__} {repr_short(spec)}"
        raise AgentError(f"agent: expected a text such as 'greedy', got {got}")
    kind, parameters = _parse(spec)
    if VICTIM in parameters:
        parameters[VICTIM] = make(parameters[VICTIM])
    module = importlib.import_module(f"tokaido_env.agents.{kind.module}")
    agent: Agent = getattr(module, kind.name)(**parameters)
    agent.source, agent.sha256 = agent.spec, sha256_of(spec)
    return agent


def cost_of(spec: str) -> int:
    """Return the `AgentKind.cost` of a spec without making the agent; 0 for a text that is no spec.

    Raises:
        AgentError: if a parameter is unknown, or out of range.
    """
    if spec.partition(":")[0] not in KINDS:
        return 0
    kind, parameters = _parse(spec)
    return kind.cost(parameters)


class NamedAgent(NamedTuple):
    """The spec of an agent and the name that results give it.

    Attributes:
        name: in tables and records.
        spec: the spec string.
    """

    name: str
    spec: str


def parse_named_agent(text: str) -> NamedAgent:
    """Parse `NAME=SPEC`; without `NAME=` the spec is the name.

    Raises:
        AgentError: if the name is empty or not printable.
    """
    name, equals, spec = text.partition("=")
    if not equals or ":" in name or '"' in name or name in KINDS:
        return NamedAgent(text, text)
    if not name.strip() or not name.isprintable():
        raise AgentError(f"agent {repr_short(text)}: expected NAME=SPEC with a printable name")
    return NamedAgent(name, spec)


def check_names(agents: Sequence[NamedAgent]) -> None:
    """Raise `AgentError` if two agents have the same name."""
    specs: dict[str, str] = {}
    for name, spec in agents:
        if specs.setdefault(name, spec) != spec:
            raise AgentError(
                f"agents: expected different names, got {repr_short(name)} for "
                f"{repr_short(specs[name])} and for {repr_short(spec)}"
            )


def runs_user_code(spec: str) -> bool:
    """Return whether a spec names code from outside this package.

    Raises:
        AgentError: as for `make`.
    """
    return _parse(spec)[0].is_user_code


def policy_path_of(spec: str) -> Path | None:
    """Return the path of the policy file of an agent or its victim, None without one.

    Raises:
        AgentError: as for `make`.
    """
    _, parameters = _parse(spec)
    if VICTIM in parameters:
        return policy_path_of(parameters[VICTIM])
    if PATH not in parameters:
        return None
    path = Path(parameters[PATH])
    return path / "best" if path.is_dir() else path


def sha256_of(spec: str) -> str:
    """Return the SHA-256 of the files that an agent is made from, "" if there are none.

    They are its policy or its victim's; its module and files among its parameters; its program.
    """
    try:
        path, (_, parameters) = policy_path_of(spec), _parse(spec)
        if COMMAND in parameters:
            return sha256_of_files(program_files(parameters[COMMAND]))
        if CLASS in parameters:
            module = module_file(parameters.pop(CLASS).rpartition(":")[0])
            return sha256_of_files([module, *map(expand_home, parameters.values())])
        return "" if path is None else sha256_of_files([str(path)])
    except (ValueError, OSError, IndexError):  # no spec; a file that cannot be read
        return ""


def check_spec_in_file(spec: str, where: str, folder: Path, trusted: Container[str] = ()) -> str:
    """Return the spec of an agent that a file names, if it is safe to make.

    A file may come from a stranger. It may name the agents of this package, and policies in its own
    folder by a path relative to the folder or to the current one.

    Args:
        spec: the spec in the file.
        where: the place in the file, for the message.
        folder: the folder of the file.
        trusted: specs that the user named on the command line; they may be any.

    Raises:
        AgentError: if the spec is wrong or not safe; the message says how to allow it.
    """
    if spec in trusted:
        return spec
    try:
        kind, parameters = _parse(spec)
    except AgentError as error:
        raise AgentError(f"{where}: {error}") from None
    if VICTIM in parameters:
        victim = check_spec_in_file(parameters[VICTIM], where, folder, trusted)
        return spec if victim == parameters[VICTIM] else _replace(spec, VICTIM, victim)
    if PATH not in parameters and not kind.is_user_code:
        return spec
    reason = "a file may not name code to run"
    if not kind.is_user_code:
        path = Path(parameters[PATH])
        for each in (path, folder / path):
            if not path.is_absolute() and ".." not in path.parts and _is_inside(each, folder):
                return spec if each == path else _replace(spec, PATH, str(each))
        reason = "a file may name policies of its own folder only, by a relative path"
    raise AgentError(
        f"{where}: {repr_short(spec)}: {reason}: if you trust it, name this agent on the command "
        "line (train: --agents, rate, verify: --allow-agents)"
    )


def _is_inside(path: Path, folder: Path) -> bool:
    """Return whether a file, or the best policy of a run, is in a folder after following links."""
    files = [path, path / "best"] if file_kind(path) == FOLDER else [path]
    try:
        return all(file.resolve().is_relative_to(folder.resolve()) for file in files)
    except (ValueError, RuntimeError):  # not a path; links in a circle
        return False


def _replace(spec: str, name: str, value: str) -> str:
    """Return a spec with another path or victim."""
    kind_name, _, text = spec.partition(":")
    kind = KINDS[kind_name]
    others = [
        f"{key}={quote_path(other)}"
        for key, other in _split(kind, text)
        if key in kind.parameters and key != name
    ]
    return f"{kind_name}:" + ",".join([quote_path(value), *others])


def describe() -> list[tuple[str, str]]:
    """Return (usage, meaning) of every kind of agent."""
    return [(kind.usage, kind.meaning) for kind in KINDS.values()]


def _parse(spec: str) -> tuple[AgentKind, dict[str, Any]]:
    if len(spec) > MAX_NAME_CHARS:
        raise AgentError(
            f"agent {repr_short(spec)}: expected at most {MAX_NAME_CHARS} characters, "
            f"got {len(spec)}"
        )
    kind_name, _, text = spec.partition(":")
    if kind_name not in KINDS:
        problem = unknown_name("agent", kind_name, KINDS)
        raise AgentError(f"{problem}; tokaido agents describes all agents")
    return KINDS[kind_name], _parse_parameters(spec, KINDS[kind_name], text)


def _parse_parameters(spec: str, kind: AgentKind, text: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    where = f"agent {repr_short(spec)}"
    free = _free_text(kind)
    quotes = f"; {_QUOTES.format(spec.partition(':')[0])}" if free else ""
    for name, value in _named(kind, text):
        if name in parameters:
            raise AgentError(f"{where}: {escape_text(name)}: expected once, got it twice")
        is_valid_name = name.isidentifier()
        if name not in kind.parameters and not (kind.is_user_code and is_valid_name):
            problem = f"cannot read {repr_short(f'{name}={value}' if name else value)}: "
            if is_valid_name:
                problem = f"unknown parameter {repr_short(name)}: "
                if kind.parameters:
                    problem = f"{unknown_name('parameter', name, kind.parameters)}; "
            raise AgentError(f"{where}: {problem}expected {kind.usage}{quotes}")
        try:
            parameters[name] = kind.parameters.get(name, Parameter(str)).parse(value)
        except ValueError as error:
            raise AgentError(f"{where}: {escape_text(name)}: {error}") from None
    if PATH in kind.parameters and PATH in parameters:
        parameters[PATH] = expand_home(parameters[PATH])
    if kind.required and not parameters.get(next(iter(kind.parameters))):
        raise AgentError(f"{where}: expected {kind.usage}")
    return parameters


def _named(kind: AgentKind, text: str) -> list[tuple[str, str]]:
    """Return the names and values of a spec; the first parameter may come without its name."""
    pairs = _split(kind, text)
    if pairs and kind.parameters:
        name, value = pairs[0]
        if name is None or (_free_text(kind) and name not in kind.parameters):
            pairs[0] = next(iter(kind.parameters)), value if name is None else f"{name}={value}"
    return [(name or "", value) for name, value in pairs]


def _split(kind: AgentKind, text: str) -> list[tuple[str | None, str]]:
    """Split the parameters of a spec at commas outside quotes; None: without a name."""
    if COMMAND in kind.parameters:
        return [(COMMAND, text)]
    parts = _PART.finditer(f"{text}," if text else "")
    return [(part[1], _unquoted(part[2] or "") + part[3]) for part in parts]


def _unquoted(quoted: str) -> str:
    try:
        return str(json.loads(quoted)) if quoted else ""
    except ValueError:  # an escape that JSON does not know
        return quoted[1:-1]


def _free_text(kind: AgentKind) -> str:
    """Return the parameter that may contain commas and equals signs, empty without one."""
    return next((name for name in (PATH, VICTIM, CLASS) if name in kind.parameters), "")
