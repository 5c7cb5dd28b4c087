"""SVG pictures of positions.

    game.show().save("board.svg")
    draw(scene)

A picture consists of panels, and a panel of parts, one for everything that can change. A page that
steps through a game replaces only changed parts; `draw` puts all parts together. Text stays text,
every object has a `<title>`, and objects differ in shape as well as in colour.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tokaido_env.boards.board import Board
from tokaido_env.boards.geometry import town_path
from tokaido_env.core.arguments import check_choice, repr_short
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, MOUNTAIN_TOWNS, WARES
from tokaido_env.files import write_text
from tokaido_env.render import icons, map_layout, player_panel
from tokaido_env.render.elements import (
    Parts,
    box,
    disc,
    escaped,
    faint,
    glyph_at,
    path,
    pawn,
    text_at,
    titled_group,
)
from tokaido_env.render.icons import Glyph
from tokaido_env.render.map_layout import MapLayout, Point, map_layout_of
from tokaido_env.render.narration import shortened
from tokaido_env.render.scene import (
    Choice,
    Place,
    Scene,
    Step,
    die_state,
    place_of,
    result_text,
    round_text,
    site_of,
    status_text,
    steps_left,
    track_name,
)
from tokaido_env.render.style import THEMES, Theme, style

WIDTH, HEIGHT = 1000, 668
PANELS: Mapping[str, tuple[int, int, int, int]] = {  # left, top, width, height
    "heading": (0, 0, WIDTH, 50),
    "island": (0, 50, map_layout.WIDTH, map_layout.HEIGHT),
    "supply": (0, 524, map_layout.WIDTH, 144),
    "player_0": (650, 50, player_panel.WIDTH, player_panel.HEIGHT),
    "player_1": (650, 364, player_panel.WIDTH, player_panel.HEIGHT),
}
_HILL = "M-24 17-7-15Q0-24 7-15L24 17Z"
_LINE_LENGTH, _LINES = 76, 3  # of the legal actions; they fit a phone's larger letters


class Picture:
    """An SVG picture; notebooks display it.

    Attributes:
        svg: the `<svg>` element.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the picture to a file atomically.

        Raises:
            ValueError: if its name does not end in .svg.
        """
        file = Path(path)
        if file.suffix.lower() != ".svg":
            raise ValueError(f"path: expected a name in .svg, got {repr_short(str(path))}")
        write_text(file, self.svg + "\n")


def draw(scene: Scene, theme: Theme = "auto") -> str:
    """Return a scene as an `<svg>` element of 1000 by 668 units.

    Args:
        scene: the position to draw.
        theme: "light", "dark", or "auto" to follow the reader's setting.
    """
    check_choice("theme", theme, THEMES)
    panels = "".join(
        f'<g transform="translate({left} {top})">{"".join(parts.values())}</g>'
        for (left, top, *_), parts in zip(PANELS.values(), panels_of(scene).values(), strict=True)
    )
    paper = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" class="paper"/>'
    title = f"<title>{escaped(f'Tokaido Duo, {status_text(scene)}')}</title>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'class="tokaido tokaido-{theme}" role="graphics-document document">'
        f"{title}<style>{style(theme)}</style>{paper}{panels}</svg>"
    )


def panels_of(scene: Scene) -> dict[str, Parts]:
    """Return SVG of the parts of every panel of `PANELS` by name, in the panel's coordinates.

    The names of the parts never change; they are in drawing order, and an absent part is "".
    """
    return {
        "heading": _heading(scene),
        "island": _island(scene),
        "supply": _supply(scene),
        "player_0": player_panel.draw_panel(scene, 0),
        "player_1": player_panel.draw_panel(scene, 1),
    }


# The heading: round, status and win estimate


def _heading(scene: Scene) -> Parts:
    seat = scene.position["player"]
    turn = "" if seat is None else titled_group(scene.names[seat], pawn(seat, 8), at=(18, 36))
    is_over = scene.position["phase"] == "OVER"
    status = shortened(result_text(scene) if is_over else status_text(scene), 48)
    return {
        "round": text_at(10, 18, shortened(round_text(scene), 50), "dim"),
        "picks": _picks(scene),
        "status": turn + text_at(10 if seat is None else 34, 41, status, "bold big"),
        "value": "" if scene.value is None else _value(scene.value, scene.names),
    }


def _picks(scene: Scene) -> str:
    """Draw the players of the round's picks (R2.1); those of the past are faint."""
    position, lead = scene.position, scene.position["lead"]
    order, left = (lead, 1 - lead, lead), 3  # before a roll
    if position["phase"] not in ("SETUP", "ROLL"):
        left = len(position["dice_left"]) + (position["die"] is not None)
    drawn = [pawn(seat, 7) for seat in order]
    drawn[: 3 - left] = map(faint, drawn[: 3 - left])
    pawns = (
        f'<g transform="translate({424 + 22 * i} 14)">{one}</g>' for i, one in enumerate(drawn)
    )
    names = ", ".join(scene.names[seat] for seat in order[3 - left :]) or "none"
    label = text_at(410, 18, "picks", "dim end")
    return titled_group(f"picks left in the round: {names}", label, *pawns)


