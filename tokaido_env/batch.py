"""`Batch`: many games as one array, played in compiled loops.

    batch = Batch(4096)
    turn = batch.reset(seed=0)
    while True:
        turn = batch.step(policy(turn.observation, turn.mask))

Game `i` with seed `s` is `Game(seed=s + i)`, whatever the number of games and of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env import batch_validation
from tokaido_env.agent import Agent, as_agent
from tokaido_env.batch_validation import Games, Positions
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core import batch_kernels
from tokaido_env.core.actions import N_ACTIONS, NO_ACTION
from tokaido_env.core.arguments import (
    CHANCES,
    Chance,
    IllegalMove,
    as_array,
    check_choice,
    check_seed,
    join_limited,
    repr_short,
)
from tokaido_env.core.bitmask import MASK_BYTES
from tokaido_env.core.bots import BOTS, NO_BOT
from tokaido_env.core.events import illegal_move_message
from tokaido_env.core.rng import LUCK, entropy_seed, episode_seeds
from tokaido_env.core.rules import MAX_OUTCOMES
from tokaido_env.core.state import NOT_ENDED, Phase, copy_rows, initial_states, put_rows
from tokaido_env.core.stepping import EPISODE_INFO, STEP_OPTIONS
from tokaido_env.observers import Observation, Observer, aligned_zeros
from tokaido_env.timestep import TimeStep, copied_turn

Seeds = int | npt.ArrayLike | None

_MOST_SPEC = 60  # characters of an agent's name, in an error


class Batch:
    """N games side by side.

    All games are stepped together (`reset`, `step`, `play`, `finish`, which return a `TimeStep`),
    or some of them, given by the integers (k,) that are their indices (`begin`, `advance`,
    `observe`, …): `IndexError` if there is no such game; `ValueError` for anything else and, where games are
    changed, if one is named twice. One batch must not be used by two Python threads at once;
    different batches may.

    Args:
        n: how many games.
        board: as for `Game`; a pool such as "family:train/1000" gives each episode the board that
            its seed draws; of a sequence of boards, game `i` is played on `board[i % len(board)]`.
        chance: "sampled": chance resolves itself; "explicit": games stop at chance phases, where
            a step plays an outcome (`weights`, `sample`).
        autoreset: a finished game begins its next episode within the step that ended it.
        reward: "win" or "margin" (`rules.reward`).
        observation: "float32" in [0, 1], "uint8" for the raw values (`observation.SCALES`),
            "entities" for arrays by name (`entities.ENTITY_SHAPES`), None.
        see_board: the block of its board stands behind the observation of each game
            (`board_features`), which then has N_FEATURES + N_BOARD_FEATURES numbers.
        check: refuse illegal moves before anything is played. Without it an illegal move, any
            integer, is ignored: that game stays where it is and nobody has decided in it (`player`
            of the turn is -1). Who plays nothing else will wait for its end in vain.
        copy: give turns arrays of their own, which the caller may keep and write to; observations
            in memory of earlier ones that nobody holds any more. Without it turns hand out the
            batch's buffers, which the next step overwrites, what tells of a board only if it is
            another: do not write. `legal` and `padded_mask` are contiguous then, and begin at
            multiples of 64 bytes, as observations do either way: DLPack hands them on without a
            copy, and they change under whoever holds them.

    Attributes:
        pool: the boards in use, `episode_info["board"]` tells which of them each game is played on.
        boards: `BOARD` (b,), the same for kernels.
        states: `STATE` (n,), the positions. Live: do not write.
        luck: `LUCK` (n,), never handed to agents.
        legal: uint64 (n,), the legal actions as bits; 0 at chance and when over.
        episode_info: `EPISODE_INFO` (n,): seeds, episodes, decisions, results of the last step.
        options: `STEP_OPTIONS` (1,): chance, autoreset, reward and bots of each step.
        all_games: int64 (n,), the indices of all games; this very array is not looked through.
    """

    def __init__(
        self,
        n: int,
        board: Boards = "shikoku",
        *,
        chance: Chance = "sampled",
        autoreset: bool = True,
        reward: Literal["win", "margin"] = "win",
        observation: Observation | None = "float32",
        see_board: bool = False,
        check: bool = True,
        copy: bool = True,
    ) -> None:
        n = batch_validation.checked_count(n)
        check_choice("chance", chance, CHANCES)
        check_choice("reward", reward, ("win", "margin"))
        for name, flag in (("autoreset", autoreset), ("check", check), ("copy", copy)):
            check_choice(name, flag, (True, False))
        self.pool = BoardPool.load(board)
        self.boards = self.pool.records
        self._initial_states = initial_states(self.boards)
        self._observer = Observer(self.boards, observation, see_board, n, copy)
        self.luck = np.zeros(n, LUCK)
        self.legal = aligned_zeros((n,), np.uint64)
        self.episode_info = np.zeros(n, EPISODE_INFO)
        self.episode_info["board"] = np.arange(n) % len(self.pool)
        self.states = copy_rows(self._initial_states, self.episode_info["board"])
        self.episode_info["bot"] = NO_BOT
        self.episode_info["base_seed"] = -1
        self._check = check
        self._copy = copy
        self.options = _step_options(chance == "sampled", bool(autoreset), reward == "margin")
        self.options["pool"] = len(self.pool) if self.pool.drawn else 0
        self.all_games = np.arange(n)
        self._met = np.zeros(n, np.bool_)
        self._words = aligned_zeros((n, MASK_BYTES // 8), np.uint64)
        self._turns = self._views()
        self._begun = False

    def __len__(self) -> int:
        return len(self.states)

    # All games

    def reset(self, seed: Seeds = None, positions: Positions | None = None) -> TimeStep:
        """Begin all games.

        Args:
            seed: game `i` plays the episodes of `seed + i`, or of `seed[i]`. None begins the next
                episode of each game, the first ones with a seed from the operating system.
            positions: begin from a position instead, the same for all or one for each game: as
                `Game.to_dict` gives it, of a pool on the board that it names, or `STATE` (n,) or
                (1,) from another batch or game on the same boards.

        Raises:
            SeedError, PositionError: nothing has changed then.
        """
        self.begin(self.all_games, seed, positions)
        return self.turn()

    def step(self, moves: npt.ArrayLike) -> TimeStep:
        """Play a decision of every game or, with explicit chance, an outcome where chance is next.

        Args:
            moves: integers (n,). Games that are over (without autoreset) must be begun anew first.

        Raises:
            IllegalMove: naming games, moves and what was legal; nothing has been played then.
        """
        self.advance(self.all_games, moves)
        return self.turn()

    def play(self, bot: str) -> TimeStep:
        """Play one move of every game that is not over, chosen inside the kernel.

        The bot draws from `keys`, as an agent of the same name does, so it makes the same moves.

        Args:
            bot: "random" or "greedy". With explicit chance, outcomes are drawn from the luck.
        """
        self._advance_with(self.all_games, bot, to_end=False)
        return self.turn()

    def finish(self, bot: str) -> TimeStep:
        """Play every game to its end, both seats by a bot inside the kernel."""
        self._advance_with(self.all_games, bot, to_end=True)
        return self.turn()

    def weights(self) -> npt.NDArray[np.int64]:
        """Return the integer odds of each outcome, (n, MAX_OUTCOMES): zeros where none is next."""
        self._need_begun(self.all_games)
        out = np.zeros((len(self), MAX_OUTCOMES), np.int64)
        batch_kernels.weights(self.all_games, self.boards, self.states, self.episode_info, out)
        return out

    def sample(self) -> npt.NDArray[np.int64]:
        """Draw an outcome from each game's luck, int64 (n,): -1 where none is next.

        Playing what was drawn gives the same games as sampled chance. The luck of draws moves on
        with each call: draw once, then play.
        """
        self._need_begun(self.all_games)
        out = np.empty(len(self), np.int64)
        batch_kernels.outcomes(
            self.all_games, self.boards, self.states, self.luck, self.episode_info, out
        )
        return out

    # Some of the games

    def begin(self, games: Games, seed: Seeds = None, positions: Positions | None = None) -> None:
        """Begin the given games and play to the first decision; arguments as for `reset`.

        A sequence of seeds or positions has one for each of the given games.
        """
        self.place(games, seed, positions)
        self.settle(games)

    def place(self, games: Games, seed: Seeds = None, positions: Positions | None = None) -> None:
        """Put the given games where they begin, with the luck of their episodes; play nothing."""
        games = self._some(games, apart=True)
        info = self.episode_info
        begun = info["base_seed"][games] >= 0
        base_seeds = self._base_seeds(games, seed)
        episodes = (info["episode"][games] + 1) * (begun & (seed is None))
        boards = self._boards_for(games, base_seeds, episodes)
        states = self._beginnings(games, boards, positions)
        info["episode"][games] = episodes
        info["base_seed"][games] = base_seeds
        info["board"][games] = boards
        put_rows(self.states, games, states)
        batch_kernels.begin(
            games, self.boards, self.states, self.luck, self.episode_info, self.legal
        )
        self._note_begun()

    def settle(self, games: Games) -> None:
        """Play chance, where it resolves itself, and seated bots up to the next decision."""
        games = self._some(games, apart=True)
        self._need_begun(games)
        self._run(games, np.full(len(games), NO_ACTION), self.options)

    def seat_bots(self, games: Games, bots: npt.ArrayLike) -> None:
        """Let bots decide within the steps of the given games, from the next one on.

        Args:
            games: the games.
            bots: integers (k, 2), who plays each seat: `bots.RANDOM`, `bots.GREEDY` or
                `bots.NO_BOT`, of which each game needs one.
        """
        games = self._some(games, apart=True)
        seated = batch_validation.checked_bots(bots, len(games))
        self.episode_info["bot"][games] = seated
        self.options["bots"] |= (seated != NO_BOT).any()

    def advance(self, games: Games, moves: npt.ArrayLike, *, check: bool = True) -> None:
        """Play a move of each of the given games, as `step` does; then read the attributes.

        Args:
            games: their indices.
            moves: integers (k,).
            check: False if `illegal` has found none.
        """
        games = self._some(games, apart=True)
        self._need_begun(games)
        chosen = batch_validation.checked_moves(moves, len(games))
        if self._check and check:
            wrong = self._illegal(games, chosen)
            if wrong.any():
                self.refuse(games[wrong], chosen[wrong])
        self._run(games, chosen, self.options)

    def illegal(self, games: Games, moves: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which moves of the given games are not on offer: bool (k,)."""
        games = self._some(games)
        return self._illegal(games, batch_validation.checked_moves(moves, len(games)))

    def refuse(self, games: Games, moves: npt.NDArray[np.int64]) -> None:
        """Raise `IllegalMove`, naming moves that `illegal` has found and what was legal."""
        games = self._some(games)
        moves = batch_validation.checked_moves(moves, len(games))
        if not len(games):
            raise ValueError("games: expected one or more with an illegal move, got none")
        refusals = map(self._refusal, games.tolist(), moves.tolist())
        raise IllegalMove(join_limited(refusals, len(games), "games"))

    def decide(self, agent: Agent, games: Games) -> npt.NDArray[np.int64]:
        """Let an agent play a decision of each of the given games; return them, int64 (k,).

        Raises:
            IllegalMove: naming the agent and the game, or a game in which there is nothing to
                decide; nothing has been played then.
        """
        agent = as_agent(agent)
        games = self._some(games, apart=True)
        self._need_begun(games)
        idle = games[self.legal[games] == 0]
        if len(idle):
            phase = Phase(self.states["phase"][idle[0]])
            raise IllegalMove(f"game {idle[0]}: nothing to decide at {phase.name}")
        states = copy_rows(self.states, games)
        actions = agent.act(self.boards_of(games), states, self.legal[games], self.keys(games))
        try:
            self.advance(games, actions)
        except ValueError as error:
            raise type(error)(f"agent {repr_short(agent.spec, _MOST_SPEC)}: {error}") from None
        return actions

    def keys(self, games: Games) -> npt.NDArray[np.uint64]:
        """Return what an agent draws from for its decision in each of the given games (k,)."""
        games = self._some(games)
        out = np.empty(len(games), np.uint64)
        batch_kernels.keys(games, self.states, self.episode_info, out)
        return out

    def turn(self) -> TimeStep:
        """Return what `reset`, `step`, `play` and `finish` return: after `begin` or `advance`."""
        states = self.states
        here = self.all_games, self.boards, states, self.episode_info, states["player"]
        seen = self._observer.look(here)
        return copied_turn(self._turns, seen) if self._copy else self._turns

    def observe(self, games: Games, seats: npt.ArrayLike) -> Any:
        """Return what the given seats see, in the form of `TimeStep.observation` or else float32.

        Args:
            games: their indices.
            seats: integers (k,): 0, 1, or -1 (nobody), which stands for 0.
        """
        games = self._some(games)
        chosen = batch_validation.checked_seats(seats, len(games))
        return self._observer.observe((games, self.boards, self.states, self.episode_info, chosen))

    @property
    def padded_mask(self) -> npt.NDArray[np.int8]:
        """`TimeStep.mask` with zeros behind each row, int8 (n, MASK_BYTES): contiguous. Live."""
        return self._words.view(np.int8)

    def masks(self, games: Games) -> npt.NDArray[np.bool_]:
        """Return the legal actions of the given games: bool (k, N_ACTIONS)."""
        return batch_kernels.mask_rows(self._some(games), self.legal).view(np.bool_)

    def rewards(self, games: Games) -> npt.NDArray[np.float32]:
        """Return the rewards of both seats where the given games stand: float32 (k, 2)."""
        games = self._some(games)
        out = np.empty((len(games), 2), np.float32)
        margin = bool(self.options["margin"][0])
        batch_kernels.rewards(games, self.boards, self.states, self.episode_info, margin, out)
        return out

    def boards_of(self, games: Games) -> npt.NDArray[np.void]:
        """Return the boards of the given games as agents take them: `BOARD` (1,) or (k,)."""
        if len(self.boards) == 1:
            return self.boards
        return copy_rows(self.boards, self.episode_info["board"][self._some(games)])

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """Which games have ended: bool (n,)."""
        return np.asarray(self.states["end"] != NOT_ENDED)

    def snapshot(self, games: Games | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all that makes some games (all by default), luck included."""
        games = None if games is None else self._some(games)
        taken = {name: copy_rows(array, games) for name, array in self._arrays().items()}
        return taken | {"boards": self.pool.hashes[taken["episode_info"]["board"]]}

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]], games: Games | None = None) -> None:
        """Put a snapshot of k games, or of one, into k games (all by default).

        It may come from other games and another batch, played on the same boards.

        Raises:
            ValueError: it is no such snapshot; nothing has changed then.
        """
        chosen = self.all_games if games is None else self._some(games, apart=True)
        like = self._arrays() | {"boards": self.pool.hashes}
        held = batch_validation.checked_arrays(snapshot, like, len(chosen))
        boards = self.pool.found(held["boards"], self.episode_info["board"][chosen])
        foreign = np.flatnonzero(boards < 0)
        if len(foreign):
            game = int(chosen[foreign[0]])
            raise ValueError(f"snapshot: it was taken on another board than game {game} is played")
        batch_validation.check_states(self.pool, self.boards, boards, chosen, held["states"])
        batch_validation.check_slots(self.boards, boards, held)
        for name, array in self._arrays().items():
            put_rows(array, chosen, held[name])
        self.episode_info["board"][chosen] = boards
        batch_kernels.unpack_masks(self.all_games, self.legal, self._words)
        self.options["bots"] = (self.episode_info["bot"] != NO_BOT).any()
        self._note_begun()

    # Below the verbs

    def _some(self, games: Games, *, apart: bool = False) -> Games:
        """Return indices as kernels take them; `apart`: refuse a game that is named twice."""
        if games is self.all_games:
            return games
        return batch_validation.checked_games(games, len(self), self._met if apart else None)

    def _illegal(self, games: Games, moves: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        wrong = np.empty(len(games), np.bool_)
        batch_kernels.find_illegal(
            games, self.boards, self.states, self.episode_info, self.legal, moves, wrong
        )
        return wrong

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in ("states", "luck", "legal", "episode_info")}

    def _note_begun(self) -> None:
        self._begun = bool((self.episode_info["base_seed"] >= 0).all())

    def _views(self) -> TimeStep:
        """Return views of the buffers that steps write to: what `copy=False` hands out."""
        info = self.episode_info
        return TimeStep(
            self._observer.kept,
            self._words.view(np.int8)[:, :N_ACTIONS],
            self.legal,
            self.states["player"],
            info["reward"],
            info["terminated"].view(np.bool_),
            info["truncated"].view(np.bool_),
            info["player"],
            info["next_player"],
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the views, which a copy would separate from their buffers."""
        return {name: value for name, value in self.__dict__.items() if name != "_turns"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turns = self._views()

    def _advance_with(self, games: Games, bot: str, *, to_end: bool) -> None:
        self._need_begun(games)
        check_choice("bot", bot, BOTS)
        options = self.options.copy()
        options["bot"] = BOTS[bot]
        options["to_end"] = to_end
        options["bots"] |= to_end
        self._run(games, np.empty(len(games), np.int64), options)

    def _run(
        self, games: Games, moves: npt.NDArray[np.int64], options: npt.NDArray[np.void]
    ) -> None:
        batch_kernels.advance(
            *(games, self.boards, self.states, self.luck, self.episode_info),
            *(self.legal, self._words, moves, self._initial_states, options),
        )

    def _need_begun(self, games: Games) -> None:
        if self._begun:
            return
        waiting = games[self.episode_info["base_seed"][games] < 0]
        if len(waiting):
            raise RuntimeError(f"game {waiting[0]} has not begun: call reset(seed=…) first")

    def _base_seeds(self, games: Games, seed: Seeds) -> npt.NDArray[np.int64]:
        """Return the seed of episode 0 of each of the given games."""
        if seed is None:
            base_seeds = self.episode_info["base_seed"][games]
            new = base_seeds < 0
            if new.any():
                base_seeds[new] = (entropy_seed() >> 1) + games[new]
            return base_seeds
        if as_array("seed", seed).ndim == 0:
            first = check_seed(seed)
            check_seed(first + len(self) - 1)
            return first + games
        return batch_validation.checked_seeds(seed, games)

    def _boards_for(
        self, games: Games, base_seeds: npt.NDArray[np.int64], episodes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the board that each of the given games is played on in an episode."""
        if not self.pool.drawn:
            return self.episode_info["board"][games].astype(np.int64)
        seeds = np.empty(len(games), np.int64)
        episode_seeds(base_seeds, episodes, seeds)
        return self.pool.indices(seeds)

    def _beginnings(
        self, games: Games, which: npt.NDArray[np.int64], positions: Positions | None
    ) -> npt.NDArray[np.void]:
        """Return the states that the given games begin from: (k,) or (1,).

        Args:
            which: int64 (k,), the board of each game; written where a position names another.
        """
        if positions is None:
            return copy_rows(self._initial_states, which)
        return batch_validation.states_from(positions, self.pool, which, games)

    def _refusal(self, game: int, move: int) -> str:
        board = int(self.episode_info["board"][game])
        here = self.boards[board:][:1], self.states[game:][:1], 0
        return f"game {game}: {illegal_move_message(self.pool[board].kinds, *here, move)}"


def _step_options(sampled: bool, autoreset: bool, margin: bool) -> npt.NDArray[np.void]:
    options = np.zeros(1, STEP_OPTIONS)
    options["sampled"], options["autoreset"], options["margin"] = sampled, autoreset, margin
    options["bot"] = NO_BOT
    return options
