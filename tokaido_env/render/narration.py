"""Text descriptions of a game's events, one sentence for each.

    describe_event(before, "merchant:M3", after)  # "player_0 takes the merchant's 2 to M3"

The text follows from the positions before and after the event; the module knows no rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tokaido_env.core.constants import CHARACTERS, COASTAL_TOWNS, GOLD_PRICE
from tokaido_env.render.scene import SEATS, Player, Scene, place_of

_CHANCE_EVENTS = ("boutique", "side", "roll", "ware", "tile")
_UNCOUNTABLE = ("pottery", "bamboo")
_NAME_LENGTH = 24  # the panels' room for a name
_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"


class LogEntry(NamedTuple):
    """One event of a game in words.

    Attributes:
        event: its label.
        round: number of the round.
        seat: the player who decides, rolls or draws; None in the set-up.
        sentence: the description.
    """

    event: str
    round: int
    seat: int | None
    sentence: str


def log_entries(scenes: Sequence[Scene], events: Sequence[str]) -> list[LogEntry]:
    """Return an entry for each event, by label: it leads from one scene to the next."""
    return [
        LogEntry(
            event,
            after.position["round"],
            acting_seat(before, after),
            describe_event(before, event, after),
        )
        for before, event, after in zip(scenes, events, scenes[1:], strict=False)
    ]


def describe_event(before: Scene, event: str, after: Scene) -> str:
    """Return a sentence that describes an event.

    Args:
        before: the scene just before the event; every chance outcome is an event too.
        event: the label of an action or a chance outcome.
        after: the scene just after it.
    """
    head, *details = event.split(":")
    parsed = _Event(before, after, acting_seat(before, after), head, details)
    predicate = _outcome(parsed) if head in _CHANCE_EVENTS else _decision(parsed)
    subject = "" if parsed.seat is None else before.names[parsed.seat] + " "
    return f"{subject}{predicate}{_consequences(parsed)}"


def acting_seat(before: Scene, after: Scene) -> int | None:
    """Return the player that decides, rolls or draws in an event; None in the set-up."""
    position = before.position
    if position["phase"] == "SETUP":
        return None
    if position["phase"] == "ROLL":
        return int(after.position["lead"])
    if position["player"] is not None:
        return int(position["player"])
    players = zip(position["players"], after.position["players"], strict=True)
    return next(seat for seat, (old, new) in enumerate(players) if old != new)


def display_names(players: Sequence[str], length: int = _NAME_LENGTH) -> tuple[str, str]:
    """Return printable and different names of at most a length for two players.

    >>> display_names(["greedy", "mcts:sims=400"])
    ('greedy', 'mcts:sims=400')
    >>> display_names(["greedy", "greedy"])
    ('greedy (player_0)', 'greedy (player_1)')
    """
    first, second = (
        seat if name.strip() in ("", "?") else _printable(name, length)
        for name, seat in zip(players, SEATS, strict=True)
    )
    if first == second:
        room = length - len(f" ({SEATS[0]})")
        return f"{_printable(first, room)} ({SEATS[0]})", f"{_printable(second, room)} ({SEATS[1]})"
    return first, second


def _printable(name: str, length: int) -> str:
    """Return a name without unprintable characters and text-direction marks."""
    line = " ".join(name.split())
    printable = (sign if sign.isprintable() else _UNPRINTABLE for sign in line)
    return shortened("".join(printable), length)


def shortened(name: str, length: int = _NAME_LENGTH) -> str:
    """Return a name cut to at most `length` characters, with an ellipsis if it is longer."""
    return name if len(name) <= length else name[: length - 1] + "…"


class _Event(NamedTuple):
    """An event split at its colons, with the scenes around it."""

    before: Scene
    after: Scene
    seat: int | None
    head: str
    details: list[str]

    def wave(self, text: str) -> str:
        """Return a text and the name of the wave used in the event, or "" without one."""
        if self.details[-1:] != ["wave"]:
            return ""
        return f"{text} {self.after.position['waves'][self.character]['side']}"

    @property
    def character(self) -> str:
        """The character that moves or acts."""
        return self.head if self.head in CHARACTERS else str(self.before.position["die"])

    @property
    def players(self) -> tuple[Player, Player]:
        """The acting player before and after the event."""
        seat = self.seat or 0
        return self.before.position["players"][seat], self.after.position["players"][seat]


def _consequences(event: _Event) -> str:
    text = ""
    if event.seat is not None:
        slabs = event.players[1]["gold"] - event.players[0]["gold"]
        text = f", and gets {number_of(slabs, 'gold slab')}" if slabs else ""
    before, after = event.before.position, event.after.position
    if after["end_triggered"] and not before["end_triggered"]:
        text += "; this round is the last"
    return text


def _outcome(event: _Event) -> str:
    """Describe a chance outcome."""
    match event.head, re.split("[=/]", event.details[0]):
        case "boutique", [town, ware, price]:
            coins = number_of(int(price), "coin")
            return f"The boutique at {town} deals in {_plural(ware)}, {coins} each"
        case "side", [character, side]:
            return f"The {character}'s wave is {side}"
        case "ware", [ware]:
            return f"draws {_singular(ware)}"
        case "tile", [icon]:
            return f"reveals {_singular(icon)}"
    position = event.after.position
    values = ", ".join(f"{name} {value}" for name, value in position["dice"].items())
    return f"leads round {position['round']} and rolls {values}"


def _decision(event: _Event) -> str:
    """Describe a player's decision."""
    position, (player, _) = event.before.position, event.players
    pending = event.after.position["pending"]
    match event.head, event.details:
        case "pass", _:
            return _pass(event)
        case "visit", _:
            return _visit(event)
        case "take", [character]:
            wave = position["waves"][character]
            return f"takes the {character}'s {wave['side']} wave{_from(event, wave['owner'])}"
        case "draw", _:
            wave = event.wave(", one of them by")
            return f"chooses to draw {number_of(pending, 'ware')}{wave}"
        case "paint", _:
            wave = event.wave(", one of them by")
            return f"chooses to reveal {number_of(pending, 'painting')}{wave}"
        case "sell", [count, *_]:
            ware, town = position["boutiques"][player["merchant"]][0], player["merchant"]
            sold, coins = number_of(int(count), ware), number_of(_earned(event), "coin")
            return f"sells {sold} at {town}{event.wave(' with')} for {coins}"
        case "gift", _:
            return f"gives the front painting, {_singular(player['easel'][0])}"
        case "discard", [ware]:
            return f"returns {_singular(ware)} to the bag"
    return _move(event)


