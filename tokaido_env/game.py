"""`Game`: one game made pleasant."""

from __future__ import annotations

import copy
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tokaido_env import position as positions
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool, Boards, board_named
from tokaido_env.core.actions import IDS, LABELS, N_ACTIONS, NO_ACTION
from tokaido_env.core.arguments import CHANCES, Chance, IllegalMove, check_choice, check_seed
from tokaido_env.core.bitmask import actions_of, unpack_mask
from tokaido_env.core.events import illegal_move_message, outcome_label, outcomes_by_label
from tokaido_env.core.observation import N_FEATURES, encode_game
from tokaido_env.core.rng import LUCK, entropy_seed, fork_luck, seed_luck
from tokaido_env.core.rules import MAX_OUTCOMES, winner_of
from tokaido_env.core.serialization import result_of, seat_or_none
from tokaido_env.core.state import (
    CHANCE_PHASES,
    ENDS,
    NO_PLAYER,
    OVER,
    Phase,
    copy_rows,
    initial_states,
)
from tokaido_env.core.stepping import HISTORY_FULL, advance_game, weights_of

if TYPE_CHECKING:
    from tokaido_env.agent import Agent
    from tokaido_env.record import Record
    from tokaido_env.render.scene import Scene
    from tokaido_env.render.style import Theme
    from tokaido_env.render.svg import Picture
    from tokaido_env.trajectory import Trajectory

_ROOM = 512  # events that a game has room for at first: half of the games have fewer


