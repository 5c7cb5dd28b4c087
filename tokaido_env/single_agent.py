"""`SingleAgentBatch`: many games of one learner against opponents, what `gym` and `sb3` translate.

The learner sits at one seat of each game; between its decisions the opponents play, batched or
inside the kernel. A step runs from one decision of the learner to its next, so its reward and its
next observation are its own, also when a player moves twice in a row or has to discard inside the
other's pick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent, AgentAdapter, as_agent
from tokaido_env.batch import Batch, Seeds
from tokaido_env.batch_validation import (
    Games,
    Positions,
    checked_arrays,
    checked_games,
    checked_moves,
    checked_seats,
)
from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.arguments import check_choice
from tokaido_env.core.bots import NO_BOT
from tokaido_env.core.rng import seats_of_seeds
from tokaido_env.core.state import NO_PLAYER
from tokaido_env.observers import ObservationFormat

Seating = Literal[0, 1, "alternate", "random"]
SEATS: tuple[Seating, ...] = (0, 1, "alternate", "random")
LOSS = -1.0
Opponents = str | Agent | Sequence[str | Agent]


class EndedGames(NamedTuple):
    """The games that ended in a step, k of them.

    Attributes:
        games: int64 (k,), their indices.
        observation: the last one of the learner, as `SingleAgentBatch.observe` gives them.
        seat: int8 (k,), where the learner sat.
        seed: int64 (k,), with which `Game` plays the same luck.
        board: object (k,), the names of the boards.
        length: int64 (k,), decisions of the learner.
    """

    games: Games
    observation: Any
    seat: npt.NDArray[np.int8]
    seed: npt.NDArray[np.int64]
    board: npt.NDArray[Any]
    length: npt.NDArray[np.int64]


class SingleAgentBatch:
    """N games of one learner.

    Args:
        n: how many.
        opponents: agents or their spec strings; game `i` meets `opponents[i % len(opponents)]`.
        seat: of the learner: 0, 1, "alternate" (game + episode, modulo 2), or "random" (drawn for
            each game from its seed).
        board, reward, observation, see_board: as for `Batch`.
        autoreset: begin the next episode of a game within the step that ended it.
        illegal: "raise" `IllegalMove`, or "terminate": the learner loses the game.

    Attributes:
        batch: the `Batch`.
        seats: int8 (n,), where the learner sits.
        reward, terminated, truncated: float32, bool, bool (n,): the learner's, of the last step.
        player: int8 (n,), the learner's seat if it decided in the last step, -1 after a reset.
        done: bool (n,), games that wait for a reset: they have ended, or not begun.
    """

    def __init__(
        self,
        n: int,
        opponents: Opponents,
        *,
        seat: Seating = "alternate",
        board: Boards = "shikoku",
        reward: Literal["win", "margin"] = "win",
        observation: ObservationFormat = "float32",
        see_board: bool = False,
        autoreset: bool = True,
        illegal: Literal["raise", "terminate"] = "raise",
    ) -> None:
        check_choice("seat", seat, SEATS)
        check_choice("illegal", illegal, ("raise", "terminate"))
        self.batch = Batch(
            n,
            board,
            autoreset=False,
            reward=reward,
            observation=observation,
            see_board=see_board,
        )
        self.seats = np.zeros(n, np.int8)
        self.reward = np.zeros(n, np.float32)
        self.terminated = np.zeros(n, np.bool_)
        self.truncated = np.zeros(n, np.bool_)
        self.player = np.full(n, NO_PLAYER, np.int8)
        self.done = np.ones(n, np.bool_)
        self._lengths = np.zeros(n, np.int64)
        self._all = self.batch.all_games
        self._seating = seat
        self._autoreset = autoreset
        self._forgiving = illegal == "terminate"
        self._agents: list[Agent] = []  # whom each game meets
        self.set_opponents(opponents)

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def opponents(self) -> list[Any]:
        """Whom each game meets: the objects that were given, agents in the place of specs."""
        return [each.player if isinstance(each, AgentAdapter) else each for each in self._agents]

    def set_opponents(self, opponents: Opponents, games: Games | None = None) -> None:
        """Let some games (all by default) meet others from the learner's next decision on.

        Args:
            opponents: one for all, or a sequence that is handed out in turn.
            games: their indices.
        """
        if isinstance(opponents, str) or not isinstance(opponents, Sequence):
            opponents = [opponents]
        opponents = list(opponents)
        if not opponents:
            raise ValueError("opponents: expected one or more, got none")
        chosen = self._chosen(games)
        known = {id(one): as_agent(one) for one in opponents}
        agents = [known[id(one)] for one in opponents]
        if not self._agents:
            self._agents = agents[:1] * len(self)
        for j, game in enumerate(chosen.tolist()):
            self._agents[game] = agents[j % len(agents)]
        self._regroup()
        self._seat_bots(chosen)

    def reset(
        self,
        seed: Seeds = None,
        positions: Positions | None = None,
        games: Games | None = None,
    ) -> None:
        """Begin some games (all by default), as `Batch.begin` does, and play to the learner.

        Raises:
            SeedError, PositionError, IllegalMove: the last of an opponent, naming it and the game;
                all games stand as before then.
        """
        chosen = self._chosen(games)
        with self._all_or_nothing():
            self._begin(chosen, seed, positions)
            self._play_opponents(chosen)
            self._end(chosen[self.batch.over[chosen]])
        self._clear()

    def step(self, actions: npt.ArrayLike) -> EndedGames:
        """Play the learner's decisions and the opponents' answers; return what ended.

        Args:
            actions: integers (n,).

        Raises:
            IllegalMove: of the learner (unless it terminates) or an opponent, naming the game; all
                games stand as before then.
        """
        if self.done.any():
            game = int(self.done.argmax())
            raise RuntimeError(f"game {game} has ended or not begun: reset it before a step")
        batch = self.batch
        moves = checked_moves(actions, len(self))
        wrong = batch.find_illegal(self._all, moves)
        lost = self._all[wrong]
        if len(lost) and not self._forgiving:
            batch.raise_illegal(lost, moves[lost])
        played = self._all[~wrong] if len(lost) else self._all
        with self._all_or_nothing():
            batch.advance(played, moves[played], check=False)
            self._lengths += 1
            self.player[:] = self.seats
            self._clear()
            self._play_opponents(played)
            over = self._all[batch.over]
            ended = self._end(np.concatenate([lost, over]) if len(lost) else over)
            self.reward[lost] = LOSS
            self.terminated[lost] = True
            return ended

    def observe(self) -> Any:
        """Return what the learner sees now, as `Batch.observe`."""
        return self.batch.observe(self._all, self.seats)

    def masks(self) -> npt.NDArray[np.bool_]:
        """Return the learner's legal actions: bool (n, N_ACTIONS); none where a game is done."""
        masks = self.batch.masks(self._all)
        masks[self.done] = False
        return masks

    def board_names(self, games: Games | None = None) -> npt.NDArray[Any]:
        """Return the names of the boards that some games (all by default) are played on."""
        boards = self.batch.episode_info["board"]
        names = self.batch.pool.names[boards if games is None else boards[games]]
        return np.asarray(names, np.object_)

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return arrays from which `restore` continues identically, with the same opponents."""
        own = {name: array.copy() for name, array in self._arrays().items()}
        return self.batch.snapshot() | own

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go back to a snapshot of as many games on the same boards.

        Raises:
            ValueError: it is no such snapshot; nothing has changed then.
        """
        own = checked_arrays(snapshot, self._arrays(), len(self))
        for name, lowest in (("seats", 0), ("player", NO_PLAYER)):
            checked_seats(own[name], len(own[name]), lowest, name=f"snapshot: {name}")
        self.batch.restore(snapshot)
        for name, array in self._arrays().items():
            array[:] = own[name]
        self._seat_bots(self._all)

    # Below the verbs

    def _chosen(self, games: Games | None) -> Games:
        if games is None:
            return self._all
        return checked_games(games, len(self), np.zeros(len(self), np.bool_))

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays: dict[str, npt.NDArray[Any]] = {"seats": self.seats, "lengths": self._lengths}
        return arrays | {"done": self.done, "player": self.player}

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put all games back if an opponent fails."""
        if not any(agent.may_fail for agent, _ in self._outside):
            yield
            return
        results = self.reward, self.terminated, self.truncated
        before, told = self.snapshot(), [each.copy() for each in results]
        try:
            yield
        except BaseException:
            self.restore(before)
            for each, was in zip(results, told, strict=True):
                each[:] = was
            raise

    def _begin(self, games: Games, seed: Seeds, positions: Positions | None) -> None:
        self.batch.initialize(games, seed, positions)
        info = self.batch.episode_info
        if self._seating == "alternate":
            self.seats[games] = (games + info["episode"][games]) % 2
        elif self._seating == "random":
            drawn = np.empty(len(games), np.int8)
            seats_of_seeds(info["seed"][games], drawn)
            self.seats[games] = drawn
        else:
            self.seats[games] = self._seating
        self._lengths[games] = 0
        self.done[games] = False
        self.player[games] = NO_PLAYER
        self._seat_bots(games)
        self.batch.advance_to_decision(games)

    def _seat_bots(self, games: Games) -> None:
        bots = np.full((len(games), 2), NO_BOT, np.int8)
        bots[np.arange(len(games)), 1 - self.seats[games]] = self._bots[games]
        self.batch.set_bots(games, bots)

    def _regroup(self) -> None:
        """Note which games each opponent outside the kernel meets."""
        self._bots = np.array([agent.bot for agent in self._agents], np.int8)
        meets: dict[int, list[int]] = {}
        for game in np.flatnonzero(self._bots == NO_BOT).tolist():
            meets.setdefault(id(self._agents[game]), []).append(game)
        self._outside = [(self._agents[games[0]], np.array(games)) for games in meets.values()]

    def _clear(self) -> None:
        self.reward[:] = 0.0
        self.terminated[:] = False
        self.truncated[:] = False

    def _play_opponents(self, games: Games) -> None:
        """Let opponents outside the kernel play until every game is over or waits for the learner.

        Those inside have played already, when the learner had decided or the game begun.
        """
        batch = self.batch
        while self._outside:
            players = batch.states["player"][games]
            games = games[(players != self.seats[games]) & (players != NO_PLAYER)]
            if not len(games):
                return
            for agent, met in self._outside:
                theirs = np.intersect1d(games, met, assume_unique=True)
                if len(theirs):
                    batch.decide(agent, theirs)

    def _end(self, games: Games) -> EndedGames:
        """Note how games ended; play their next episodes up to the learner, or let them wait."""
        if not len(games):
            return self._none_ended
        ended = self._note_end(games)
        if self._autoreset:
            self._begin(games, None, None)
            self._play_opponents(games)
        else:
            self.done[games] = True
        return ended

    @cached_property
    def _none_ended(self) -> EndedGames:
        return self._note_end(self._all[:0])

    def _note_end(self, games: Games) -> EndedGames:
        info, seats = self.batch.episode_info, self.seats[games]
        self.reward[games] = info["reward"][games, seats]
        self.terminated[games] = info["terminated"][games]
        self.truncated[games] = info["truncated"][games]
        last = self.batch.observe(games, seats)
        told = info["seed"][games], self.board_names(games), self._lengths[games]
        return EndedGames(games, last, seats, *told)
