"""What happened, in words: one sentence for every event of a game.

    tell(before, "merchant:M3", after)  # "player_0 takes the merchant's 2 to M3"

The words follow from the positions before and after the event; no rule is known here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tokaido_env.core.constants import CHARACTERS, COASTAL_TOWNS, GOLD_PRICE
from tokaido_env.render.scene import SEATS, Player, Scene, place_of

_OF_CHANCE = ("boutique", "side", "roll", "ware", "tile")
_UNCOUNTED = ("pottery", "bamboo")
_NAME_LENGTH = 24  # as the panels have room for
_UNSHOWN = "\N{REPLACEMENT CHARACTER}"


class Happened(NamedTuple):
    """An event: its label, the round, whose doing it is (None for the set-up), and words for it."""

    event: str
    round: int
    seat: int | None
    sentence: str


def happened_between(scenes: Sequence[Scene], events: Sequence[str]) -> list[Happened]:
    """Describe the events that lead from each scene to the next, by their labels."""
    return [
        Happened(event, after.position["round"], seat_of(before, after), tell(before, event, after))
        for before, event, after in zip(scenes, events, scenes[1:], strict=False)
    ]


def tell(before: Scene, event: str, after: Scene) -> str:
    """Tell what an event did.

    Args:
        before: what there was to see just before it: every outcome of chance is an event too.
        event: the label of an action or of an outcome of chance.
        after: what there was to see next.
    """
    head, *details = event.split(":")
    this = _Event(before, after, seat_of(before, after), head, details)
    words = _outcome(this) if head in _OF_CHANCE else _decision(this)
    subject = "" if this.seat is None else before.names[this.seat] + " "
    return f"{subject}{words}{_consequences(this)}"


def seat_of(before: Scene, after: Scene) -> int | None:
    """Return whose doing an event is, a roll or a draw too; None for the set-up."""
    position = before.position
    if position["phase"] == "SETUP":
        return None
    if position["phase"] == "ROLL":
        return int(after.position["lead"])
    if position["player"] is not None:
        return int(position["player"])
    players = zip(position["players"], after.position["players"], strict=True)
    return next(seat for seat, (old, new) in enumerate(players) if old != new)


def shown_names(players: Sequence[str]) -> tuple[str, str]:
    """Return what to call two players on a line: short, printable, and not the same.

    >>> shown_names(["greedy", "mcts:sims=400"])
    ('greedy', 'mcts:sims=400')
    >>> shown_names(["greedy", "greedy"])
    ('greedy (player_0)', 'greedy (player_1)')
    """
    first, second = (
        seat if name.strip() in ("", "?") else _printable(name, _NAME_LENGTH)
        for name, seat in zip(players, SEATS, strict=True)
    )
    if first == second:
        room = _NAME_LENGTH - len(f" ({SEATS[0]})")
        return f"{_printable(first, room)} ({SEATS[0]})", f"{_printable(second, room)} ({SEATS[1]})"
    return first, second


def _printable(name: str, length: int) -> str:
    """Return a name without signs that are not shown or that change the order of others."""
    line = " ".join(name.split())
    return shortened("".join(sign if sign.isprintable() else _UNSHOWN for sign in line), length)


def shortened(name: str, most: int = _NAME_LENGTH) -> str:
    """Return a name that is not too long."""
    return name if len(name) <= most else name[: most - 1] + "…"


class _Event(NamedTuple):
    """An event with all that its sentence may need."""

    before: Scene
    after: Scene
    seat: int | None
    head: str
    details: list[str]

    def wave(self, words: str) -> str:
        """Return words and the name of the wave used with the event, or "" without one."""
        if self.details[-1:] != ["wave"]:
            return ""
        return f"{words} {self.after.position['waves'][self.character]['side']}"

    @property
    def character(self) -> str:
        """Who moves or acts."""
        return self.head if self.head in CHARACTERS else str(self.before.position["die"])

    @property
    def mine(self) -> tuple[Player, Player]:
        """The player whose doing it is, before and after."""
        seat = self.seat or 0
        return self.before.position["players"][seat], self.after.position["players"][seat]


def _consequences(event: _Event) -> str:
    words = ""
    if event.seat is not None:
        slabs = event.mine[1]["gold"] - event.mine[0]["gold"]
        words = f", and gets {_number(slabs, 'gold slab')}" if slabs else ""
    before, after = event.before.position, event.after.position
    if after["end_triggered"] and not before["end_triggered"]:
        words += "; this round is the last"
    return words


# By the first word of an event


def _outcome(event: _Event) -> str:
    """Describe an outcome of chance."""
    match event.head, re.split("[=/]", event.details[0]):
        case "boutique", [town, ware, price]:
            coins = _number(int(price), "coin")
            return f"The boutique at {town} deals in {_many(ware)}, {coins} each"
        case "side", [character, side]:
            return f"The {character}'s wave is {side}"
        case "ware", [ware]:
            return f"draws {_one(ware)}"
        case "tile", [icon]:
            return f"reveals {_one(icon)}"
    position = event.after.position
    values = ", ".join(f"{who} {value}" for who, value in position["dice"].items())
    return f"leads round {position['round']} and rolls {values}"


def _decision(event: _Event) -> str:
    """Describe a player's decision."""
    position, (mine, _) = event.before.position, event.mine
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
            return f"chooses to draw {_number(pending, 'ware')}{wave}"
        case "paint", _:
            wave = event.wave(", one of them by")
            return f"chooses to reveal {_number(pending, 'painting')}{wave}"
        case "sell", [count, *_]:
            ware, town = position["boutiques"][mine["merchant"]][0], mine["merchant"]
            sold, coins = _number(int(count), ware), _number(_earned(event), "coin")
            return f"sells {sold} at {town}{event.wave(' with')} for {coins}"
        case "gift", _:
            return f"gives the front painting, {_one(mine['easel'][0])}"
        case "discard", [ware]:
            return f"returns {_one(ware)} to the bag"
    return _move(event)


