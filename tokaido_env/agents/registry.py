"""What an agent is, and how a spec string becomes one."""

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
from tokaido_env.agents.policy import quote_path
from tokaido_env.core.arguments import MAX_NAME_CHARS, escape_text, repr_short
from tokaido_env.files import FOLDER, file_kind


@dataclass(frozen=True)
class Parameter:
    """What a parameter of an agent may be.

    Attributes:
        type: int, float or str.
        low, high: the least and the greatest number allowed.
        words: taken as they are, besides numbers; of texts no others are.
    """

    type: type
    low: float = -inf
    high: float = inf
    words: tuple[str, ...] = ()

    def read(self, text: str) -> int | float | str:
        """Return what a text stands for, or raise `ValueError` that says what was expected."""
        if text in self.words or (self.type is str and not self.words):
            return text
        number: int | float = nan
        with suppress(ValueError):
            number = nan if self.type is str else self.type(text)
        if self.holds(number):
            return number
        raise ValueError(f"expected {self.expected}, got {repr_short(text)}")

    def holds(self, number: float) -> bool:
        """Return whether a number, an integer of any size too, is finite and within the bounds."""
        return -inf < number < inf and self.low <= number <= self.high

    @property
    def expected(self) -> str:
        """What is allowed, in words."""
        bounds = [f" from {self.low}"] * (self.low > -inf) + [f" to {self.high}"] * (
            self.high < inf
        )
        what = {int: "an integer", float: "a number", str: "a text"}[self.type] + "".join(bounds)
        only = self.type is str and self.words  # no other text is taken
        return " or ".join([*([] if only else [what]), *map(repr, self.words)])


@dataclass(frozen=True)
class AgentKind:
    """A kind of agent: where its class is and how its spec string reads."""

    module: str
    name: str
    usage: str
    meaning: str
    parameters: dict[str, Parameter]  # by name; the first may be given without its name
    required: bool = False  # the first has to be given
    foreign: bool = False  # runs code not of this package, which is handed any other parameter
    cost: Callable[[Mapping[str, Any]], int] = lambda parameters: 0
    """`Agent.cost` by the parameters."""


MAX_SIMS = 1_000_000
DEFAULT_SIMS = 400  # by default
NETWORK_SIM_COST = 16  # simulations of `mcts` that take as long as one led by a network
RESPONSE_SIM_COST = 2 * NETWORK_SIM_COST  # and where a victim answers
EXPECTIMAX_COSTS = (10, 3_000, 500_000, 80_000_000)  # by depth; each pick multiplies it

# What a search by a network divides its logits by, and how it samples chance.
_NETWORK_SEARCH: dict[str, Parameter] = {
    "sims": Parameter(int, 1, MAX_SIMS),
    "temperature": Parameter(float, 0.1, 10),
    "dice": Parameter(str, words=("stratified", "drawn")),
    "chance": Parameter(str, words=("judged", "sampled")),
}

