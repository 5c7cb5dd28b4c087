"""A game between people and agents, with undo, advice and records.

    session = Session(("human", "champion:sims=64"), seed=7)
    session.play("merchant:C3")
    while session.waits_for == "agent":
        session.play_agent_move()

Pages, widgets and terminals show sessions. Undoing a decision and repeating it brings the same
chance outcomes. A session can be saved as records at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from tokaido_env.agent import Agent
from tokaido_env.agents.registry import as_agent, as_agents
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.arguments import Chance, IllegalMove, check_seed
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.rng import agent_keys, arena_seed, entropy_seed
from tokaido_env.core.state import copy_rows
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
from tokaido_env.study.review import CHANCE_SAMPLES, interval_half_width, values_after_actions
from tokaido_env.trajectory import Trajectory

HUMAN = "human"
"""Used in place of an agent spec: a person decides."""

WaitsFor = Literal["human", "agent", "chance", "nobody"]


class MoveSuggestion(NamedTuple):
    """An action that an agent suggests.

    Attributes:
        label: of the action.
        preference: the agent's policy probability for the action, 0 to 1.
        win_probability: of the player to move after the action, ties counted half, estimated over
            chance samples that all suggestions share; None if the agent gives no values.
        error: half the width of the 95 % interval; None if the agent gives no values.
    """

    label: str
    preference: float
    win_probability: float | None
    error: float | None

    def describe(self) -> str:
        """Return the suggestion as a line of text."""
        wins = ""
        if self.win_probability is not None and self.error is not None:
            wins = f"wins {100 * self.win_probability:.1f} % ± {100 * self.error:.1f} %, "
        return f"{self.label}: {wins}preference {100 * self.preference:.0f} %"


class Advice(NamedTuple):
    """An agent's advice about a position.

    Attributes:
        moves: the suggestions, best first.
        win_probability: that of the first suggestion, for the player to move.
    """

    moves: list[MoveSuggestion]
    win_probability: float | None


class _UndoPoint(NamedTuple):
    """A state to undo to; `abandoned` is the record of a game left by `set_position`."""

    game: Game
    scenes: list[Scene]
    log: list[LogEntry]
    resigned: int | None
    abandoned: Record | None = None


class Session(CopiedWhole):
    """A game, its players and its undo history.

    Args:
        seats: for each player `HUMAN`, an agent or the spec of an agent.
        board: as for `Game`.
        seed: of chance, as for `Game`; agents derive their random keys from it too.
        chance: "sampled", or "explicit" if people enter rolls and draws.

    Attributes:
        game: the current game; play through the session, not through the game.
        agents: of the players, None for a person.
        names: the players' names in records.
        scenes: the position before each event, and the current position.
        log: the events as text.
        resigned: the player who resigned, or None.
        earlier_records: records of earlier games, saved together with this one.
    """

    game: Game
    scenes: list[Scene]
    log: list[LogEntry]
    resigned: int | None
    earlier_records: Sequence[Record] = ()

    def __init__(
        self,
        seats: Sequence[str | Agent] = (HUMAN, "champion"),
        board: Boards = "shikoku",
        seed: int | None = None,
        chance: Chance = "sampled",
    ) -> None:
        if len(seats) != 2:
            raise ValueError(f"seats: expected two, got {len(seats)}")
        agents = iter(as_agents(*(seat for seat in seats if seat != HUMAN)))
        self.agents = [None if seat == HUMAN else next(agents) for seat in seats]
        self.names = tuple(HUMAN if agent is None else agent.spec for agent in self.agents)
        self._start(board, seed, chance)

    @classmethod
    def from_record(
        cls, record: Record, seats: Sequence[str | Agent], board: Boards | None = None
    ) -> Session:
        """Return a session that resumes a game where its record ends.

        Args:
            record: verified as by `record.load`.
            seats: as for a session.
            board: as for `record.load`.

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
        session = cls(seats, played.board, record.seed, chance)
        events = [event for event in record.events if record.seed is None or event in IDS]
        if record.start is not None:
            session._set_game(session._game_from(record.start))
        for event in events:
            if session.waits_for == "agent":
                session.apply(event)
            else:
                session.play(event)
        if resigned:
            session.resign()
        return session

    def restart(
        self, board: Boards | None = None, seed: int | None = None, chance: Chance | None = None
    ) -> None:
        """Start a new game with the same players.

        Args:
            board: as for a session; None keeps the current one.
            seed: of chance; None takes one from the operating system.
            chance: as for a session; None keeps the current one.
        """
        self.earlier_records = self.records_to_keep()
        board = self.game.board if board is None else board
        self._start(board, seed, chance or self.game.chance)

    def _start(self, board: Boards, seed: int | None, chance: Chance) -> None:
        self._seed = entropy_seed() if seed is None else check_seed(seed)
        self._undo_points: list[_UndoPoint] = []  # before each input of a person
        self._set_game(Game(board, self._seed, chance))

    def _game_from(self, position: Mapping[str, Any]) -> Game:
        """Return a game that starts from a position, with this game's board and kind of chance."""
        game = self.game
        return Game.from_dict(position, board=game.board, seed=self._seed, chance=game.chance)

    def _set_game(self, game: Game) -> None:
        self.game, self.resigned = game, None
        for agent in filter(None, self.agents):
            agent.prepare([game.board])
        self.scenes, self.log = [], []
        self._extend_log(game.trajectory())

    def _extend_log(self, played: Trajectory) -> None:
        """Add the new events and the positions after them; on the first call also the start."""
        rows = np.arange(len(played.states)) >= min(len(self.scenes), 1)
        last = self.scenes[-1].last if self.scenes else ()
        names = display_names(self.names)
        self.scenes += scenes_of(played.board, played.states, played.events, rows, names, last=last)
        self.log += log_entries(self.scenes[len(self.log) :], played.labels())

    @property
    def humans(self) -> list[int]:
        """The seats of people."""
        return [seat for seat, agent in enumerate(self.agents) if agent is None]

    @property
    def waits_for(self) -> WaitsFor:
        """Who acts next; "chance" only if people enter rolls and draws."""
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
        legal = self.game.legal_mask
        return legal > 0 and legal & (legal - 1) == 0

    def play(self, move: str) -> None:
        """Play a person's decision or, with explicit chance, an outcome, by label.

        Raises:
            IllegalMove: if it is illegal or it is an agent's turn; the session is unchanged then.
        """
        if self.waits_for == "agent":
            raise IllegalMove(f"cannot play: it is {self.names[self.game.player or 0]}'s turn")
        chosen = self.waits_for == "chance" or not self.is_forced
        before = self._undo_point()
        self.apply(move)
        if chosen:
            self._undo_points.append(before)

    def _undo_point(self, abandoned: Record | None = None) -> _UndoPoint:
        game = self.game.copy("same")
        return _UndoPoint(game, [*self.scenes], [*self.log], self.resigned, abandoned)

    def play_agent_move(self) -> str:
        """Let the agent to move decide and play; return the label of its action.

        Raises:
            IllegalMove: if no agent is to move.
        """
        label = self.agent_task()()
        self.apply(label)
        return label

    def agent_task(self) -> Callable[[], str]:
        """Return a function that returns the label of the agent's decision, without playing it.

        The function does not read the session, so another thread may call it.

        Raises:
            IllegalMove: if no agent is to move.
        """
        agent = None if self.game.player is None else self.agents[self.game.player]
        if agent is None:
            raise IllegalMove("cannot play for an agent: no agent is to move")
        position = self.game.boards, self.game.state, *self._legal_and_keys()
        return lambda: LABELS[int(agent.act(*position)[0])]

    def apply(self, label: str) -> None:
        """Play an action or a chance outcome without an undo point, as for an agent's decision."""
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
        self._undo_points.append(self._undo_point())
        self.resigned = self.game.player

    def set_position(self, position: Mapping[str, Any]) -> None:
        """Continue from another position; `undo` returns to the current game.

        Args:
            position: as `Game.to_dict` returns it, on the board of the game.

        Raises:
            PositionError: if no game can reach it; the session is unchanged then.
        """
        game = self._game_from(position)
        self._undo_points.append(self._undo_point(self.record()))
        self._set_game(game)

    def undo(self) -> bool:
        """Undo the last input of a person and all later events; return whether there was one."""
        if not self._undo_points:
            return False
        self.game, self.scenes, self.log, self.resigned, _ = self._undo_points.pop()
        return True

    def advice_task(self, agent: str | Agent, most: int = 3) -> Callable[[], Advice]:
        """Return a function that returns an agent's advice for the player to move.

        Another thread may call it.

        Args:
            agent: an agent or its spec.
            most: the maximum number of suggestions.

        Raises:
            IllegalMove: if no player is to move.
        """
        game, player, legal = self.game, self.game.player, self.game.legal_actions()
        if player is None:
            raise IllegalMove("cannot advise: no player is to move")
        state, inputs = game.state, self._legal_and_keys()

        def advice() -> Advice:
            judge = as_agent(agent)
            judge.prepare([game.board])
            preferences, values = judge.judge(game.boards, state, *inputs)
            best = sorted(legal, key=lambda action: -preferences[0, action])[:most]
            means: list[float | None] = [None] * len(best)
            errors = means
            if values is not None:
                samples = sampled_wins(judge, game.board, state, best, int(inputs[1][0]))
                means, errors = samples.mean(axis=1).tolist(), interval_half_width(samples).tolist()
            moves = [
                MoveSuggestion(LABELS[action], float(preferences[0, action]), mean, error)
                for action, mean, error in zip(best, means, errors, strict=True)
            ]
            return Advice(moves, means[0])

        return advice

    def check_task(self, agent: str | Agent, label: str) -> Callable[[], dict[str, Any]]:
        """Return a function that compares a legal action with an agent's choice.

        Another thread may call it. It returns `label`, the agent's choice `best`, and the `loss` of
        win probability over shared chance samples with its 95 % interval, ± `error`.
        """
        board, state, inputs = self.game.board, self.game.state, self._legal_and_keys()

        def objection() -> dict[str, Any]:
            judge = as_agent(agent)
            judge.prepare([board])
            best = int(judge.judge(board.record, state, *inputs)[0][0].argmax())
            wins = sampled_wins(judge, board, state, [best, IDS[label]], int(inputs[1][0]))
            loss, error = (
                float((wins[0] - wins[1]).mean()),
                interval_half_width(wins[:1] - wins[1:]),
            )
            return {"label": label, "best": LABELS[best], "loss": loss, "error": float(error[0])}

        return objection

    # Text and records

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

    def records(self) -> list[Record]:
        """Return the records of earlier games, of games left by `set_position`, and of this one."""
        abandoned = (p.abandoned for p in self._undo_points if p.abandoned is not None)
        return [*self.earlier_records, *abandoned, self.record()]

    def records_to_keep(self) -> Sequence[Record]:
        """Return the records to keep in a next game: this game's only if it has decisions."""
        return self.records() if self.decisions else self.earlier_records

    def _legal_and_keys(self) -> tuple[np.ndarray, np.ndarray]:
        """Return legal bits and random keys for an agent, uint64 (1,) each."""
        seats, keys = np.array([self.game.player], np.int8), np.empty(1, np.uint64)
        agent_keys(np.array([self._seed]), seats, np.array([self.decisions]), keys)
        return np.array([self.game.legal_mask], np.uint64), keys


def sampled_wins(judge: Agent, board: Board, state: Any, actions: Sequence[int], key: int) -> Any:
    """Return the mover's win probabilities after actions, float64 (actions, chance samples).

    Args:
        judge: an agent that gives values.
        board: of the position.
        state: `STATE` (1,), at a decision.
        actions: legal there; all share the samples of chance.
        key: of the samples.
    """
    seeds = [arena_seed(key >> 2, draw) for draw in range(CHANCE_SAMPLES)]
    states = copy_rows(state, np.zeros(len(actions), np.int64))
    shared = np.tile(np.array(seeds, np.int64), (len(actions), 1))
    values = values_after_actions(judge, board, states, np.array(actions, np.int64), shared)
    return (1 + (1 - 2 * int(state["player"][0])) * values) / 2