def _move(event: _Event) -> str:
    position = event.before.position
    value = f"the {event.character}'s {position['dice'][event.character]}"
    if event.details == ["stay"]:
        return f"takes {value}, which cannot move"
    if position["phase"] == "REPEAT":
        wave = event.wave(" with")
        return f"spends the hot spring token: {value} again{wave}, to {_where(event)}"
    return f"takes {value}{event.wave(' with')} to {_where(event)}"


def _pass(event: _Event) -> str:
    if event.before.position["phase"] == "REPEAT":
        return "keeps the hot spring token"
    if event.character == "artist":
        return "neither paints nor gives"
    if event.character == "merchant":
        return "sells nothing" if event.mine[0]["merchant"] in COASTAL_TOWNS else "draws nothing"
    return f"does not use {_where(event)}"


def _visit(event: _Event) -> str:
    before, after = event.mine
    for peg in ("temple", "garden"):
        if after[peg] > before[peg]:
            return f"moves the {peg} peg to {after[peg]}"
    owner = event.before.position["hot_spring"]
    if event.after.position["hot_spring"] != owner:
        return f"takes the hot spring token{_from(event, owner)}"
    return f"gains {_number(_earned(event), 'coin')} at {_where(event)}"


# Words


def _where(event: _Event) -> str:
    board = event.after.board
    place = place_of(board, event.mine[1], event.character)
    if isinstance(place, str):
        return place
    station = board.stations[place]
    return station if station in COASTAL_TOWNS else f"the {station}, space {place}"


def _from(event: _Event, owner: Any) -> str:
    return "" if owner is None else f" from {event.before.names[owner]}"


def _earned(event: _Event) -> int:
    """Return the coins gained, those traded for gold at once (R4.5) among them."""
    before, after = event.mine
    return int(after["coins"] - before["coins"] + GOLD_PRICE * (after["gold"] - before["gold"]))


def _one(thing: str) -> str:
    return thing if thing in _UNCOUNTED else f"a {thing}"


def _number(count: int, thing: str) -> str:
    return f"{count} {thing if count == 1 else _many(thing)}"


def _many(thing: str) -> str:
    return thing if thing in _UNCOUNTED else f"{thing}s"
