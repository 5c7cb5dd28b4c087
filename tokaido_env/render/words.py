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
    told = _Told(before, after, seat_of(before, after), head, details)
    words = _SENTENCES[head](told)
    subject = "" if told.seat is None else before.names[told.seat] + " "
    return f"{subject}{words}{_consequences(told)}"


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


class _Told(NamedTuple):
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


def _consequences(told: _Told) -> str:
    words = ""
    if told.seat is not None:
        slabs = told.mine[1]["gold"] - told.mine[0]["gold"]
        words = f", and gets {_number(slabs, 'gold slab')}" if slabs else ""
    before, after = told.before.position, told.after.position
    if after["end_triggered"] and not before["end_triggered"]:
        words += "; this round is the last"
    return words


# One for every first word of an event


def _boutique(told: _Told) -> str:
    town, token = told.details[0].split("=")
    ware, price = token.split("/")
    return f"The boutique at {town} deals in {_many(ware)}, {_number(int(price), 'coin')} each"


def _side(told: _Told) -> str:
    character, side = told.details[0].split("=")
    return f"The {character}'s wave is {side}"


def _roll(told: _Told) -> str:
    position = told.after.position
    values = ", ".join(f"{who} {value}" for who, value in position["dice"].items())
    return f"leads round {position['round']} and rolls {values}"


def _ware(told: _Told) -> str:
    return f"draws {_one(told.details[0])}"


def _tile(told: _Told) -> str:
    return f"reveals {_one(told.details[0])}"


def _move(told: _Told) -> str:
    character, position = told.character, told.before.position
    value = f"the {character}'s {position['dice'][character]}"
    wave = f" with {told.side}" if told.wave else ""
    if told.details == ["stay"]:
        return f"takes {value}, which cannot move"
    if position["phase"] == "REPEAT":
        return f"spends the hot spring token: {value} again{wave}, to {_where(told)}"
    return f"takes {value}{wave} to {_where(told)}"


def _pass(told: _Told) -> str:
    if told.before.position["phase"] == "REPEAT":
        return "keeps the hot spring token"
    if told.character == "artist":
        return "neither paints nor gives"
    if told.character == "merchant":
        return "sells nothing" if told.mine[0]["merchant"] in COASTAL_TOWNS else "draws nothing"
    return f"does not use {_where(told)}"


def _visit(told: _Told) -> str:
    before, after = told.mine
    for peg in ("temple", "garden"):
        if after[peg] > before[peg]:
            return f"moves the {peg} peg to {after[peg]}"
    owner = told.before.position["hot_spring"]
    if told.after.position["hot_spring"] != owner:
        return f"takes the hot spring token{_from(told, owner)}"
    return f"gains {_number(_earned(told), 'coin')} at {_where(told)}"


def _take(told: _Told) -> str:
    character = told.details[0]
    wave = told.before.position["waves"][character]
    return f"takes the {character}'s {wave['side']} wave{_from(told, wave['owner'])}"


def _draw(told: _Told) -> str:
    wave = f", one of them by {told.side}" if told.wave else ""
    return f"chooses to draw {_number(told.after.position['pending'], 'ware')}{wave}"


def _sell(told: _Told) -> str:
    town = str(told.mine[0]["merchant"])
    ware = told.before.position["boutiques"][town][0]
    wave = f" with {told.side}" if told.wave else ""
    coins = _number(_earned(told), "coin")
    return f"sells {_number(int(told.details[0]), ware)} at {town}{wave} for {coins}"


def _paint(told: _Told) -> str:
    wave = f", one of them by {told.side}" if told.wave else ""
    return f"chooses to reveal {_number(told.after.position['pending'], 'painting')}{wave}"


def _gift(told: _Told) -> str:
    return f"gives the front painting, {_one(told.mine[0]['easel'][0])}"


def _discard(told: _Told) -> str:
    return f"returns {_one(told.details[0])} to the bag"


_SENTENCES: dict[str, Callable[[_Told], str]] = {
    **{"boutique": _boutique, "side": _side, "roll": _roll, "ware": _ware, "tile": _tile},
    **dict.fromkeys(CHARACTERS, _move),
    **{"pass": _pass, "visit": _visit, "take": _take, "draw": _draw, "sell": _sell},
    **{"paint": _paint, "gift": _gift, "discard": _discard},
}


# Words


def _where(told: _Told) -> str:
    place, board = told.place, told.after.board
    if isinstance(place, str):
        return place
    station = board.stations[place]
    return station if station in COASTAL_TOWNS else f"the {station}, space {place}"


def _from(told: _Told, owner: Any) -> str:
    return "" if owner is None else f" from {told.before.names[owner]}"


def _earned(told: _Told) -> int:
    """Return the coins gained, those traded for gold at once (R4.5) among them."""
    before, after = told.mine
    return int(after["coins"] - before["coins"] + GOLD_PRICE * (after["gold"] - before["gold"]))


def _one(thing: str) -> str:
    return thing if thing in _UNCOUNTED else f"a {thing}"


def _number(count: int, thing: str) -> str:
    return f"{count} {thing if count == 1 else _many(thing)}"


def _many(thing: str) -> str:
    return thing if thing in _UNCOUNTED else f"{thing}s"