KINDS = {
    "random": AgentKind(
        "baselines", "RandomAgent", "random", "each legal action with equal probability", {}
    ),
    "greedy": AgentKind(
        "baselines",
        "GreedyAgent",
        "greedy[:epsilon=E]",
        "the best immediate change in score margin, looking through a move to its effects; with "
        "probability E (0) a random action",
        {"epsilon": Parameter(float, 0, 1)},
    ),
    "heuristic": AgentKind(
        "heuristic",
        "HeuristicAgent",
        "heuristic",
        "the best evaluation after a move, by weights that were tuned in games",
        {},
    ),
    "expectimax": AgentKind(
        "expectimax",
        "ExpectimaxAgent",
        "expectimax[:depth=N]",
        "the best evaluation after N picks (2), chance by its odds",
        {"depth": Parameter(int, 1, 4)},
        cost=lambda parameters: EXPECTIMAX_COSTS[parameters.get("depth", 2) - 1],
    ),
    "mcts": AgentKind(
        "search",
        "MctsAgent",
        "mcts[:sims=N][,rollout=N|full]",
        "Monte Carlo tree search of N simulations a decision (400); a leaf is worth its "
        "evaluation, or that after some rounds of random play",
        {"sims": Parameter(int, 1, MAX_SIMS), "rollout": Parameter(int, 0, 399, ("full",))},
        cost=lambda parameters: int(parameters.get("sims", DEFAULT_SIMS)),
    ),
    "champion": AgentKind(
        "champion",
        "make_champion",
        "champion[:sims=N[,...]]",
        "the strongest network here, one forward pass a decision; with N, tree search led by it, "
        "T, dice and chance as of policy_search",
        _NETWORK_SEARCH,
        cost=lambda parameters: NETWORK_SIM_COST * int(parameters.get("sims", 0)),
    ),
    "generalist": AgentKind(
        "champion",
        "make_generalist",
        "generalist[:sims=N[,...]]",
        "the strongest network here on boards that it has never seen; options as of champion",
        _NETWORK_SEARCH,
        cost=lambda parameters: NETWORK_SIM_COST * int(parameters.get("sims", 0)),
    ),
    "policy_search": AgentKind(
        "search",
        "PolicySearchAgent",
        "policy_search:PATH[,sims=N][,temperature=T][,dice=drawn][,chance=sampled]",
        "tree search of N simulations a decision (400) led by a policy file or the best of a run: "
        "its policy proposes, logits divided by T (1.5), its value judges; dice are stratified, "
        "or drawn as in a game; a simulation ends at new chance, or behind a sample of it",
        {"path": Parameter(str), **_NETWORK_SEARCH},
        required=True,
        cost=lambda parameters: NETWORK_SIM_COST * int(parameters.get("sims", DEFAULT_SIMS)),
    ),
    "exploiter": AgentKind(
        "best_response",
        "ExploiterAgent",
        "exploiter:VICTIM[,sims=N]",
        "tree search of N simulations a decision (400) that knows how the agent VICTIM replies: "
        "random, greedy, heuristic, champion, generalist or policy:PATH",
        {"victim": Parameter(str), "sims": Parameter(int, 1, MAX_SIMS)},
        required=True,
        cost=lambda parameters: RESPONSE_SIM_COST * int(parameters.get("sims", DEFAULT_SIMS)),
    ),
    "policy": AgentKind(
        "policy",
        "PolicyAgent",
        "policy:PATH[,temperature=T]",
        "a trained network: a policy file, or a run folder for its best; T=0 takes the likeliest "
        "action (default), T=1 samples",
        {"path": Parameter(str), "temperature": Parameter(float, 0, 10)},
        required=True,
    ),
    "python": AgentKind(
        "python_agent",
        "make_python_agent",
        "python:MODULE:CLASS[,NAME=VALUE...]",
        "your own: a class with act(boards, states, legal, keys), or choose(game, rng) for one "
        "game at a time, made with the parameters given",
        {"class": Parameter(str)},  # no parameter of a class in Python can have this name
        required=True,
        foreign=True,
    ),
}


# Parameters of a file or a folder, and of another agent: in quotes if need be.
PATH, VICTIM = "path", "victim"
_IN_QUOTES = re.compile(r'(?:(?:path|victim)=)?("(?:[^"\\]|\\.)*")(?=,|$)')


def make(spec: str) -> Agent:
    """Make an agent from a spec string, as `random` or `policy:runs/a/best,temperature=1`.

    Raises:
        AgentError: if there is no such kind or parameter, or a value is out of range.
    """
    kind, parameters = _parse(spec)
    cost = kind.cost(parameters)
    if VICTIM in parameters:
        parameters[VICTIM] = make(parameters[VICTIM])
    module = importlib.import_module(f"tokaido_env.agents.{kind.module}")
    agent: Agent = getattr(module, kind.name)(**parameters)
    agent.cost = cost or agent.cost
    return agent


def cost_of(spec: str) -> int:
    """Return the `Agent.cost` of a spec without making the agent; 0 for a name that is no spec.

    Raises:
        AgentError: if a parameter is unknown, or out of range.
    """
    if spec.partition(":")[0] not in KINDS:
        return 0
    kind, parameters = _parse(spec)
    return kind.cost(parameters)


class NamedAgent(NamedTuple):
    """Who plays: what it is called, and its spec."""

    name: str
    spec: str


def parse_named_agent(text: str) -> NamedAgent:
    """Return whom `NAME=SPEC` stands for; without a name an agent is called by its spec.

    Raises:
        AgentError: if the name is that of a kind of agent.
    """
    name, equals, spec = text.partition("=")
    if not equals or ":" in name or '"' in name or name in KINDS:
        return NamedAgent(text, text)
    if not name.strip() or not name.isprintable():
        raise AgentError(f"agent {repr_short(text)}: expected NAME=SPEC with a printable name")
    return NamedAgent(name, spec)


def check_names(entrants: Sequence[NamedAgent]) -> None:
    """Raise `AgentError` if one name stands for two agents."""
    specs: dict[str, str] = {}
    for name, spec in entrants:
        if specs.setdefault(name, spec) != spec:
            raise AgentError(
                f"agents: expected one name for one agent: {repr_short(name)} is "
                f"{repr_short(specs[name])} and {repr_short(spec)}"
            )


