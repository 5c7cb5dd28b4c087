"""Motions of an event: the parts of a picture that move, for pages that animate them.

A motion follows from the positions before and after the event; the module knows no rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokaido_env.core.constants import CHARACTERS, GOLD_PRICE, ICONS, WARES
from tokaido_env.render.scene import Scene, Step, place_of
from tokaido_env.render.svg import way_of

Motion = list[Any]
"""["pawn", seat, character, points of its way], ["roll"], or ["move", icon, from part, to part]."""


def motions_of(before: Scene, after: Scene) -> list[Motion]:
    """Return the motions of the event between two scenes, as JSON types."""
    old, new = before.position, after.position
    if old["phase"] == "SETUP":
        return []
    found: list[Motion] = [["roll"]] if old["phase"] == "ROLL" else []
    for seat, (player, then) in enumerate(zip(old["players"], new["players"], strict=True)):
        for character in CHARACTERS:
            start, end = (place_of(before.board, one, character) for one in (player, then))
            if start != end:
                way = way_of(after.board, Step(seat, character, start, end))
                found.append(["pawn", seat, character, [[round(x), round(y)] for x, y in way]])
        found += (["move", *one] for one in _moved(seat, player, then, str(old["die"])))
    owners = {"hot spring": [one["hot_spring"] for one in (old, new)]}
    owners |= {c: [one["waves"][c]["owner"] for one in (old, new)] for c in CHARACTERS}
    for token, seats in owners.items():
        place = "supply spring" if token == "hot spring" else f"supply wave {token}"
        ends = [place if seat is None else f"player_{seat} tokens" for seat in seats]
        if ends[0] != ends[1]:
            found.append(["move", "hot spring" if place == "supply spring" else "wave", *ends])
    return found


def _moved(seat: int, old: Any, new: Any, die: str) -> Iterator[tuple[str, str, str]]:
    """Yield icon, start and end of each piece of a player that differs between two positions.

    Args:
        seat: the player.
        old: the player's part of the position before, as from `Game.to_dict`.
        new: the same after.
        die: the character that moved, from which coins come.
    """
    own, pawn = f"player_{seat} ", f"island pawn {seat} "
    for ware in WARES:
        if new["wares"][ware] > old["wares"][ware]:
            yield ware, "supply bag", own + "wares"
        elif new["wares"][ware] < old["wares"][ware]:
            yield ware, own + "wares", "supply bag"
    if new["coins"] + GOLD_PRICE * (new["gold"] - old["gold"]) > old["coins"]:
        yield "coin", pawn + die, own + "gold"
    for track in ("temple", "garden"):
        if new[track] > old[track]:
            yield track, pawn + "pilgrim", own + track
    for icon in ICONS:
        if new["hidden"][icon] < old["hidden"][icon]:
            yield icon, own + "hidden", own + "paintings"
    if new["gifted"] > old["gifted"]:
        yield old["easel"][0], own + "paintings", pawn + "artist"