def _move(event: _Event) -> str:
    position = event.before.position
    value = f"the {event.character}'s {position['dice'][event.character]}"
    if event.details == ["stay"]:
        return f"takes {value}, which cannot move"
    if position["phase"] == "REPEAT":
        wave = event.wave(" with")
        return f"spends the hot spring token: {value} again{wave}, to {_destination(event)}"
    return f"takes {value}{event.wave(' with')} to {_destination(event)}"


def _pass(event: _Event) -> str:
    if event.before.position["phase"] == "REPEAT":
        return "keeps the hot spring token"
    if event.character == "artist":
        return "neither paints nor gives"
    if event.character == "merchant":
        is_coastal = event.players[0]["merchant"] in COASTAL_TOWNS
        return "sells nothing" if is_coastal else "draws nothing"
    return f"does not use {_destination(event)}"


def _visit(event: _Event) -> str:
    before, after = event.players
    for peg in ("temple", "garden"):
        if after[peg] > before[peg]:
            return f"moves the {peg} peg to {after[peg]}"
    owner = event.before.position["hot_spring"]
    if event.after.position["hot_spring"] != owner:
        return f"takes the hot spring token{_from(event, owner)}"
    return f"gains {number_of(_earned(event), 'coin')} at {_destination(event)}"


def _destination(event: _Event) -> str:
    board = event.after.board
    place = place_of(board, event.players[1], event.character)
    if isinstance(place, str):
        return place
    station = board.stations[place]
    return station if station in COASTAL_TOWNS else f"the {station}, space {place}"


def _from(event: _Event, owner: Any) -> str:
    return "" if owner is None else f" from {event.before.names[owner]}"


def _earned(event: _Event) -> int:
    """Return the coins gained, including those traded for gold at once (R4.5)."""
    before, after = event.players
    return int(after["coins"] - before["coins"] + GOLD_PRICE * (after["gold"] - before["gold"]))


def _singular(noun: str) -> str:
    return noun if noun in _UNCOUNTABLE else f"a {noun}"


def number_of(count: int, noun: str) -> str:
    """Return a number of things as text, such as "1 coin" or "2 coins"."""
    return f"{count} {noun if count == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    return noun if noun in _UNCOUNTABLE else f"{noun}s"
