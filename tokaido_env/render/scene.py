"""What there is to see: a position with the choices in it, how it came about and what it is worth.

    scene = scene_of(board, states)

Every picture is drawn from a scene; nothing here draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.core.actions import ARTIST_STAY, LABELS, MOVE_ARTIST, MOVE_MERCHANT
from tokaido_env.core.bitmask import actions_of
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, TOWNS
from tokaido_env.core.rng import LUCK, MAX_EVENTS
from tokaido_env.core.rules import legal_mask, winner_of
from tokaido_env.core.serialization import points_of, seat_or_none, state_to_dict
from tokaido_env.core.state import copy_rows
from tokaido_env.core.stepping import advance_game, wares_of

Position = Mapping[str, Any]  # as `Game.to_dict` gives it
Player = Mapping[str, Any]  # one of its players
Place = int | str  # the ring index of a station, or the name of a mountain town or an area
States = npt.NDArray[np.void]
Shares = npt.NDArray[np.float32]
Events = npt.NDArray[np.int16]

SEATS = ("player_0", "player_1")

# What a step takes where chance is left alone.
_NO_LUCK = np.zeros(1, LUCK)
_ROOM = MAX_EVENTS + 3  # what `advance` asks for


class Choice(NamedTuple):
    """A legal action.

    Attributes:
        label: of the action.
        place: where it leads a character; None for an action that moves none.
        probability: with which an agent takes it; None if none was asked.
    """

    label: str
    place: Place | None = None
    probability: float | None = None


class Step(NamedTuple):
    """A move of a character that was made: who it was, from where, and where to."""

    seat: int
    character: str
    start: Place
    end: Place


@dataclass(frozen=True)
class Scene:
    """What a picture shows.

    Attributes:
        board: of the position.
        position: as `Game.to_dict` gives it.
        points: of both players by `core.serialization.POINTS`, as they would count now.
        rooms: how many wares each player may keep.
        winner: who has won; None for a shared victory, at the cap, and while the game runs.
        choices: the legal actions, in the order of their ids.
        last: the newest move; None before the first.
        value: the result that player_0 can expect, -1 to 1; None if nobody was asked.
        names: what to call the two players.
    """

    board: Board
    position: Position
    points: Sequence[Mapping[str, int]]
    rooms: Sequence[int]
    winner: int | None = None
    choices: Sequence[Choice] = ()
    last: Step | None = None
    value: float | None = None
    names: tuple[str, str] = SEATS


def scene_of(
    board: Board,
    states: States,
    *,
    shares: Shares | None = None,
    value: float | None = None,
    last: Step | None = None,
    names: tuple[str, str] = SEATS,
) -> Scene:
    """Return what there is to see of a position.

    Args:
        board: of the position.
        states: `STATE` (1,), not changed.
        shares: float32 (N_ACTIONS,), how likely an agent takes each action.
        value: the result that player_0 can expect, as an agent holds.
        last: the newest move.
        names: what to call the two players.
    """
    boards = board.record
    return Scene(
        board,
        state_to_dict(board.name, boards[0], states[0]),
        points_of(boards, states),
        [int(wares_of(states, 0, seat)[1]) for seat in range(2)],
        seat_or_none(winner_of(boards, states, 0)),
        choices_of(board, states, shares),
        last,
        value,
        names,
    )


def scenes_of(
    board: Board,
    states: States,
    events: Events,
    rows: npt.NDArray[np.bool_] | None = None,
    names: tuple[str, str] = SEATS,
    *,
    shares: Shares | None = None,
    values: Sequence[float | None] | None = None,
    last: Step | None = None,
) -> Iterator[Scene]:
    """Yield what there is to see in the rows of a played game.

    Args:
        board: of the game.
        states: `STATE` (rows,), the position before each event, then that at the end.
        events: int16 (rows,), as in `trajectory.Trajectory`.
        rows: bool (rows,), which of them; all by default.
        names: what to call the two players.
        shares: float32 (rows, N_ACTIONS), how likely an agent takes each action.
        values: the results that player_0 can expect, one for each row.
        last: the newest move before the first row.
    """
    moved = moves(events)
    for row in range(len(states)):
        if row and moved[row - 1]:
            last = step_of(board, states[row - 1], int(events[row - 1]), states[row])
        if rows is None or rows[row]:
            yield scene_of(
                board,
                copy_rows(states[row:][:1]),
                shares=None if shares is None else shares[row],
                value=None if values is None else values[row],
                last=last,
                names=names,
            )


def choices_of(board: Board, states: States, shares: Shares | None = None) -> list[Choice]:
    """Return the legal actions with the places that they lead to; arguments as for `scene_of`."""
    choices = []
    for action in actions_of(legal_mask(board.record, states, 0)):
        place = None
        if action <= ARTIST_STAY:
            (then,) = state_after(board, states, action)
            place = step_of(board, states[0], action, then).end
        share = None if shares is None else float(shares[action])
        choices.append(Choice(LABELS[action], place, share))
    return choices


def state_after(board: Board, states: States, action: int) -> States:
    """Return the position after a legal action, before any chance: `STATE` (1,)."""
    then = copy_rows(states)
    advance_game(board.record, then, _NO_LUCK, 0, action, False, np.zeros(_ROOM, np.int32))
    return then


def moves(events: Events) -> npt.NDArray[np.bool_]:
    """Return which events move a character: bool (rows,)."""
    return np.asarray((events >= 0) & (events <= ARTIST_STAY))


def step_of(board: Board, before: np.void, action: int, after: np.void) -> Step:
    """Return what an action that moves a character has done.

    Args:
        board: of the game.
        before: the position in which it was chosen, a row of `STATE`.
        action: its id.
        after: the position next.
    """
    seat = int(before["player"])
    character = CHARACTERS[int(action >= MOVE_MERCHANT) + int(action >= MOVE_ARTIST)]
    places = {"merchant": TOWNS, "artist": AREAS}.get(character, range(len(board.stations)))
    indices = (int(row[character][seat]) for row in (before, after))
    return Step(seat, character, *(site_of(board, places[index]) for index in indices))


def last_step(board: Board, states: States, events: Events) -> Step | None:
    """Return the newest move of a character in a played game; arguments as for `scenes_of`."""
    rows = np.flatnonzero(moves(events))
    if not len(rows):
        return None
    row = int(rows[-1])
    return step_of(board, states[row], int(events[row]), states[row + 1])


def place_of(board: Board, player: Player, character: str) -> Place:
    """Return where a character of a player stands."""
    return site_of(board, player[character])


def site_of(board: Board, place: Place) -> Place:
    """Return the station of a coastal town; other places as they are."""
    return board.stations.index(str(place)) if place in COASTAL_TOWNS else place


def die_state(position: Position, character: str) -> str:
    """Return the state of a die: "not rolled", "left", "in hand" or "taken"."""
    if position["dice"] is None:
        return "not rolled"
    if character in position["dice_left"]:
        return "left"
    return "in hand" if character == position["die"] else "taken"


_STORIES = {
    "SETUP": "chance deals boutiques and waves",
    "ROLL": "chance rolls the dice",
    "MOVE": "{} takes a die and moves",
    "EFFECT": "{} chooses an effect",
    "DRAW": "chance draws a ware",
    "REVEAL": "chance reveals a painting",
    "DISCARD": "{} returns a ware",
    "REPEAT": "{} may repeat the die",
}
_DETAILS = {
    "die": "{} in hand",
    "origin": "from {}",
    "pending": "{} to come",
    "end": "ended by {}",
}


def facts_of(scene: Scene) -> str:
    """Return the round, its leader and the board, in words."""
    position = scene.position
    board = "".join(sign for sign in position["board"] if sign.isprintable())
    return f"round {position['round']} · {scene.names[position['lead']]} leads · {board}"


def story_of(scene: Scene) -> str:
    """Tell what happens next, or how it ended."""
    position = scene.position
    seat = position["player"]
    if position["phase"] == "OVER":
        parts = [_result(scene)]
    else:
        parts = [_STORIES[position["phase"]].format("" if seat is None else scene.names[seat])]
    parts += [words.format(position[key]) for key, words in _DETAILS.items() if position[key]]
    if position["end_triggered"] and not position["end"]:
        parts.append("last round")
    return " · ".join(parts)


def _result(scene: Scene) -> str:
    """Name the winner (R9.2, R9.3)."""
    if scene.position["end"] == "cap":
        return "nobody wins"
    first, second = (sum(points.values()) for points in scene.points)
    winner = "shared victory" if scene.winner is None else f"{scene.names[scene.winner]} wins"
    return f"{winner}, {first} : {second}"
