"""What differs between two boards, value by value: what the owner of a box has corrected.

changes = difference(Board.load(), Board.load("my_board.toml"))
changes[0]  # Difference(name='mountains.M1', before=3, after=2)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tokaido_env.boards.board import Board

_ROUTES = "routes."


class Difference(NamedTuple):
    """A value that two boards have differently, in plain JSON types; None where one has none."""

    name: str
    before: Any
    after: Any


def difference(before: Board, after: Board) -> list[Difference]:
    """Return the values that differ, in the order of the file.

    Lists are compared place by place. Routes are a set: neither their order nor the direction of
    one matters. A new route stands under its place in `after`, beside the one that it replaces,
    which shares a town with it where there is such a one.

    Returns:
        Differences named as `Board.provenance_of` has it, and `name` and `max_rounds`, of which
        a printed board says nothing. Empty if the boards are equal.
    """
    one, other, routes = _values(before), _values(after), _routes(before, after)
    changed = []
    for name in dict.fromkeys((*one, *other)):
        change = Difference(name, one.get(name), other.get(name))
        if name.startswith(_ROUTES):
            changed += [routes[name]] if name in routes else []
        elif change.before != change.after:
            changed.append(change)
    return changed


def _values(board: Board) -> dict[str, Any]:
    return {"name": board.name, "max_rounds": int(board.max_rounds)} | board.values()


def _routes(before: Board, after: Board) -> dict[str, Difference]:
    """Return which routes were replaced by which, by name: each board has eleven."""
    kept = {frozenset(pair) for pair in before.routes} & {frozenset(p) for p in after.routes}
    gone = [list(pair) for pair in before.routes if frozenset(pair) not in kept]
    changed = {}
    for place, pair in enumerate(after.routes):
        if frozenset(pair) not in kept:
            nearest = max(gone, key=lambda other: len({*other} & {*pair}))
            gone.remove(nearest)
            name = f"{_ROUTES}{place}"
            changed[name] = Difference(name, nearest, list(pair))
    return changed