def runs_user_code(spec: str) -> bool:
    """Return whether a spec names code that is not this package's.

    Raises:
        AgentError: as for `make`.
    """
    return _parse(spec)[0].foreign


def policy_path_of(spec: str) -> Path | None:
    """Return the policy file that an agent, or its victim, plays from; None if from none.

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


def check_spec_in_file(spec: str, where: str, folder: Path, named: Container[str] = ()) -> str:
    """Return a spec that stands in a file, to be made; refuse what is not safe to make.

    Files come from strangers: they may name the kinds of this package, and policies in their own
    folder, by a path from there or from where the command runs.

    Args:
        spec: as it stands there.
        where: it stands, for the message.
        folder: of the file.
        named: specs that the user has named, on the command line: they may be any.

    Raises:
        AgentError: saying where, why, and what helps.
    """
    if spec in named:
        return spec
    try:
        kind, parameters = _parse(spec)
    except AgentError as error:
        raise AgentError(f"{where}: {error}") from None
    if VICTIM in parameters:
        victim = check_spec_in_file(parameters[VICTIM], where, folder, named)
        return spec if victim == parameters[VICTIM] else _with(spec, VICTIM, victim)
    if PATH not in parameters and not kind.foreign:
        return spec
    why = "a file may not name code to be run"
    if not kind.foreign:
        path = Path(parameters[PATH])
        for own in (path, folder / path):
            if not path.is_absolute() and ".." not in path.parts and _lies_in(own, folder):
                return spec if own == path else _with(spec, PATH, str(own))
        why = "a file may name policies of its own folder only, by a relative path"
    raise AgentError(
        f"{where}: {repr_short(spec)}: {why}: if you trust it, name this agent on the command line "
        "(train: --agents, rate: --allow-python-agents)"
    )


def _lies_in(path: Path, folder: Path) -> bool:
    """Return whether a file, or the best policy of a run, is in a folder, links followed."""
    files = [path, path / "best"] if file_kind(path) == FOLDER else [path]
    try:
        return all(file.resolve().is_relative_to(folder.resolve()) for file in files)
    except (ValueError, RuntimeError):  # no path at all; links that lead to each other
        return False


def _with(spec: str, name: str, value: str) -> str:
    """Return a spec with another path or victim."""
    kind_name, _, text = spec.partition(":")
    kind = KINDS[kind_name]
    named = {part.partition("=")[0]: part for part in _parts(kind, text)}
    others = [part for key, part in named.items() if key in kind.parameters and key != name]
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
        usages = ", ".join(kind.usage for kind in KINDS.values())
        raise AgentError(f"unknown agent {repr_short(spec)}: expected one of {usages}")
    return KINDS[kind_name], _parameters(spec, KINDS[kind_name], text)


def _parameters(spec: str, kind: AgentKind, text: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    where = f"agent {repr_short(spec)}"
    for i, part in enumerate(_parts(kind, text)):
        name, equals, value = part.partition("=")
        if i == 0 and kind.parameters and (not equals or _is_any_text(kind, name)):
            name, value, equals = next(iter(kind.parameters)), part, "="
        known = name in kind.parameters or (kind.foreign and equals and name.isidentifier())
        if not known or name in parameters:
            free = _any_text(kind)
            quotes = f", a {free.upper()} with a comma in double quotes" if free else ""
            raise AgentError(
                f"{where}: cannot read {repr_short(part)}: expected {kind.usage}{quotes}"
            )
        try:
            parameters[name] = kind.parameters.get(name, Parameter(str)).read(value)
        except ValueError as error:
            raise AgentError(f"{where}: {escape_text(name)}: {error}") from None
    if kind.required and not parameters.get(next(iter(kind.parameters))):
        raise AgentError(f"{where}: expected {kind.usage}")
    return parameters


def _parts(kind: AgentKind, text: str) -> list[str]:
    """Split the text after a kind at its commas, but for what is in quotes, which loses them."""
    free = _any_text(kind)
    quoted = _IN_QUOTES.match(text) if free else None
    if quoted is None:
        return text.split(",") if text else []
    try:
        value = str(json.loads(quoted[1]))
    except ValueError:  # a backslash that JSON does not know
        value = quoted[1][1:-1]
    rest = text[quoted.end() + 1 :]
    return [f"{free}={value}", *(rest.split(",") if rest else [])]


def _any_text(kind: AgentKind) -> str:
    """Return the parameter that may hold what divides a spec, empty if there is none."""
    return next((name for name in (PATH, VICTIM) if name in kind.parameters), "")


def _is_any_text(kind: AgentKind, name: str) -> bool:
    """Return whether what stands before the first equals sign is a part of such a text."""
    return bool(_any_text(kind)) and name not in kind.parameters
