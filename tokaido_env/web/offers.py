"""The players and boards that clients of a live game may choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents.registry import policy_path_of, runs_user_code
from tokaido_env.boards.board import Board, built_in_boards
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.boards.procedural import is_family
from tokaido_env.core.arguments import repr_short, str_short
from tokaido_env.record import Record
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.opponents import opponents


class Offers:
    """The players and boards of the first game, and those that need no file and run no other code.

    Args:
        session: the first game.

    Attributes:
        opponents: those of `opponents()` without agents that share a name with one of the game.
        boards: the names of boards, apart from those of the family.
    """

    def __init__(self, session: Session) -> None:
        board = session.game.board
        self._board = board
        self._objects: dict[str, str | Agent] = {
            a.spec: a for a in session.agents if a and not a.source
        }
        self.opponents = [one for one in opponents() if one["spec"] not in self._objects]
        self.boards = list(dict.fromkeys([*built_in_boards(), board.name]))
        self._names = {HUMAN, *session.seats}

    def players(self, seats: Sequence[Any]) -> list[str | Agent]:
        """Return the agents, or "human", with these names, for `Session`.

        Raises:
            ValueError: if one is not offered.
        """
        for seat in seats:
            if not self._is_offered(seat):
                shown = str_short(str(seat))
                raise ValueError(
                    f"seats: this page does not offer {shown}: start tokaido play with --opponent "
                    f"{shown}, or play both seats"
                )
        return [self._objects.get(name, name) for name in seats]

    def board(self, name: Any) -> BoardPool | Board:
        """Return a board by name.

        Raises:
            ValueError: if it is not offered.
        """
        if name == self._board.name:
            return self._board
        if not isinstance(name, str) or not (name in built_in_boards() or is_family(name)):
            raise ValueError(
                f"board: expected {', '.join(built_in_boards())} or family:NUMBER, got "
                f"{repr_short(name)}: start tokaido play with --board to use a board file"
            )
        return BoardPool.load(name)

    def missing(self, record: Record) -> list[str]:
        """Return the players of a record that are not offered and run a file or other code."""
        return [name for name in record.players if not self._is_offered(name)]

    def recorded(self, record: Record, *, plays_both: bool) -> Session:
        """Return the game of a record.

        Args:
            record: of a game.
            plays_both: whether a person plays both seats; the players keep their names.

        Raises:
            ValueError: for a wrong record, or one with a player that is not offered.
        """
        board = self._board if record.board == self._board.name else None
        if plays_both:
            return Session.from_record(record, (HUMAN, HUMAN), board, record.players)
        return Session.from_record(record, self.players(record.players), board)

    def _is_offered(self, spec: Any) -> bool:
        """Return whether a player is of the first game, or needs no file and runs no other code."""
        if not isinstance(spec, str) or spec in self._names:
            return isinstance(spec, str)
        try:
            return policy_path_of(spec) is None and not runs_user_code(spec)
        except AgentError:
            return False
