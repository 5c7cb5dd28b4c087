"""`SingleAgentBatch`: many games of one learner against opponents, for `gym` and `sb3`.

The learner has one seat of each game. Between its decisions the opponents play, in batches or
inside the kernel. A step runs from one decision of the learner to its next, so rewards and next
observations are the learner's own, also when a player decides twice in a row or has to discard
during the opponent's turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from tokaido_env.agent import Agent, as_agent
from tokaido_env.batch import Batch, advance_checked
from tokaido_env.batch_validation import (
    Games,
    Positions,
    Seeds,
    checked_arrays,
    checked_games,
    checked_seats,
)
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core.arguments import check_choice
from tokaido_env.core.bots import NO_BOT
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.rng import seats_of_seeds
from tokaido_env.core.state import NO_PLAYER
from tokaido_env.observers import ObservationFormat

if TYPE_CHECKING:
    from tokaido_env.render.scene import Scene

Seating = Literal[0, 1, "alternate", "random"]
SEATS: tuple[Seating, ...] = (0, 1, "alternate", "random")
LOSS = -1.0
Opponents = object
"""An agent, a spec string, an object with `act` or `choose`, or a sequence of these."""
When = Literal["next game", "now"]


class EndedGames(NamedTuple):
    """The k games that ended in a step.

    Attributes:
        games: int64 (k,), their indices.
        observation: the learner's last observations, as `SingleAgentBatch.observe` returns them.
        seat: int8 (k,), the learner's seats.
        seed: int64 (k,), seeds with which `Game` has the same dice and draws.
        board: int64 (k,), indices of the boards in `SingleAgentBatch.boards`.
        length: int64 (k,), numbers of the learner's decisions.
        mask: bool (k, N_ACTIONS), the learner's legal actions in a game that `max_decisions` cut;
            all False in the others.
    """

    games: Games
    observation: Any
    seat: npt.NDArray[np.int8]
    seed: npt.NDArray[np.int64]
    board: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    mask: npt.NDArray[np.bool_]


class SingleAgentBatch(CopiedWhole):
    """N games of one learner against opponents.

    Args:
        n: number of games.
        opponents: agents or spec strings; game `i` plays against `opponents[i % len(opponents)]`.
        seat: the learner's seat: 0, 1, "alternate" (game + episode, modulo 2), or "random" (drawn
            from the seed of each episode).
        board: as for `Batch`.
        reward: as for `Batch`.
        observation: as for `Batch`.
        see_board: as for `Batch`.
        autoreset: SAME_STEP starts a game's next episode within the step that ends it; NEXT_STEP
            in the next step, which ignores the game's action; DISABLED waits for `reset`.
        illegal: "raise" raises `IllegalMove`; "terminate" ends the game as the learner's loss.
        max_decisions: truncate an episode after this many decisions of the learner.

    Attributes:
        batch: the `Batch` of the games.
        seats: int8 (n,), the learner's seats.
        reward: float32 (n,), the learner's reward in the last step.
        terminated: bool (n,), True if a trigger or an illegal action ended the game in that step.
        truncated: bool (n,), True if `max_decisions` did.
        player: int8 (n,), the learner's seat if it decided in the last step, -1 after a reset.
        done: bool (n,), whether a game has ended, or not started, and needs a reset.
        over: bool (n,), whether a game has no decision left: done, but not by `max_decisions`.

    Raises:
        AgentError: for an unknown spec string, or an object that is no agent.
        BoardError: for an unknown board.
        ValueError: for another argument that is not allowed.
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
        autoreset: AutoresetMode = AutoresetMode.SAME_STEP,
        illegal: Literal["raise", "terminate"] = "raise",
        max_decisions: int | None = None,
    ) -> None:
        check_choice("seat", seat, SEATS)
        check_choice("autoreset", autoreset, AutoresetMode)
        check_choice("illegal", illegal, ("raise", "terminate"))
        self.batch = Batch(
            n, board, autoreset=False, reward=reward, observation=observation, see_board=see_board
        )
        self.seats = np.zeros(n, np.int8)
        self.reward = np.zeros(n, np.float32)
        self.terminated = np.zeros(n, np.bool_)
        self.truncated = np.zeros(n, np.bool_)
        self.player = np.full(n, NO_PLAYER, np.int8)
        self.done = np.ones(n, np.bool_)
        self.over = np.ones(n, np.bool_)
        self._lengths = np.zeros(n, np.int64)
        self._all = self.batch.all_games
        self._seating = seat
        self._autoreset = autoreset
        self._max_decisions = np.inf if max_decisions is None else max_decisions
        self._terminates_illegal = illegal == "terminate"
        self._agents: list[Agent] = []  # the opponent of each game
        self._next_agents: dict[int, Agent] = {}  # of the next episode, if it differs
        self.set_opponents(opponents)

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def opponents(self) -> list[Any]:
        """The opponent in each current game: an object as passed, or the agent of a spec string."""
        return [one if one.source else getattr(one, "wrapped", one) for one in self._agents]

    def set_opponents(
        self, opponents: Opponents, games: Games | None = None, when: When = "next game"
    ) -> None:
        """Set the opponents of some games.

        Args:
            opponents: one for all games, or a sequence to repeat over the games.
            games: indices (k,) (default: all).
            when: "next game": a running game keeps its opponent to its end. "now": from the
                learner's next decision on, so that a result may depend on two opponents.

        Raises:
            AgentError: for an unknown spec string, or an object that is no agent.
            ValueError: for an unknown `when`, or no opponents.
        """
        check_choice("when", when, ("next game", "now"))
        if isinstance(opponents, str) or not isinstance(opponents, Sequence):
            opponents = [opponents]
        opponents = list(opponents)
        if not opponents:
            raise ValueError("opponents: expected at least one, got none")
        chosen = self._chosen(games)
        by_id = {id(one): as_agent(one) for one in opponents}  # one agent per object
        pool: Any = self.batch.pool
        for agent in by_id.values():
            agent.prepare(pool)
        agents = [by_id[id(one)] for one in opponents]
        if not self._agents:
            self._agents = agents[:1] * len(self)
        for j, game in enumerate(chosen.tolist()):
            self._next_agents[game] = agents[j % len(agents)]
        self._take_next_agents(chosen if when == "now" else chosen[self.done[chosen]])

    def reset(
        self, seed: Seeds = None, positions: Positions | None = None, games: Games | None = None
    ) -> None:
        """Start an episode of some games and play to the learner's first decision.

        Args:
            seed: as for `Batch.begin`.
            positions: as for `Batch.begin`.
            games: indices (k,) (default: all).

        Raises:
            SeedError: as for `Batch.reset`.
            PositionError: as for `Batch.reset`.
            IllegalMove: for an opponent's illegal action, naming the opponent and the game. No
                game changes on errors.
        """
        chosen = self._chosen(games)
        with self._all_or_nothing():
            self._begin(chosen, seed, positions)
            self._play_opponents(chosen)
            self._end(chosen[self.batch.over[chosen]], self._all[:0])
        self._clear()

    def step(self, actions: npt.ArrayLike) -> EndedGames:
        """Play the learner's actions, then the opponents until the learner decides again.

        Args:
            actions: integers (n,).

        Returns:
            The games that ended.

        Raises:
            IllegalMove: for an illegal action of the learner (if `illegal="raise"`) or of an
                opponent, naming the game. No game changes then.
            RuntimeError: if a game needs a reset.
        """
        resets = self._resets() if self.done.any() else self._all[:0]
        batch = self.batch
        moves, wrong = batch.check_moves(self._all, actions)
        wrong[resets] = False
        lost = self._all[wrong]
        if len(lost) and not self._terminates_illegal:
            raise batch.illegal_moves_error(lost, moves[lost])
        played = self._all[~(wrong | self.done)] if len(lost) or len(resets) else self._all
        with self._all_or_nothing():
            advance_checked(batch, played, moves[played])
            self._lengths += 1
            self.player[:] = self.seats
            self._clear()
            if len(resets):
                self._begin(resets, None, None)
                played = np.concatenate([played, resets])
            self._play_opponents(played)
            return self._end(self._ending(lost), lost)

    def observe(self) -> Any:
        """Return the learner's current observations; see `Batch.observe`."""
        return self.batch.observe(self._all, self.seats)

    def masks(self) -> npt.NDArray[np.bool_]:
        """Return the learner's legal actions, bool (n, N_ACTIONS); all False if a game is over."""
        masks = self.batch.masks(self._all)
        masks[self.over] = False
        return masks

    @property
    def boards(self) -> BoardPool:
        """The boards in use."""
        return self.batch.pool

    def scene(self, game: int) -> Scene:
        """Return the position of a game for `render`, with the opponent's spec as its name."""
        from tokaido_env.render.scene import scene_of

        batch, opponent = self.batch, self._agents[game].spec
        names = (opponent, "learner") if self.seats[game] else ("learner", opponent)
        board = batch.pool[int(batch.episode_info["board"][game])]
        return scene_of(board, batch.states[game : game + 1], names=names)

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return arrays by name; `restore` continues from them with the same opponents."""
        own = {name: array.copy() for name, array in self._arrays().items()}
        return self.batch.snapshot() | own

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restore a snapshot of as many games on the same boards.

        Args:
            snapshot: arrays by name, from `snapshot`.

        Raises:
            ValueError: for arrays that are no such snapshot; nothing changes then.
        """
        own = checked_arrays(snapshot, self._arrays(), len(self))
        for name, lowest in (("seats", 0), ("player", NO_PLAYER)):
            checked_seats(own[name], len(own[name]), lowest, name=f"snapshot: {name}")
        self.batch.restore(snapshot)
        for name, array in self._arrays().items():
            array[:] = own[name]
        self._set_bots(self._all)

    # Internals

    def _chosen(self, games: Games | None) -> Games:
        if games is None:
            return self._all
        return checked_games(games, len(self), np.zeros(len(self), np.bool_))

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays: dict[str, npt.NDArray[Any]] = {"seats": self.seats, "lengths": self._lengths}
        return arrays | {"done": self.done, "over": self.over, "player": self.player}

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore all games if an opponent raises an error."""
        playing = [agent for agent, _ in self._python_opponents]
        if not any(agent.may_fail for agent in (*playing, *self._next_agents.values())):
            yield
            return
        results = self.reward, self.terminated, self.truncated
        games_before, results_before = self.snapshot(), [array.copy() for array in results]
        agents_before = self._agents.copy(), self._next_agents.copy()
        try:
            yield
        except BaseException:
            self._agents, self._next_agents = agents_before
            self._group_by_opponent()
            self.restore(games_before)
            for array, before in zip(results, results_before, strict=True):
                array[:] = before
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
        self.done[games] = self.over[games] = False
        self.player[games] = NO_PLAYER
        self._take_next_agents(games)
        self._set_bots(games)
        self.batch.advance_to_decision(games)

    def _take_next_agents(self, games: Games) -> None:
        """Let the assigned opponents of some games play from now on."""
        if not self._next_agents:
            return
        for game in games.tolist():
            self._agents[game] = self._next_agents.pop(game, self._agents[game])
        self._group_by_opponent()
        self._set_bots(games)

    def _set_bots(self, games: Games) -> None:
        bots = np.full((len(games), 2), NO_BOT, np.int8)
        bots[np.arange(len(games)), 1 - self.seats[games]] = self._bots[games]
        self.batch.set_bots(games, bots)

    def _group_by_opponent(self) -> None:
        """Set the bot of each game, and the games of each opponent that is no bot."""
        self._bots = np.array([agent.bot for agent in self._agents], np.int8)
        games_of: dict[int, list[int]] = {}
        for game in np.flatnonzero(self._bots == NO_BOT).tolist():
            games_of.setdefault(id(self._agents[game]), []).append(game)
        self._python_opponents = [
            (self._agents[games[0]], np.array(games)) for games in games_of.values()
        ]

    def _clear(self) -> None:
        self.reward[:] = 0.0
        self.terminated[:] = False
        self.truncated[:] = False

    def _play_opponents(self, games: Games) -> None:
        """Let Python opponents play until every game is over or at the learner's decision.

        Compiled bots have played already, inside the learner's step or the start of the game.
        """
        batch = self.batch
        while self._python_opponents:
            players = batch.states["player"][games]
            games = games[(players != self.seats[games]) & (players != NO_PLAYER)]
            if not len(games):
                return
            for agent, own_games in self._python_opponents:
                due = np.intersect1d(games, own_games, assume_unique=True)
                if len(due):
                    batch.decide(agent, due)

    def _resets(self) -> Games:
        """Return the games that the step resets, or raise `RuntimeError`."""
        blocked = self.done
        if self._autoreset == AutoresetMode.NEXT_STEP:
            blocked = self.batch.episode_info["base_seed"] < 0
        if blocked.any():
            game = int(blocked.argmax())
            raise RuntimeError(f"game {game} has ended or not begun: call reset first")
        return self._all[self.done]

    def _ending(self, lost: Games) -> Games:
        """Return the games that the step ends: by the rules, an illegal action or the limit."""
        ending = self.batch.over
        if len(lost):
            ending[lost] = True
        ending |= self._lengths >= self._max_decisions
        return self._all[ending]

    def _end(self, games: Games, lost: Games) -> EndedGames:
        """Store the results of ended games; start their next episodes, or mark them done."""
        if not len(games):
            return self._none_ended
        ended = self._store_results(games, lost)
        if self._autoreset == AutoresetMode.SAME_STEP:
            self._begin(games, None, None)
            self._play_opponents(games)
        else:
            self.done[games] = True
        return ended

    @cached_property
    def _none_ended(self) -> EndedGames:
        return self._store_results(self._all[:0], self._all[:0])

    def _store_results(self, games: Games, lost: Games) -> EndedGames:
        info, seats, lengths = self.batch.episode_info, self.seats[games], self._lengths[games]
        self.reward[games] = info["reward"][games, seats]
        self.terminated[games] = info["terminated"][games]
        self.reward[lost] = LOSS
        self.terminated[lost] = True
        self.over[games] = self.batch.over[games]
        self.over[lost] = True
        self.truncated[games] = lengths >= self._max_decisions
        last, masks = self.batch.observe(games, seats), self.batch.masks(games)
        masks[self.over[games]] = False
        boards = info["board"][games].astype(np.int64)
        return EndedGames(games, last, seats, info["seed"][games], boards, lengths, masks)
