"""A position as an SVG picture.

    Path("board.svg").write_text(draw(scene_of(game)))

The picture is made of panels, and each panel of parts: one for every thing that can change. A page
that steps through a game replaces the parts that changed; `draw` puts all of them together. Text
stays text, every thing has a `<title>`, shapes and not colours alone tell things apart.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Literal

from tokaido_env.boards.board import Board
from tokaido_env.core.box import (
    AREAS,
    CAPACITY,
    CHARACTERS,
    COASTAL_TOWNS,
    ICONS,
    LAST_GARDEN,
    LAST_SLAB,
    LAST_TEMPLE,
    MOUNTAIN_TOWNS,
    PAINTINGS,
    WARES,
)
from tokaido_env.core.checks import check_choice
from tokaido_env.files import write_text
from tokaido_env.render import chart as charts, glyphs
from tokaido_env.render.chart import Chart, Point, chart_of
from tokaido_env.render.glyphs import Glyph
from tokaido_env.render.scene import Choice, Place, Player, Scene, place_of, points_of, story_of

Theme = Literal["light", "dark", "auto"]
THEMES = ("light", "dark", "auto")
Parts = dict[str, str]  # markup by name, in the order in which it is drawn

WIDTH, HEIGHT = 1000, 668
PANELS: Mapping[str, tuple[int, int, int, int]] = {  # left, top, width, height
    "heading": (0, 0, WIDTH, 50),
    "island": (0, 50, charts.WIDTH, charts.HEIGHT),
    "table": (0, 524, charts.WIDTH, 144),
    "player_0": (650, 50, 350, 304),
    "player_1": (650, 364, 350, 304),
}

# By class: light, dark. Seats differ in lightness and shape as well as in hue.
_COLOURS = {
    "paper": ("#ffffff", "#12161c"),
    "card": ("#f4f5f7", "#1c222b"),
    "ink": ("#1d2229", "#e9ebee"),
    "dim": ("#5a6472", "#a3adba"),
    "edge": ("#c3c9d2", "#3d4754"),
    "sea": ("#cfe4ef", "#14303f"),
    "land": ("#efe2bf", "#4a432f"),
    "route": ("#8b6b3d", "#c9a86a"),
    "spot": ("#fffdf6", "#20262f"),
    "moon": ("#ece3ad", "#57512f"),
    "waterfall": ("#c9dfe6", "#2c4751"),
    "mountain": ("#dccfbd", "#4d443b"),
    "bamboo": ("#cfe0b8", "#3a4b31"),
    "mark": ("#d55e00", "#ff9248"),
    "p0": ("#5b2a86", "#8f5cc4"),
    "p1": ("#8fce5a", "#9ddb6a"),
    "gold": ("#e0a800", "#f0bf2c"),
}
_HILL = "M-24 17-7-15Q0-24 7-15L24 17Z"
_ON_SEAT = ("#ffffff", "#14240a")  # letters on the pawns
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE = 92  # letters of legal actions
_FONT = "system-ui,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',sans-serif"
_RULES = {  # {name} is a colour
    "": "font:13px {font}",
    "text": "fill:{ink}",
    ".dim": "fill:{dim}",
    ".small": "font-size:11px",
    ".big": "font-size:16px",
    ".huge": "font-size:20px",
    ".bold": "font-weight:700",
    ".mid": "text-anchor:middle",
    ".end": "text-anchor:end",
    ".paper": "fill:{paper}",
    ".card": "fill:{card};stroke:{edge}",
    ".sea": "fill:{sea}",
    ".land": "fill:{land};stroke:{route};stroke-opacity:.5",
    ".ring": "fill:none;stroke:{route};stroke-width:5;stroke-opacity:.35",
    ".road": "stroke:{route};stroke-width:4;stroke-linecap:round",
    ".spot": "fill:{spot};stroke:{ink};stroke-opacity:.55",
    ".town": "fill:{spot};stroke:{ink};stroke-width:2",
    ".sign": "fill:{ink}",
    ".line": "fill:none;stroke:{ink};stroke-width:2;stroke-linecap:round",
    ".faint": "opacity:.38",
    ".slot": "fill:{spot};stroke:{edge}",
    ".back": "fill:{edge}",
    ".gold": "fill:{gold};stroke:{ink};stroke-opacity:.5",
    ".mark": "fill:none;stroke:{mark};stroke-width:3.5;stroke-dasharray:7 3",
    ".told": "fill:{mark};font-weight:700;paint-order:stroke;stroke:{paper};stroke-width:3px",
    ".halo": "paint-order:stroke;stroke:{spot};stroke-width:3px;stroke-opacity:.7",
    ".p0": "fill:{p0}",
    ".p1": "fill:{p1}",
    ".way0": "stroke:{p0};stroke-width:5;stroke-opacity:.55;fill:none;stroke-linecap:round",
    ".way1": "stroke:{p1};stroke-width:5;stroke-opacity:.8;fill:none;stroke-linecap:round",
    ".pawn": "stroke:{paper};stroke-width:2",
    ".on0": f"fill:{_ON_SEAT[0]};font-weight:700",
    ".on1": f"fill:{_ON_SEAT[1]};font-weight:700",
    **{f".{icon}": f"fill:{{{icon}}}" for icon in ICONS},
}


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
        """Write the picture to a file: whole or not at all."""
        write_text(Path(path), self.svg + "\n")


def draw(scene: Scene, theme: Theme = "auto") -> str:
    """Draw a scene: a whole `<svg>` element, 1000 by 668 units.

    Args:
        scene: what to show.
        theme: "light", "dark", or "auto" to follow the reader's setting.
    """
    check_choice("theme", theme, THEMES)
    panels = "".join(
        _tag("g", *parts.values(), transform=f"translate({PANELS[name][0]} {PANELS[name][1]})")
        for name, parts in panels_of(scene).items()
    )
    paper = _tag("rect", width=WIDTH, height=HEIGHT, rx=10, class_="paper")
    title = _tag("title", _escaped(f"Tokaido Duo, {story_of(scene)}"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'class="tokaido tokaido-{theme}" role="graphics-document document">'
        f"{title}<style>{style(theme)}</style>{paper}{panels}</svg>"
    )


@functools.cache
def style(theme: Theme) -> str:
    """Return the style sheet of a theme; it touches nothing outside the pictures of its theme."""
    light, dark = _sheet(f".tokaido-{theme}", 0), _sheet(f".tokaido-{theme}", 1)
    if theme == "auto":
        return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"
    return light if theme == "light" else dark


def _sheet(root: str, tone: int) -> str:
    colours = {name: tones[tone] for name, tones in _COLOURS.items()}
    return "".join(
        f"{root} {selector}{{{rule.format(font=_FONT, **colours)}}}".replace(" {", "{")
        for selector, rule in _RULES.items()
    )


def panels_of(scene: Scene) -> dict[str, Parts]:
    """Return the parts of every panel of `PANELS`, each in its panel's own coordinates."""
    return {
        "heading": _heading(scene),
        "island": _island(scene),
        "table": _table(scene),
        "player_0": _player(scene, 0),
        "player_1": _player(scene, 1),
    }


