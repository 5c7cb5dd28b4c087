"""Positions as plain JSON: a state to a dictionary and back, with every check that teaches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board import Board
from tokaido_env.core import plain
from tokaido_env.core.actions import PASS
from tokaido_env.core.box import (
    AREAS,
    ARTIST,
    CAPACITY,
    CHARACTERS,
    COASTAL_TOWNS,
    GOLD_PRICE,
    ICONS,
    LAST_GARDEN,
    LAST_SLAB,
    LAST_TEMPLE,
    LASTS,
    PAINTING_COUNTS,
    PAINTINGS,
    SIDES,
    TOWNS,
    WARE_COUNTS,
    WARES,
)
from tokaido_env.core.checks import brief, shown
from tokaido_env.core.episode import picker_of, wares_of
from tokaido_env.core.rules import legal_mask
from tokaido_env.core.state import (
    CHANCE_PHASES,
    ENDS,
    MAX_COINS,
    MAX_PENDING,
    NOBODY,
    Phase,
    easel,
    start,
)

_WHOLE = "the position"


class PositionError(ValueError):
    """A position that no game can reach: the message names the key and what was expected.

    Attributes:
        key: the place in the position, such as `players[1].coins` or `waves.pilgrim.side`; where
            several keys are at odds, one of them; empty if it is the position as a whole.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


def to_dict(board: Board, row: np.void) -> dict[str, Any]:
    """Return everything visible in a state as plain JSON types."""
    return plain.to_dict(board.name, board.record[0], row)


def from_dict(board: Board, position: Mapping[str, Any]) -> npt.NDArray[np.void]:
    """Return the state of a position given as `to_dict` gives it: a `STATE` array of shape (1,).

    Raises:
        PositionError: if a key is missing or unknown, or no game could reach the position.
    """
    return _PositionReader(board, position).state()


def board_name(position: Mapping[str, Any]) -> str:
    """Return the board that a position names."""
    if not isinstance(position, Mapping) or not isinstance(position.get("board"), str):
        _refuse("the position: expected an object whose key 'board' names a board", "board")
    return str(position["board"])


