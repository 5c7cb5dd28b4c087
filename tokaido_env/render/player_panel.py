"""Player panels in SVG: points, peg tracks, slabs, wares, paintings and tokens."""

from __future__ import annotations

from collections.abc import Sequence

from tokaido_env.boards.board import Board
from tokaido_env.core.constants import ICONS, LAST_GARDEN, LAST_SLAB, LAST_TEMPLE, PAINTINGS, WARES
from tokaido_env.render import icons
from tokaido_env.render.elements import (
    Parts,
    box,
    counted,
    disc,
    faint,
    glyph_at,
    pawn,
    text_at,
    titled_group,
)
from tokaido_env.render.narration import number_of, shortened
from tokaido_env.render.scene import Player, Position, Scene, steps_left, track_name

WIDTH, HEIGHT = 350, 304


def draw_panel(scene: Scene, seat: int) -> Parts:
    """Return SVG of the parts of a player's panel by name, in the panel's coordinates."""
    board, position, points = scene.board, scene.position, scene.points[seat]
    player = position["players"][seat]
    return {
        "card": box(0.5, 0.5, WIDTH - 1, HEIGHT - 1, "card", 10),
        "name": _name(scene, seat, sum(points.values())),
        "temple": _track("temple", board.temple[:LAST_TEMPLE], player["temple"], seat, 56),
        "garden": _track("garden", board.garden[:LAST_GARDEN], player["garden"], seat, 80),
        "faith": _points("faith", points["faith"], 72),
        "gold": _slabs(board, player["gold"], player["coins"]),
        "commerce": _points("commerce", points["commerce"], 122),
        "wares": _wares(player, scene.capacities[seat]),
        "paintings": _paintings(board, player),
        "culture": _points("culture", points["culture"], 209),
        "next": _next_steps(scene, seat),
        "hidden": _hidden(player),
        "tokens": _tokens(position, seat),
    }


def _name(scene: Scene, seat: int, total: int) -> str:
    position = scene.position
    decides = position["player"] == seat
    inside = [
        f'<path d="M0 34V10Q0 0 10 0H340Q350 0 350 10V34Z" class="p{seat}"/>',
        text_at(30, 22, shortened(scene.names[seat], 19 if decides else 24), f"on{seat} big"),
        text_at(338, 24, total, f"on{seat} end huge"),
        f'<g transform="translate(15 17)">{pawn(seat, 9)}</g>',
    ]
    if decides:
        inside += [box(239, 8, 56, 18, "paper", 9), text_at(267, 21, "decides", "mid small bold")]
    return titled_group(f"{scene.names[seat]}, {total} points", *inside)


def _points(name: str, points: int, y: float) -> str:
    return titled_group(
        f"{name}: {points} points",
        text_at(344, y, points, "bold big end"),
        text_at(344, y + 13, name, "small dim end"),
    )


def _track(name: str, numbers: Sequence[int], peg: int, seat: int, y: float) -> str:
    inside = [text_at(7, y + 4, name, "small dim")]
    for slot, number in enumerate(numbers, 1):
        x = 66 + 21 * (slot - 1)
        has_peg = slot == peg
        inside.append(disc(x, y, 10, f"p{seat}" if has_peg else "slot"))
        inside.append(text_at(x, y + 4, number, f"mid small {f'on{seat}' if has_peg else 'dim'}"))
    return titled_group(f"{name}: {numbers[peg - 1]}, slot {peg} of {len(numbers)}", *inside)


def _next_steps(scene: Scene, seat: int) -> str:
    """Write the points of the next step on each track, and the steps left to the end."""
    places = {"temple": (250, 60), "garden": (187, 84), "gold": (207, 133), "gifted": (236, 181)}
    texts = []
    for track, left in steps_left(scene.position["players"][seat]).items():
        points = scene.next_points[seat].get(track)
        text = "the end" if points is None else f"+{points} · {left} left"
        title = f"{track_name(track)}: {_next_step(points)}, {left} left to the end of the game"
        texts.append(titled_group(title, text_at(0, 0, text, "small"), at=places[track]))
    return "".join(texts)