# Elements


def _tag(name: str, *inside: str, **attributes: object) -> str:
    """Return an element; its attributes are our own, text inside was escaped before."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{value}"' for key, value in attributes.items()
    )
    return f"<{name}{told}>{''.join(inside)}</{name}>" if inside else f"<{name}{told}/>"


def _escaped(text: str) -> str:
    """Return text as markup; what XML does not allow, control characters, as U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", text))


def _text(x: float, y: float, text: object, classes: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{classes}">{_escaped(str(text))}</text>'


def _thing(title: str, *inside: str, at: Point = (0, 0), classes: str = "") -> str:
    """Return a group with its title, which readers and pointers find."""
    return (
        f'<g role="img" transform="translate({at[0]:g} {at[1]:g})" class="{classes}">'
        f"<title>{_escaped(title)}</title>{''.join(inside)}</g>"
    )


def _glyph(glyph: Glyph, size: float, x: float = 0, y: float = 0) -> str:
    """Draw a sign about a point, so many units wide."""
    fill = f'<path d="{glyph.fill}" class="sign"/>' if glyph.fill else ""
    line = f'<path d="{glyph.line}" class="line"/>' if glyph.line else ""
    return f'<g transform="translate({x:g} {y:g}) scale({size / 24:.3g})">{fill}{line}</g>'


def _box(x: float, y: float, width: float, height: float, classes: str, corner: float = 3) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{corner:g}" '
        f'class="{classes}"/>'
    )