class _PositionReader:
    """Reads a position key by key, then checks what must hold between the keys."""

    def __init__(self, board: Board, position: Mapping[str, Any]) -> None:
        self.board = board
        self.position = position
        self.states = start(board.record)
        self.row = self.states[0]

    def state(self) -> npt.NDArray[np.void]:
        example = to_dict(self.board, self.row)
        self._expect_keys(_WHOLE, self.position, example)
        self._read_turn()
        self._read_tokens()
        self._expect_length("players", self.position["players"], 2)
        for seat, player in enumerate(self.position["players"]):
            self._expect_keys(f"players[{seat}]", player, example["players"][seat])
            self._read_player(seat, player)
        self._check_things()
        self._check_places()
        self._check_phase()
        return self.states

    def _read_turn(self) -> None:
        row, position = self.row, self.position
        name = position["board"]
        right = isinstance(name, str) and name == self.board.name
        self._expect(right, "board", shown(self.board.name), name)
        row["phase"] = Phase[self._one_of("phase", position["phase"], Phase.__members__)]
        row["player"] = self._seat_or_null("player", position["player"])
        row["lead"] = self._integer("lead", position["lead"], 0, 1)
        row["round"] = self._integer("round", position["round"], 0, self.board.max_rounds)
        if position["dice"] is not None:
            row["dice"] = self._integers("dice", position["dice"], CHARACTERS, 1, 6)
        dice = self._list("dice_left", position["dice_left"])
        self._expect(len(dice) <= len(CHARACTERS), "dice_left", "3 dice at most", len(dice))
        for die in dice:
            row["dice_left"] |= 1 << self._index("dice_left", die, CHARACTERS)
        right = len(dice) == int(row["dice_left"]).bit_count()
        self._expect(right, "dice_left", "each die once", dice)
        row["die"] = self._index_or_null("die", position["die"], CHARACTERS)
        row["origin"] = self._index_or_null("origin", position["origin"], AREAS)
        row["pending"] = self._integer("pending", position["pending"], 0, MAX_PENDING)
        triggered = position["end_triggered"]
        self._expect(isinstance(triggered, bool), "end_triggered", "true or false", triggered)
        row["end_triggered"] = triggered
        row["end"] = self._index("end", position["end"], ENDS)

    def _read_tokens(self) -> None:
        row, position = self.row, self.position
        self._expect_keys("boutiques", position["boutiques"], COASTAL_TOWNS)
        for coast, town in enumerate(COASTAL_TOWNS):
            token = position["boutiques"][town]
            if token is not None:
                row["boutiques"][coast] = self._kind(f"boutiques.{town}", token)
        row["bag"] = self._integers("bag", position["bag"], WARES, 0, max(WARE_COUNTS))
        row["hot_spring"] = self._seat_or_null("hot_spring", position["hot_spring"])
        self._expect_keys("waves", position["waves"], CHARACTERS)
        for i, character in enumerate(CHARACTERS):
            key, wave = f"waves.{character}", position["waves"][character]
            self._expect_keys(key, wave, ("side", "owner"))
            row["wave_side"][i] = self._index_or_null(f"{key}.side", wave["side"], SIDES[i])
            row["wave_owner"][i] = self._seat_or_null(f"{key}.owner", wave["owner"])

    def _kind(self, key: str, token: Any) -> int:
        given, kinds = tuple(self._list(key, token)), self.board.kinds
        right = [type(part) for part in given] == [str, int] and given in kinds
        self._expect(right, key, "one of " + ", ".join(map(str, kinds)), given)
        return kinds.index(given)

    def _read_player(self, seat: int, player: Mapping[str, Any]) -> None:
        row, key = self.row, f"players[{seat}]"
        last = len(self.board.stations) - 1
        row["pilgrim"][seat] = self._integer(f"{key}.pilgrim", player["pilgrim"], 0, last)
        row["merchant"][seat] = self._index(f"{key}.merchant", player["merchant"], TOWNS)
        row["artist"][seat] = self._index(f"{key}.artist", player["artist"], AREAS)
        limits = (("temple", 1, LAST_TEMPLE), ("garden", 1, LAST_GARDEN), ("coins", 0, MAX_COINS))
        for name, low, high in (*limits, ("gold", 0, LAST_SLAB), ("gifted", 0, PAINTINGS)):
            row[name][seat] = self._integer(f"{key}.{name}", player[name], low, high)
        row["wares"][seat] = self._integers(f"{key}.wares", player["wares"], WARES, 0, 11)
        row["hidden"][seat] = self._integers(f"{key}.hidden", player["hidden"], ICONS, 0, 3)
        icons = self._list(f"{key}.easel", player["easel"])
        self._expect(len(icons) <= PAINTINGS, f"{key}.easel", "10 paintings at most", len(icons))
        row["easel_size"][seat] = len(icons)
        for i, icon in enumerate(icons):
            row["easel"][seat] |= self._index(f"{key}.easel", icon, ICONS) << 2 * i

    def _check_things(self) -> None:
        """Nothing is lost or made: wares, boutiques and paintings add up (R1.2, R1.3, R1.7)."""
        row = self.row
        for ware, count in enumerate(WARE_COUNTS):
            total = int(row["bag"][ware]) + int(row["wares"][:, ware].sum())
            where, place = f"{WARES[ware]} in bag and wares", f"bag.{WARES[ware]}"
            self._expect(total == count, where, str(count), total, place)
        for kind, token in enumerate(self.board.kinds):
            total, count = int((row["boutiques"] == kind).sum()), self.board.boutiques.count(token)
            self._expect(total <= count, "boutiques", f"{count} × {token} at most", total)
        for seat in range(2):
            self._check_player(seat)

    def _check_player(self, seat: int) -> None:
        row, key = self.row, f"players[{seat}]"
        kept = easel(row, seat)
        gone = PAINTINGS - len(kept) - int(row["hidden"][seat].sum())
        wanted = f"{gone}, so that hidden, easel and gifted make 10"
        self._expect(row["gifted"][seat] == gone, f"{key}.gifted", wanted, row["gifted"][seat])
        for icon, count in enumerate(PAINTING_COUNTS[seat]):
            total = int(row["hidden"][seat, icon]) + kept.count(icon)
            wanted = f"{count} at most for this seat"
            self._expect(total <= count, f"{key}: {ICONS[icon]} paintings", wanted, total)
        coins, gold = row["coins"][seat], row["gold"][seat]
        right = coins < GOLD_PRICE or gold == LAST_SLAB
        self._expect(right, f"{key}.coins", "less than 10 before the sixth gold slab", coins)

    def _check_places(self) -> None:
        """A station holds one character (R4.1, R5.1)."""
        row = self.row
        stations = [int(index) for index in row["pilgrim"]]
        coasts = [TOWNS[town] for town in row["merchant"] if town < len(COASTAL_TOWNS)]
        stations += [self.board.stations.index(town) for town in coasts]
        right = len(set(stations)) == len(stations)
        spaces = ", ".join(f"{self.board.stations[i]} ({i})" for i in sorted(stations))
        self._expect(right, "players", "no two characters on one station", spaces)

    def _check_phase(self) -> None:
        """The phase decides which of the turn's keys are set."""
        row = self.row
        phase = Phase(row["phase"])
        self._check_setup(phase)
        self._check_dice(phase)
        self._check_player_to_decide(phase)
        triggered = any((row[name] == last).any() for name, last in LASTS.items())
        wanted = f"{triggered}, as pegs, slabs and paintings have it (R9.1)"
        self._expect(row["end_triggered"] == triggered, "end_triggered", wanted, not triggered)
        self._check_end(phase, triggered)
        self._check_choice(phase)

    def _check_choice(self, phase: Phase) -> None:
        """EFFECT and REPEAT are asked only when there is something besides `pass` (R6.2, R8.1)."""
        if phase == Phase.REPEAT:
            owner, picker = self.row["hot_spring"], self._picker()
            self._expect(owner == picker, "hot_spring", f"{picker} at REPEAT", owner)
        if phase in (Phase.EFFECT, Phase.REPEAT):
            choices = legal_mask(self.board.record, self.states, 0) & ~(1 << PASS)
            where = f"phase {phase.name}"
            self._expect(choices, where, "something to choose besides pass", "nothing")

    def _check_setup(self, phase: Phase) -> None:
        row = self.row
        drawn = [kind != NOBODY for kind in (*row["boutiques"], *row["wave_side"])]
        in_order = drawn == sorted(drawn, reverse=True)
        self._expect(in_order, "boutiques and waves", "drawn in order C1 … C8, then sides", drawn)
        right = all(drawn) != (phase == Phase.SETUP)
        wanted = "something left to draw" if phase == Phase.SETUP else "all of them drawn"
        self._expect(right, f"boutiques and waves at {phase.name}", wanted, drawn)
        rolled = bool(row["dice"].any())
        first = row["round"] == 0
        self._expect(rolled != first, "dice", "null before the first roll, and only then", rolled)
        before = phase in (Phase.SETUP, Phase.ROLL)
        self._expect(before or not first, "round", f"1 or more at {phase.name}", 0)
        self._expect(phase != Phase.SETUP or first, "round", "0 at SETUP", row["round"])

    def _check_dice(self, phase: Phase) -> None:
        row = self.row
        left = int(row["dice_left"]).bit_count()
        in_hand = phase in (
            *(Phase.EFFECT, Phase.DRAW, Phase.REVEAL),
            *(Phase.DISCARD, Phase.REPEAT),
        )
        die = plain.optional_name(CHARACTERS, row["die"])
        self._expect((die is not None) == in_hand, f"die at {phase.name}", _null(in_hand), die)
        if in_hand:
            taken = not row["dice_left"] >> row["die"] & 1
            self._expect(taken, "dice_left", "the die in hand not among them", die)
        limits = {Phase.MOVE: (1, 3)}.get(phase, (0, 2) if in_hand else (0, 0))
        wanted = f"{limits[0]} to {limits[1]} dice at {phase.name}"
        self._expect(limits[0] <= left <= limits[1], "dice_left", wanted, left)
        needs_die = {Phase.DRAW: "merchant", Phase.REVEAL: "artist"}.get(phase, die)
        self._expect(die == needs_die, f"die at {phase.name}", str(needs_die), die)
        has_origin = die == "artist" and phase in (Phase.EFFECT, Phase.REVEAL)
        origin = plain.optional_name(AREAS, row["origin"])
        right = (origin is not None) == has_origin
        self._expect(right, f"origin at {phase.name}", _null(has_origin), origin)
        if has_origin:
            reach = self.board.record["area_reach"][0, row["dice"][ARTIST], row["origin"]]
            area = int(row["artist"][self._picker()])
            wanted = f"an area {row['dice'][ARTIST]} steps from {AREAS[area]}"
            self._expect(reach >> area & 1, "origin", wanted, origin)
        self._check_pending(phase)

    def _check_pending(self, phase: Phase) -> None:
        row = self.row
        most = 0
        if phase == Phase.DRAW:
            most = min(self._most_draws(), int(row["bag"].sum()))
            town, place = (
                TOWNS[row["merchant"][self._picker()]],
                f"players[{self._picker()}].merchant",
            )
            self._expect(most > 0, "merchant at DRAW", "one at a mountain town", town, place)
        elif phase == Phase.REVEAL:
            most = int(row["hidden"][self._picker()].sum())
        least = min(1, most) if phase not in (Phase.DRAW, Phase.REVEAL) else 1
        wanted = f"{least} to {most} at {phase.name}"
        self._expect(least <= row["pending"] <= most, "pending", wanted, row["pending"])

    def _check_player_to_decide(self, phase: Phase) -> None:
        row = self.row
        asked = phase not in (*CHANCE_PHASES, Phase.OVER)
        player = plain.optional(row["player"])
        self._expect((player is not None) == asked, f"player at {phase.name}", _null(asked), player)
        if phase == Phase.DISCARD:
            self._check_discard(int(row["player"]))
        elif asked:
            picker = self._picker()
            self._expect(player == picker, "player", f"{picker}, whose pick it is", player)
        for seat in range(2):
            most = self._most_wares(phase, seat)
            wares, _ = self._wares(seat)
            self._expect(wares <= most, f"players[{seat}].wares", f"{most} at most", wares)

    def _most_wares(self, phase: Phase, seat: int) -> int:
        """R4.3, R7.3: only who draws or returns wares may hold more than the capacity."""
        _, capacity = self._wares(seat)
        if phase == Phase.DISCARD and seat == self.row["player"] != self._picker():
            return CAPACITY + 1  # robust is lost (R7.4)
        if phase in (Phase.DRAW, Phase.DISCARD) and seat == self._picker():
            return capacity + self._most_draws() - int(self.row["pending"])
        return capacity

    def _most_draws(self) -> int:
        """Return what the picker may draw at most where its merchant stands, 0 if it may not."""
        picker = self._picker()
        town = int(self.row["merchant"][picker]) - len(COASTAL_TOWNS)
        if town < 0 or CHARACTERS[self.row["die"]] != "merchant":
            return 0
        robust = self._wares(picker)[1] - CAPACITY
        return self.board.mountain_numbers[town] + robust

    def _check_discard(self, player: int) -> None:
        row = self.row
        die = CHARACTERS[row["die"]]
        own = player == self._picker()
        right = die == ("merchant" if own else "pilgrim")
        wanted = "the picker's after a draw, or the other's after losing robust (R4.3, R7.4)"
        self._expect(right, "player at DISCARD", wanted, f"{player} with the {die} in hand")
        wares, capacity = self._wares(player)
        wanted = f"more than {capacity} to return from"
        self._expect(wares > capacity, f"players[{player}].wares", wanted, wares)

    def _check_end(self, phase: Phase, triggered: bool) -> None:
        row = self.row
        end = ENDS[row["end"]]
        over = phase == Phase.OVER
        wanted = ("triggers" if triggered else "cap") if over else None
        self._expect(end == wanted, f"end at {phase.name}", str(wanted), end)
        if phase == Phase.ROLL:
            self._expect(not triggered, "phase", "OVER once a round ended triggered", "ROLL")
            most = self.board.max_rounds - 1
            self._expect(row["round"] <= most, "round", f"{most} at most at ROLL", row["round"])
        if end == "cap":
            cap = self.board.max_rounds
            self._expect(row["round"] == cap, "round", f"{cap} at the cap", row["round"])

    def _picker(self) -> int:
        return int(picker_of(self.states, 0))

    def _wares(self, seat: int) -> tuple[int, int]:
        """Return how many wares a seat holds, and how many it may keep."""
        held, room = wares_of(self.states, 0, seat)
        return int(held), int(room)

    def _expect_keys(self, key: str, table: Any, keys: Sequence[str] | Mapping[str, Any]) -> None:
        self._expect_type(isinstance(table, Mapping), key, "an object", table)
        within = "" if key == _WHOLE else f"{key}."
        for name in keys:
            self._expect(name in table, key, f"the key {name!r}", "no such key", within + name)
        for name in table:
            if name not in keys:
                wanted = "only the keys " + ", ".join(keys)
                self._expect(False, key, wanted, name, within + brief(name))

    def _expect_length(self, key: str, value: Any, length: int) -> None:
        given = len(self._list(key, value))
        self._expect(given == length, key, f"{length} of them", given)

    def _list(self, key: str, value: Any) -> list[Any]:
        self._expect_type(isinstance(value, list | tuple), key, "a list", value)
        return list(value)

    def _one_of(self, key: str, value: Any, names: Any) -> Any:
        right = any(type(value) is type(name) and value == name for name in names)
        self._expect_type(right, key, "one of " + ", ".join(map(str, names)), value)
        return value

    def _index(self, key: str, value: Any, names: Sequence[Any]) -> int:
        return names.index(self._one_of(key, value, names))

    def _index_or_null(self, key: str, value: Any, names: Sequence[str]) -> int:
        return NOBODY if value is None else self._index(key, value, names)

    def _seat_or_null(self, key: str, value: Any) -> int:
        return NOBODY if value is None else self._integer(key, value, 0, 1)

    def _integers(
        self, key: str, table: Any, names: Sequence[str], low: int, high: int
    ) -> list[int]:
        self._expect_keys(key, table, names)
        return [self._integer(f"{key}.{name}", table[name], low, high) for name in names]

    def _integer(self, key: str, value: Any, low: int, high: int) -> int:
        right = type(value) is int and low <= value <= high
        self._expect_type(right, key, f"a whole number from {low} to {high}", value)
        return int(value)

    def _expect_type(self, right: bool, key: str, wanted: str, got: object) -> None:
        """As `_expect`; what JSON has not may look right, so its type is told."""
        if not right:
            known = got is None or type(got) in (bool, int, float, str, list, dict)
            kind = "" if known else f" of type {type(got).__name__}"
            _refuse(f"{key}: expected {wanted}, got {brief(got)}{kind}", _place(key))

    def _expect(self, right: Any, key: str, wanted: str, got: object, place: str = "") -> None:
        """Refuse what is not right; `place` is the error's key where `key` does not begin so."""
        if not right:
            _refuse(f"{key}: expected {wanted}, got {brief(got)}", place or _place(key))


def _null(expected: bool) -> str:
    return "one" if expected else "null"


def _place(where: str) -> str:
    """Return the place that a message begins with: `die` of `die at MOVE`."""
    found = None if where == _WHOLE else re.match(r"[\w.\[\]]+", where)
    return found[0] if found else ""


def _refuse(message: str, key: str) -> NoReturn:
    raise PositionError(message, key)
