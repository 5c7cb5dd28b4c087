"""What an agent is: what decides in many games at once, and what others may know of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.bots import NO_BOT
from tokaido_env.core.state import BOARD, STATE


class AgentError(ValueError):
    """A spec string that makes no agent, or what is none: the message says what was expected."""


BoardRows = npt.NDArray[np.void]
"""`BOARD` (1,) for all games, or (n,)."""
States = npt.NDArray[np.void]
"""`STATE` (n,)."""
Legal = npt.NDArray[np.uint64]
"""The legal actions as bits, uint64 (n,)."""
Keys = npt.NDArray[np.uint64]
"""Random bits for one decision of each game, uint64 (n,)."""
Actions = npt.NDArray[np.int64]
"""Ids of actions, int64 (n,)."""

Judgement = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | None]


@runtime_checkable
class Agent(Protocol):
    """Chooses actions for many games at once.

    What inherits from it needs `spec` and `act` only. Its `act` and `judge` say which argument is
    wrong where they are called with others than they take: `check_agent_arguments`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("act", "judge"):
            if name in cls.__dict__:
                setattr(cls, name, _checked(cls.__dict__[name]))

    spec: str
    """The string that `agents.make` makes this agent from, or a name for it."""

    cost: int = 0
    """How long a decision takes, in simulations of `mcts`; 0 for an agent that does not search."""

    games_at_once: int = 4096
    """How many games to hand it at once in a match, at the most."""

    batched: bool = True
    """Whether many games at once take less time than the same one after another."""

    bot: int = NO_BOT
    """Its number in `core.bots` if its play is a kernel: games may ask the kernel instead."""

    may_fail: bool = True
    """Whether `act` may raise an error or return an illegal action; False for ours only."""

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return a legal action for the player to decide in each of n games.

        Args:
            boards: `BOARD` (1,) for all games, or (n,).
            states: `STATE` (n,), not to be changed.
            legal: uint64 (n,), the legal actions as bits, never 0.
            keys: uint64 (n,), random bits for this decision of this game: the only randomness an
                agent may use, so that a match is repeatable. No agent is handed the game's luck.

        Returns:
            int64 (n,).
        """
        ...

    def choose(self, game: Any, rng: np.random.Generator | int | None = None) -> int:
        """Return a legal action for one game at a decision: `act` of it alone.

        Args:
            game: a `Game`; it is left as it is.
            rng: what the agent's luck comes from, or a seed of it; None takes it from the system.

        Raises:
            TypeError, ValueError: if it is no game, or nobody is to decide.
        """
        if not isinstance(getattr(game, "legal_mask", None), int):
            raise TypeError(f"game: expected a Game, got {type(game).__name__} {repr_short(game)}")
        if not game.legal_mask:
            raise ValueError(f"game: expected one at a decision, it is at {game.phase.name}")
        self.prepare([game.board])
        keys = np.random.default_rng(rng).integers(0, 2**64, 1, np.uint64)
        legal = np.array([game.legal_mask], np.uint64)
        return int(self.act(game.boards, game.state, legal, keys)[0])

    def judge(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Judgement:
        """Tell what it thinks of n positions; one that cannot tell, what it would do.

        Args:
            boards, states, legal, keys: as for `act`.

        Returns:
            How good it holds each action, float32 (n, N_ACTIONS): shares that sum to 1, 0 where
            illegal; and the results that player_0 can expect, float32 (n,), in [-1, 1], None from
            an agent that has no idea of them.
        """
        shares = np.eye(N_ACTIONS, dtype=np.float32)[self.act(boards, states, legal, keys)]
        return shares, None

    def prepare(self, boards: Sequence[Board]) -> None:
        """Hear on which boards the coming games are played."""
        return None


_BITS: np.dtype[Any] = np.dtype(np.uint64)


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that is asked for n games at once refuse what kernels could not read.

    What is as usual is known at a glance: a decision of one game takes a few microseconds.
    """

    @functools.wraps(method)
    def asked(
        self: Any, boards: Any, states: Any = None, legal: Any = None, keys: Any = None
    ) -> Any:
        if not _is_usual(boards, states, legal, keys):
            check_agent_arguments(boards, states, legal, keys)
        return method(self, boards, states, legal, keys)

    return asked