def _disc(x: float, y: float, radius: float, classes: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{classes}"/>'


def _path(points: Iterable[Point], classes: str, *, closed: bool = True) -> str:
    line = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path d="M{line}{"Z" * closed}" class="{classes}"/>'


def _pawn_shape(seat: int, radius: float) -> str:
    """Draw a disc for player_0, a square for player_1."""
    if seat == 0:
        return _disc(0, 0, radius, "p0 pawn")
    side = 1.8 * radius
    return _box(-side / 2, -side / 2, side, side, "p1 pawn")


# The heading: what happens


def _heading(scene: Scene) -> Parts:
    position = scene.position
    board = "".join(sign for sign in position["board"] if sign.isprintable())
    facts = f"round {position['round']} · {scene.names[position['lead']]} leads · {board}"
    seat = position["player"]
    turn = "" if seat is None else _thing(scene.names[seat], _pawn_shape(seat, 8), at=(18, 36))
    parts = {
        "facts": _text(10, 18, facts, "dim"),
        "story": turn + _text(10 if seat is None else 34, 41, story_of(scene), "bold big"),
    }
    if scene.value is not None:
        parts["value"] = _value(scene.value, scene.names)
    return parts


def _value(value: float, names: Sequence[str]) -> str:
    """Draw what a policy expects: the share of a win that each player has."""
    share, width = (value + 1) / 2, 330
    first, second = (_shortened(name, 20) for name in names)
    return _thing(
        f"win estimate: {names[0]} {share:.0%}, {names[1]} {1 - share:.0%}",
        _box(0, 0, width, 10, "p1"),
        _box(0, 0, round(share * width, 1), 10, "p0"),
        _text(0, -5, f"{first} {share:.0%}", "small bold"),
        _text(width, -5, f"{1 - share:.0%} {second}", "small bold end"),
        at=(660, 28),
    )


# The island


def _island(scene: Scene) -> Parts:
    board, position, chart = scene.board, scene.position, chart_of(scene.board)
    parts = {"map": _map(board)}
    if scene.last is not None:
        parts["last"] = _last(scene, chart)
    for town in COASTAL_TOWNS:
        parts[f"token {town}"] = _boutique(board, chart, town, position["boutiques"][town])
    parts["choices"] = _marks(scene, chart)
    for seat, player in enumerate(position["players"]):
        for character in CHARACTERS:
            place = place_of(board, player, character)
            at = _stand(board, chart, place, seat)
            title = f"{scene.names[seat]}'s {character}, {_place_name(board, place)}"
            letter = _text(0, 4.5, character[0].upper(), f"mid on{seat}")
            parts[f"pawn {seat} {character}"] = _thing(title, _pawn_shape(seat, 11), letter, at=at)
    parts["letters"] = _letters(scene, chart)
    return parts


@functools.lru_cache(maxsize=16)
def _map(board: Board) -> str:
    """Draw all that never changes."""
    chart = chart_of(board)
    ring = _box(0, 0, charts.WIDTH, charts.HEIGHT, "sea", 10)
    parts = [ring, _path(chart.coast, "land")]
    for area, icon in zip(AREAS, board.area_icons, strict=True):
        parts.append(_path(chart.outlines[area], icon))
    parts.append(_path(chart.stations, "ring"))
    for start, end in board.routes:
        parts.append(_road(_site(board, chart, start), _site(board, chart, end)))
    for area, icon in zip(AREAS, board.area_icons, strict=True):
        name = _text(0, 35, area, "mid small dim halo")
        sign = _glyph(glyphs.ICONS[icon], 30)
        parts.append(_thing(f"area {area}, {icon}", sign, name, at=chart.areas[area]))
    for town, number in zip(MOUNTAIN_TOWNS, board.mountain_numbers, strict=True):
        parts.append(_mountain_town(town, number, chart.towns[town]))
    for index, station in enumerate(board.stations):
        parts.append(_station(index, station, chart.stations[index]))
    return "".join(parts)


def _site(board: Board, chart: Chart, town: str) -> Point:
    return chart.of(board.stations.index(town) if town in COASTAL_TOWNS else town)


def _road(start: Point, end: Point) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="road"/>'


def _station(index: int, station: str, at: Point) -> str:
    if station in COASTAL_TOWNS:
        inside = _disc(0, 0, 15, "town") + _text(0, 4.5, station, "mid small bold")
        return _thing(f"coastal town {station}, space {index}", inside, at=at)
    inside = _disc(0, 0, 13, "spot") + _glyph(glyphs.STATIONS[station], 17)
    return _thing(f"{station}, space {index}", inside, at=at)


def _mountain_town(town: str, number: int, at: Point) -> str:
    hill = f'<path d="{_HILL}" class="town"/>'
    words = _text(0, 9, number, "mid bold big") + _text(0, 35, town, "mid small dim halo")
    return _thing(f"mountain town {town}, {number} wares", hill, words, at=at)


def _boutique(board: Board, chart: Chart, town: str, token: tuple[str, int] | None) -> str:
    if token is None:
        return ""
    ware, price = token
    index = board.stations.index(town)
    at = _along(chart.stations[index], chart.inland[index], -42)
    inside = _box(-21, -14, 42, 28, "spot", 6) + _glyph(glyphs.WARES[ware], 20, -9)
    return _thing(
        f"boutique at {town}: {ware}, {price} coins", inside, _text(12, 5, price, "mid bold"), at=at
    )


def _along(point: Point, direction: Point, distance: float) -> Point:
    return point[0] + direction[0] * distance, point[1] + direction[1] * distance


def _stand(board: Board, chart: Chart, place: Place, seat: int) -> Point:
    """Return where a pawn stands: inland of its station, else beside the sign, by its seat."""
    if isinstance(place, int):
        return _along(chart.stations[place], chart.inland[place], 25)
    aside = 30 if place in MOUNTAIN_TOWNS else 27
    return _along(chart.of(place), (1, 0), aside if seat else -aside)


def _place_name(board: Board, place: Place) -> str:
    return f"{board.stations[place]}, space {place}" if isinstance(place, int) else place


def _last(scene: Scene, chart: Chart) -> str:
    """Draw the newest move as a line from where the pawn was to where it is."""
    seat, character, start, end = scene.last or (0, "", 0, 0)
    board = scene.board
    points = [_stand(board, chart, place, seat) for place in (start, end)]
    if isinstance(start, int) and isinstance(end, int) and character == "pilgrim":
        size = len(board.stations)
        spaces = [(start + step) % size for step in range((end - start) % size + 1)]
        points = [_stand(board, chart, place, seat) for place in spaces]
    way = f"from {_place_name(board, start)} to {_place_name(board, end)}"
    title = f"{scene.names[seat]}'s {character} moved {way}"
    return _thing(
        title, _path(points, f"way{seat}", closed=False), _disc(*points[0], 5, f"p{seat}")
    )


def _by_place(choices: Iterable[Choice]) -> dict[Place, list[Choice]]:
    places: dict[Place, list[Choice]] = {}
    for choice in choices:
        if choice.place is not None:
            places.setdefault(choice.place, []).append(choice)
    return places


def _marks(scene: Scene, chart: Chart) -> str:
    """Mark where a character may go."""
    marks = []
    for place, choices in _by_place(scene.choices).items():
        title = "legal: " + ", ".join(choice.label for choice in choices)
        if place in MOUNTAIN_TOWNS:
            mark = f'<path d="{_HILL}" transform="translate(0 1) scale(1.25)" class="mark"/>'
        else:
            mark = _disc(0, 0, 19 if isinstance(place, int) else 22, "mark")
        marks.append(_thing(title, mark, at=chart.of(place)))
    return "".join(marks)


def _letters(scene: Scene, chart: Chart) -> str:
    """Write at each place who may go there and, where a policy was asked, how likely."""
    told = []
    for place, choices in _by_place(scene.choices).items():
        words = " ".join(dict.fromkeys(_letter(choice) for choice in choices))
        x, y = chart.of(place)
        height = 22 if isinstance(place, int) else 30 if place in MOUNTAIN_TOWNS else 25
        told.append(_text(x, y - height, words, "mid told small"))
    return "".join(told)


def _letter(choice: Choice) -> str:
    share = "" if choice.probability is None else f" {choice.probability:.0%}"
    return f"{choice.label[0].upper()}{share}"


# The table: dice, waves, hot spring, bag and what may be chosen


def _table(scene: Scene) -> Parts:
    position = scene.position
    parts = {"card": _box(0.5, 0.5, charts.WIDTH - 1, 143, "card", 10)}
    for column, character in enumerate(CHARACTERS):
        parts[f"die {character}"] = _die(scene, character, (40 + 62 * column, 42))
        wave = position["waves"][character]
        at = (240 + 74 * column, 42)
        parts[f"wave {character}"] = _wave(character, wave["side"], at, there=wave["owner"] is None)
    on_board = position["hot_spring"] is None
    spring = ("hot spring token", glyphs.SPRING, ("hot spring", ""))
    parts["spring"] = _token(*spring, (465, 42), there=on_board)
    parts["bag"] = _bag(position["bag"])
    parts["actions"] = _actions(scene)
    return parts


def _die(scene: Scene, character: str, at: Point) -> str:
    position = scene.position
    value = "?" if position["dice"] is None else position["dice"][character]
    state, classes = "taken", "faint"
    if position["dice"] is None:
        state = "not rolled"
    elif character in position["dice_left"]:
        state, classes = "left", ""
    elif character == position["die"]:
        state, classes = "in hand", ""
    inside = [_box(-19, -25, 38, 38, "spot", 7), _text(0, 2, value, "mid bold huge")]
    if state == "in hand":
        inside.append(_box(-22, -28, 44, 44, "mark", 9))
    faded = f'<g class="{classes}">{"".join(inside)}</g>' if classes else "".join(inside)
    words = _text(0, 28, character, "mid small") + _text(0, 41, state, "mid small dim")
    return _thing(f"{character} die {value}, {state}", faded, words, at=at)


def _wave(character: str, side: str | None, at: Point, *, there: bool) -> str:
    name = side or "not dealt"
    title = f"wave of the {character}: {name}"
    return _token(title, glyphs.WAVE, (name, character), at, there=there)


def _token(title: str, glyph: Glyph, words: tuple[str, str], at: Point, *, there: bool) -> str:
    """Draw a token on the table with its name and whose it is, or where it lay."""
    name, owner = words
    drawn = _disc(0, -6, 19, "spot") + _glyph(glyph, 24, 0, -6)
    return _thing(
        title + (", on the board" if there else ", taken"),
        drawn if there else f'<g class="faint">{_disc(0, -6, 19, "slot")}</g>',
        _text(0, 28, name, "mid small"),
        _text(0, 41, owner if there else "taken", "mid small dim"),
        at=at,
    )


def _bag(bag: Mapping[str, int]) -> str:
    inside = [_text(0, -10, "bag", "small dim")]
    for row, ware in enumerate(WARES):
        x, y = 44 * (row % 2), 8 + 26 * (row // 2)
        inside += [
            _glyph(glyphs.WARES[ware], 18, x + 8, y),
            _text(x + 21, y + 5, bag[ware], "bold"),
        ]
    told = ", ".join(f"{bag[ware]} {ware}" for ware in WARES)
    return _thing(f"in the bag: {told}", *inside, at=(530, 32))


def _actions(scene: Scene) -> str:
    """Write the legal actions, the likeliest first where a policy was asked."""
    choices = sorted(scene.choices, key=lambda choice: -(choice.probability or 0))
    lines = [""]
    for choice in choices:
        share = "" if choice.probability is None else f" {choice.probability:.0%}"
        words = choice.label + share
        if len(lines[-1]) + len(words) > _LINE:
            lines.append("")
        lines[-1] += f" · {words}" if lines[-1] else words
    if len(lines) > 2:
        lines = [lines[0], lines[1] + " …"]
    title = ", ".join(choice.label for choice in choices) or "nothing"
    told = (_text(14, 108 + 20 * row, line, "bold small") for row, line in enumerate(lines))
    return _thing(f"legal: {title}", *told)


# The players


def _player(scene: Scene, seat: int) -> Parts:
    board, position = scene.board, scene.position
    player = position["players"][seat]
    points = points_of(board, player)
    _, _, width, height = PANELS["player_0"]
    return {
        "card": _box(0.5, 0.5, width - 1, height - 1, "card", 10),
        "name": _name(scene, seat, sum(points.values())),
        "temple": _track("temple", board.temple[:LAST_TEMPLE], player["temple"], seat, 56),
        "garden": _track("garden", board.garden[:LAST_GARDEN], player["garden"], seat, 80),
        "faith": _points("faith", points["faith"], 72),
        "gold": _slabs(board, player["gold"], player["coins"]),
        "commerce": _points("commerce", points["commerce"], 122),
        "wares": _wares(position, player, seat),
        "paintings": _paintings(board, player),
        "culture": _points("culture", points["culture"], 209),
        "hidden": _hidden(player),
        "tokens": _tokens(position, seat),
    }


def _name(scene: Scene, seat: int, total: int) -> str:
    position = scene.position
    inside = [
        f'<path d="M0 34V10Q0 0 10 0H340Q350 0 350 10V34Z" class="p{seat}"/>',
        _text(36, 22, _shortened(scene.names[seat]), f"on{seat} big"),
        _text(338, 24, total, f"on{seat} end huge"),
        f'<g transform="translate(19 17)">{_pawn_shape(seat, 9)}</g>',
    ]
    if position["player"] == seat:
        inside += [_box(228, 8, 58, 18, "paper", 9), _text(257, 21, "decides", "mid small bold")]
    return _thing(f"{scene.names[seat]}, {total} points", *inside)


def _shortened(name: str, most: int = 24) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _points(name: str, points: int, y: float) -> str:
    return _thing(
        f"{name}: {points} points",
        _text(338, y, points, "bold big end"),
        _text(338, y + 13, name, "small dim end"),
    )


def _track(name: str, numbers: Sequence[int], peg: int, seat: int, y: float) -> str:
    inside = [_text(12, y + 4, name, "small dim")]
    for slot, number in enumerate(numbers, 1):
        x = 66 + 23 * (slot - 1)
        here = slot == peg
        inside.append(_disc(x, y, 10, f"p{seat}" if here else "slot"))
        inside.append(_text(x, y + 4, number, f"mid small {f'on{seat}' if here else 'dim'}"))
    return _thing(f"{name}: {numbers[peg - 1]}, slot {peg} of {len(numbers)}", *inside)


def _slabs(board: Board, gold: int, coins: int) -> str:
    inside = [_text(12, 118, "gold", "small dim")]
    for slab in range(LAST_SLAB):
        x = 57 + 25 * slab
        inside.append(_box(x, 106, 21, 14, "gold" if slab < gold else "slot"))
        inside.append(_text(x + 10.5, 133, board.commerce[slab + 1], "mid small dim"))
    inside += [
        _disc(226, 113, 10, "gold"),
        _text(241, 118, f"{coins} coin{'s' * (coins != 1)}", "bold"),
    ]
    return _thing(f"{gold} gold slabs, {coins} coins", *inside)


def _wares(position: Mapping[str, object], player: Player, seat: int) -> str:
    room = CAPACITY + _is_robust(position, seat)
    inside = [_text(12, 160, "wares", "small dim")]
    for column, ware in enumerate(WARES):
        count, x = player["wares"][ware], 66 + 52 * column
        drawn = _glyph(glyphs.WARES[ware], 20, x, 156) + _text(x + 14, 161, count, "bold")
        inside.append(drawn if count else f'<g class="faint">{drawn}</g>')
    inside.append(_text(338, 160, f"of {room}", "small dim end"))
    told = ", ".join(f"{player['wares'][ware]} {ware}" for ware in WARES)
    return _thing(f"wares: {told}; room for {room}", *inside)


def _is_robust(position: Mapping[str, object], seat: int) -> bool:
    wave = position["waves"]["merchant"]  # type: ignore[index]
    return bool(wave["owner"] == seat and wave["side"] == "robust")


def _paintings(board: Board, player: Player) -> str:
    """Draw the ten places: given, revealed from the front on, and face down."""
    easel, gifted = player["easel"], player["gifted"]
    inside = [_text(12, 202, "paintings", "small dim")]
    for slot in range(PAINTINGS):
        x, tile = 79 + 22.5 * slot, slot - gifted
        if tile < 0:
            inside.append(_box(x - 10, 187, 20, 22, "paper"))
        elif tile < len(easel):
            inside.append(_box(x - 10, 187, 20, 22, f"{easel[tile]}"))
            inside.append(_glyph(glyphs.ICONS[easel[tile]], 16, x, 198))
        else:
            inside.append(_box(x - 10, 187, 20, 22, "back"))
        score = "bold small mid" if slot == gifted - 1 else "dim small mid"
        inside.append(_text(x, 222, board.culture[slot + 1], score))
    told = ", ".join(easel) or "none"
    return _thing(f"{gifted} paintings given; revealed, the front first: {told}", *inside)


def _hidden(player: Player) -> str:
    inside = [_text(12, 247, "face down", "small dim")]
    for column, icon in enumerate(ICONS):
        count, x = player["hidden"][icon], 90 + 52 * column
        drawn = _glyph(glyphs.ICONS[icon], 16, x, 243) + _text(x + 13, 248, count, "bold")
        inside.append(drawn if count else f'<g class="faint">{drawn}</g>')
    told = ", ".join(f"{player['hidden'][icon]} {icon}" for icon in ICONS)
    return _thing(f"face down: {told}", *inside)


def _tokens(position: Mapping[str, object], seat: int) -> str:
    """Draw the waves and the hot spring token that a player holds."""
    held = []
    for character, wave in position["waves"].items():  # type: ignore[attr-defined]
        if wave["owner"] == seat:
            held.append(
                (glyphs.WAVE, str(wave["side"]), f"wave of the {character}: {wave['side']}")
            )
    if position["hot_spring"] == seat:
        held.append((glyphs.SPRING, "hot spring", "hot spring token"))
    inside = [_text(12, 281, "tokens", "small dim")]
    if not held:
        inside.append(_text(66, 281, "–", "dim"))
    for column, (glyph, name, title) in enumerate(held):
        token = _disc(0, -4, 13, "spot") + _glyph(glyph, 17, 0, -4)
        inside.append(
            _thing(title, token, _text(0, 20, name, "mid small"), at=(79 + 74 * column, 277))
        )
    return _thing("tokens held", *inside)
