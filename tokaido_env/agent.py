"""What an agent is: what decides in many games at once, and what others may know of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.bots import NO_BOT


class AgentError(ValueError):
    """A spec string that makes no agent, or what is none: the message says what was expected."""


Judgement = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | None]


@runtime_checkable
class Agent(Protocol):
    """Chooses actions for many games at once.

    What inherits from it needs `spec` and `act` only.
    """

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

    def act(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.int64]:
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

    def judge(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> Judgement:
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


class Given(Agent):
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

    def act(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        actions: npt.NDArray[np.int64] = self.player.act(boards, states, legal, keys)
        return actions

    def judge(
        self,
        boards: npt.NDArray[np.void],
        states: npt.NDArray[np.void],
        legal: npt.NDArray[np.uint64],
        keys: npt.NDArray[np.uint64],
    ) -> Judgement:
        """Return what the object thinks or, if it cannot tell, what it would do: `Agent.judge`."""
        tells = getattr(self.player, "judge", super().judge)
        judgement: Judgement = tells(boards, states, legal, keys)
        return judgement


def as_agent(agent: object) -> Agent:
    """Return the agent of a spec string, an agent as it is, or a `Given` of an object with `act`.

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
            f"got {agent!r}"
        )
    return Given(agent)