def _value(value: float, names: Sequence[str]) -> str:
    """Draw the win estimates of both players as a bar, above their panels."""
    estimate, width = (value + 1) / 2, 330
    return titled_group(
        f"win estimate: {names[0]} {estimate:.0%}, {names[1]} {1 - estimate:.0%}",
        box(0, 0, width, 10, "p1"),
        box(0, 0, round(estimate * width, 1), 10, "p0"),
        text_at(0, -5, f"{estimate:.0%}", "small bold"),
        text_at(width / 2, -5, "win estimate", "small dim mid"),
        text_at(width, -5, f"{1 - estimate:.0%}", "small bold end"),
        at=(660, 28),
    )


# The island


def _island(scene: Scene) -> Parts:
    board, position, layout = scene.board, scene.position, map_layout_of(scene.board)
    land, places = _map(board)
    parts = {"land": land, "last": _last_moves(scene, layout), "places": places}
    for town in COASTAL_TOWNS:
        parts[f"token {town}"] = _boutique(board, layout, town, position["boutiques"][town])
    parts["choices"], letters = _choices(scene, layout)
    for seat, player in enumerate(position["players"]):
        for character in CHARACTERS:
            place = place_of(board, player, character)
            at = _pawn_point(layout, place, seat)
            title = f"{scene.names[seat]}'s {character}, {_place_name(board, place)}"
            letter = text_at(0, 4.5, character[0].upper(), f"mid on{seat}")
            parts[f"pawn {seat} {character}"] = titled_group(title, pawn(seat, 11), letter, at=at)
    return parts | {"letters": letters}


@functools.lru_cache(maxsize=16)
def _map(board: Board) -> tuple[str, str]:
    """Draw what never changes: the land with its routes, and the places on it."""
    layout = map_layout_of(board)
    sea = box(0, 0, map_layout.WIDTH, map_layout.HEIGHT, "sea", 10)
    parts = [sea, path(layout.coast, "land")]
    for area, icon in zip(AREAS, board.area_icons, strict=True):
        parts.append(path(layout.outlines[area], icon))
    parts.append(path(layout.stations, "ring"))
    for start, end in board.routes:
        (x1, y1), (x2, y2) = (layout.of(site_of(board, town)) for town in (start, end))
        parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="road"/>')
    land, parts = "".join(parts), []
    for area, icon in zip(AREAS, board.area_icons, strict=True):
        name = text_at(0, 35, area, "mid small dim halo")
        sign = glyph_at(icons.ICONS[icon], 30)
        parts.append(titled_group(f"area {area}, {icon}", sign, name, at=layout.areas[area]))
    for town, number in zip(MOUNTAIN_TOWNS, board.mountain_numbers, strict=True):
        hill = f'<path d="{_HILL}" class="town"/>'
        labels = text_at(0, 9, number, "mid bold big") + text_at(0, 35, town, "mid small dim halo")
        title = f"mountain town {town}, {number} wares"
        parts.append(titled_group(title, hill, labels, at=layout.towns[town]))
    for index, station in enumerate(board.stations):
        parts.append(_station(index, station, layout.stations[index]))
    return land, "".join(parts)


