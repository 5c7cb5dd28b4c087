"""The registry of agents: spec strings, their parameters, `make` and `as_agent`.

A spec is `NAME:key=value,key=value`. A path, a class or a command stands as it is before
the parameters: `policy:PATH,temperature=1`. It ends where a comma, a name and "=" follow, so it
cannot contain these; a command has no parameters.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from itertools import chain, count
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.adapters import AgentAdapter, PerGameAdapter
from tokaido_env.agents.content import module_file, program_files, sha256_of_files
from tokaido_env.core.arguments import MAX_NAME_CHARS, escape_text, repr_short, unknown_name
from tokaido_env.files import expand_home

PATH, CLASS, COMMAND = "PATH", "MODULE:CLASS", "PROGRAM [ARGS]"
"""The texts that a spec may begin with."""


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
        with suppress(ValueError):
            number: int | float = self.type(text)
            if self.type is not str and self.allows(number):
                return number
        raise ValueError(f"expected {self.expected}, got {repr_short(text)}")

    def allows(self, number: float) -> bool:
        """Return whether a number is finite and in the range; integers may have any size."""
        return -inf < number < inf and self.low <= number <= self.high

    @property
    def expected(self) -> str:
        """The allowed values in words, for "expected …" in a message."""
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
        name: the class, or the function that makes the agent; called with the text of the spec, if
            it takes one, and with the parameters by name.
        usage: the grammar, such as "mcts[:sims=N][,rollout=full]".
        meaning: a sentence for lists of agents.
        parameters: by name; none by default; a class of the user takes any.
        takes: the text before the parameters, `PATH`, `CLASS` or `COMMAND`; "": none.
        cost: returns the simulations of `mcts` that take as long as a decision, by the parameters.
    """

    module: str
    name: str
    usage: str
    meaning: str
    parameters: dict[str, Parameter] = field(default_factory=dict)
    takes: str = ""
    cost: Callable[[Mapping[str, Any]], int] = lambda parameters: 0

    @property
    def is_user_code(self) -> bool:
        """Whether the agent runs code from outside this package."""
        return self.takes in (CLASS, COMMAND)


class _Spec(NamedTuple):
    kind: AgentKind
    text: str
    parameters: dict[str, Any]


MAX_SIMS = 1_000_000
DEFAULT_SIMS = 400

# Costs are in simulations of `mcts`; these are measured times of a simulation in that unit.
NETWORK_SIM_COST = 16

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
    ),
    "rusher": AgentKind(
        "heuristic",
        "RusherAgent",
        "rusher",
        "Gives paintings to end the game soon: the heuristic with other weights. It scores 26 % "
        "against heuristic.",
    ),
    "hoarder": AgentKind(
        "heuristic",
        "HoarderAgent",
        "hoarder",
        "Collects wares, coins and slabs: the heuristic with other weights. It scores 31 % "
        "against heuristic.",
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
        "champion[:sims=N][,endings=network][,...]",
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
        _NETWORK_SEARCH,
        takes=PATH,
        cost=lambda parameters: NETWORK_SIM_COST * int(parameters.get("sims", DEFAULT_SIMS)),
    ),
    "policy": AgentKind(
        "policy",
        "PolicyAgent",
        "policy:PATH[,temperature=T][,endings=network]",
        "Plays the trained network of a policy file or of a run's best policy. T=0 takes the "
        "action with the best afterstate value (default: 0), T=1 samples from the softmax of the "
        "logits, 16 times these values.",
        {"temperature": Parameter(float, 0, 10), "endings": _ENDINGS},
        takes=PATH,
    ),
    "python": AgentKind(
        "python_agent",
        "make_python_agent",
        "python:MODULE:CLASS[,NAME=VALUE...]",
        "Plays a class of your own with act(boards, states, legal, keys), or with "
        "choose(game, rng) for one game at a time. MODULE may be the path of a file, such as "
        "bots/my_bot.py. The class gets the other parameters.",
        takes=CLASS,
    ),
    "exec": AgentKind(
        "exec_agent",
        "make_exec_agent",
        "exec:PROGRAM [ARGS]",
        "Plays a program of your own in any language, which reads positions and writes actions as "
        "lines of JSON.",
        takes=COMMAND,
    ),
}


