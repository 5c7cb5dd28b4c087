"""Scenes: positions with their choices, newest move and value.

    scene = scene_of(board, states)

All pictures are drawn from scenes.
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
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, TOWNS, TRIGGER_LEVELS
from tokaido_env.core.rng import LUCK, MAX_EVENTS
from tokaido_env.core.rules import legal_mask, winner_of
from tokaido_env.core.serialization import points_of, seat_or_none, state_to_dict
from tokaido_env.core.state import copy_rows
from tokaido_env.core.stepping import advance_game, wares_of

Position = Mapping[str, Any]  # as from `Game.to_dict`
Player = Mapping[str, Any]  # one of its players
Place = int | str  # the ring index of a station, or the name of a mountain town or an area
States = npt.NDArray[np.void]
Probabilities = npt.NDArray[np.float32]
Events = npt.NDArray[np.int16]

SEATS = ("player_0", "player_1")

_UNUSED_LUCK = np.zeros(1, LUCK)  # `advance_game` needs one, also without chance
_EVENT_BUFFER = MAX_EVENTS + 3  # the size that `advance_game` needs


class Choice(NamedTuple):
    """A legal action.

    Attributes:
        label: of the action.
        place: the character's destination; None for an action without a move.
        probability: an agent's probability for the action; None without an agent.
    """

    label: str
    place: Place | None = None
    probability: float | None = None


class Step(NamedTuple):
    """A move of a character in a game.

    Attributes:
        seat: of its player.
        character: its name.
        start: the place that it left.
        end: the place where it arrived.
    """

    seat: int
    character: str
    start: Place
    end: Place


@dataclass(frozen=True)
class Scene:
    """The content of a picture.

    Attributes:
        board: of the position.
        position: as from `Game.to_dict`.
        points: each player's current points by `core.serialization.POINTS`.
        capacities: the number of wares that each player may keep.
        next_points: for each player the points of the next step on each track that has one, by
            `TRIGGER_LEVELS`.
        winner: the winning seat; None for a shared victory and during a game.
        choices: the legal actions, in the order of their ids.
        last: the newest move of each player that has moved, the newest of all last.
        value: player_0's expected result, -1 to 1; None without an agent.
        names: of the players.
    """

    board: Board
    position: Position
    points: Sequence[Mapping[str, int]]
    capacities: Sequence[int]
    next_points: Sequence[Mapping[str, int]]
    winner: int | None = None
    choices: Sequence[Choice] = ()
    last: Sequence[Step] = ()
    value: float | None = None
    names: tuple[str, str] = SEATS


def scene_of(
    board: Board,
    states: States,
    *,
    probabilities: Probabilities | None = None,
    value: float | None = None,
    last: Sequence[Step] = (),
    names: tuple[str, str] = SEATS,
) -> Scene:
    """Return the scene of a position.

    Args:
        board: of the position.
        states: `STATE` (1,), not changed.
        probabilities: float32 (N_ACTIONS,), an agent's probability for each action.
        value: player_0's expected result, estimated by an agent.
        last: the newest moves, as in a scene.
        names: of the players.
    """
    boards = board.record
    return Scene(
        board,
        state_to_dict(board.name, boards[0], states[0]),
        points_of(boards, states),
        [int(wares_of(states, 0, seat)[1]) for seat in range(2)],
        [_next_points(board, states, seat) for seat in range(2)],
        seat_or_none(winner_of(boards, states, 0)),
        choices_of(board, states, probabilities),
        last,
        value,
        names,
    )


def _next_points(board: Board, states: States, seat: int) -> dict[str, int]:
    """Return the points of a player's next step on each track that has one."""
    found, now = {}, points_of(board.record, states)[seat]
    for track, last in TRIGGER_LEVELS.items():
        then = copy_rows(states)
        then[track][0, seat] += 1
        if then[track][0, seat] <= last:
            later = points_of(board.record, then)[seat]
            found[track] = sum(later.values()) - sum(now.values())
    return found


def steps_left(player: Player) -> dict[str, int]:
    """Return the steps of a player of `Game.to_dict` to each trigger (R9.1), by track."""
    return {track: last - player[track] for track, last in TRIGGER_LEVELS.items()}


def track_name(track: str) -> str:
    """Return the words for a track, such as "gold slabs" for "gold"."""
    return {"gold": "gold slabs", "gifted": "paintings given"}.get(track, track)


def scenes_of(
    board: Board,
    states: States,
    events: Events,
    rows: npt.NDArray[np.bool_] | None = None,
    names: tuple[str, str] = SEATS,
    *,
    probabilities: Probabilities | None = None,
    values: Sequence[float | None] | None = None,
    last: Sequence[Step] = (),
) -> Iterator[Scene]:
    """Yield the scenes of a played game.

    Args:
        board: of the game.
        states: `STATE` (rows,), the position before each event, then the position at the end.
        events: int16 (rows,), as in `trajectory.Trajectory`.
        rows: bool (rows,), the rows to yield (default: all).
        names: of the players.
        probabilities: float32 (rows, N_ACTIONS), an agent's probability for each action.
        values: player_0's expected result for each row.
        last: the newest moves before the first row.
    """
    moved = moves(events)
    for row in range(len(states)):
        if row and moved[row - 1]:
            step = step_of(board, states[row - 1], int(events[row - 1]), states[row])
            last = [*(one for one in last if one.seat != step.seat), step]
        if rows is None or rows[row]:
            yield scene_of(
                board,
                copy_rows(states[row:][:1]),
                probabilities=None if probabilities is None else probabilities[row],
                value=None if values is None else values[row],
                last=last,
                names=names,
            )


