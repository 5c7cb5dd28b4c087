"""A game between people and agents, with undo, advice and records.

    session = Session(("human", "champion:sims=64"), seed=7)
    session.play("merchant:C3")
    while session.waits_for == "agent":
        session.play_agent_move()

Pages, widgets and terminals show sessions. Undoing a decision and repeating it brings the same
chance outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.agents.exec_agent import ProgramAgent
from tokaido_env.agents.registry import as_agent, as_agents
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.arguments import Chance, IllegalMove, check_seed
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.rng import agent_keys, entropy_seed
from tokaido_env.game import Game
from tokaido_env.record import (
    FORFEIT,
    RESIGNED,
    Forfeit,
    Record,
    RecordError,
    check_outcomes_of_seed,
    replay,
)
from tokaido_env.render.narration import LogEntry, display_names, log_entries
from tokaido_env.render.scene import Scene, scenes_of, status_text
from tokaido_env.study.review import Review, review_parts
from tokaido_env.trajectory import Trajectory
from tokaido_env.web.advice import MoveSuggestion, advice_on

HUMAN = "human"
"""Used in place of an agent spec: a person decides."""

WaitsFor = Literal["human", "agent", "chance", "nobody"]


class Session(CopiedWhole):
    """A game, its players and its undo history.

    Args:
        seats: for each player `HUMAN`, an agent or the spec of an agent.
        board: a name, a path, a `Board`, or a pool from which the seed draws.
        seed: an integer from 0, of chance and of agents' random keys; None: of the system.
        chance: "sampled", or "explicit" if people enter rolls and draws.
        names: of the players in records, by default those of the agents.
        start: a position to start from, as from `Game.to_dict`; None: the set-up.

    Attributes:
        game: the current game; play through the session, not through the game.
        agents: of the players, None for a person.
        names: the players' names in records.
        scenes: the position before each event, and the current position.
        log: the events as text.
        resigned: the player who resigned, or None.

    Raises:
        ValueError: unless there are two seats; otherwise as `Game` and `agents.make`.
    """

    def __init__(
        self,
        seats: Sequence[str | Agent] = (HUMAN, "champion"),
        board: Boards = "shikoku",
        seed: int | None = None,
        chance: Chance = "sampled",
        names: Sequence[str] | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> None:
        if len(seats) != 2:
            raise ValueError(f"seats: expected two, got {len(seats)}")
        agents = iter(as_agents(*(seat for seat in seats if seat != HUMAN)))
        self.agents = [None if seat == HUMAN else next(agents) for seat in seats]
        self.names = tuple(self.seats if names is None else names)
        self._seed = entropy_seed() if seed is None else check_seed(seed)
        if start is None:
            self.game = Game(board, self._seed, chance)
        else:
            self.game = Game.from_dict(start, board=board, seed=self._seed, chance=chance)
        for agent in filter(None, self.agents):
            agent.prepare([self.game.board])
        self.resigned: int | None = None
        self._undo_points: list[Game] = []  # before each input of a person
        self.scenes: list[Scene] = []
        self.log: list[LogEntry] = []
        self._extend_log(self.game.trajectory())

    @classmethod
    def from_record(
        cls,
        record: Record,
        seats: Sequence[str | Agent],
        board: Boards | None = None,
        names: Sequence[str] | None = None,
    ) -> Session:
        """Return a session that resumes a game where its record ends.

        Args:
            record: verified as by `record.load`.
            seats: for each player `HUMAN`, an agent or the spec of an agent.
            board: the game's board, required if it is neither built in nor of the family.
            names: of the players in records; by default those of the agents.

        Raises:
            RecordError: if an event or the result of the record is wrong, or a player has forfeited
                the game.
        """
        resigned = record.forfeit is not None and record.forfeit.reason == RESIGNED
        if record.forfeit is not None and not resigned:
            lost = record.forfeit.describe(record.players)
            raise RecordError(f"cannot resume the game, it is over: {lost}")
        played = replay(record, board)
        check_outcomes_of_seed(record, played)
        chance: Chance = "explicit" if record.seed is None else "sampled"
        session = cls(seats, played.board, record.seed, chance, names, record.start)
        for event in record.events:
            if chance == "explicit" or event in IDS:  # sampled chance follows from the seed
                play = session.apply if session.waits_for == "agent" else session.play
                play(event)
        if resigned:
            session.resign()
        return session

    def close(self) -> None:
        """End the programs of its agents (`exec:`), also while they decide."""
        for agent in self.agents:
            if isinstance(agent, ProgramAgent):
                agent.wrapped.process.end()

    def _extend_log(self, played: Trajectory) -> None:
        """Add the new events and the positions after them; on the first call also the start."""
        rows = np.arange(len(played.states)) >= min(len(self.scenes), 1)
        last = self.scenes[-1].last if self.scenes else ()
        names = display_names(self.names)
        self.scenes += scenes_of(played.board, played.states, played.events, rows, names, last=last)
        self.log += log_entries(self.scenes[len(self.log) :], played.labels())

    @property
    def seats(self) -> list[str]:
        """For each player `HUMAN` or the spec of its agent."""
        return [HUMAN if agent is None else agent.spec for agent in self.agents]

    @property
    def humans(self) -> list[int]:
        """The seats of people."""
        return [seat for seat, agent in enumerate(self.agents) if agent is None]

    @property
    def waits_for(self) -> WaitsFor:
        """Who acts next: "human", "agent", "nobody", or "chance" if people enter rolls."""
        if self.game.is_over or self.resigned is not None:
            return "nobody"
        if self.game.player is None:
            return "chance"
        return "human" if self.agents[self.game.player] is None else "agent"

    @property
    def can_undo(self) -> bool:
        """Whether there is an input of a person to undo."""
        return bool(self._undo_points)

    @property
    def decisions(self) -> int:
        """The number of decisions made in this game, by people and agents."""
        return sum(entry.event in IDS for entry in self.log)

    @property
    def is_forced(self) -> bool:
        """Whether the player to move has only one legal action."""
        return self.game.legal_mask.bit_count() == 1

    def play(self, move: str) -> None:
        """Play a person's decision or, with explicit chance, an outcome, by label.

        Raises:
            IllegalMove: if it is illegal or it is an agent's turn; the session is unchanged then.
        """
        if self.waits_for == "agent" or self.resigned is not None:
            raise IllegalMove(f"cannot play: {self.status_text()}")
        chosen, before = self.waits_for == "chance" or not self.is_forced, self.game.copy("same")
        self.apply(move)
        if chosen:
            self._undo_points.append(before)

    def play_agent_move(self) -> str:
        """Let the agent to move decide and play; return the label of its action.

        Raises:
            IllegalMove: if no agent is to move, or its answer is illegal.
        """
        label = self.agent_task()()
        self.apply(label)
        return label

    def agent_task(self) -> Callable[[], str]:
        """Return a function that returns the label of the agent's decision, without playing it.

        The function does not read the session, so another thread may call it. It raises
        `IllegalMove` for an illegal answer.

        Raises:
            IllegalMove: if no agent is to move.
        """
        agent = None if self.game.player is None else self.agents[self.game.player]
        if agent is None:
            raise IllegalMove("cannot play for an agent: no agent is to move")
        mask, legal = np.array([self.game.legal_mask], np.uint64), self.game.legal_actions()
        position = self.game.boards, self.game.state, mask, self._keys()

        def decide() -> str:
            action = int(agent.act(*position)[0])
            if action in legal:
                return LABELS[action]
            answer = LABELS[action] if 0 <= action < len(LABELS) else f"the action {action}"
            raise IllegalMove(f"{agent.spec} answered {answer}, which is illegal here")

        return decide

    def apply(self, label: str) -> None:
        """Play an action or a chance outcome by label, without making an undo point."""
        before = self.game.copy("same")
        self.game.play(label)
        self._extend_log(self.game.trajectory(before))

    def resign(self) -> None:
        """Resign for the person to move; the other player wins.

        Raises:
            IllegalMove: if no person is to move.
        """
        if self.waits_for != "human":
            raise IllegalMove("cannot resign: no human player is to move")
        self._undo_points.append(self.game.copy("same"))
        self.resigned = self.game.player

    def undo(self) -> bool:
        """Undo the last input of a person and all later events; return whether there was one."""
        if not self._undo_points:
            return False
        self.game, self.resigned = self._undo_points.pop(), None
        events = len(self.game.events())
        del self.log[events:], self.scenes[events + 1 :]
        return True

    def advice_task(self, agent: str | Agent) -> Callable[[], list[MoveSuggestion]]:
        """Return a function that returns an agent's advice, the best move first.

        Another thread may call it.

        Raises:
            IllegalMove: if no player is to move.
        """
        if self.game.player is None:
            raise IllegalMove("cannot advise: no player is to move")
        position, keys = self.game.copy("same"), self._keys()
        return lambda: advice_on(position, as_agent(agent), keys)

    def review_task(self, agent: str | Agent) -> Callable[[], Iterator[Review]]:
        """Return a function that yields an agent's review of the game so far, as it grows.

        Another thread may call it. A spec that names no agent raises there, as `agents.make` does.
        """
        played, resigned = replay(self.record(), self.game.board), self.resigned

        def reviews() -> Iterator[Review]:
            for found in review_parts(played, as_agent(agent), as_agent("champion")):
                yield found if resigned is None else found.with_forfeit(resigned)

        return reviews

    # Text and record

    def status_text(self) -> str:
        """Return as text what happens next, or how the game ended."""
        scene = self.scenes[-1]
        if self.resigned is None:
            return status_text(scene)
        return f"{scene.names[self.resigned]} resigns: {scene.names[1 - self.resigned]} wins"

    def record(self) -> Record:
        """Return the record of the game so far."""
        record = self.game.record(self.names)
        if self.resigned is None:
            return record
        forfeit = Forfeit(self.resigned, RESIGNED)
        return replace(record, winner=1 - self.resigned, end=FORFEIT, forfeit=forfeit)

    def _keys(self) -> np.ndarray:
        """Return the random key of the player to decide, uint64 (1,)."""
        seats, keys = np.array([self.game.player], np.int8), np.empty(1, np.uint64)
        agent_keys(np.array([self._seed]), seats, np.array([self.decisions]), keys)
        return keys
