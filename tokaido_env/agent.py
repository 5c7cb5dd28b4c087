"""`Agent`: the interface of agents that choose actions for many games at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.arguments import repr_short
from tokaido_env.core.bots import NO_BOT
from tokaido_env.core.state import BOARD, STATE
from tokaido_env.core.state_validation import NOT_FOUND, first_wrong_mask


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
            boards: `BOARD` (1,) for all positions, or (n,).
            states: `STATE` (n,), at decisions; do not write to them.
            legal: uint64 (n,), the legal actions as bits, never 0.
            keys: uint64 (n,), random bits, the agent's only source of randomness.

        Returns:
            The probability of each action, float32 (n, N_ACTIONS), 0 where illegal; and player_0's
            expected results, float32 (n,) in [-1, 1], or None if the agent cannot estimate them.
        """
        probabilities = np.eye(N_ACTIONS, dtype=np.float32)[self.act(boards, states, legal, keys)]
        return probabilities, None

    def prepare(self, boards: Sequence[Board]) -> None:
        """Prepare for games on these boards; by default do nothing."""
        return None


def check_agent(name: str, agent: object) -> None:
    """Raise `TypeError` for an argument that is no `Agent`, naming it and the remedy."""
    if not isinstance(agent, Agent):
        raise TypeError(
            f"{name}: expected an agent, as from agents.make('greedy') or agents.as_agent(object), "
            f"got {repr_short(agent)}"
        )


_BITS: np.dtype[Any] = np.dtype(np.uint64)
_DTYPE_NAMES = {STATE: "STATE", BOARD: "BOARD", _BITS: "uint64"}


def check_agent_arguments(
    boards: Any, states: Any, legal: Any, keys: Any, *, deciding: bool = True
) -> ActArguments:
    """Check the arrays that `Agent.act` and `Agent.judge` take, which kernels cannot do.

    Returns:
        The arguments, copied if they are strided or read-only: kernels would compile again.

    Raises:
        TypeError: for an argument that is no array or has another dtype.
        ValueError: for an array of another shape, or masks that are not those of the states.
    """
    n = len(states) if isinstance(states, np.ndarray) and states.ndim == 1 else -1
    states = _check_array("states", states, STATE, (n,))
    boards = _check_array("boards", boards, BOARD, (1, n))
    legal = _check_array("legal", legal, _BITS, (n,))
    if deciding:
        check_masks(
            boards, np.arange(n) if len(boards) > 1 else np.zeros(n, np.int64), states, legal
        )
        if not legal.all():
            raise ValueError(f"legal: expected actions, got none in position {legal.argmin()}")
    return boards, states, legal, _check_array("keys", keys, _BITS, (n,))


def check_masks(boards: BoardRows, which: Actions, states: States, legal: Legal) -> None:
    """Raise `ValueError` for a mask that is not of its state; `which` are indices of boards."""
    wrong = first_wrong_mask(boards, which, states, legal)
    if wrong != NOT_FOUND:
        raise ValueError(f"legal: expected the actions of states[{wrong}], got {legal[wrong]:#x}")


def _check_array(
    name: str, value: Any, dtype: np.dtype[Any], lengths: tuple[int | None, ...]
) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        expected = f"{name}: expected an array of {_DTYPE_NAMES[dtype]}, got {repr_short(value)}"
        raise TypeError(f"{expected}; for one Game call agent.choose(game)")
    if value.ndim != 1 or len(value) not in lengths:
        shapes = " or ".join(f"({length},)" for length in lengths)
        raise ValueError(f"{name}: expected an array of shape {shapes}, got {value.shape}")
    return value if value.flags.carray else np.require(value, requirements=["C", "A", "W"])
