"""`Batch`: many games as arrays, stepped in compiled loops.

    batch = Batch(4096)
    timestep = batch.reset(seed=0)
    while True:
        timestep = batch.step(policy(timestep.observation, timestep.mask))

Game `i` of seed `s` equals `Game(seed=game_seed(s, i))`, for any number of games and threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tokaido_env import batch_validation
from tokaido_env.agent import ActArguments, Agent, check_agent
from tokaido_env.batch_validation import Games, Positions, Seeds
from tokaido_env.boards.board_pool import BoardPool, Boards
from tokaido_env.core import batch_kernels
from tokaido_env.core.actions import N_ACTIONS, NO_ACTION
from tokaido_env.core.arguments import Chance, IllegalMove, check_choice, repr_short
from tokaido_env.core.bitmask import MASK_BYTES
from tokaido_env.core.bots import BOTS, NO_BOT
from tokaido_env.core.copying import CopiedWhole
from tokaido_env.core.rng import LUCK
from tokaido_env.core.rules import MAX_OUTCOMES
from tokaido_env.core.state import NOT_ENDED, copy_rows, initial_states, put_rows
from tokaido_env.core.stepping import EPISODE_INFO, STEP_OPTIONS
from tokaido_env.features.afterstates import AfterstateInputs, Afterstates, afterstates_of
from tokaido_env.observers import ObservationFormat, Observer, aligned_zeros
from tokaido_env.timestep import TimeStep, copy_timestep

_MAX_SPEC = 60  # characters of an agent's spec in an error


class Batch(CopiedWhole):
    """N games that are stepped together.

    `reset`, `step`, `play` and `finish` act on all games and return a `TimeStep`. Methods with an
    argument `games` act on some: integers (k,), the indices of the games. They raise `IndexError`
    for an unknown index and `ValueError` for anything else that is no array of indices; methods
    that change games also refuse an index that occurs twice.

    Different threads may use different batches at the same time, but not the same batch.

    Args:
        n: number of games.
        board: a name, a path, a `Board`, or a pool such as "family:train/1000", from which each
            episode's seed draws; of a sequence of boards, game `i` uses `board[i % len(board)]`.
        chance: "sampled": dice and draws follow from the seed; "explicit": games stop at chance
            phases, where `step` takes an outcome (see `outcome_weights` and `sample_outcomes`).
        autoreset: start a finished game's next episode within the step that ended it.
        reward: "win" for +1, -1 and 0, or "margin" for the score margin / 100, clipped to [-1, 1].
        observation: "float32" in [0, 1], "uint8" for unscaled values (`observation.SCALES`),
            "geometry" for float32 values and what follows from the board
            (`afterstate_observation.GEOMETRY`), "afterstates" for a dict of the networks' inputs
            (`afterstate_observation.AFTERSTATE_SHAPES`), or None for none.
        see_board: append the board features to each observation (`board_features`), which then
            has N_FEATURES + N_BOARD_FEATURES values.
        check: raise `IllegalMove` before an illegal move is played. With False, a game ignores an
            illegal move and keeps its position, and `TimeStep.player` is -1.
        copy: return new arrays, which the caller may keep and change. With False, time steps
            hold the batch's own buffers, which the next step overwrites; do not write to them.
            All observations, and with `copy=False` also `legal` and `padded_mask`, are contiguous
            and aligned to 64 bytes, so that DLPack passes them on without a copy.

    Attributes:
        pool: the boards in use; `episode_info["board"]` has the index of each game's board.
        boards: `BOARD` (b,), the same boards for kernels.
        states: `STATE` (n,), the positions. Read only.
        luck: `LUCK` (n,), the random number states, which agents never receive.
        legal: uint64 (n,), the legal actions as bits; 0 at chance and at the end.
        episode_info: `EPISODE_INFO` (n,), seeds, episodes, decisions and results of the last step.
        options: `STEP_OPTIONS` (1,), the options of a step: chance, autoreset, reward, bots.
        all_games: int64 (n,), the indices of all games. Passing this very array skips checks.

    Raises:
        BoardError: for an unknown board.
        ValueError: for another argument that is not allowed.
    """

    def __init__(
        self,
        n: int,
        board: Boards = "shikoku",
        *,
        chance: Chance = "sampled",
        autoreset: bool = True,
        reward: Literal["win", "margin"] = "win",
        observation: ObservationFormat | None = "float32",
        see_board: bool = False,
        check: bool = True,
        copy: bool = True,
    ) -> None:
        n = batch_validation.checked_count(n)
        check_choice("chance", chance, get_args(Chance))
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
        self.options = options = np.zeros(1, STEP_OPTIONS)
        options["sampled"], options["autoreset"] = chance == "sampled", bool(autoreset)
        options["margin"], options["bot"] = reward == "margin", NO_BOT
        options["pool"] = len(self.pool) if self.pool.drawn else 0
        self.all_games = np.arange(n)
        self._scratch = np.zeros(n, np.bool_)
        self._mask_words = aligned_zeros((n, MASK_BYTES // 8), np.uint64)
        self._live = self._views()
        self._begun = False

    def __len__(self) -> int:
        return len(self.states)

    # Methods on all games

    def reset(self, seed: Seeds = None, positions: Positions | None = None) -> TimeStep:
        """Start an episode of every game.

        Args:
            seed: an integer starts game `i` at the first episode of seed `game_seed(seed, i)`;
                integers (n,) give each game its seed. None, also in a list, starts a game's next
                episode, or, in a new batch, an episode of a seed from the operating system.
            positions: initial positions: one for all games, or one per game. A position is a dict
                as `Game.to_dict` returns it, which with a pool also names its board; or pass
                `STATE` (n,) or (1,) from games on the same boards.

        Returns:
            The first time step, at the first decision of each game.

        Raises:
            SeedError: for anything else than non-negative integers.
            PositionError: for a position that no game can reach. No game changes on errors.
        """
        self.begin(self.all_games, seed, positions)
        return self.timestep()

    def step(self, moves: npt.ArrayLike) -> TimeStep:
        """Play one move of every game: a decision, or an outcome at explicit chance.

        Args:
            moves: integers (n,), action ids or outcome ids.

        Returns:
            The time step after the moves and all chance that follows them.

        Raises:
            IllegalMove: naming the games, their moves and the legal ones; nothing is played. Games
                that are over have no legal move: `begin` them, or `advance` the other ones.
        """
        self.advance(self.all_games, moves)
        return self.timestep()

    def play(self, bot: str) -> TimeStep:
        """Play one move of every unfinished game, chosen by a compiled bot.

        The bot makes the same moves as the agent of that name, from the same `keys`.

        Args:
            bot: "random" or "greedy". At explicit chance, the outcome is sampled.
        """
        self._advance_with(self.all_games, bot, to_end=False)
        return self.timestep()

    def finish(self, bot: str) -> TimeStep:
        """Play every game to its end, with the bot "random" or "greedy" in both seats."""
        self._advance_with(self.all_games, bot, to_end=True)
        return self.timestep()

    def outcome_weights(self) -> npt.NDArray[np.int64]:
        """Return the weights of outcome ids, int64 (n, MAX_OUTCOMES); zeros except at chance."""
        self._check_begun(self.all_games)
        out = np.zeros((len(self), MAX_OUTCOMES), np.int64)
        batch_kernels.weights(self.all_games, self.boards, self.states, self.episode_info, out)
        return out

    def sample_outcomes(self) -> npt.NDArray[np.int64]:
        """Sample an outcome for each game, int64 (n,); -1 where no chance is next.

        Playing the samples gives the same games as sampled chance. Each call advances the games'
        random numbers: sample once, then play.
        """
        self._check_begun(self.all_games)
        out, info = np.empty(len(self), np.int64), self.episode_info
        batch_kernels.outcomes(self.all_games, self.boards, self.states, self.luck, info, out)
        return out

    # Methods on some games

    def begin(self, games: Games, seed: Seeds = None, positions: Positions | None = None) -> None:
        """Start an episode of some games and play chance up to the first decision.

        Args:
            games: indices (k,).
            seed: an integer, integers (k,) or None, as for `reset`, which has the errors too.
            positions: one for all games or k of them, as for `reset`; None: the set-up.
        """
        self.initialize(games, seed, positions)
        self.advance_to_decision(games)

    def initialize(
        self, games: Games, seed: Seeds = None, positions: Positions | None = None
    ) -> None:
        """Set up an episode of some games without playing chance; arguments of `begin`."""
        games = self._indices(games, unique=True)
        info = self.episode_info
        base_seeds, follows = batch_validation.base_seeds(seed, games, info["base_seed"][games])
        episodes = (info["episode"][games] + 1) * ((info["base_seed"][games] >= 0) & follows)
        boards = info["board"][games].astype(np.int64)
        if self.pool.drawn:
            boards = self.pool.indices_of_episodes(base_seeds, episodes)
        if positions is None:
            states = copy_rows(self._initial_states, boards)
        else:
            states = batch_validation.states_from(positions, self.pool, boards, games)
        info["episode"][games] = episodes
        info["base_seed"][games] = base_seeds
        info["board"][games] = boards
        put_rows(self.states, games, states)
        batch_kernels.begin(
            games, self.boards, self.states, self.luck, self.episode_info, self.legal
        )
        self._update_begun()

    def advance_to_decision(self, games: Games) -> None:
        """Play chance and bots (see `set_bots`) up to the next decision of games, indices (k,)."""
        games = self._indices(games, unique=True)
        self._check_begun(games)
        advance_checked(self, games, np.full(len(games), NO_ACTION))

    def set_bots(self, games: Games, bots: npt.ArrayLike) -> None:
        """Let compiled bots play seats of some games, from the next step on.

        Args:
            games: indices (k,).
            bots: integers (k, 2), one per seat: `bots.RANDOM`, `bots.GREEDY` or `bots.NO_BOT`.
                Other numbers, and games without a seat for you, raise `ValueError`.
        """
        games = self._indices(games, unique=True)
        checked = batch_validation.checked_bots(bots, len(games))
        self.episode_info["bot"][games] = checked
        self.options["bots"] |= (checked != NO_BOT).any()

    def advance(self, games: Games, moves: npt.ArrayLike) -> None:
        """Play one move of some games, as `step` does for all, without returning a time step.

        Args:
            games: indices (k,).
            moves: integers (k,), action ids or outcome ids; an illegal one is as in `step`.
        """
        games = self._indices(games, unique=True)
        self._check_begun(games)
        chosen = batch_validation.checked_moves(moves, len(games))
        if self._check:
            wrong = self._illegal(games, chosen)
            if wrong.any():
                raise self.illegal_moves_error(games[wrong], chosen[wrong])
        advance_checked(self, games, chosen)

    def check_moves(
        self, games: Games, moves: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return the moves of k games as int64 (k,), and which are illegal, bool (k,).

        Raises:
            ValueError: for moves that are not integers (k,).
        """
        games = self._indices(games)
        chosen = batch_validation.checked_moves(moves, len(games))
        return chosen, self._illegal(games, chosen)

    def illegal_moves_error(self, games: Games, moves: npt.NDArray[np.int64]) -> IllegalMove:
        """Return the error of moves, int64 (k,), that `check_moves` has found illegal."""
        arrays = self.pool, self.boards, self.episode_info["board"], self.states
        return batch_validation.illegal_moves_error(*arrays, games, moves)

    def decide(self, agent: Agent, games: Games) -> npt.NDArray[np.int64]:
        """Let an agent play one decision of some games, and return its actions, int64 (k,).

        Raises:
            TypeError: if `agent` is no `Agent`.
            IllegalMove: for an illegal action, naming the agent and the game, or for a game that
                is not at a decision. Nothing is played then.
        """
        check_agent("agent", agent)
        games = self._indices(games, unique=True)
        self._check_begun(games)
        batch_validation.check_deciding(games, self.legal, self.states)
        actions = agent.act(*self.act_arguments(games))
        try:
            self.advance(games, actions)
        except ValueError as error:
            raise type(error)(f"agent {repr_short(agent.spec, _MAX_SPEC)}: {error}") from None
        return actions

    def act_arguments(self, games: Games) -> ActArguments:
        """Return the arguments of `Agent.act`, arrays (k,), for games, indices (k,)."""
        games = self._indices(games)
        states = copy_rows(self.states, games)
        return self.boards_of(games), states, self.legal[games], self.keys(games)

    def afterstates(
        self, games: Games | None = None, inputs: AfterstateInputs | None = "afterstates"
    ) -> Afterstates:
        """Return the positions after all legal actions of some games, before any chance.

        Args:
            games: indices (k,) (default: all), in which `Afterstates.game` counts.
            inputs: "afterstates" for the networks' inputs, "geometry" or "float32" for these
                observations, or None.

        Raises:
            IllegalMove: for a game at chance or over, naming the game and the remedy.
        """
        games = self.all_games if games is None else self._indices(games)
        self._check_begun(games)
        batch_validation.check_deciding(games, self.legal, self.states)
        args = self.episode_info["board"][games], copy_rows(self.states, games), self.legal[games]
        margin = bool(self.options["margin"][0])
        return afterstates_of(self.boards, *args, inputs, margin)

    def keys(self, games: Games) -> npt.NDArray[np.uint64]:
        """Return the random keys of agents' next decisions in games, indices (k,): uint64 (k,)."""
        games = self._indices(games)
        out = np.empty(len(games), np.uint64)
        batch_kernels.keys(games, self.states, self.episode_info, out)
        return out

    def timestep(self) -> TimeStep:
        """Return the current time step, for use after `begin` or `advance`.

        `reward`, `terminated`, `player` and `next_player` of a game that these calls left out are
        those of its own last step.
        """
        args = self.all_games, self.boards, self.states, self.episode_info, batch_kernels.DECIDING
        observation = self._observer.update(args)
        return copy_timestep(self._live, observation) if self._copy else self._live

    def observe(self, games: Games, seats: npt.ArrayLike) -> Any:
        """Return observations of some games in the batch's format, or float32 if it has none.

        Args:
            games: indices (k,).
            seats: integers (k,), the observing seats: 0, 1, or -1 (nobody), which means 0.
        """
        games = self._indices(games)
        chosen = batch_validation.checked_seats(seats, len(games))
        return self._observer.observe((games, self.boards, self.states, self.episode_info, chosen))

    @property
    def padded_mask(self) -> npt.NDArray[np.int8]:
        """A live view of `TimeStep.mask`, padded to int8 (n, MASK_BYTES), contiguous. Read only."""
        return self._mask_words.view(np.int8)

    def masks(self, games: Games) -> npt.NDArray[np.bool_]:
        """Return the legal actions of games, indices (k,): bool (k, N_ACTIONS)."""
        return batch_kernels.mask_rows(self._indices(games), self.legal).view(np.bool_)

    def rewards(self, games: Games) -> npt.NDArray[np.float32]:
        """Return both seats' rewards in the positions of games, indices (k,): float32 (k, 2)."""
        games = self._indices(games)
        out = np.empty((len(games), 2), np.float32)
        margin = bool(self.options["margin"][0])
        batch_kernels.rewards(games, self.boards, self.states, self.episode_info, margin, out)
        return out

    def boards_of(self, games: Games) -> npt.NDArray[np.void]:
        """Return the boards of games, indices (k,), for `Agent.act`: `BOARD` (1,) or (k,)."""
        if len(self.boards) == 1:
            return self.boards
        return copy_rows(self.boards, self.episode_info["board"][self._indices(games)])

    @property
    def over(self) -> npt.NDArray[np.bool_]:
        """Whether each game has ended: bool (n,)."""
        return np.asarray(self.states["end"] != NOT_ENDED)

    def snapshot(self, games: Games | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return copies of all arrays of some games (default: all) by name, random numbers too."""
        games = None if games is None else self._indices(games)
        taken = {name: copy_rows(array, games) for name, array in self._arrays().items()}
        return taken | {"boards": self.pool.hashes[taken["episode_info"]["board"]]}

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]], games: Games | None = None) -> None:
        """Restore a snapshot of k games, or of one, into k games (default: all).

        The arrays of `snapshot` may come from other games and another batch on the same boards.

        Raises:
            ValueError: for arrays that are no such snapshot; nothing changes then.
        """
        chosen = self.all_games if games is None else self._indices(games, unique=True)
        like = self._arrays() | {"boards": self.pool.hashes}
        held = batch_validation.checked_arrays(snapshot, like, len(chosen))
        boards = self.pool.indices_of_hashes(held["boards"], self.episode_info["board"][chosen])
        foreign = np.flatnonzero(boards < 0)
        if len(foreign):
            game = int(chosen[foreign[0]])
            raise ValueError(f"snapshot: it was taken on another board than that of game {game}")
        batch_validation.check_states(self.pool, self.boards, boards, chosen, held["states"])
        batch_validation.check_episode_info(self.boards, boards, held)
        for name, array in self._arrays().items():
            put_rows(array, chosen, held[name])
        self.episode_info["board"][chosen] = boards
        batch_kernels.unpack_masks(self.all_games, self.legal, self._mask_words)
        self.options["bots"] = (self.episode_info["bot"] != NO_BOT).any()
        self._update_begun()

    # Internals

    def _indices(self, games: Games, *, unique: bool = False) -> Games:
        """Return checked indices, int64 (k,); `unique` refuses an index that occurs twice."""
        if games is self.all_games:
            return games
        return batch_validation.checked_games(games, len(self), self._scratch if unique else None)

    def _illegal(self, games: Games, moves: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        wrong, info = np.empty(len(games), np.bool_), self.episode_info
        batch_kernels.find_illegal(games, self.boards, self.states, info, self.legal, moves, wrong)
        return wrong

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in ("states", "luck", "legal", "episode_info")}

    def _update_begun(self) -> None:
        self._begun = bool((self.episode_info["base_seed"] >= 0).all())

    def _views(self) -> TimeStep:
        """Return views of the buffers that steps write: the time step of `copy=False`."""
        info = self.episode_info
        return TimeStep(
            self._observer.buffer,
            self._mask_words.view(np.int8)[:, :N_ACTIONS],
            self.legal,
            self.states["player"],
            info["reward"],
            info["terminated"].view(np.bool_),
            info["player"],
            info["next_player"],
        )

    def __getstate__(self) -> dict[str, Any]:
        """Omit the views: a copy would separate them from their buffers."""
        return {name: value for name, value in self.__dict__.items() if name != "_live"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._live = self._views()

    def _advance_with(self, games: Games, bot: str, *, to_end: bool) -> None:
        self._check_begun(games)
        check_choice("bot", bot, BOTS)
        options = self.options.copy()
        options["bot"] = BOTS[bot]
        options["to_end"] = to_end
        options["bots"] |= to_end
        advance_checked(self, games, np.empty(len(games), np.int64), options)

    def _check_begun(self, games: Games) -> None:
        waiting = games[:0] if self._begun else games[self.episode_info["base_seed"][games] < 0]
        if len(waiting):
            raise RuntimeError(f"game {waiting[0]} has not begun: call reset(seed=…) first")


def advance_checked(
    batch: Batch,
    games: Games,
    moves: npt.NDArray[np.int64],
    options: npt.NDArray[np.void] | None = None,
) -> None:
    """Play moves that `Batch.check_moves` has found legal, without another check.

    Args:
        batch: the batch.
        games: int64 (k,), indices of games that have begun, each once.
        moves: int64 (k,).
        options: `STEP_OPTIONS` (1,), those of the batch by default.
    """
    options = batch.options if options is None else options
    batch_kernels.advance(
        *(games, batch.boards, batch.states, batch.luck, batch.episode_info),
        *(batch.legal, batch._mask_words, moves, batch._initial_states, options),
    )