class Game:
    """One game of Tokaido Duo.

    Args:
        board: name of a built-in board, path of a board file, `family:NUMBER`, a `Board`, or a
            pool such as `family:train/1000`, of which the seed draws one (`boards.board_pool`).
        seed: of the game's luck, 0 to 2**53 - 1; the same seed and moves give the same game. None
            takes one from the operating system.
        chance: "sampled": chance resolves itself from the seed; "explicit": the game stops at each
            chance phase and `play` takes an outcome.

    Attributes:
        board: the `Board`.
        chance: as given.
        seed: what gives the whole game again with the same moves; None with explicit chance and in
            a copy that was given other luck.
        player: whose decision it is; None at chance and when the game is over.
        legal_mask: the legal actions as bits of one integer; 0 at chance and when over.
        boards, states: `BOARD` and `STATE` arrays of shape (1,), for kernels. Live: do not write.

    `print(game)` draws the position as text, notebooks show a picture. Two games are equal (`==`)
    when their boards and positions are.

    >>> game = Game(seed=7)
    >>> game.play(game.legal_actions()[0])
    """

    def __init__(
        self,
        board: Boards = "shikoku",
        seed: int | None = None,
        chance: Chance = "sampled",
    ) -> None:
        seed = entropy_seed() if seed is None else check_seed(seed)
        loaded = BoardPool.load(board).of_seed(seed)
        self._begin(loaded, initial_states(loaded.record), seed, chance)
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
        """Start a game from a position, as `to_dict` gives it, with fresh luck.

        Args:
            position: the position.
            board: needed when `position["board"]` names a board that is neither built in nor of
                the family; of a pool, the board that the position names.
            seed: as for `Game`.
            chance: as for `Game`; None means "explicit" for a position at a chance phase, so that
                the game stands exactly where the position does, else "sampled".

        Raises:
            PositionError: if no game can reach the position.
            BoardError: if there is no such board.
        """
        loaded = _board_of(position, board)
        states = positions.from_dict(loaded, position)
        if chance is None:
            at_chance = Phase(states["phase"][0]) in CHANCE_PHASES
            chance = "explicit" if at_chance else "sampled"
        game = cls.__new__(cls)
        seed = entropy_seed() if seed is None else check_seed(seed)
        game._begin(loaded, states, seed, chance)
        game._started_from_position = True
        return game

    player: int | None
    legal_mask: int

    def _begin(self, board: Board, states: npt.NDArray[np.void], seed: int, chance: Chance) -> None:
        check_choice("chance", chance, CHANCES)
        self.board = board
        self.seed: int | None = seed if chance == "sampled" else None
        self.chance: Chance = chance
        self.boards = board.record
        self._start = copy_rows(states)
        self.states = states
        self._luck = np.zeros(1, LUCK)
        seed_luck(self._luck, 0, seed)
        self._sampled = chance == "sampled"
        self._history = np.zeros(_ROOM, np.int32)  # as `advance` takes it
        self._advance(NO_ACTION)

    def _advance(self, move: int) -> None:
        """Play a move that is on offer, or none, and chance: all of it or, at Ctrl-C, nothing."""
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
            self._note_turn()
            raise

    def _note_turn(self) -> None:
        """Note what is legal and who decides where the game stands."""
        here = self.boards, self.states, self._luck, 0
        self.legal_mask, player = advance_game(*here, NO_ACTION, False, self._history)
        self.player = None if player == NO_PLAYER else player

    # What is going on

    @property
    def phase(self) -> Phase:
        """What happens next."""
        return Phase(self.states["phase"][0])

    @property
    def is_over(self) -> bool:
        """Whether the game has ended, by a trigger (R9.1) or the cap on rounds (R10.1)."""
        return not self.legal_mask and int(self.states["phase"][0]) == OVER

    @property
    def end(self) -> str | None:
        """How the game ended, "triggers" or "cap"; None while it runs."""
        return ENDS[self.states["end"][0]]

    @property
    def rounds(self) -> int:
        """Rolls made."""
        return int(self.states["round"][0])

    @property
    def state(self) -> npt.NDArray[np.void]:
        """A copy of the state: a `STATE` array of shape (1,)."""
        return copy_rows(self.states)

    def legal_actions(self) -> list[int]:
        """Return the ids of the legal actions, ascending; empty at chance and when over."""
        return actions_of(self.legal_mask)

    def legal_labels(self) -> list[str]:
        """Return the labels of the legal actions, in the order of `legal_actions`."""
        return [LABELS[action] for action in actions_of(self.legal_mask)]

    def observation(self, seat: int | None = None) -> npt.NDArray[np.float32]:
        """Return what a seat sees, as environments show it by default: `FEATURES`.

        Args:
            seat: 0 or 1; None means the player to decide.

        Returns:
            float32 (337,), numbers in [0, 1].

        Raises:
            ValueError: if there is no such seat, or None is given where nobody is to decide.
        """
        seat = self.player if seat is None else seat
        if seat is None:
            raise ValueError(f"seat: expected 0 or 1 at {self.phase.name}, where nobody decides")
        check_choice("seat", seat, (0, 1))
        seen = np.empty(N_FEATURES, np.float32)
        encode_game(self.boards, self.states, 0, int(seat), seen)
        return seen

    def mask(self) -> npt.NDArray[np.int8]:
        """Return the legal actions as environments show them.

        Returns:
            int8 (49,), 1 = legal; zeros at chance and when over.
        """
        mask = np.empty(N_ACTIONS, np.int8)
        unpack_mask(self.legal_mask, mask)
        return mask

    def outcomes(self) -> list[tuple[str, float]]:
        """Return the possible outcomes of a chance phase as (label, probability); else []."""
        weights, step = self._weights()
        phase, total = self.phase, int(weights.sum())
        return [
            (outcome_label(self.board.kinds, phase, step, outcome), weight / total)
            for outcome, weight in enumerate(weights.tolist())
            if weight
        ]

    def scores(self) -> list[dict[str, int]]:
        """Return the points of both seats as they would count now (R9.2)."""
        return list(result_of(self.boards, self.states)["scores"])

    def winner(self) -> int | None:
        """Return the seat that has won; None for a shared victory, at the cap, or while it runs."""
        return seat_or_none(winner_of(self.boards, self.states, 0))

    # Playing

    def play(self, move: int | str) -> None:
        """Play a decision or, at a chance phase, an outcome: by id or by label.

        Raises:
            IllegalMove: if it is not on offer; nothing has changed then.
            KeyboardInterrupt: at Ctrl-C: the move is played, with all that follows, or it is not.
        """
        legal = self.legal_mask
        if legal:
            if isinstance(move, str):
                action = IDS.get(move, NO_ACTION)
            else:
                action = move if type(move) is int else _as_int(move)
            if action < 0 or not legal >> action & 1:
                raise self._refused(move)
        else:
            action = self._outcome_id(move)
        self._advance(action)

    def copy(self, luck: Literal["fresh", "same"] = "fresh", seed: int | None = None) -> Game:
        """Return an independent copy of the game.

        Args:
            luck: "fresh": luck of its own, derived from this game's and a count of its copies, so
                that no copy tells the future; "same": the very same future.
            seed: take the luck of this seed instead.
        """
        check_choice("luck", luck, ("fresh", "same"))
        other = copy.copy(self)
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
        """Copy the luck exactly; boards are shared."""
        return self.copy(luck="same")

    # In and out

    def to_dict(self) -> dict[str, Any]:
        """Return everything visible as plain JSON types; `from_dict` is its inverse."""
        return positions.to_dict(self.board, self.states[0])

    def record(self, players: Sequence[str] = ("?", "?")) -> Record:
        """Return everything that happened, to save and replay.

        Args:
            players: what to call the two players in the record.
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

    def show(self, policy: str | Agent | None = None, theme: Theme = "auto") -> Picture:
        """Return a picture of the position, which notebooks show.

        Args:
            policy: an agent, or the spec of one as `agents.make` takes it, to write how likely it
                takes each legal action, and who it thinks will win.
            theme: "light", "dark", or "auto" to follow the reader's setting.
        """
        from tokaido_env.render.svg import Picture, draw

        return Picture(draw(self.scene(policy), theme))

    def scene(self, policy: str | Agent | None = None) -> Scene:
        """Return what there is to see: what pictures are drawn from.

        Args:
            policy: as for `show`.
        """
        from tokaido_env.agent import as_agent
        from tokaido_env.render.scene import last_step, scene_of

        played = self.trajectory()
        last = last_step(self.board, played.states, played.events)
        if policy is None or not self.legal_mask:
            return scene_of(self.board, self.states, last=last)
        legal = np.array([self.legal_mask], np.uint64)
        asked = self.boards, self.state, legal, np.zeros(1, np.uint64)
        shares, values = as_agent(policy).judge(*asked)
        value = None if values is None else float(values[0])
        return scene_of(self.board, self.states, probabilities=shares[0], value=value, last=last)

    def _repr_svg_(self) -> str:
        return self.show().svg

    @property
    def start_position(self) -> dict[str, Any] | None:
        """The position that the game was begun from; None for an ordinary game."""
        if not self._started_from_position:
            return None
        return positions.to_dict(self.board, self._start[0])

    def trajectory(self, since: Game | None = None) -> Trajectory:
        """Return everything that happened, with the position before each event.

        Args:
            since: an earlier copy of this game, to return only what happened after it.
        """
        from tokaido_env.trajectory import replay_ids

        first, starts = (0, self._start) if since is None else (since._history[0], since.states)
        events = self._history[1 + first : 1 + self._history[0]]
        return replay_ids(self.board, events.astype(np.uint8), starts)

    def events(self) -> list[str]:
        """Return the labels of all actions and outcomes since the start, in order."""
        return list(self.trajectory().labels())

    def label(self, move: int) -> str:
        """Return the label of an action or, at a chance phase, of an outcome.

        Raises:
            IllegalMove: if there is no such action or outcome.
        """
        weights, step = self._weights()
        known, number = len(LABELS) if self.legal_mask else len(weights), _as_int(move)
        if not 0 <= number < known:
            raise self._refused(move)
        if self.legal_mask:
            return LABELS[number]
        return outcome_label(self.board.kinds, self.phase, step, number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Game):
            return NotImplemented
        return self.board.hash == other.board.hash and bytes(self.states) == bytes(other.states)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        who = "" if self.player is None else f", player {self.player} to decide"
        return f"<Game {self.board.name!r}, round {self.rounds}, {self.phase.name}{who}>"

    def __str__(self) -> str:
        from tokaido_env.render.ansi import draw

        return draw(self.scene(), color=False)

    def _weights(self) -> tuple[npt.NDArray[np.int64], int]:
        """Return the weights of the outcomes (none at a decision) and the step of the set-up."""
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
            raise self._refused(move)
        return outcome

    def _refused(self, move: object) -> IllegalMove:
        return IllegalMove(
            illegal_move_message(self.board.kinds, self.boards, self.states, 0, move)
        )


def _board_of(position: Mapping[str, Any], boards: Boards | None) -> Board:
    """Return the board of a position; whether it names the only one is looked at with the rest."""
    pool = None if boards is None else BoardPool.load(boards)
    if pool is not None and len(pool) == 1:
        return pool[0]
    return board_named(positions.board_name(position), pool)


def _as_int(move: object) -> int:
    """Accept NumPy's integers, which agents and masks hand out."""
    if isinstance(move, bool):
        return NO_ACTION
    try:
        return operator.index(move)  # type: ignore[arg-type]
    except Exception:  # none, or a stranger's own
        return NO_ACTION
