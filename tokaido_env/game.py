"""`Game`: one game of Tokaido Duo as a Python object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tokaido_env import position as positions
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards, board_by_name
from tokaido_env.core.actions import IDS, LABELS, N_ACTIONS, NO_ACTION
from tokaido_env.core.arguments import Chance, IllegalMove, as_integer, check_choice, check_seed
from tokaido_env.core.bitmask import actions_of, unpack_mask
from tokaido_env.core.copying import CopiedWhole, shallow_copy
from tokaido_env.core.events import illegal_move_message, outcome_label, outcomes_by_label
from tokaido_env.core.observation import N_FEATURES, encode_game
from tokaido_env.core.rng import LUCK, entropy_seed, fork_luck, seed_luck
from tokaido_env.core.rules import MAX_OUTCOMES, winner_of
from tokaido_env.core.serialization import result_of, seat_or_none
from tokaido_env.core.state import CHANCE_PHASES, ENDS, NO_PLAYER, OVER, STATE, Phase, copy_rows
from tokaido_env.core.stepping import HISTORY_FULL, advance_game, weights_of

if TYPE_CHECKING:
    from tokaido_env.agent import Agent
    from tokaido_env.features.afterstates import AfterstateInputs, Afterstates
    from tokaido_env.record import Record
    from tokaido_env.render.scene import Scene
    from tokaido_env.render.style import Theme
    from tokaido_env.render.svg import Picture
    from tokaido_env.trajectory import Trajectory

_CHANCES = get_args(Chance)
_INITIAL_CAPACITY = 512  # events; half of the games have fewer


class Game(CopiedWhole):
    """One game of Tokaido Duo.

    Args:
        board: name of a built-in board, path of a board file, `family:NUMBER`, a `Board`, or a
            pool such as `family:train/1000`; the seed draws a board of it (`boards.board_pool`).
        seed: random seed of dice and draws, an integer from 0; from 2**53 on it is hashed
            (`core.arguments.check_seed`). The same seed and moves give the same game. None takes a
            seed from the operating system.
        chance: "sampled": dice and draws follow from the seed; "explicit": the game stops at each
            chance phase, where `play` takes an outcome.

    Attributes:
        board: the `Board`.
        chance: as passed.
        seed: the seed that reproduces the whole game with the same moves; None with explicit
            chance and in a copy with new random numbers.
        player: the player to decide, 0 or 1; None at chance and at the end.
        legal_mask: the legal actions as bits of one integer; 0 at chance and at the end.
        boards: `BOARD` (1,), the board for kernels. Read only.
        states: `STATE` (1,), the position for kernels. Read only.

    Raises:
        BoardError: for an unknown board.
        SeedError: for a seed that is not a non-negative integer.
        ValueError: for unknown `chance`.

    `print(game)` draws the position as text, and notebooks show a picture. Games are equal (`==`)
    if their boards and positions are equal.

    >>> game = Game(seed=7)
    >>> game.play(game.legal_actions()[0])
    """

    def __init__(
        self, board: Boards = "shikoku", seed: int | None = None, chance: Chance = "sampled"
    ) -> None:
        seed = entropy_seed() if seed is None else check_seed(seed)
        loaded = BoardPool.load(board).board_of_seed(seed)
        self._begin(loaded, loaded.start, seed, chance)
        self._started_from_position = False

    @classmethod
    def from_dict(
        cls,
        position: Mapping[str, Any],
        *,
        board: Boards | None = None,
        seed: int | None = None,
        chance: Chance | None = None,
    ) -> Game:
        """Start a game from a position, with new random numbers.

        Args:
            position: a position as `to_dict` returns it, also with NumPy's integers and arrays.
            board: required if `position["board"]` names a board that is neither built in nor of
                the family. A pool must contain the board that the position names.
            seed: random seed of the dice and draws from here on, an integer from 0.
            chance: "sampled" or "explicit". None means "explicit" for a position at a chance
                phase, which keeps the game exactly at that position, and "sampled" otherwise.

        Raises:
            PositionError: for a position that no game can reach.
            BoardError: for an unknown board.
        """
        loaded = _board_of(position, board)
        states = positions.from_dict(loaded, position)
        if chance is None:
            at_chance = Phase(states["phase"][0]) in CHANCE_PHASES
            chance = "explicit" if at_chance else "sampled"
        seed = entropy_seed() if seed is None else check_seed(seed)
        return cls.from_states(loaded, states, seed, chance)

    @classmethod
    def from_states(
        cls, board: Board, states: npt.NDArray[np.void], seed: int, chance: Chance
    ) -> Game:
        """Start a game from `STATE` (1,), which is not checked; arguments as for `Game`."""
        game = cls.__new__(cls)
        game._begin(board, states.tobytes(), seed, chance)
        game._started_from_position = True
        return game

    player: int | None
    legal_mask: int

    def _begin(self, board: Board, start: bytes, seed: int, chance: Chance) -> None:
        if chance not in _CHANCES:
            check_choice("chance", chance, _CHANCES)
        self.board = board
        self.seed: int | None = seed if chance == "sampled" else None
        self.chance: Chance = chance
        self.boards = board.record
        self._start = start
        self.states = np.frombuffer(bytearray(start), STATE)
        self._luck = np.zeros(1, LUCK)
        seed_luck(self._luck, 0, seed)
        self._sampled = chance == "sampled"
        self._history = np.zeros(_INITIAL_CAPACITY, np.int32)  # as `advance` takes it
        self._advance(NO_ACTION)

    def _advance(self, move: int) -> None:
        """Play a legal move, or NO_ACTION, and sampled chance; Ctrl-C leaves a consistent game."""
        try:
            legal, player = advance_game(
                self.boards, self.states, self._luck, 0, move, self._sampled, self._history
            )
            while legal == HISTORY_FULL:
                self._history = np.concatenate([self._history, np.zeros_like(self._history)])
                legal, player = advance_game(
                    self.boards, self.states, self._luck, 0, move, self._sampled, self._history
                )
            self.legal_mask = legal
            self.player = None if player == NO_PLAYER else player
        except BaseException:  # Ctrl-C came before the kernel ran, or after it
            self._update_legal()
            raise

    def _update_legal(self) -> None:
        """Set `legal_mask` and `player` from the state."""
        args = self.boards, self.states, self._luck, 0
        self.legal_mask, player = advance_game(*args, NO_ACTION, False, self._history)
        self.player = None if player == NO_PLAYER else player

    # The position

    @property
    def phase(self) -> Phase:
        """The current phase, such as `Phase.MOVE`: what the game waits for."""
        return Phase(self.states["phase"][0])

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by a trigger (R9.1) or the cap on rounds (R10.1)."""
        return not self.legal_mask and int(self.states["phase"][0]) == OVER

    @property
    def end(self) -> str | None:
        """The reason of the end, "triggers" or "cap"; None before the end."""
        return ENDS[self.states["end"][0]]

    @property
    def rounds(self) -> int:
        """The number of rounds that have begun, each with one roll; 0 at the set-up."""
        return int(self.states["round"][0])

    @property
    def state(self) -> npt.NDArray[np.void]:
        """A copy of the position for kernels and agents, `STATE` (1,)."""
        return copy_rows(self.states)

    def legal_actions(self) -> list[int]:
        """Return the ids of the legal actions, ascending; empty at chance and at the end."""
        return actions_of(self.legal_mask)

    def legal_labels(self) -> list[str]:
        """Return the labels of the legal actions, in the order of `legal_actions`."""
        return [LABELS[action] for action in actions_of(self.legal_mask)]

    def observation(self, seat: int | None = None) -> npt.NDArray[np.float32]:
        """Return the observation of a seat, in the default format of the environments.

        Args:
            seat: 0 or 1; None means the player to decide.

        Returns:
            float32 (N_FEATURES,) in [0, 1]; `FEATURES` describes the entries.

        Raises:
            ValueError: for another seat, or for None while nobody is to decide.
        """
        seat = self.player if seat is None else seat
        if seat is None:
            raise ValueError(
                f"seat: expected 0 or 1 at {self.phase.name}, where nobody decides, got None"
            )
        check_choice("seat", seat, (0, 1))
        observation = np.empty(N_FEATURES, np.float32)
        encode_game(self.boards, self.states, 0, int(seat), observation)
        return observation

    def mask(self) -> npt.NDArray[np.int8]:
        """Return the action mask of the environments: int8 (49,), 1 = legal.

        It is 0 at chance and at the end.
        """
        mask = np.empty(N_ACTIONS, np.int8)
        unpack_mask(self.legal_mask, mask)
        return mask

    def afterstates(self, inputs: AfterstateInputs | None = "afterstates") -> Afterstates:
        """Return the afterstates of all legal actions: the positions after them, before any chance.

        Args:
            inputs: "afterstates" for the networks' inputs, "geometry", "float32" or None.

        Returns:
            One row per legal action, in the order of `legal_actions`. `result` is +1, -1 or 0.

        Raises:
            IllegalMove: at chance and at the end, where nobody decides.
            ValueError: for unknown `inputs`.
        """
        from tokaido_env.features.afterstates import afterstates_of

        if not self.legal_mask:
            raise IllegalMove(
                f"nothing to decide at {self.phase.name}: afterstates exist at decisions only"
            )
        legal = np.array([self.legal_mask], np.uint64)
        args = self.boards, np.zeros(1, np.int64), self.states, legal
        return afterstates_of(*args, inputs, False)

    def outcomes(self) -> list[tuple[str, float]]:
        """Return the possible outcomes as (label, probability) at a chance phase, otherwise []."""
        weights, step = self._weights()
        phase, total = self.phase, int(weights.sum())
        return [
            (outcome_label(self.board.kinds, phase, step, outcome), weight / total)
            for outcome, weight in enumerate(weights.tolist())
            if weight
        ]

    def scores(self) -> list[dict[str, int]]:
        """Return both seats' present points by category, with the "total" (R9.2), in two dicts."""
        return list(result_of(self.boards, self.states)["scores"])

    def winner(self) -> int | None:
        """Return the winning seat; None for a shared victory and before the end."""
        return seat_or_none(winner_of(self.boards, self.states, 0))

    # Moves

    def play(self, move: int | str) -> None:
        """Play a decision or, at a chance phase, an outcome.

        Args:
            move: id or label of an action or outcome.

        Raises:
            IllegalMove: naming the legal moves; the game is unchanged.
            KeyboardInterrupt: the move has either been played completely or not at all.
        """
        legal = self.legal_mask
        if legal:
            if isinstance(move, str):
                action = IDS.get(move, NO_ACTION)
            else:
                action = move if type(move) is int else _as_int(move)
            if action < 0 or not legal >> action & 1:
                raise self._illegal_move(move)
        else:
            action = self._outcome_id(move)
        self._advance(action)

    def copy(self, luck: Literal["fresh", "same"] = "fresh", seed: int | None = None) -> Game:
        """Return an independent copy of the game.

        Args:
            luck: "fresh": new random numbers, derived from this game's and the number of its
                copies, so that a copy does not reveal the future; "same": the same future.
            seed: use the random numbers of this seed instead.
        """
        check_choice("luck", luck, ("fresh", "same"))
        other = shallow_copy(self)
        other.states = copy_rows(self.states)
        other._luck = copy_rows(self._luck)
        other._history = self._history.copy()
        if seed is not None:
            other.seed = None
            seed_luck(other._luck, 0, check_seed(seed))
        elif luck == "fresh":
            other.seed = None
            fork_luck(self._luck, 0, other._luck, 0)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Game:
        """Copy the game with the same random numbers; boards are shared."""
        return self.copy(luck="same")

    # Conversions

    def to_dict(self) -> dict[str, Any]:
        """Return the position as plain JSON types; `from_dict` is the inverse."""
        return positions.to_dict(self.board, self.states[0])

    def record(self, players: Sequence[str] = ("?", "?")) -> Record:
        """Return a record of the game, to save and replay.

        Args:
            players: names of the two players.
        """
        from tokaido_env.record import Record

        names = tuple(players) if isinstance(players, Sequence) else players
        return Record(
            board=self.board.name,
            board_hash=self.board.hash,
            seed=self.seed,
            start=self.start_position,
            players=names,  # type: ignore[arg-type]
            events=self.trajectory().labels(),
            **result_of(self.boards, self.states),
        )

    def show(self, policy: Agent | None = None, theme: Theme = "auto") -> Picture:
        """Return a picture of the position, which notebooks display.

        Args:
            policy: an agent, as from `agents.make`; the picture then shows its probability of each
                legal action and its expected result.
            theme: "light", "dark", or "auto" to follow the reader's setting.
        """
        from tokaido_env.render.svg import Picture, draw

        return Picture(draw(self.scene(policy), theme))

    def scene(self, policy: Agent | None = None) -> Scene:
        """Return the scene from which pictures of the position are drawn.

        Args:
            policy: an agent, to show its action probabilities and its expected result.
        """
        from tokaido_env.agent import check_agent
        from tokaido_env.render.scene import last_steps, scene_of

        played = self.trajectory()
        last = last_steps(self.board, played.states, played.events)
        if policy is None or not self.legal_mask:
            return scene_of(self.board, self.states, last=last)
        legal = np.array([self.legal_mask], np.uint64)
        keys = np.zeros(1, np.uint64)
        check_agent("policy", policy)
        policy.prepare([self.board])
        shares, values = policy.judge(self.boards, self.state, legal, keys)
        value = None if values is None else float(values[0])
        return scene_of(self.board, self.states, probabilities=shares[0], value=value, last=last)

    def _repr_svg_(self) -> str:
        return self.show().svg

    @property
    def start_position(self) -> dict[str, Any] | None:
        """The position, as from `to_dict`, at which the game started; None for the set-up."""
        if not self._started_from_position:
            return None
        return positions.to_dict(self.board, np.frombuffer(bytearray(self._start), STATE)[0])

    def trajectory(self, since: Game | None = None) -> Trajectory:
        """Return all events with the position before each.

        Args:
            since: an earlier copy of this game; return only later events.
        """
        from tokaido_env.trajectory import replay_ids

        first, starts = 0, np.frombuffer(bytearray(self._start), STATE)
        if since is not None:
            first, starts = since._history[0], since.states
        events = self._history[1 + first : 1 + self._history[0]]
        return replay_ids(self.board, events.astype(np.uint8), starts)

    def events(self) -> list[str]:
        """Return the labels of all actions and outcomes since the start, in order."""
        return list(self.trajectory().labels())

    def label(self, move: int) -> str:
        """Return the label of an action or, at a chance phase, of an outcome.

        Raises:
            IllegalMove: for an unknown action or outcome.
        """
        weights, step = self._weights()
        known, number = len(LABELS) if self.legal_mask else len(weights), _as_int(move)
        if not 0 <= number < known:
            raise self._illegal_move(move)
        if self.legal_mask:
            return LABELS[number]
        return outcome_label(self.board.kinds, self.phase, step, number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Game):
            return NotImplemented
        return self.board.hash == other.board.hash and bytes(self.states) == bytes(other.states)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        player = "" if self.player is None else f", player {self.player} to decide"
        return f"<Game {self.board.name!r}, round {self.rounds}, {self.phase.name}{player}>"

    def __str__(self) -> str:
        from tokaido_env.render.ansi import draw

        return draw(self.scene(), color=False)

    def _weights(self) -> tuple[npt.NDArray[np.int64], int]:
        """Return the outcome weights (empty at a decision) and the step of the set-up."""
        weights = np.zeros(MAX_OUTCOMES, np.int64)
        n, step = weights_of(self.boards, self.states, 0, weights)
        return weights[:n], step

    def _outcome_id(self, move: int | str) -> int:
        weights, step = self._weights()
        if isinstance(move, str):
            outcome = outcomes_by_label(self.board.kinds, self.phase, step).get(move, NO_ACTION)
        else:
            outcome = _as_int(move)
        if not 0 <= outcome < len(weights) or not weights[outcome]:
            raise self._illegal_move(move)
        return outcome

    def _illegal_move(self, move: object) -> IllegalMove:
        return IllegalMove(
            illegal_move_message(self.board.kinds, self.boards, self.states, 0, move)
        )


def _board_of(position: Mapping[str, Any], boards: Boards | None) -> Board:
    """Return the board of a position. The reader of positions checks the name of an only board."""
    pool = None if boards is None else BoardPool.load(boards)
    if pool is not None and len(pool) == 1:
        return pool[0]
    return board_by_name(positions.board_name(position), pool)


def _as_int(move: object) -> int:
    """Return an integer as int, also NumPy's; NO_ACTION for anything else."""
    number = as_integer(move)
    return NO_ACTION if number is None else number