def choices_of(
    board: Board, states: States, probabilities: Probabilities | None = None
) -> list[Choice]:
    """Return the legal actions in a position, `STATE` (1,), in the order of their ids.

    `probabilities`, float32 (N_ACTIONS,), are an agent's for each action.
    """
    choices = []
    for action in actions_of(legal_mask(board.record, states, 0)):
        place = None
        if action <= ARTIST_STAY:
            (then,) = state_after(board, states, action)
            place = step_of(board, states[0], action, then).end
        probability = None if probabilities is None else float(probabilities[action])
        choices.append(Choice(LABELS[action], place, probability))
    return choices


def state_after(board: Board, states: States, action: int) -> States:
    """Return the position after a legal action, before any chance: `STATE` (1,).

    Args:
        board: of the position.
        states: `STATE` (1,), not changed.
        action: id of a legal action.
    """
    then = copy_rows(states)
    advance_game(
        board.record, then, _UNUSED_LUCK, 0, action, False, np.zeros(_EVENT_BUFFER, np.int32)
    )
    return then


def moves(events: Events) -> npt.NDArray[np.bool_]:
    """Return which events move a character: bool (rows,).

    Args:
        events: int16 (rows,), codes of events.
    """
    return np.asarray((events >= 0) & (events <= ARTIST_STAY))


def step_of(board: Board, before: np.void, action: int, after: np.void) -> Step:
    """Return the move that an action made.

    Args:
        board: of the game.
        before: the position before the action, a row of `STATE`.
        action: the id of an action that moves a character.
        after: the position after it.
    """
    seat = int(before["player"])
    character = CHARACTERS[int(action >= MOVE_MERCHANT) + int(action >= MOVE_ARTIST)]
    places = {"merchant": TOWNS, "artist": AREAS}.get(character, range(len(board.stations)))
    indices = (int(row[character][seat]) for row in (before, after))
    return Step(seat, character, *(site_of(board, places[index]) for index in indices))


def last_steps(board: Board, states: States, events: Events) -> list[Step]:
    """Return the newest move of each player in a game, the newest of all last.

    `states` is `STATE` (rows,), the position before each event, and `events` int16 (rows,).
    """
    found: dict[int, Step] = {}
    for row in np.flatnonzero(moves(events))[::-1].tolist():
        step = step_of(board, states[row], int(events[row]), states[row + 1])
        found.setdefault(step.seat, step)
        if len(found) == len(SEATS):
            break
    return list(found.values())[::-1]


def place_of(board: Board, player: Player, character: str) -> Place:
    """Return where a player's character is: a ring index, or a mountain town or area by name."""
    return site_of(board, player[character])


def site_of(board: Board, place: Place) -> Place:
    """Return the ring index of a coastal town given by name; other places unchanged."""
    return board.stations.index(str(place)) if place in COASTAL_TOWNS else place


def die_state(position: Position, character: str) -> str:
    """Return the state of a character's die: "not rolled", "available", "selected" or "taken"."""
    if position["dice"] is None:
        return "not rolled"
    if character in position["dice_left"]:
        return "available"
    return "selected" if character == position["die"] else "taken"


_STATUS = {
    "SETUP": "chance deals boutiques and waves",
    "ROLL": "chance rolls the dice",
    "MOVE": "{} takes a die and moves",
    "EFFECT": "{} chooses an effect",
    "DRAW": "chance draws a ware",
    "REVEAL": "chance reveals a painting",
    "DISCARD": "{} returns a ware",
    "REPEAT": "{} may repeat the die",
}
_ENDS = {  # R9.1, by key of a player
    "temple": "{} reached the end of the temple track",
    "garden": "{} reached the end of the garden track",
    "gold": f"{{}} holds {TRIGGER_LEVELS['gold']} gold slabs",
    "gifted": f"{{}} has given {TRIGGER_LEVELS['gifted']} paintings",
}


def round_text(scene: Scene) -> str:
    """Return the round, its leader and the board as text."""
    position = scene.position
    board = "".join(sign for sign in position["board"] if sign.isprintable())
    number = position["round"] + (position["phase"] == "ROLL")  # `lead` is the next one then
    return f"round {number} · {board} · {scene.names[position['lead']]} leads"


def status_text(scene: Scene) -> str:
    """Return as text what happens next, or the result of the game."""
    position = scene.position
    if position["phase"] == "OVER":
        return f"{result_text(scene)} · {end_text(scene)}"
    seat = position["player"]
    text = _STATUS[position["phase"]].format("" if seat is None else scene.names[seat])
    is_last = position["end_triggered"] or position["round"] == scene.board.max_rounds
    return f"{text} · last round" if is_last else text


def end_text(scene: Scene) -> str:
    """Return as text why the game ends with this round: triggers (R9.1) or the cap (R10.1)."""
    reached = [
        text.format(name)
        for name, player in zip(scene.names, scene.position["players"], strict=True)
        for key, text in _ENDS.items()
        if player[key] == TRIGGER_LEVELS[key]
    ]
    return "; ".join(reached) or f"round {scene.board.max_rounds} is the last"


def result_text(scene: Scene) -> str:
    """Return the winner's name and both totals as text, such as "greedy wins, 97 : 60" (R9.2)."""
    first, second = (sum(points.values()) for points in scene.points)
    winner = "shared victory" if scene.winner is None else f"{scene.names[scene.winner]} wins"
    return f"{winner}, {first} : {second}"
