"""A slow reference implementation of Tokaido Duo, independent of the engine on purpose.

It follows the numbered rules of `docs/reference/rules.md` (the R-numbers below) and imports only
the standard library. It shares no code and no table with the package, reads board files itself,
and computes everything again at each step. Its only state is a position in the JSON format of
`Game.to_dict`, so it starts from any position. Tests play it in step with the engine and compare
legal actions, probabilities of outcomes and whole states.
"""

import copy
import tomllib
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

Position = dict[str, Any]

CHARACTERS = ["pilgrim", "merchant", "artist"]
WARES = {"kimono": 5, "pottery": 6, "doll": 7, "fan": 8}  # R1.3
ICONS = ["moon", "waterfall", "mountain", "bamboo"]
PAINTINGS = [  # R1.7
    {"moon": 3, "waterfall": 3, "mountain": 2, "bamboo": 2},
    {"moon": 2, "waterfall": 2, "mountain": 3, "bamboo": 3},
]
SIDES = {  # R7
    "pilgrim": ["tranquil", "hasty"],
    "merchant": ["crafty", "robust"],
    "artist": ["proficient", "inspired"],
}
COASTAL = [f"C{n}" for n in range(1, 9)]
MOUNTAIN = [f"M{n}" for n in range(1, 5)]
AREAS = [f"A{n}" for n in range(1, 9)]
ACTIONS = [
    *["pilgrim", "pilgrim:wave"],
    *[f"merchant:{town}" for town in [*COASTAL, *MOUNTAIN, "stay"]],
    *[f"artist:{area}" for area in [*AREAS, "stay"]],
    *["pass", "visit", "take:pilgrim", "take:merchant", "take:artist", "draw", "draw:wave"],
    *[f"sell:{n}" for n in range(1, 7)],
    *[f"sell:{n}:wave" for n in range(1, 6)],
    *["paint", "paint:wave", "gift"],
    *[f"discard:{ware}" for ware in WARES],
]


class Board:
    """A board file, with its areas, neighbours and paths."""

    def __init__(self, path: str | Path) -> None:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        self.name: str = data["name"]
        self.max_rounds: int = data["max_rounds"]
        self.faces = {character: data["dice"][character]["faces"] for character in CHARACTERS}
        self.ring: list[str] = data["ring"]["stations"]
        self.mountains: dict[str, int] = data["mountains"]["numbers"]
        self.icons: dict[str, str] = data["areas"]["icons"]
        self.starts = [data["starts"]["player_0"], data["starts"]["player_1"]]
        self.tokens: list[tuple[str, int]] = [(w, p) for w, p in data["boutiques"]["tokens"]]
        self.commerce: list[int] = data["commerce"]["points"]
        self.culture: list[int] = data["culture"]["points"]
        self.temple: list[int] = data["temple"]["numbers"]
        self.garden: list[int] = data["garden"]["numbers"]
        self.towns = neighbours(data["routes"]["pairs"])
        self.area_towns = {area: self._border(n) for n, area in enumerate(AREAS)}
        self.area_stations = {area: self._shore(n) for n, area in enumerate(AREAS)}
        self.areas = neighbours(self._bordering_areas())
        self.rolls = self._roll_outcomes()
        self._known_paths: dict[tuple[str, int], list[list[str]]] = {}

    def paths(self, start: str, steps: int) -> list[list[str]]:
        """Return every simple path of exactly `steps` steps from a town or an area (R2.3)."""
        key = (start, steps)
        if key not in self._known_paths:
            graph = self.areas if start in self.areas else self.towns
            self._known_paths[key] = list(simple_paths(graph, [start], steps))
        return self._known_paths[key]

    def _border(self, n: int) -> list[str]:
        """Return the towns on the route from the area's first coastal town to its second."""
        start, end = COASTAL[n], COASTAL[(n + 1) % 8]
        for steps in range(len(self.towns)):
            for path in simple_paths(self.towns, [start], steps):
                if path[-1] == end:
                    return path
        raise ValueError(f"no route from {start} to {end}")

    def _shore(self, n: int) -> list[int]:
        """Return the ring indices from the area's first coastal town to its second, inclusive."""
        index, end = self.ring.index(COASTAL[n]), self.ring.index(COASTAL[(n + 1) % 8])
        shore = [index]
        while index != end:
            index = (index + 1) % len(self.ring)
            shore.append(index)
        return shore

    def _bordering_areas(self) -> list[tuple[str, str]]:
        """Return the pairs of areas that share a route (R3.1)."""
        routes = {
            area: {frozenset(route) for route in pairwise(border)}
            for area, border in self.area_towns.items()
        }
        return [(a, b) for a in AREAS for b in AREAS if a < b and routes[a] & routes[b]]

    def _roll_outcomes(self) -> list[tuple[str, Fraction]]:
        triples = Counter(
            (p, m, a)
            for p in self.faces["pilgrim"]
            for m in self.faces["merchant"]
            for a in self.faces["artist"]
        )
        return weighted([(f"roll:{p}/{m}/{a}", triples[p, m, a]) for p, m, a in sorted(triples)])


