"""A game that people play, with agents in some seats: what pages, widgets and terminals show.

    session = Session(("human", "champion:sims=64"), seed=7)
    session.play("merchant:C3")
    while session.waits_for == "agent":
        session.reply()

The session keeps the game from before each choice, so that anything can be taken back: undoing and
deciding the same again meets the same luck. Each event is described once, when it happens. A
session is saved as records, whether its game is over or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from tokaido_env.agent import Agent, as_agent
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.actions import IDS, LABELS
from tokaido_env.core.arguments import Chance, IllegalMove
from tokaido_env.core.rng import agent_keys, arena_seed, entropy_seed
from tokaido_env.core.serialization import state_to_dict
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
from tokaido_env.render.narration import Happened, happened_between, shown_names, tell
from tokaido_env.render.scene import Scene, scenes_of, state_after, story_of
from tokaido_env.study.review import DRAWS, expected_behind, half_width
from tokaido_env.trajectory import Trajectory

HUMAN = "human"
"""In the place of a spec: a person decides."""

Waits = Literal["human", "agent", "chance", "nobody"]


class Liked(NamedTuple):
    """An action that an agent likes.

    Attributes:
        label: of the action.
        share: that the agent gives it, 0 to 1.
        wins: the probability that who decides wins after it, ties counted half, as the agent
            holds behind draws of chance that all actions share; None if it cannot tell.
        error: half the width of its 95 % interval; None if it cannot tell.
    """

    label: str
    share: float
    wins: float | None
    error: float | None

    def words(self) -> str:
        """Return it as a line."""
        sure = "" if self.wins is None else f"wins {self.wins:.1%} ± {self.error:.1%}, "
        return f"{self.label}: {sure}{self.share:.0%} of the choice"


class Advice(NamedTuple):
    """What an agent says of a position.

    Attributes:
        moves: that it likes best, the best first.
        wins: the probability that who decides wins, ties counted half; None if it cannot tell.
    """

    moves: list[Liked]
    wins: float | None


class _Moment(NamedTuple):
    """A state to undo to; with a record of the game if it was left for another position."""

    game: Game
    scenes: list[Scene]
    happened: list[Happened]
    resigned: int | None
    left: Record | None = None


class Session:
    """A game, who plays it, and all that can be taken back.

    Args:
        seats: of each player `HUMAN`, or an agent or the spec of one.
        board: as for `Game`.
        seed: of the luck, as for `Game`; agents draw theirs from it too.
        chance: "sampled", or "explicit" for luck that people bring, as at a table.

    Attributes:
        game: as it stands. Play through the session.
        names: what records call the players.
        scenes: the position before each event, and the current one.
        happened: the events, in words.
        resigned: who has given the game up, None: nobody.
        earlier: records of games before this one, to keep with it.
    """

    game: Game
    scenes: list[Scene]
    happened: list[Happened]
    resigned: int | None
    earlier: Sequence[Record] = ()

    def __init__(
        self,
        seats: Sequence[str | Agent] = (HUMAN, "champion"),
        board: Boards = "shikoku",
        seed: int | None = None,
        chance: Chance = "sampled",
    ) -> None:
        if len(seats) != 2:
            raise ValueError(f"seats: expected two, got {len(seats)}")
        self._agents = [None if seat == HUMAN else as_agent(seat) for seat in seats]
        self.names = tuple(HUMAN if agent is None else agent.spec for agent in self._agents)
        self._begin_anew(board, seed, chance)

    @classmethod
    def resumed(
        cls, record: Record, seats: Sequence[str | Agent], board: Boards | None = None
    ) -> Session:
        """Go on with a game where a record of it ends.

        Args:
            record: verified as `record.load` does.
            seats: as for a session.
            board: as for `record.load`.

        Raises:
            RecordError: if the record is not true, or a player has lost the game by forfeit.
        """
        resigned = record.forfeit is not None and record.forfeit.reason == RESIGNED
        if record.forfeit is not None and not resigned:
            lost = record.forfeit.describe(record.players)
            raise RecordError(f"expected a game to go on with, this one is over: {lost}")
        played = replay(record, board)
        check_outcomes_of_seed(record, played)
        chance: Chance = "explicit" if record.seed is None else "sampled"
        session = cls(seats, played.board, record.seed, chance)
        events = [one for one in record.events if record.seed is None or one in IDS]
        if record.start is not None:
            session._begin(session._game_from(record.start))
        for event in events:
            if session.waits_for == "agent":
                session.play_for_agent(event)
            else:
                session.play(event)
        if resigned:
            session.resign()
        return session

    def restart(
        self, board: Boards | None = None, seed: int | None = None, chance: Chance | None = None
    ) -> None:
        """Begin anew with the same players: on the same board unless another is given.

        Args:
            board, chance: as for a session; None: as before.
            seed: of the new luck; None takes one from the operating system.
        """
        self.earlier = self.kept()
        board = self.game.board if board is None else board
        self._begin_anew(board, seed, chance or self.game.chance)

    def _begin_anew(self, board: Boards, seed: int | None, chance: Chance) -> None:
        self._seed = entropy_seed() if seed is None else seed
        self._past: list[_Moment] = []  # before what people chose, or told of chance
        self._begin(Game(board, self._seed, chance))

    def _game_from(self, position: Mapping[str, Any]) -> Game:
        """Return a game from a position on the board of this one, with its kind of chance."""
        game = self.game
        return Game.from_dict(position, board=game.board, seed=self._seed, chance=game.chance)

    def _begin(self, game: Game) -> None:
        self.game, self.resigned = game, None
        self.scenes, self.happened = [], []
        self._note(game.trajectory())

    def _note(self, played: Trajectory) -> None:
        """Describe the newest events and the positions after them, at first also the start."""
        rows = np.arange(len(played.states)) >= min(len(self.scenes), 1)
        last = self.scenes[-1].last if self.scenes else None
        names = shown_names(self.names)
        self.scenes += scenes_of(played.board, played.states, played.events, rows, names, last=last)
        newest = self.scenes[len(self.happened) :]
        self.happened += happened_between(newest, played.labels())

    @property
    def waits_for(self) -> Waits:
        """Who is to go on: a person, an agent, whoever tells what chance brought, or nobody."""
        if self.game.is_over or self.resigned is not None:
            return "nobody"
        if self.game.player is None:
            return "chance"
        return "human" if self._agents[self.game.player] is None else "agent"

    @property
    def can_undo(self) -> bool:
        """Whether a person has done anything that can be taken back."""
        return bool(self._past)

    @property
    def decisions(self) -> int:
        """How many decisions were made, whoever made them."""
        return sum(each.event in IDS for each in self.happened)

    @property
    def is_forced(self) -> bool:
        """Whether who decides has no choice."""
        legal = self.game.legal_mask
        return legal > 0 and legal & (legal - 1) == 0

    def play(self, move: str) -> None:
        """Play a person's decision or, with explicit chance, an outcome, by label.

        Raises:
            IllegalMove: if it is not on offer, or an agent is to decide; nothing has changed then.
        """
        if self.waits_for == "agent":
            raise IllegalMove(f"expected nothing: {self.names[self.game.player or 0]} is to decide")
        chosen = self.waits_for == "chance" or not self.is_forced
        before = self._moment()
        self.play_for_agent(move)
        if chosen:
            self._past.append(before)

    def _moment(self, left: Record | None = None) -> _Moment:
        game = self.game.copy("same")
        return _Moment(game, [*self.scenes], [*self.happened], self.resigned, left)

    def reply(self) -> str:
        """Let the agent whose decision it is decide; return the label of its action.

        Raises:
            IllegalMove: if no agent is to decide.
        """
        label = self.deciding()()
        self.play_for_agent(label)
        return label

    def deciding(self) -> Callable[[], str]:
        """Return what lets the agent whose decision it is decide, without a look at the session.

        Another thread may call it: it returns the label of the action, which is not played yet.

        Raises:
            IllegalMove: if no agent is to decide.
        """
        agent = None if self.game.player is None else self._agents[self.game.player]
        if agent is None:
            raise IllegalMove("expected a decision: no agent is to decide")
        asked = self.game.boards, self.game.state, *self._asked()
        return lambda: LABELS[int(agent.act(*asked)[0])]

    def play_for_agent(self, label: str) -> None:
        """Play what the agent whose decision it is has decided."""
        before = self.game.copy("same")
        self.game.play(label)
        self._note(self.game.trajectory(before))

    def resign(self) -> None:
        """Let the person whose decision it is give the game up: the other player has won it.

        Raises:
            IllegalMove: if no person is to decide.
        """
        if self.waits_for != "human":
            raise IllegalMove("expected a decision of a person: who resigns is to decide")
        self._past.append(self._moment())
        self.resigned = self.game.player

    def put(self, position: Mapping[str, Any]) -> None:
        """Go on from another position, for the table differs; `undo` leads back to this game.

        Args:
            position: as `Game.to_dict` gives it, on the board of the game.

        Raises:
            PositionError: if no game can reach it; nothing has changed then.
        """
        game = self._game_from(position)
        self._past.append(self._moment(self.record()))
        self._begin(game)

    def undo(self) -> bool:
        """Take back what a person chose or told last and all since; tell whether there was any."""
        if not self._past:
            return False
        self.game, self.scenes, self.happened, self.resigned, _ = self._past.pop()
        return True

    def advise(self, agent: str | Agent, most: int = 3) -> Advice:
        """Ask an agent what it would do for who decides now.

        Args:
            agent: or its spec.
            most: moves that it names.

        Raises:
            IllegalMove: if nobody is to decide.
        """
        return self.advising(agent, most)()

    def advising(self, agent: str | Agent, most: int = 3) -> Callable[[], Advice]:
        """Return what advises, as `advise`, without a look at the session: for another thread.

        Raises:
            IllegalMove: if nobody is to decide.
        """
        game, player, legal = self.game, self.game.player, self.game.legal_actions()
        if player is None:
            raise IllegalMove("nobody is to decide: advice is for decisions")
        state, asked = game.state, self._asked()

        def wins(values: Any) -> Any:
            return (1 + (1 - 2 * player) * values) / 2

        def advice() -> Advice:
            judge = as_agent(agent)
            shares, values = judge.judge(game.boards, state, *asked)
            liked = sorted(legal, key=lambda action: -shares[0, action])[:most]
            means: list[float | None] = [None] * len(liked)
            errors = means
            if values is not None:
                behind = wins(_behind(judge, game.board, state, liked, int(asked[1][0])))
                means, errors = behind.mean(axis=1).tolist(), half_width(behind).tolist()
            moves = [
                Liked(LABELS[one], float(shares[0, one]), mean, error)
                for one, mean, error in zip(liked, means, errors, strict=True)
            ]
            return Advice(moves, None if values is None else float(wins(values[0])))

        return advice

    # In words

    def story(self) -> str:
        """Return in words what is to happen next, or how the game has ended."""
        scene = self.scenes[-1]
        if self.resigned is None:
            return story_of(scene)
        return f"{scene.names[self.resigned]} resigns: {scene.names[1 - self.resigned]} wins"

    def meaning(self, label: str) -> str:
        """Return in words what a legal action would do, before chance has its say."""
        board, before = self.game.board, replace(self.scenes[-1], names=("", ""))
        (row,) = state_after(board, self.game.states, IDS[label])
        after = replace(before, position=state_to_dict(board.name, board.record[0], row))
        return tell(before, label, after).strip()

    def record(self) -> Record:
        """Return all that has happened, to save and to go on from."""
        record = self.game.record(self.names)
        if self.resigned is None:
            return record
        given_up = Forfeit(self.resigned, RESIGNED)
        return replace(record, winner=1 - self.resigned, end=FORFEIT, forfeit=given_up)

    def records(self) -> list[Record]:
        """Return the records of earlier games, of those left for another position, and of this."""
        left = (moment.left for moment in self._past if moment.left is not None)
        return [*self.earlier, *left, self.record()]

    def kept(self) -> Sequence[Record]:
        """Return the records to keep when this game is left: its own if it has decisions."""
        return self.records() if self.decisions else self.earlier

    def _asked(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what is legal, and bits of its own for this decision."""
        seats, keys = np.array([self.game.player], np.int8), np.empty(1, np.uint64)
        agent_keys(np.array([self._seed]), seats, np.array([self.decisions]), keys)
        return np.array([self.game.legal_mask], np.uint64), keys


def _behind(judge: Agent, board: Board, state: Any, actions: list[int], key: int) -> Any:
    """Return what results player_0 can expect behind actions of a position, float64 (k, draws)."""
    seeds = [arena_seed(key >> 2, draw) for draw in range(DRAWS)]
    states = copy_rows(state, np.zeros(len(actions), np.int64))
    shared = np.tile(np.array(seeds, np.int64), (len(actions), 1))
    return expected_behind(judge, board, states, np.array(actions, np.int64), shared)