def make(spec: str) -> Agent:
    """Make an agent from a spec string such as `random` or `policy:runs/a/best,temperature=1`.

    Raises:
        AgentError: if a kind or a parameter is unknown, or a value is out of range.
    """
    kind, text, parameters = _parse(spec)
    text = expand_home(text) if kind.takes == PATH else text
    texts = [text] if kind.takes else []
    module = importlib.import_module(f"tokaido_env.agents.{kind.module}")
    agent: Agent = getattr(module, kind.name)(*texts, **parameters)
    agent.source, agent.sha256 = agent.spec, sha256_of(spec)
    return agent


def as_agent(agent: object, boards: Any = ()) -> Agent:
    """Return an `Agent` for a spec string, an agent, or an object with `act` or `choose`.

    An object of another package plays in this process, by its `act` or `choose`. Of its attributes
    `spec`, `games_at_once`, `batched`, `judge` and `prepare` count, as in `Agent`, and no others.

    Args:
        agent: is returned unchanged if its class is of this package.
        boards: a sequence or pool of boards, for which a new agent is prepared.

    Raises:
        AgentError: for an unknown spec string, any other object, or a wrong attribute.
    """
    if isinstance(agent, Agent) and type(agent).__module__.startswith("tokaido_env."):
        return agent
    # NumPy's arrays and numbers have a method `choose` too.
    is_object = not isinstance(agent, type | np.ndarray | np.generic)
    if isinstance(agent, str):
        made: Agent = make(agent)
    elif is_object and callable(getattr(agent, "act", None)):
        made = AgentAdapter(agent)
    elif is_object and callable(getattr(agent, "choose", None)):
        made = PerGameAdapter(agent)
    else:
        raise AgentError(
            "agent: expected a spec string, or an object with choose(game, rng) or "
            f"act(boards, states, legal, keys), got {repr_short(agent)}"
        )
    if boards:
        made.prepare(boards)
    return made


def as_agents(*players: Any) -> list[Agent]:
    """Return `as_agent` of each player; of two objects named `Net` the second is `Net 2`."""
    agents = [as_agent(one) for one in players]
    for i, label in enumerate(labels_of(agents)):
        if label != agents[i].spec:
            agents[i] = copy(agents[i])
            agents[i].spec = label
    return agents


def labels_of(players: Sequence[Any]) -> list[str]:
    """Return the names of agents or text players: the second object named `Net` is `Net 2`.

    Agents that `make` made from one spec and the same files have one name.
    """
    owners: dict[str, object] = {}
    labels: dict[int, str] = {}
    for one in sorted(players, key=lambda one: not getattr(one, "source", "")):  # specs keep theirs
        source = getattr(one, "source", "")
        owner = (source, one.sha256[:64]) if source else id(getattr(one, "wrapped", one))
        names = chain([one.spec], (f"{one.spec} {number}" for number in count(2)))
        labels[id(one)] = next(name for name in names if owners.setdefault(name, owner) == owner)
    return [labels[id(one)] for one in players]


def cost_of(spec: str) -> int:
    """Return the simulations of `mcts` that take as long as a decision; 0 if the text is no spec.

    Raises:
        AgentError: if a parameter is unknown, or out of range.
    """
    if spec.partition(":")[0] not in KINDS:
        return 0
    kind, _, parameters = _parse(spec)
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
    name = name.strip()
    if not equals or ":" in name or name in KINDS:
        return NamedAgent(text, text)
    if not name or not name.isprintable():
        raise AgentError(f"agent {repr_short(text)}: expected NAME=SPEC with a printable name")
    return NamedAgent(name, spec)


def check_names(agents: Sequence[NamedAgent]) -> None:
    """Raise `AgentError` if two different specs have the same name."""
    specs: dict[str, str] = {}
    for name, spec in agents:
        if specs.setdefault(name, spec) != spec:
            raise AgentError(
                f"agents: expected different names, got {repr_short(name)} for "
                f"{repr_short(specs[name])} and for {repr_short(spec)}"
            )