def neighbours(pairs: list[Any]) -> dict[str, list[str]]:
    graph: dict[str, list[str]] = {}
    for a, b in pairs:
        graph.setdefault(a, []).append(b)
        graph.setdefault(b, []).append(a)
    return graph


def simple_paths(graph: dict[str, list[str]], path: list[str], steps: int) -> Iterator[list[str]]:
    if steps == 0:
        yield path
        return
    for following in graph[path[-1]]:
        if following not in path:
            yield from simple_paths(graph, [*path, following], steps - 1)


def weighted(weights: list[tuple[str, int]]) -> list[tuple[str, Fraction]]:
    total = sum(weight for _, weight in weights)
    return [(label, Fraction(weight, total)) for label, weight in weights if weight]


class Reference:
    """One game; decisions and outcomes of chance are played by label."""

    def __init__(self, board_path: str | Path, position: Position | None = None) -> None:
        self.board = Board(board_path)
        self.position = copy.deepcopy(position) if position else self._start()

    def to_dict(self) -> Position:
        return copy.deepcopy(self.position)

    def legal_labels(self) -> list[str]:
        phase = self.position["phase"]
        if phase == "MOVE":
            allowed = [move for die in self.position["dice_left"] for move in self._choices(die)]
        elif phase == "REPEAT":
            allowed = [*self._full_moves(self.position["die"]), "pass"]
        elif phase == "EFFECT":
            allowed = [*self._effects(), "pass"]
        elif phase == "DISCARD":
            held = self._player(self.position["player"])["wares"]
            allowed = [f"discard:{ware}" for ware in WARES if held[ware]]
        else:
            allowed = []
        return sorted(allowed, key=ACTIONS.index)

    def outcomes(self) -> list[tuple[str, Fraction]]:
        phase = self.position["phase"]
        if phase == "SETUP":
            return self._setup_outcomes()
        if phase == "ROLL":
            return list(self.board.rolls)
        if phase == "DRAW":
            return weighted([(f"ware:{w}", self.position["bag"][w]) for w in WARES])
        if phase == "REVEAL":
            hidden = self._player(self._picker())["hidden"]
            return weighted([(f"tile:{icon}", hidden[icon]) for icon in ICONS])
        return []

    def play(self, label: str) -> None:
        possible = self.legal_labels() + [outcome for outcome, _ in self.outcomes()]
        if label not in possible:
            raise ValueError(f"{label!r} is not legal; legal: {', '.join(possible) or 'nothing'}")
        if self.position["phase"] in ("MOVE", "REPEAT") and label != "pass":
            self._move(label)
            return
        verb, _, rest = label.partition(":")
        getattr(self, f"_play_{verb}")(rest)

    def scores(self) -> list[dict[str, int]]:
        return [self._score(player) for player in self.position["players"]]

    def winner(self) -> int | None:
        if self.position["end"] is None:
            return None
        totals = [score["total"] for score in self.scores()]
        coins = [player["coins"] for player in self.position["players"]]
        first, second = zip(totals, coins, strict=True)  # R9.2, then R9.3
        if first == second:
            return None
        return 0 if first > second else 1

    # The start and the players.

    def _start(self) -> Position:
        return {
            "board": self.board.name,
            "phase": "SETUP",
            "player": None,
            "lead": 0,  # R1.1
            "round": 0,
            "dice": None,
            "dice_left": [],
            "die": None,
            "origin": None,
            "pending": 0,
            "end_triggered": False,
            "end": None,
            "boutiques": dict.fromkeys(COASTAL),
            "bag": dict(WARES),
            "hot_spring": None,  # R1.5
            "waves": {character: {"side": None, "owner": None} for character in CHARACTERS},
            "players": [self._start_player(seat) for seat in (0, 1)],
        }

    def _start_player(self, seat: int) -> dict[str, Any]:
        start = self.board.starts[seat]  # R1.8
        pilgrim = start["pilgrim"]
        return {
            "pilgrim": self.board.ring.index(pilgrim) if isinstance(pilgrim, str) else pilgrim,
            "merchant": start["merchant"],
            "artist": start["artist"],
            "temple": 1,  # R1.6
            "garden": 1,
            "coins": 0,
            "gold": 0,
            "wares": dict.fromkeys(WARES, 0),
            "easel": [],
            "hidden": dict(PAINTINGS[seat]),
            "gifted": 0,
        }

    def _player(self, seat: int) -> dict[str, Any]:
        player: dict[str, Any] = self.position["players"][seat]
        return player

    def _picker(self) -> int:
        """Return the seat that picks: lead, other, lead (R2.1)."""
        picks_done = 3 - len(self.position["dice_left"])
        if self.position["die"]:
            picks_done -= 1
        lead: int = self.position["lead"]
        return 1 - lead if picks_done == 1 else lead

    def _mine(self) -> dict[str, Any]:
        return self._player(self._picker())

    def _theirs(self) -> dict[str, Any]:
        return self._player(1 - self._picker())

    def _wave(self, seat: int, side: str) -> bool:
        """Return whether a seat holds a wave tile with this side up (R7)."""
        waves = self.position["waves"].values()
        return any(wave["side"] == side and wave["owner"] == seat for wave in waves)

    def _my_wave(self, side: str) -> bool:
        return self._wave(self._picker(), side)

    # Moves.

    def _choices(self, die: str) -> list[str]:
        """Return the moves of a die; without a full move, a stay (R3.7, R4.2)."""
        return self._full_moves(die) or [f"{die}:stay"]

    def _full_moves(self, die: str) -> list[str]:
        steps = self.position["dice"][die]
        if die == "pilgrim":
            return ["pilgrim"] if self._wave_steps(steps) is None else ["pilgrim", "pilgrim:wave"]
        targets = {path[-1] for path in self.board.paths(self._mine()[die], steps)}
        if die == "merchant":
            targets -= self._closed_towns()
        return [f"{die}:{target}" for target in targets]

    def _wave_steps(self, steps: int) -> int | None:
        """Return the pilgrim's steps with its wave tile, None if it cannot be used (R7.1)."""
        if self._my_wave("hasty"):
            return steps + 1
        if self._my_wave("tranquil") and steps > 1:
            return steps - 1
        return None

    def _closed_towns(self) -> set[str]:
        """Return the coastal towns that hold a pilgrim or the other merchant (R4.1)."""
        inside = {self.board.ring[player["pilgrim"]] for player in self.position["players"]}
        inside.add(self._theirs()["merchant"])
        return inside & set(COASTAL)

    def _move(self, label: str) -> None:
        die, _, target = label.partition(":")
        if self.position["phase"] == "REPEAT":
            self.position["hot_spring"] = None  # R8.2
        else:
            self.position["dice_left"].remove(die)
            self.position["die"] = die
        if target == "stay":
            self._end_pick()  # R8.1: no repeat of a stay
            return
        if die == "pilgrim":
            self._walk(with_wave=target == "wave")
        else:
            self.position["origin"] = self._mine()["artist"] if die == "artist" else None
            self._mine()[die] = target
        self._arrive()

    def _walk(self, with_wave: bool) -> None:
        """Move the pilgrim, then on to the next empty station (R5.1)."""
        steps = self.position["dice"]["pilgrim"]
        if with_wave:
            steps = self._wave_steps(steps)
        pilgrim = self._mine()["pilgrim"] + steps
        while self._occupied(pilgrim % len(self.board.ring)):
            pilgrim += 1
        self._mine()["pilgrim"] = pilgrim % len(self.board.ring)

    def _occupied(self, index: int) -> bool:
        merchants = [player["merchant"] for player in self.position["players"]]
        return index == self._theirs()["pilgrim"] or self.board.ring[index] in merchants

    # Effects of the arrival.

    def _arrive(self) -> None:
        if not self._effects():  # R6.2
            self._end_action()
            return
        self.position["phase"] = "EFFECT"
        self.position["player"] = self._picker()

    def _effects(self) -> list[str]:
        if self.position["die"] == "pilgrim":
            return self._station_effects()
        if self.position["die"] == "artist":
            return self._paint_effects() + (["gift"] if self._can_give() else [])
        if self._mine()["merchant"] in MOUNTAIN:
            return self._draw_effects()
        return self._sale_effects()

    def _station_effects(self) -> list[str]:
        station = self._station()
        if station == "seashore":
            return [f"take:{character}" for character in self._takeable_waves()]
        if station == "hot spring":  # R5.4
            useful = self.position["hot_spring"] != self._picker()
        elif station in ("temple", "garden"):  # R5.3
            useful = self._mine()[station] < self._slots(station)
        else:
            useful = True  # R5.2: a coastal town
        return ["visit"] if useful else []

    def _station(self) -> str:
        station: str = self.board.ring[self._mine()["pilgrim"]]
        return station

    def _slots(self, peg: str) -> int:
        return len(self.board.temple if peg == "temple" else self.board.garden)

    def _takeable_waves(self) -> list[str]:
        """Return the waves on the board or, if there are none, the opponent's (R5.5)."""
        owners = {character: self.position["waves"][character]["owner"] for character in CHARACTERS}
        source = None if None in owners.values() else 1 - self._picker()
        return [character for character in CHARACTERS if owners[character] == source]

    def _draw_effects(self) -> list[str]:
        number, more = self._draws(with_wave=False), self._draws(with_wave=True)
        effects = ["draw"] if number else []
        if self._my_wave("robust") and more > number:  # R7.3
            effects.append("draw:wave")
        return effects

    def _draws(self, with_wave: bool) -> int:
        number = self.board.mountains[self._mine()["merchant"]] + with_wave
        in_bag: int = sum(self.position["bag"].values())
        return min(number, in_bag)  # R4.6

    def _sale_effects(self) -> list[str]:
        ware, _ = self.position["boutiques"][self._mine()["merchant"]]
        numbers = range(1, self._mine()["wares"][ware] + 1)
        effects = [f"sell:{n}" for n in numbers]  # R4.4
        if self._my_wave("crafty"):  # R7.3
            effects += [f"sell:{n}:wave" for n in numbers]
        return effects

    def _paint_effects(self) -> list[str]:
        number, more = self._reveals(with_wave=False), self._reveals(with_wave=True)
        effects = ["paint"] if number else []
        if self._my_wave("proficient") and more > number:  # R7.2
            effects.append("paint:wave")
        return effects

    def _reveals(self, with_wave: bool) -> int:
        number = self._others_present() + with_wave
        face_down: int = sum(self._mine()["hidden"].values())
        return min(number, face_down)  # R3.3

    def _others_present(self) -> int:
        """Count the other characters in my artist's area, its stations and its towns (R3.3)."""
        area = self._mine()["artist"]
        count = int(self._theirs()["artist"] == area)
        for player in self.position["players"]:
            count += player["pilgrim"] in self.board.area_stations[area]
            count += player["merchant"] in self.board.area_towns[area]
        return count

    def _can_give(self) -> bool:
        """Return whether the front painting can be given (R3.5, R7.2)."""
        artist, easel = self._mine()["artist"], self._mine()["easel"]
        if not easel:
            return False
        touched = {artist}
        if self._my_wave("inspired"):
            steps = self.position["dice"]["artist"]
            for path in self.board.paths(self.position["origin"], steps):
                if path[-1] == artist:
                    touched |= set(path)
        return easel[0] in {self.board.icons[area] for area in touched}

    # Playing an effect.

    def _play_pass(self, _: str) -> None:
        if self.position["phase"] == "REPEAT":
            self._end_pick()
        else:
            self._end_action()

    def _play_visit(self, _: str) -> None:
        station = self._station()
        if station == "hot spring":
            self.position["hot_spring"] = self._picker()
            self._end_pick()  # R8.1: not in the pick in which it was gained
            return
        if station in ("temple", "garden"):
            self._mine()[station] += 1
            if self._mine()[station] == self._slots(station):
                self.position["end_triggered"] = True
        else:
            _, price = self.position["boutiques"][station]
            self._gain_coins(price)
        self._end_action()

    def _play_take(self, character: str) -> None:
        self.position["waves"][character]["owner"] = self._picker()
        if not self._ask_discard(1 - self._picker()):  # R7.4
            self._end_action()

    def _play_draw(self, wave: str) -> None:
        self.position["pending"] = self._draws(with_wave=wave == "wave")
        self.position["phase"] = "DRAW"
        self.position["player"] = None

    def _play_sell(self, rest: str) -> None:
        number, _, wave = rest.partition(":")
        ware, price = self.position["boutiques"][self._mine()["merchant"]]
        self._mine()["wares"][ware] -= int(number)
        self.position["bag"][ware] += int(number)
        self._gain_coins(int(number) * (price + (wave == "wave")))
        self._end_action()

    def _gain_coins(self, coins: int) -> None:
        """R4.5: ten coins are a slab, at once, up to the sixth slab."""
        mine, last = self._mine(), len(self.board.commerce) - 1
        mine["coins"] += coins
        while mine["coins"] >= 10 and mine["gold"] < last:
            mine["coins"] -= 10
            mine["gold"] += 1
            if mine["gold"] == last:
                self.position["end_triggered"] = True

    def _play_paint(self, wave: str) -> None:
        self.position["pending"] = self._reveals(with_wave=wave == "wave")
        self.position["phase"] = "REVEAL"
        self.position["player"] = None

    def _play_gift(self, _: str) -> None:
        mine = self._mine()
        mine["easel"].pop(0)  # R3.4
        mine["gifted"] += 1
        if mine["gifted"] == 10:  # R3.6
            self.position["end_triggered"] = True
        self._end_action()

    # Returning wares.

    def _ask_discard(self, seat: int) -> bool:
        """Ask this seat to return a ware if it holds too many (R4.3, R7.3, R7.4)."""
        capacity = 6 if self._wave(seat, "robust") else 5
        if sum(self._player(seat)["wares"].values()) <= capacity:
            return False
        self.position["phase"] = "DISCARD"
        self.position["player"] = seat
        return True

    def _play_discard(self, ware: str) -> None:
        seat = self.position["player"]
        self._player(seat)["wares"][ware] -= 1
        self.position["bag"][ware] += 1
        if not self._ask_discard(seat):
            self._end_action()

    # The end of an action, a pick, a round.

    def _end_action(self) -> None:
        """Ask for the repeat if the token can be used (R8.1), or end the pick."""
        self.position["origin"] = None
        can_move = self._full_moves(self.position["die"])
        if self.position["hot_spring"] == self._picker() and can_move:
            self.position["phase"] = "REPEAT"
            self.position["player"] = self._picker()
        else:
            self._end_pick()

    def _end_pick(self) -> None:
        self.position["die"] = None
        self.position["origin"] = None
        if self.position["dice_left"]:
            self.position["phase"] = "MOVE"
            self.position["player"] = self._picker()
        else:
            self._end_round()

    def _end_round(self) -> None:
        self.position["player"] = None
        if self.position["end_triggered"]:  # R9.1
            self.position["phase"], self.position["end"] = "OVER", "triggers"
        elif self.position["round"] >= self.board.max_rounds:  # R10.1
            self.position["phase"], self.position["end"] = "OVER", "cap"
        else:
            self.position["phase"] = "ROLL"
            self.position["lead"] = 1 - self.position["lead"]  # R2.2

    def _score(self, player: dict[str, Any]) -> dict[str, int]:
        """R9.2."""
        faith = self.board.temple[player["temple"] - 1] * self.board.garden[player["garden"] - 1]
        commerce = self.board.commerce[player["gold"]]
        culture = self.board.culture[player["gifted"]]
        total = faith + commerce + culture
        return {"faith": faith, "commerce": commerce, "culture": culture, "total": total}

    # Chance.

    def _setup_outcomes(self) -> list[tuple[str, Fraction]]:
        boutiques = self.position["boutiques"]
        for town in COASTAL:
            if boutiques[town] is None:  # R1.2
                left = Counter(self.board.tokens)
                left.subtract((token[0], token[1]) for token in boutiques.values() if token)
                return weighted([(f"boutique:{town}={w}/{p}", n) for (w, p), n in left.items()])
        for character in CHARACTERS:
            if self.position["waves"][character]["side"] is None:  # R1.4
                return weighted([(f"side:{character}={side}", 1) for side in SIDES[character]])
        raise ValueError("SETUP with nothing left to draw")

    def _play_boutique(self, rest: str) -> None:
        town, _, token = rest.partition("=")
        ware, _, price = token.partition("/")
        self.position["boutiques"][town] = [ware, int(price)]

    def _play_side(self, rest: str) -> None:
        character, _, side = rest.partition("=")
        self.position["waves"][character]["side"] = side
        if character == CHARACTERS[-1]:
            self.position["phase"] = "ROLL"

    def _play_roll(self, rest: str) -> None:
        values = [int(value) for value in rest.split("/")]
        self.position["dice"] = dict(zip(CHARACTERS, values, strict=True))
        self.position["dice_left"] = list(CHARACTERS)
        self.position["round"] += 1
        self.position["phase"] = "MOVE"
        self.position["player"] = self._picker()

    def _play_ware(self, ware: str) -> None:
        self.position["bag"][ware] -= 1
        self._mine()["wares"][ware] += 1
        self.position["pending"] -= 1
        if self.position["pending"] and sum(self.position["bag"].values()):  # R4.6
            return
        self.position["pending"] = 0
        if not self._ask_discard(self._picker()):
            self._end_action()

    def _play_tile(self, icon: str) -> None:
        self._mine()["hidden"][icon] -= 1
        self._mine()["easel"].append(icon)  # R3.4
        self.position["pending"] -= 1
        if self.position["pending"] == 0:
            self._end_action()