def _is_usual(boards: Any, states: Any, legal: Any, keys: Any) -> bool:
    """Return whether arguments are right and their dtypes the very objects of this package."""
    try:
        shape = states.shape
        return (
            states.dtype is STATE
            and boards.dtype is BOARD
            and legal.dtype is keys.dtype is _BITS
            and legal.shape == shape == keys.shape == (len(states),)
            and boards.shape in ((1,), shape)
        )
    except (AttributeError, TypeError):
        return False


def check_agent_arguments(boards: Any, states: Any, legal: Any, keys: Any) -> None:
    """Check that an agent can be asked this, as `Agent.act` tells.

    Raises:
        TypeError, ValueError: naming the argument, what was expected and what it is.
    """
    asked: dict[str, tuple[Any, np.dtype[Any], str]]
    asked = {"states": (states, STATE, "STATE"), "boards": (boards, BOARD, "BOARD")}
    asked |= {"legal": (legal, _BITS, "uint64"), "keys": (keys, _BITS, "uint64")}
    n = len(states) if isinstance(states, np.ndarray) and states.ndim == 1 else None
    for name, (value, dtype, meaning) in asked.items():
        lengths = (1, n) if name == "boards" else (n,)
        shapes = "(1,) or (n,)" if name == "boards" else "(n,)"
        expected = f"{name}: expected an array of {meaning}, of shape {shapes}"
        if not isinstance(value, np.ndarray):
            got = f"{type(value).__name__} {repr_short(value)}"
            raise TypeError(f"{expected}, got {got}; for one Game: agent.choose(game)")
        if value.dtype != dtype:
            raise TypeError(f"{expected}, got an array of {repr_short(value.dtype)}")
        if value.ndim != 1 or len(value) not in lengths:
            games = "" if n is None else f" for {n} games"
            raise ValueError(f"{expected}, got {value.shape}{games}")


class AgentAdapter(Agent):
    """An object that has `act`, but not all that an agent has: what it lacks is as by default.

    Args:
        player: the object.
        spec: of the agent; by default the object's own, or the name of its class.
    """

    def __init__(self, player: Any, spec: str | None = None) -> None:
        self.player = player
        self.spec = spec or str(getattr(player, "spec", type(player).__name__))
        for name in ("cost", "games_at_once", "batched", "bot"):
            setattr(self, name, getattr(player, name, getattr(Agent, name)))

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return actions, as `Agent.act`."""
        actions: npt.NDArray[np.int64] = self.player.act(boards, states, legal, keys)
        return actions

    def judge(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Judgement:
        """Return what the object thinks or, if it cannot tell, what it would do: `Agent.judge`."""
        tells = getattr(self.player, "judge", super().judge)
        judgement: Judgement = tells(boards, states, legal, keys)
        return judgement

    def prepare(self, boards: Sequence[Board]) -> None:
        """Let the object hear on which boards the coming games are played, if it wants to."""
        getattr(self.player, "prepare", super().prepare)(boards)


def as_agent(agent: object) -> Agent:
    """Return an `Agent`: made from a spec string, as given, or an adapter of an object with `act`.

    Raises:
        AgentError: if it is none of them, or there is no such kind of agent.
    """
    if isinstance(agent, str):
        from tokaido_env.agents import make

        return make(agent)
    if isinstance(agent, Agent):
        return agent
    if not callable(getattr(agent, "act", None)) or isinstance(agent, type):
        raise AgentError(
            "expected an agent, which has act(boards, states, legal, keys), or a spec string, "
            f"got {repr_short(agent)}"
        )
    return AgentAdapter(agent)