def _next_step(points: int | None) -> str:
    if points is None:
        return "no next step"
    return f"the next step brings {number_of(points, 'point')}"


def _slabs(board: Board, gold: int, coins: int) -> str:
    inside = [text_at(7, 118, "gold", "small dim")]
    for slab in range(LAST_SLAB):
        x = 57 + 25 * slab
        inside.append(box(x, 106, 21, 14, "gold" if slab < gold else "slot"))
        inside.append(text_at(x + 10.5, 133, board.commerce[slab + 1], "mid small dim"))
    inside += [
        disc(226, 113, 10, "gold"),
        text_at(241, 118, f"{coins} coin{'s' * (coins != 1)}", "bold"),
    ]
    return titled_group(f"{gold} gold slabs, {coins} coins", *inside)


def _wares(player: Player, capacity: int) -> str:
    inside = [text_at(7, 160, "wares", "small dim")]
    for column, ware in enumerate(WARES):
        sign, count = icons.WARES[ware], player["wares"][ware]
        inside.append(counted(sign, 20, count, 66 + 52 * column, 156, 14))
    total = sum(player["wares"].values())
    inside.append(text_at(344, 160, f"{total} of {capacity}", "small dim end"))
    held = ", ".join(f"{player['wares'][ware]} {ware}" for ware in WARES)
    return titled_group(f"wares: {held}; {total} of at most {capacity}", *inside)


def _paintings(board: Board, player: Player) -> str:
    """Draw the ten paintings: given ones, revealed ones from the front, and face-down ones."""
    easel, gifted = player["easel"], player["gifted"]
    inside = [text_at(7, 202, "paintings", "small dim")]
    for slot in range(PAINTINGS):
        x, tile = 79 + 22.5 * slot, slot - gifted
        if tile < 0:
            inside.append(box(x - 10, 187, 20, 22, "slot"))
            inside.append(faint(glyph_at(icons.GIVEN, 16, x, 198)))
        elif tile < len(easel):
            inside.append(box(x - 10, 187, 20, 22, f"{easel[tile]}"))
            inside.append(glyph_at(icons.ICONS[easel[tile]], 16, x, 198))
        else:
            inside.append(box(x - 10, 187, 20, 22, "back"))
        score = "bold small mid" if slot == gifted - 1 else "dim small mid"
        inside.append(text_at(x, 222, board.culture[slot + 1], score))
    revealed = ", ".join(easel) or "none"
    title = f"{gifted} paintings given; revealed, the front first: {revealed}"
    return titled_group(f"{title}; {PAINTINGS - gifted - len(easel)} face down", *inside)


def _hidden(player: Player) -> str:
    inside = [text_at(7, 247, "face down", "small dim"), box(77, 238, 9, 10, "back", 2)]
    for column, icon in enumerate(ICONS):
        sign, count = icons.ICONS[icon], player["hidden"][icon]
        inside.append(counted(sign, 16, count, 98 + 52 * column, 243, 13))
    hidden = ", ".join(f"{player['hidden'][icon]} {icon}" for icon in ICONS)
    return titled_group(f"face down: {hidden}", *inside)


def _tokens(position: Position, seat: int) -> str:
    """Draw the waves and the hot spring token that a player holds."""
    held = []
    for character, wave in position["waves"].items():
        if wave["owner"] == seat:
            held.append((icons.WAVE, str(wave["side"]), f"wave of the {character}: {wave['side']}"))
    if position["hot_spring"] == seat:
        held.append((icons.SPRING, "hot spring", "hot spring token"))
    inside = [text_at(7, 281, "tokens", "small dim")]
    if not held:
        inside.append(text_at(66, 281, "–", "dim"))
    for column, (glyph, name, title) in enumerate(held):
        token = disc(0, -4, 13, "spot") + glyph_at(glyph, 17, 0, -4)
        label = text_at(0, 20, name, "mid small")
        inside.append(titled_group(title, token, label, at=(79 + 74 * column, 277)))
    return titled_group("tokens held", *inside)
