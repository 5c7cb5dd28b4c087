"""The rules as text for language models, with the tables of a board.

`docs/reference/rules.md` numbers the rules; `tests/test_text_rules.py` has the sentence of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokaido_env.boards.board import Board
from tokaido_env.core.constants import AREAS, CHARACTERS, MOUNTAIN_TOWNS

_RULES = """\
Tokaido Duo, for two players, player_0 and player_1. All is open, except the order of the hidden
paintings and what the next roll or draw will be. The boutiques of the coastal towns and the sides
of the wave tiles are drawn at random before the game and stay.

ROUND. The leader rolls three dice, one for each character: pilgrim, merchant, artist. Then the
leader, the other player and the leader again each take one die that is left, and move their own
character of that die by exactly its number. The move is mandatory. Then they may use the place, or
pass, for example to avoid the end of the game. player_0 leads round 1; then the lead alternates.
No space may be entered twice in one move; the space where the move begins counts as entered.

PILGRIM. It walks clockwise from station to station; occupied stations count as steps. If the last
one holds another character, it goes on to the next empty station, and only that one counts.
- coastal town: gain the price of its boutique in coins
- temple, garden: your peg there moves up by one. Pegs begin at 1; temple ends at 9, garden at 6.
- hot spring: take the hot spring token, from the board or from the opponent, unless you hold it
- seashore: take a wave tile of your choice from the board; if none is left there, one of your
  choice from the opponent

MERCHANT. It moves along routes from town to town, and may pass through occupied towns. Two
merchants may share a mountain town. It cannot end in a coastal town that holds a pilgrim, also your
own, or the other merchant. Without a full move it stays: no effect.
- mountain town: draw as many wares from the bag as its number. You keep 5 at most, and return the
  excess, wares of your choice.
- coastal town: sell one or more wares of its boutique's kind, each for its price; they return to
  the bag
Coins: 10 coins become a gold slab at once, again while 10 are left, up to six slabs. A slab is
never changed back. Coins beyond the sixth slab are kept.

ARTIST. It moves from area to neighbouring area; artists may share an area. Without a full move it
stays: no effect. Then it paints, or gives, or neither.
- paint: reveal as many of your hidden paintings (three of two icons and two of the others at the
  start) as other characters, of both players, are in the area, on its stations and in its towns. A
  coastal town belongs to two areas, a mountain town to every area that it borders. They join the
  back of your easel, in random order.
- gift: give away the front painting of your easel, if the area shows its icon

HOT SPRING TOKEN. If you held it before you took the die, then after the move and its effect you may
move the same character by the same die once more, and use that place. The token returns to the
board before this second move. Not after a stay, once per die, and not with the die that gained it.

WAVE TILES. One for each character, with one of two sides up. The holder may use it or not, from the
moment it is taken.
- pilgrim: tranquil, one step fewer, never fewer than 1 (no use with a 1); hasty, one step more
- merchant: crafty, every ware of a sale brings one coin more; robust, draw one ware more, and keep
  6 while you hold the tile. A player who loses robust with 6 wares returns one at once.
- artist: proficient, paint reveals one more, also when no other character is there; inspired, a
  gift may match the icon of the area where the move began, or of any on a way of its length.

END. A temple peg at 9, a garden peg at 6, a sixth gold slab or a tenth painting given, of either
player, makes the round the last: its three dice are still used. Points are
faith (number of the temple slot times number of the garden slot) + commerce (by gold slabs)
+ culture (by paintings given). Wares, coins and other paintings score nothing. The higher total
wins. Tied totals: more coins win. Coins tied too: both players share the victory.
Without such an end round {max_rounds} is the last, and scored in the same way.

ANSWERS. A decision with one legal action is made for you. An answer that names no legal action is
refused.{again}
Then you forfeit: the other player wins, whatever the points.
"""


def rules_text(board: Board, retries: int) -> str:
    """Return the complete rules with the tables of a board, without a final line break.

    Args:
        board: of the game.
        retries: as in `text.TextFormat`.
    """
    dice = zip(CHARACTERS, board.faces, strict=True)
    numbers = zip(MOUNTAIN_TOWNS, board.mountain_numbers, strict=True)
    lines = [
        "Dice, six faces each: " + "; ".join(f"{name} {_numbers(faces)}" for name, faces in dice),
        f"Temple slots 1 to 9: {_numbers(board.temple)}",
        f"Garden slots 1 to 6: {_numbers(board.garden)}",
        f"Commerce with 0 to 6 gold slabs: {_numbers(board.commerce)}",
        f"Culture with 0 to 10 paintings given: {_numbers(board.culture)}",
        "Stations clockwise: " + ", ".join(f"{i} {one}" for i, one in enumerate(board.stations)),
        "Routes: " + ", ".join(f"{a}-{b}" for a, b in board.routes),
        "Wares drawn in mountain towns: " + ", ".join(f"{town} {n}" for town, n in numbers),
        "Areas, with icon, towns and neighbours:",
        *(_area(board, k) for k in range(len(AREAS))),
    ]
    again = f" You are asked again, at most {retries} times for a decision." if retries else ""
    text = _RULES.format(max_rounds=board.max_rounds, again=again)
    return text + "\nTHIS BOARD.\n" + "\n".join(lines)


def _area(board: Board, k: int) -> str:
    """Return the line of area number `k`."""
    coast = f"stations from C{k + 1} to C{(k + 1) % len(AREAS) + 1}"
    towns = " ".join(sorted(board.borders[k]))
    neighbours = " ".join(AREAS[other] for other in board.neighbours[k])
    return f"- {AREAS[k]}: {board.area_icons[k]}; {coast}; towns {towns}; next to {neighbours}"


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values))
