"""What happened, in words: one sentence for every event of a game.

    tell(before, "merchant:M3", after)  # "player_0 takes the merchant's 2 to M3"

The words follow from the positions before and after the event; no rule is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tokaido_env.core.box import CHARACTERS, COASTAL_TOWNS, GOLD_PRICE
from tokaido_env.render.scene import SEATS, Player, Scene, place_of

_UNCOUNTED = ("pottery", "bamboo")
_NAME_LENGTH = 24  # as the panels have room for
_UNSHOWN = "\N{REPLACEMENT CHARACTER}"


def tell(before: Scene, event: str, after: Scene) -> str:
    """Tell what an event did.

    Args:
        before: what there was to see just before it: every outcome of chance is an event too.
        event: the label of an action or of an outcome of chance.
        after: what there was to see next.
    """
    head, *details = event.split(":")
    this = _Event(before, after, seat_of(before, after), head, details)
    words = _SENTENCES[head](this)
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
    shown = "".join(sign if sign.isprintable() else _UNSHOWN for sign in line)
    return shown if len(shown) <= length else shown[: length - 1] + "…"


class _Event(NamedTuple):
    """An event with all that its sentence may need."""

    before: Scene
    after: Scene
    seat: int | None
    head: str
    details: list[str]

    @property
    def wave(self) -> bool:
        return self.details[-1:] == ["wave"]

    @property
    def side(self) -> str:
        """What the wave of the character in hand is called."""
        return str(self.after.position["waves"][self.character]["side"])

    @property
    def character(self) -> str:
        """Who moves or acts."""
        return self.head if self.head in CHARACTERS else str(self.before.position["die"])

    @property
    def mine(self) -> tuple[Player, Player]:
        """The player whose doing it is, before and after."""
        seat = self.seat or 0
        return self.before.position["players"][seat], self.after.position["players"][seat]

    @property
    def place(self) -> int | str:
        return place_of(self.after.board, self.mine[1], self.character)


def _consequences(event: _Event) -> str:
    words = ""
    if event.seat is not None:
        slabs = event.mine[1]["gold"] - event.mine[0]["gold"]
        words = f", and gets {_number(slabs, 'gold slab')}" if slabs else ""
    before, after = event.before.position, event.after.position
    if after["end_triggered"] and not before["end_triggered"]:
        words += "; this round is the last"
    return words


# One for every first word of an event


def _boutique(event: _Event) -> str:
    town, token = event.details[0].split("=")
    ware, price = token.split("/")
    return f"The boutique at {town} deals in {_many(ware)}, {_number(int(price), 'coin')} each"


def _side(event: _Event) -> str:
    character, side = event.details[0].split("=")
    return f"The {character}'s wave is {side}"


def _roll(event: _Event) -> str:
    position = event.after.position
    values = ", ".join(f"{who} {value}" for who, value in position["dice"].items())
    return f"leads round {position['round']} and rolls {values}"


def _ware(event: _Event) -> str:
    return f"draws {_one(event.details[0])}"


def _tile(event: _Event) -> str:
    return f"reveals {_one(event.details[0])}"


def _move(event: _Event) -> str:
    character, position = event.character, event.before.position
    value = f"the {character}'s {position['dice'][character]}"
    wave = f" with {event.side}" if event.wave else ""
    if event.details == ["stay"]:
        return f"takes {value}, which cannot move"
    if position["phase"] == "REPEAT":
        return f"spends the hot spring token: {value} again{wave}, to {_where(event)}"
    return f"takes {value}{wave} to {_where(event)}"


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


def _take(event: _Event) -> str:
    character = event.details[0]
    wave = event.before.position["waves"][character]
    return f"takes the {character}'s {wave['side']} wave{_from(event, wave['owner'])}"


def _draw(event: _Event) -> str:
    wave = f", one of them by {event.side}" if event.wave else ""
    return f"chooses to draw {_number(event.after.position['pending'], 'ware')}{wave}"


def _sell(event: _Event) -> str:
    town = str(event.mine[0]["merchant"])
    ware = event.before.position["boutiques"][town][0]
    wave = f" with {event.side}" if event.wave else ""
    coins = _number(_earned(event), "coin")
    return f"sells {_number(int(event.details[0]), ware)} at {town}{wave} for {coins}"


def _paint(event: _Event) -> str:
    wave = f", one of them by {event.side}" if event.wave else ""
    return f"chooses to reveal {_number(event.after.position['pending'], 'painting')}{wave}"


def _gift(event: _Event) -> str:
    return f"gives the front painting, {_one(event.mine[0]['easel'][0])}"


def _discard(event: _Event) -> str:
    return f"returns {_one(event.details[0])} to the bag"


_SENTENCES: dict[str, Callable[[_Event], str]] = {
    **{"boutique": _boutique, "side": _side, "roll": _roll, "ware": _ware, "tile": _tile},
    **dict.fromkeys(CHARACTERS, _move),
    **{"pass": _pass, "visit": _visit, "take": _take, "draw": _draw, "sell": _sell},
    **{"paint": _paint, "gift": _gift, "discard": _discard},
}


# Words


def _where(event: _Event) -> str:
    place, board = event.place, event.after.board
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