def _station(index: int, station: str, at: Point) -> str:
    if station in COASTAL_TOWNS:
        inside = disc(0, 0, 15, "town") + text_at(0, 4.5, station, "mid small bold")
        return titled_group(f"coastal town {station}, space {index}", inside, at=at)
    inside = disc(0, 0, 13, "spot") + glyph_at(icons.STATIONS[station], 17)
    return titled_group(f"{station}, space {index}", inside, at=at)


def _boutique(board: Board, layout: MapLayout, town: str, token: tuple[str, int] | None) -> str:
    if token is None:
        return ""
    ware, price = token
    index = board.stations.index(town)
    at = _along(layout.stations[index], layout.inland[index], -42)
    return titled_group(f"boutique at {town}: {ware}, {price} coins", token_of(ware, price), at=at)


def token_of(ware: str, price: int) -> str:
    """Return SVG of a boutique token, a ware with its price in coins, around the origin."""
    sign, number = glyph_at(icons.WARES[ware], 20, -9), text_at(12, 5, price, "mid bold")
    return box(-21, -14, 42, 28, "spot", 6) + sign + number


def _along(point: Point, direction: Point, distance: float) -> Point:
    return point[0] + direction[0] * distance, point[1] + direction[1] * distance


def _pawn_point(layout: MapLayout, place: Place, seat: int) -> Point:
    """Return the point of a pawn: inland of a station, left or right of a town, in its area."""
    if isinstance(place, int):
        return _along(layout.stations[place], layout.inland[place], map_layout.INLAND)
    if place in AREAS:
        return layout.pawns[place][seat]
    return _along(layout.of(place), (1, 0), 30 if seat else -30)


def _place_name(board: Board, place: Place) -> str:
    return f"{board.stations[place]}, space {place}" if isinstance(place, int) else place


def _last_moves(scene: Scene, layout: MapLayout) -> str:
    """Draw each player's newest move as a line along its way, the newest one on top."""
    drawn = ""
    for step in scene.last:
        seat, character, *ends = step
        names = [_place_name(scene.board, place) for place in ends]
        title = f"{scene.names[seat]}'s {character} moved from {names[0]} to {names[1]}"
        start = _pawn_point(layout, step.start, seat)
        line = path(_way_of(scene.board, step), f"way{seat}", closed=False)
        drawn += titled_group(title, line, disc(*start, 5, f"p{seat}"))
    return drawn


def _way_of(board: Board, step: Step) -> list[Point]:
    """Return the points of a pawn's way: along coast or routes, or straight for an artist."""
    seat, character, *ends = step
    layout, size = map_layout_of(board), len(board.stations)
    start, end = (_pawn_point(layout, place, seat) for place in ends)
    between: Iterable[Point] = ()
    if character == "merchant":
        towns = (board.stations[place] if isinstance(place, int) else place for place in ends)
        between = (layout.of(site_of(board, town)) for town in town_path(board.routes, *towns))
    elif character == "pilgrim":
        first, last = map(int, ends)
        steps = range(first + 1, first + (last - first) % size)
        between = (_pawn_point(layout, space % size, seat) for space in steps)
    return [start, *between, end]


def _choices(scene: Scene, layout: MapLayout) -> tuple[str, str]:
    """Draw marks at legal destinations, and the initials of characters that may move there.

    Returns:
        The marks, drawn below the pawns, and the letters with probabilities, drawn above them.
    """
    places: defaultdict[Place, list[Choice]] = defaultdict(list)
    for choice in scene.choices:
        if choice.place is not None:
            places[choice.place].append(choice)
    marks, letters = "", ""
    for place, choices in places.items():
        x, y = layout.of(place)
        mark, height = disc(0, 0, 22, "mark"), 25
        if place in MOUNTAIN_TOWNS:
            mark = f'<path d="{_HILL}" transform="translate(0 1) scale(1.25)" class="mark"/>'
            height = 30
        elif isinstance(place, int):
            mark, height = disc(0, 0, 19, "mark"), 22
            if scene.board.stations[place] in COASTAL_TOWNS and layout.inland[place][1] > 0.19:
                height = -32  # below, as the boutique is above; a free place has no pawn
        marks += titled_group("legal: " + ", ".join(one.label for one in choices), mark, at=(x, y))
        initials = dict.fromkeys(f"{one.label[0].upper()}{_percent(one)}" for one in choices)
        letters += text_at(x, y - height, " ".join(initials), "mid percent small")
    return marks, letters