def runs_user_code(spec: str) -> bool:
    """Return whether a spec names code from outside this package: `python:` or `exec:`.

    Raises:
        AgentError: if a kind or a parameter is unknown, or a value is out of range.
    """
    return _parse(spec).kind.is_user_code


def policy_path_of(spec: str) -> Path | None:
    """Return the path of the policy file of an agent, None without one.

    Raises:
        AgentError: if a kind or a parameter is unknown, or a value is out of range.
    """
    kind, text, _ = _parse(spec)
    if kind.takes != PATH:
        return None
    path = Path(expand_home(text))
    return path / "best" if path.is_dir() else path


def sha256_of(spec: str) -> str:
    """Return the SHA-256, joined by "+", of the files that an agent is made from; "" for none.

    They are its policy; its module and files among its parameters; its program.
    """
    try:
        path, (kind, text, parameters) = policy_path_of(spec), _parse(spec)
        if kind.takes == COMMAND:
            return sha256_of_files(program_files(text))
        if kind.takes == CLASS:
            module = module_file(text.rpartition(":")[0])
            return sha256_of_files([module, *map(expand_home, parameters.values())])
        return "" if path is None else sha256_of_files([str(path)])
    except (ValueError, OSError, IndexError):  # no spec; a file that cannot be read
        return ""


def check_spec_in_file(spec: str, where: str, folder: Path, trusted: Container[str] = ()) -> str:
    """Return the spec of an agent that a file names; a file may not name code to run.

    Args:
        spec: the spec in the file.
        where: the place in the file, for the message.
        folder: the folder of the file, to which the path of a policy may be relative.
        trusted: specs that the user named on the command line; they may be any.

    Raises:
        AgentError: if the spec is wrong or names code; the message says how to allow it.
    """
    if spec in trusted:
        return spec
    try:
        kind, text, _ = _parse(spec)
    except AgentError as error:
        raise AgentError(f"{where}: {error}") from None
    if kind.is_user_code:
        raise AgentError(
            f"{where}: {repr_short(spec)}: a file may not name code to run: if you trust it, name "
            "this agent on the command line (rate: --allow-agents)"
        )
    new = text
    if kind.takes == PATH:
        path = Path(expand_home(text))
        own = folder / path
        if own.exists() and own.resolve() != path.resolve():
            new = str(own)
    start = spec.index(":") + 1 if text else 0
    return spec[:start] + new + spec[start + len(text) :]


def describe() -> list[tuple[str, str]]:
    """Return (usage, meaning) of every kind of agent, such as ("random", "Takes …")."""
    return [(kind.usage, kind.meaning) for kind in KINDS.values()]


def _parse(spec: str) -> _Spec:
    where = f"agent {repr_short(spec)}"
    if len(spec) > MAX_NAME_CHARS:
        raise AgentError(f"{where}: expected at most {MAX_NAME_CHARS} characters, got {len(spec)}")
    kind_name, _, text = spec.partition(":")
    if kind_name not in KINDS:
        problem = unknown_name("agent", kind_name, KINDS)
        raise AgentError(f"{problem}; tokaido agents describes all agents")
    kind, values = KINDS[kind_name], [text] if text else []
    if kind.takes != COMMAND:
        values = re.split(r",(?=[^\W\d]\w*=)", text) if text else []
    if kind.takes and not values:
        raise AgentError(f"{where}: expected {kind.usage}")
    first = values.pop(0) if kind.takes else ""
    return _Spec(kind, first, _parse_parameters(where, kind, values))


def _parse_parameters(where: str, kind: AgentKind, values: Sequence[str]) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for each in values:
        name, _, value = each.partition("=")
        if name not in kind.parameters and kind.takes != CLASS:
            problem = unknown_name("parameter", name, kind.parameters)
            raise AgentError(f"{where}: {problem}; expected {kind.usage}")
        if name in parameters:
            raise AgentError(f"{where}: {escape_text(name)}: expected once, got it twice")
        try:
            parameters[name] = kind.parameters.get(name, Parameter(str)).parse(value)
        except ValueError as error:
            raise AgentError(f"{where}: {escape_text(name)}: {error}") from None
    return parameters
