"""A position as an SVG picture.

    game.show().save("board.svg")
    draw(scene)

The picture is made of panels, and each panel of parts: one for every thing that can change. A page
that steps through a game replaces the parts that changed; `draw` puts all of them together. Text
stays text, every thing has a `<title>`, shapes and not colours alone tell things apart.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tokaido_env.boards.board import Board
from tokaido_env.boards.geometry import way
from tokaido_env.core.arguments import check_choice, repr_short
from tokaido_env.core.constants import AREAS, CHARACTERS, COASTAL_TOWNS, MOUNTAIN_TOWNS, WARES
from tokaido_env.files import write_text
from tokaido_env.render import icons, map_layout as charts, svg_player as players
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
    thing,
)
from tokaido_env.render.icons import Glyph
from tokaido_env.render.map_layout import Chart, Point, chart_of
from tokaido_env.render.narration import shortened
from tokaido_env.render.scene import (
    Choice,
    Place,
    Scene,
    die_state,
    facts_of,
    place_of,
    site_of,
    story_of,
)
from tokaido_env.render.style import THEMES, Theme, style

WIDTH, HEIGHT = 1000, 668
PANELS: Mapping[str, tuple[int, int, int, int]] = {  # left, top, width, height
    "heading": (0, 0, WIDTH, 50),
    "island": (0, 50, charts.WIDTH, charts.HEIGHT),
    "table": (0, 524, charts.WIDTH, 144),
    "player_0": (650, 50, players.WIDTH, players.HEIGHT),
    "player_1": (650, 364, players.WIDTH, players.HEIGHT),
}
_HILL = "M-24 17-7-15Q0-24 7-15L24 17Z"
_LINE, _LINES = 76, 3  # letters in a line of legal actions, and lines: a phone's have room


class Picture:
    """An SVG picture that notebooks show.

    Attributes:
        svg: the `<svg>` element.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the picture to a file: whole or not at all.

        Raises:
            ValueError: if its name does not end in .svg.
        """
        file = Path(path)
        if file.suffix.lower() != ".svg":
            raise ValueError(
                f"path: expected a name that ends in .svg, got {repr_short(str(path))}; for PNG, "
                "install the extra [render] and save "
                "PIL.Image.fromarray(tokaido_env.render.raster.rasterise(picture.svg, 1000))"
            )
        write_text(file, self.svg + "\n")


def draw(scene: Scene, theme: Theme = "auto") -> str:
    """Draw a scene: a whole `<svg>` element, 1000 by 668 units.

    Args:
        scene: what to show.
        theme: "light", "dark", or "auto" to follow the reader's setting.
    """
    check_choice("theme", theme, THEMES)
    panels = "".join(
        f'<g transform="translate({left} {top})">{"".join(parts.values())}</g>'
        for (left, top, *_), parts in zip(PANELS.values(), panels_of(scene).values(), strict=True)
    )
    paper = f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" class="paper"/>'
    title = f"<title>{escaped(f'Tokaido Duo, {story_of(scene)}')}</title>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'class="tokaido tokaido-{theme}" role="graphics-document document">'
        f"{title}<style>{style(theme)}</style>{paper}{panels}</svg>"
    )


def panels_of(scene: Scene) -> dict[str, Parts]:
    """Return the parts of every panel of `PANELS`, each in its panel's own coordinates.

    The parts are always the same, in drawing order; a missing one is empty.
    """
    return {
        "heading": _heading(scene),
        "island": _island(scene),
        "table": _table(scene),
        "player_0": players.player_panel(scene, 0),
        "player_1": players.player_panel(scene, 1),
    }


# The heading: what happens


def _heading(scene: Scene) -> Parts:
    seat = scene.position["player"]
    turn = "" if seat is None else thing(scene.names[seat], pawn(seat, 8), at=(18, 36))
    return {
        "facts": text_at(10, 18, facts_of(scene), "dim"),
        "story": turn + text_at(10 if seat is None else 34, 41, story_of(scene), "bold big"),
        "value": "" if scene.value is None else _value(scene.value, scene.names),
    }


def _value(value: float, names: Sequence[str]) -> str:
    """Draw what a policy expects: the share of a win that each player has."""
    share, width = (value + 1) / 2, 330
    first, second = (shortened(name, 16) for name in names)  # with 100% half of the bar, no more
    return thing(
        f"win estimate: {names[0]} {share:.0%}, {names[1]} {1 - share:.0%}",
        box(0, 0, width, 10, "p1"),
        box(0, 0, round(share * width, 1), 10, "p0"),
        text_at(0, -5, f"{first} {share:.0%}", "small bold"),
        text_at(width, -5, f"{1 - share:.0%} {second}", "small bold end"),
        at=(660, 28),
    )


# The island


def _island(scene: Scene) -> Parts:
    board, position, chart = scene.board, scene.position, chart_of(scene.board)
    parts = {"map": _map(board), "last": _last(scene, chart)}
    for town in COASTAL_TOWNS:
        parts[f"token {town}"] = _boutique(board, chart, town, position["boutiques"][town])
    parts["choices"], letters = _choices(scene, chart)
    for seat, player in enumerate(position["players"]):
        for character in CHARACTERS:
            place = place_of(board, player, character)
            at = _stand(chart, place, seat)
            title = f"{scene.names[seat]}'s {character}, {_place_name(board, place)}"
            letter = text_at(0, 4.5, character[0].upper(), f"mid on{seat}")
            parts[f"pawn {seat} {character}"] = thing(title, pawn(seat, 11), letter, at=at)
    return parts | {"letters": letters}


@functools.lru_cache(maxsize=16)
def _map(board: Board) -> str:
    """Draw all that never changes."""
    chart = chart_of(board)
    ring = box(0, 0, charts.WIDTH, charts.HEIGHT, "sea", 10)
    parts = [ring, path(chart.coast, "land")]
    for area, icon in zip(AREAS, board.area_icons, strict=True):
        parts.append(path(chart.outlines[area], icon))
    parts.append(path(chart.stations, "ring"))
    for start, end in board.routes:
        (x1, y1), (x2, y2) = (chart.of(site_of(board, town)) for town in (start, end))
        parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="road"/>')
    for area, icon in zip(AREAS, board.area_icons, strict=True):
        name = text_at(0, 35, area, "mid small dim halo")
        sign = glyph_at(icons.ICONS[icon], 30)
        parts.append(thing(f"area {area}, {icon}", sign, name, at=chart.areas[area]))
    for town, number in zip(MOUNTAIN_TOWNS, board.mountain_numbers, strict=True):
        hill = f'<path d="{_HILL}" class="town"/>'
        words = text_at(0, 9, number, "mid bold big") + text_at(0, 35, town, "mid small dim halo")
        title = f"mountain town {town}, {number} wares"
        parts.append(thing(title, hill, words, at=chart.towns[town]))
    for index, station in enumerate(board.stations):
        parts.append(_station(index, station, chart.stations[index]))
    return "".join(parts)


def _station(index: int, station: str, at: Point) -> str:
    if station in COASTAL_TOWNS:
        inside = disc(0, 0, 15, "town") + text_at(0, 4.5, station, "mid small bold")
        return thing(f"coastal town {station}, space {index}", inside, at=at)
    inside = disc(0, 0, 13, "spot") + glyph_at(icons.STATIONS[station], 17)
    return thing(f"{station}, space {index}", inside, at=at)


def _boutique(board: Board, chart: Chart, town: str, token: tuple[str, int] | None) -> str:
    if token is None:
        return ""
    ware, price = token
    index = board.stations.index(town)
    at = _along(chart.stations[index], chart.inland[index], -42)
    return thing(f"boutique at {town}: {ware}, {price} coins", token_of(ware, price), at=at)


def token_of(ware: str, price: int) -> str:
    """Draw a boutique token about the origin."""
    sign, number = glyph_at(icons.WARES[ware], 20, -9), text_at(12, 5, price, "mid bold")
    return box(-21, -14, 42, 28, "spot", 6) + sign + number


def _along(point: Point, direction: Point, distance: float) -> Point:
    return point[0] + direction[0] * distance, point[1] + direction[1] * distance


def _stand(chart: Chart, place: Place, seat: int) -> Point:
    """Return where a pawn stands: inland of its station, else beside the sign, by its seat."""
    if isinstance(place, int):
        return _along(chart.stations[place], chart.inland[place], charts.INLAND)
    if place in AREAS:
        return chart.beside[place][seat]
    return _along(chart.of(place), (1, 0), 30 if seat else -30)


def _place_name(board: Board, place: Place) -> str:
    return f"{board.stations[place]}, space {place}" if isinstance(place, int) else place


def _last(scene: Scene, chart: Chart) -> str:
    """Draw the newest move as a line: along the coast, along the routes, or straight."""
    if scene.last is None:
        return ""
    seat, character, *ends = scene.last
    board, size = scene.board, len(scene.board.stations)
    start, end = (_stand(chart, place, seat) for place in ends)
    names = [_place_name(board, place) for place in ends]
    between: Iterable[Point] = ()
    if character == "merchant":
        towns = (board.stations[place] if isinstance(place, int) else place for place in ends)
        between = (chart.of(site_of(board, town)) for town in way(board.routes, *towns))
    elif character == "pilgrim":
        first, last = map(int, ends)
        steps = range(first + 1, first + (last - first) % size)
        between = (_stand(chart, space % size, seat) for space in steps)
    title = f"{scene.names[seat]}'s {character} moved from {names[0]} to {names[1]}"
    line = path([start, *between, end], f"way{seat}", closed=False)
    return thing(title, line, disc(*start, 5, f"p{seat}"))


def _choices(scene: Scene, chart: Chart) -> tuple[str, str]:
    """Draw marks at legal destinations, and letters of the characters that may go there.

    Returns:
        The marks, drawn below the pawns, and the letters with probabilities, drawn above them.
    """
    places: defaultdict[Place, list[Choice]] = defaultdict(list)
    for choice in scene.choices:
        if choice.place is not None:
            places[choice.place].append(choice)
    marks, letters = "", ""
    for place, choices in places.items():
        x, y = chart.of(place)
        mark, height = disc(0, 0, 22, "mark"), 25
        if place in MOUNTAIN_TOWNS:
            mark = f'<path d="{_HILL}" transform="translate(0 1) scale(1.25)" class="mark"/>'
            height = 30
        elif isinstance(place, int):
            mark, height = disc(0, 0, 19, "mark"), 22
            if scene.board.stations[place] in COASTAL_TOWNS and chart.inland[place][1] > 0.19:
                height = -32  # not on the boutique: no pawn stands where somebody may go
        marks += thing("legal: " + ", ".join(one.label for one in choices), mark, at=(x, y))
        words = dict.fromkeys(f"{one.label[0].upper()}{_share(one)}" for one in choices)
        letters += text_at(x, y - height, " ".join(words), "mid told small")
    return marks, letters


def _share(choice: Choice) -> str:
    """Return how likely a policy takes an action, after a space; nothing where it hardly does."""
    told = "" if choice.probability is None else f" {choice.probability:.0%}"
    return "" if told == " 0%" else told


# The table: dice, waves, hot spring, bag and what may be chosen


def _table(scene: Scene) -> Parts:
    position = scene.position
    parts = {"card": box(0.5, 0.5, charts.WIDTH - 1, 143, "card", 10)}
    for column, character in enumerate(CHARACTERS):
        parts[f"die {character}"] = _die(scene, character, (40 + 62 * column, 42))
        wave = position["waves"][character]
        at = (240 + 74 * column, 42)
        parts[f"wave {character}"] = _wave(character, wave["side"], at, there=wave["owner"] is None)
    on_board = position["hot_spring"] is None
    spring = ("hot spring token", icons.SPRING, ("hot spring", ""))
    parts["spring"] = _token(*spring, (465, 42), there=on_board)
    parts["bag"] = _bag(position["bag"])
    parts["actions"] = _actions(scene)
    return parts


def _die(scene: Scene, character: str, at: Point) -> str:
    position = scene.position
    value = "?" if position["dice"] is None else position["dice"][character]
    state = die_state(position, character)
    drawn = box(-19, -25, 38, 38, "spot", 7) + text_at(0, 2, value, "mid bold huge")
    if state == "in hand":
        drawn += box(-22, -28, 44, 44, "mark", 9)
    drawn = drawn if state in ("left", "in hand") else faint(drawn)
    words = text_at(0, 28, character, "mid small") + text_at(0, 41, state, "mid small dim")
    return thing(f"{character} die {value}, {state}", drawn, words, at=at)


def _wave(character: str, side: str | None, at: Point, *, there: bool) -> str:
    name = side or "not dealt"
    title = f"wave of the {character}: {name}"
    return _token(title, icons.WAVE, (name, character), at, there=there)


def _token(title: str, glyph: Glyph, words: tuple[str, str], at: Point, *, there: bool) -> str:
    """Draw a token on the table with its name and whose it is, or where it lay."""
    name, owner = words
    drawn = disc(0, -6, 19, "spot") + glyph_at(glyph, 24, 0, -6)
    return thing(
        title + (", on the board" if there else ", taken"),
        drawn if there else faint(disc(0, -6, 19, "slot")),
        text_at(0, 28, name, "mid small"),
        text_at(0, 41, owner if there else "taken", "mid small dim"),
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
    return thing(f"in the bag: {contents}", *inside, at=(530, 32))


def _actions(scene: Scene) -> str:
    """Write the legal actions, the likeliest first where a policy was asked."""
    choices = sorted(scene.choices, key=lambda choice: -(choice.probability or 0))
    lines = [""]
    for choice in choices:
        words = choice.label + _share(choice)
        if len(lines[-1]) + len(words) > _LINE:
            lines.append("")
        lines[-1] += f" · {words}" if lines[-1] else words
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], lines[_LINES - 1] + " …"]
    title = ", ".join(choice.label for choice in choices) or "nothing"
    written = (text_at(14, 103 + 16 * row, line, "bold small") for row, line in enumerate(lines))
    return thing(f"legal: {title}", *written)
