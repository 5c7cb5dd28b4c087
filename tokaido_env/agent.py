"""`Agent`: the interface of agents that choose actions for many games at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from itertools import chain, count
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import as_integer, repr_short
from tokaido_env.core.bots import NO_BOT
from tokaido_env.core.state import BOARD, STATE


class AgentError(ValueError):
    """An invalid spec string, or an object that is no agent."""


BoardRows = npt.NDArray[np.void]
"""`BOARD` (1,) for all games, or (n,), one per game."""
States = npt.NDArray[np.void]
"""`STATE` (n,)."""
Legal = npt.NDArray[np.uint64]
"""The legal actions as bits, uint64 (n,)."""
Keys = npt.NDArray[np.uint64]
"""Random bits for one decision of each game, uint64 (n,)."""
Actions = npt.NDArray[np.int64]
"""Action ids, int64 (n,)."""

ActArguments = tuple[BoardRows, States, Legal, Keys]
"""The arguments of `Agent.act`."""

Judgement = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | None]
"""Probabilities of actions (n, N_ACTIONS), and expected results of player_0 (n,) or None."""


class Agent(ABC):
    """An agent that chooses actions for many games at once.

    A subclass needs `spec` and `act` only.
    """

    spec: str
    """Its name in results."""

    source: str = ""
    """The spec string that `agents.make` made it from; "" plays in this process only."""

    games_at_once: int = 4096
    """The largest number of games per call of `act` in a match."""

    batched: bool = True
    """Whether one call for many games is faster than one call per game."""

    bot: int = NO_BOT
    """Its number in `core.bots` if it is a compiled bot, which a batch can then call directly."""

    may_fail: bool = True
    """Whether `act` may raise an error or return an illegal action; False for built-in agents."""

    sha256: str = ""
    """SHA-256 of the files that `agents.make` made it from, joined by "+"; "" for none."""

    @abstractmethod
    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return a legal action for each of n games, for the player to decide.

        Args:
            boards: `BOARD` (1,) for all games, or (n,).
            states: `STATE` (n,); do not write to them.
            legal: uint64 (n,), the legal actions as bits, never 0.
            keys: uint64 (n,), random bits for this decision of each game. They are the only source
                of randomness that an agent may use, so that matches are reproducible.

        Returns:
            int64 (n,), action ids.
        """

    def choose(self, game: Any, rng: np.random.Generator | int | None = None) -> int:
        """Return a legal action for one game.

        Args:
            game: a `Game` at a decision; it is not changed.
            rng: a generator or a seed for the agent's random numbers; None takes a seed from the
                operating system.

        Raises:
            TypeError: if `game` is no `Game`.
            ValueError: if the game is not at a decision.
        """
        if not isinstance(getattr(game, "legal_mask", None), int):
            raise TypeError(f"game: expected a Game, got {type(game).__name__} {repr_short(game)}")
        if not game.legal_mask:
            raise ValueError(f"game: expected a game at a decision, got one at {game.phase.name}")
        self.prepare([game.board])
        keys = np.random.default_rng(rng).integers(0, 2**64, 1, np.uint64)
        legal = np.array([game.legal_mask], np.uint64)
        return int(self.act(game.boards, game.state, legal, keys)[0])

    def judge(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Judgement:
        """Evaluate n positions; by default, the action of `act` gets probability 1.

        Args:
            boards: as for `act`.
            states: as for `act`.
            legal: as for `act`.
            keys: as for `act`.

        Returns:
            The probability of each action, float32 (n, N_ACTIONS), 0 where illegal; and player_0's
            expected results, float32 (n,) in [-1, 1], or None if the agent cannot estimate them.
        """
        probabilities = np.eye(N_ACTIONS, dtype=np.float32)[self.act(boards, states, legal, keys)]
        return probabilities, None

    def prepare(self, boards: Sequence[Board]) -> None:
        """Prepare for games on these boards; by default do nothing."""
        return None


_BITS: np.dtype[Any] = np.dtype(np.uint64)
_DTYPE_NAMES = {STATE: "STATE", BOARD: "BOARD", _BITS: "uint64"}


def check_agent_arguments(boards: Any, states: Any, legal: Any, keys: Any) -> ActArguments:
    """Check the arguments of `Agent.act` and `Agent.judge`: kernels cannot.

    Returns:
        The arguments, copied if they are strided or read-only: kernels would compile again.

    Raises:
        TypeError: for an argument that is no array or has another dtype.
        ValueError: for an array of another shape.
    """
    n = len(states) if isinstance(states, np.ndarray) and states.ndim == 1 else None
    states = _check_array("states", states, STATE, (n,))
    boards = _check_array("boards", boards, BOARD, (1, n))
    legal = _check_array("legal", legal, _BITS, (n,))
    return boards, states, legal, _check_array("keys", keys, _BITS, (n,))


def _check_array(
    name: str, value: Any, dtype: np.dtype[Any], lengths: tuple[int | None, ...]
) -> Any:
    is_array = isinstance(value, np.ndarray)
    if is_array and value.dtype == dtype and value.ndim == 1 and len(value) in lengths:
        return value if value.flags.carray else np.require(value, requirements=["C", "A", "W"])
    shapes = "(1,) or (n,)" if len(lengths) > 1 else "(n,)"
    expected = f"{name}: expected an array of {_DTYPE_NAMES[dtype]}, of shape {shapes}"
    if not is_array:
        got = f"{type(value).__name__} {repr_short(value)}"
        raise TypeError(f"{expected}, got {got}; for one Game call agent.choose(game)")
    if value.dtype != dtype:
        raise TypeError(f"{expected}, got an array of {repr_short(value.dtype)}")
    games = "" if lengths[-1] is None else f" for {lengths[-1]} games"
    raise ValueError(f"{expected}, got {value.shape}{games}")


class AgentAdapter(Agent):
    """An agent made of an object with a method `act`, with defaults for all that it lacks.

    Args:
        wrapped: the object.
        spec: name of the agent; by default the object's `spec` or the name of its class.

    Raises:
        AgentError: if an attribute of the object is not allowed: see `as_agent`.
    """

    def __init__(self, wrapped: Any, spec: str | None = None) -> None:
        name: Any = spec or getattr(wrapped, "spec", type(wrapped).__name__)
        self.wrapped, self.spec = wrapped, name
        self.games_at_once = getattr(wrapped, "games_at_once", self.games_at_once)
        self.batched = getattr(wrapped, "batched", self.batched)
        is_name = isinstance(name, str) and name.isprintable() and name not in ("", "human")
        for key, expected, allowed in (
            ("spec", "a printable name, not 'human'", spec or is_name),
            ("games_at_once", "an integer from 1", (as_integer(self.games_at_once) or 0) > 0),
            ("batched", "True or False", isinstance(self.batched, bool)),
            ("judge", "a method", callable(getattr(wrapped, "judge", len))),
            ("prepare", "a method", callable(getattr(wrapped, "prepare", len))),
        ):
            if not allowed:
                got = f"{repr_short(getattr(wrapped, key, name))} in {type(wrapped).__name__}"
                raise AgentError(f"{key}: expected {expected}, got {got}: change or rename it")

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return the object's actions; see `Agent.act`."""
        actions: npt.NDArray[np.int64] = self.wrapped.act(boards, states, legal, keys)
        return actions

    def judge(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Judgement:
        """Return the object's judgement, or the default of `Agent.judge`; see there."""
        found: Judgement = getattr(self.wrapped, "judge", super().judge)(
            boards, states, legal, keys
        )
        return found

    def prepare(self, boards: Sequence[Board]) -> None:
        """Call the object's `prepare`, if it has one."""
        getattr(self.wrapped, "prepare", super().prepare)(boards)


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
    from tokaido_env.agents import PerGameAdapter, make

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
    """Return `as_agent` of each player, with the names of `labels_of`."""
    agents = [as_agent(one) for one in players]
    for i, label in enumerate(labels_of(agents)):
        if label != agents[i].spec:
            agents[i] = copy(agents[i])
            agents[i].spec = label
    return agents


def labels_of(players: Sequence[Any]) -> list[str]:
    """Return the names of agents or text players: the second object named `Net` is `Net 2`.

    Agents that `make` made from one spec have one name.
    """
    owners: dict[str, object] = {}
    labels: dict[int, str] = {}
    for one in sorted(players, key=lambda one: not getattr(one, "source", "")):  # specs keep theirs
        owner = getattr(one, "source", "") or id(getattr(one, "wrapped", one))
        names = chain([one.spec], (f"{one.spec} {number}" for number in count(2)))
        labels[id(one)] = next(name for name in names if owners.setdefault(name, owner) == owner)
    return [labels[id(one)] for one in players]
