"""Objects as agents: those with `act` for many games at once, and with `choose` for one game.

`choose` gets a `tokaido_env.Game` at a decision and a `numpy.random.Generator`, and returns the id
or the label of an action. The game is a copy to try actions on; its random numbers are not those of
the match. A match is repeatable if the choice depends on nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import (
    Actions,
    Agent,
    AgentError,
    BoardRows,
    Judgement,
    Keys,
    Legal,
    States,
    check_agent_arguments,
)
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.core.actions import IDS
from tokaido_env.core.arguments import MAX_SEED, repr_short
from tokaido_env.core.state import copy_rows
from tokaido_env.game import Game


class AgentAdapter(Agent):
    """An agent made of an object with a method `act`, with defaults for all that it lacks.

    Args:
        wrapped: the object; its `act` takes and returns the arrays of `Agent.act`.
        spec: name of the agent; by default the object's `spec` or the name of its class.

    Raises:
        AgentError: if the name is not printable or is that of a person.
    """

    def __init__(self, wrapped: Any, spec: str | None = None) -> None:
        self.wrapped = wrapped
        name: Any = spec or getattr(wrapped, "spec", type(wrapped).__name__)
        self.spec = name
        self.games_at_once = getattr(wrapped, "games_at_once", self.games_at_once)
        self.batched = getattr(wrapped, "batched", self.batched)
        if not isinstance(name, str) or not name.isprintable() or name in ("", "human"):
            got = f"{repr_short(name)} in {type(wrapped).__name__}"
            raise AgentError(f"spec: expected a printable name, not 'human', got {got}")

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return the object's action ids, int64 (n,); arguments are those of `Agent.act`."""
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


class PerGameAdapter(AgentAdapter):
    """An agent made of an object with `choose(game, rng)`, which gets one `Game` at a time.

    Arguments and errors are those of `AgentAdapter`. Games are played one after another, since the
    object may remember its last decision for the next one.
    """

    games_at_once = 1
    batched = False

    def __init__(self, wrapped: Any, spec: str | None = None) -> None:
        super().__init__(wrapped, spec)
        self._boards: dict[bytes, Board] = {}

    def prepare(self, boards: Sequence[Board]) -> None:
        """Store the boards of the coming games, and call the object's `prepare`, if it has one."""
        super().prepare(boards)
        self._store(boards)

    def act(self, boards: BoardRows, states: States, legal: Legal, keys: Keys) -> Actions:
        """Return action ids, int64 (n,); arguments and errors are those of `Agent.act`."""
        boards, states, legal, keys = check_agent_arguments(boards, states, legal, keys)
        actions = np.empty(len(states), np.int64)
        for i in range(len(states)):
            board = self._board(boards[i if len(boards) > 1 else 0])
            key = int(keys[i])
            own, seed = copy_rows(states[i : i + 1]), key & MAX_SEED
            game = Game.from_states(board, own, seed, "sampled")
            actions[i] = _action(self.wrapped.choose(game, np.random.default_rng(key)))
        return actions

    def _board(self, record: np.void) -> Board:
        key = record.tobytes()
        if key not in self._boards:
            self._store([Board.load(name) for name in built_in_boards()])
        if key not in self._boards:
            raise AgentError(f"agent {self.spec!r}: unknown board: call prepare([board]) first")
        return self._boards[key]

    def _store(self, boards: Sequence[Board]) -> None:
        self._boards |= {board.record.tobytes(): board for board in boards}


def _action(choice: object) -> int:
    """Return the id of an action that `choose` returned; do not check that it is legal."""
    if isinstance(choice, str) and choice in IDS:
        return IDS[choice]
    if not isinstance(choice, str | bool):
        try:
            return operator.index(choice)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise ValueError(f"choose: expected the id or the label of an action, got {repr_short(choice)}")