def _percent(choice: Choice) -> str:
    """Return a choice's probability after a space, or "" if it is unknown or rounds to 0%."""
    percent = "" if choice.probability is None else f" {choice.probability:.0%}"
    return "" if percent == " 0%" else percent


# The supply: dice, waves, hot spring and bag; and the legal actions


def _supply(scene: Scene) -> Parts:
    position = scene.position
    parts = {"card": box(0.5, 0.5, map_layout.WIDTH - 1, 143, "card", 10)}
    for column, character in enumerate(CHARACTERS):
        parts[f"die {character}"] = _die(scene, character, (42 + 66 * column, 42))
        wave = position["waves"][character]
        side, free = wave["side"] or "not dealt", wave["owner"] is None
        token = (f"wave of the {character}: {side}", icons.WAVE, (side, character))
        parts[f"wave {character}"] = _token(*token, (240 + 74 * column, 42), free=free)
    spring = ("hot spring token", icons.SPRING, ("hot spring", ""))
    parts["spring"] = _token(*spring, (465, 42), free=position["hot_spring"] is None)
    parts["bag"] = _bag(position["bag"])
    parts["end"] = _end(scene)
    parts["actions"] = _actions(scene)
    return parts


def _die(scene: Scene, character: str, at: Point) -> str:
    position = scene.position
    value = "?" if position["dice"] is None else position["dice"][character]
    state = die_state(position, character)
    drawn = box(-19, -25, 38, 38, "spot", 7) + text_at(0, 2, value, "mid bold huge")
    if state == "selected":
        drawn += box(-22, -28, 44, 44, "mark", 9)
    drawn = drawn if state in ("available", "selected") else faint(drawn)
    below = "" if value == "?" else state  # "not rolled" would run into the next one
    labels = text_at(0, 28, character, "mid small") + text_at(0, 41, below, "mid small dim")
    return titled_group(f"{character} die {value}, {state}", drawn, labels, at=at)


def _token(title: str, glyph: Glyph, labels: tuple[str, str], at: Point, *, free: bool) -> str:
    """Draw a free token with its name and character, or the empty place of a taken one."""
    name, character = labels
    drawn = disc(0, -6, 19, "spot") + glyph_at(glyph, 24, 0, -6)
    return titled_group(
        title + (", on the board" if free else ", taken"),
        drawn if free else faint(disc(0, -6, 19, "slot")),
        text_at(0, 28, name, "mid small"),
        text_at(0, 41, character if free else "taken", "mid small dim"),
        at=at,
    )


def _bag(bag: Mapping[str, int]) -> str:
    inside = [text_at(0, -10, "bag", "small dim")]
    for row, ware in enumerate(WARES):
        x, y = 44 * (row % 2), 8 + 26 * (row // 2)
        inside += [
            glyph_at(icons.WARES[ware], 18, x + 8, y),
            text_at(x + 21, y + 5, bag[ware], "bold"),
        ]
    contents = ", ".join(f"{bag[ware]} {ware}" for ware in WARES)
    return titled_group(f"in the bag: {contents}", *inside, at=(530, 32))


def _end(scene: Scene) -> str:
    """Write the fewest steps to a trigger of the end (R9.1)."""
    left, track, seat = min(
        (left, track, seat)
        for seat, player in enumerate(scene.position["players"])
        for track, left in steps_left(player).items()
    )
    text = f"nearest end: {scene.names[seat]}'s {track_name(track)}, {left} left"
    return text_at(14, 101, text if left else "the end is triggered", "small")


def _actions(scene: Scene) -> str:
    """Write the legal actions, the likeliest first if an agent's probabilities are known."""
    choices = sorted(scene.choices, key=lambda choice: -(choice.probability or 0))
    lines = [""]
    for choice in choices:
        text = choice.label + _percent(choice)
        if len(lines[-1]) + len(text) > _LINE_LENGTH:
            lines.append("")
        lines[-1] += f" · {text}" if lines[-1] else text
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], lines[_LINES - 1] + " …"]
    title = ", ".join(choice.label for choice in choices) or "none"
    texts = (text_at(14, 115 + 13 * row, line, "bold small") for row, line in enumerate(lines))
    return titled_group(f"legal: {title}", *texts)
