"""What there is to see: a position with the choices in it, how it came about and what it is worth.

    scene = scene_of(game)

Every picture is drawn from a scene; nothing here draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokaido_env.boards.board import Board
from tokaido_env.core.box import CHARACTERS, COASTAL_TOWNS
from tokaido_env.game import Game

if TYPE_CHECKING:
    from tokaido_env.agent import Agent

Position = Mapping[str, Any]  # as `Game.to_dict` gives it
Player = Mapping[str, Any]  # one of its players
Place = int | str  # the ring index of a station, or the name of a mountain town or an area

SEATS = ("player_0", "player_1")


class Choice(NamedTuple):
    """A legal action.

    Attributes:
        label: of the action.
        place: where it leads a character; None for an action that moves none.
        probability: with which a policy takes it; None if none was asked.
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
        choices: the legal actions, in the order of their ids.
        last: the newest move; None before the first.
        value: the result that player_0 can expect, -1 to 1; None if no policy was asked.
        names: what to call the two players.
    """

    board: Board
    position: Position
    choices: Sequence[Choice] = ()
    last: Step | None = None
    value: float | None = None
    names: tuple[str, str] = SEATS


def scene_of(
    game: Game,
    agent: str | Agent | None = None,
    *,
    last: Step | None = None,
    names: tuple[str, str] = SEATS,
    seed: int = 0,
) -> Scene:
    """Return what there is to see of a game.

    Args:
        game: the game, which is not changed.
        agent: an agent, or the spec of one, to ask how good it holds each legal action and what
            result it expects. One that cannot tell is asked what it would do.
        last: the newest move, by `last_step`.
        names: what to call the two players.
        seed: of the agent's luck.
    """
    choices, value = choices_of(game), None
    if agent is not None and choices:
        shares, value = _judged(game, agent, seed)
        choices = [
            choice._replace(probability=shares[action])
            for choice, action in zip(choices, game.legal_actions(), strict=True)
        ]
    return Scene(game.board, game.to_dict(), choices, last, value, names)


def _judged(game: Game, agent: str | Agent, seed: int) -> tuple[list[float], float | None]:
    """Return how good an agent holds each action, and the result that player_0 can expect."""
    from tokaido_env.agent import as_agent

    asked = as_agent(agent)
    legal = np.array([game.legal_mask], np.uint64)
    position = game.boards, game.state, legal, np.array([seed], np.uint64)
    shares, values = asked.judge(*position)
    return shares[0].tolist(), None if values is None else float(values[0])


def choices_of(game: Game) -> list[Choice]:
    """Return the legal actions with the places that they lead to."""
    labels = game.legal_labels()
    return [Choice(label, step_of(game, label).end if moves(label) else None) for label in labels]


def moves(label: str) -> bool:
    """Return whether an action moves a character."""
    return label.partition(":")[0] in CHARACTERS


def step_of(game: Game, label: str) -> Step:
    """Return what a legal action that moves a character would do."""
    seat, character = int(game.player or 0), label.partition(":")[0]
    after = game.copy(luck="same")
    after.play(label)
    start, end = (
        place_of(one.board, one.to_dict()["players"][seat], character) for one in (game, after)
    )
    return Step(seat, character, start, end)


def last_step(game: Game) -> Step | None:
    """Return the newest move of a character, found by playing the game's record through."""
    from tokaido_env.record import replay

    last = None
    for before, event in replay(game.record(), game.board):
        if event is not None and moves(event):
            last = (before.copy(luck="same"), event)
    return last and step_of(*last)


def place_of(board: Board, player: Player, character: str) -> Place:
    """Return where a character of a player stands."""
    place: Place = player[character]
    return board.stations.index(str(place)) if place in COASTAL_TOWNS else place


def pawns_by_place(board: Board, position: Position) -> dict[Place, list[tuple[int, str]]]:
    """Return the (seat, character) of those who stand at each place where there are any."""
    pawns: dict[Place, list[tuple[int, str]]] = {}
    for seat, player in enumerate(position["players"]):
        for character in CHARACTERS:
            pawns.setdefault(place_of(board, player, character), []).append((seat, character))
    return pawns


def points_of(board: Board, player: Player) -> dict[str, int]:
    """Return what the pegs (counted from 1), the slabs and the gifts of a player are worth."""
    return {
        "faith": board.temple[player["temple"] - 1] * board.garden[player["garden"] - 1],
        "commerce": board.commerce[player["gold"]],
        "culture": board.culture[player["gifted"]],
    }


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
    """Name the winner: more points, then more coins (R9.2, R9.3)."""
    players = scene.position["players"]
    if scene.position["end"] == "cap":
        return "nobody wins"
    totals = [sum(points_of(scene.board, player).values()) for player in players]
    first, second = zip(totals, (player["coins"] for player in players), strict=True)
    winner = "shared victory" if first == second else f"{scene.names[second > first]} wins"
    return f"{winner}, {totals[0]} : {totals[1]}"
