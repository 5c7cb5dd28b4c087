"""Naive counts of a player's reach with a die, on the reference's board."""

from typing import Any

from reference import COASTAL, Board

from tokaido_env.core.constants import ICONS, WARES

KINDS = ["coast", "temple", "garden", "hot spring", "seashore"]


class NaiveReach:
    """Counts for a seat, from `Game.to_dict` and the reference's board."""

    def __init__(self, board: Board, position: dict[str, Any], seat: int) -> None:
        self.board, self.position = board, position
        self.mine, self.theirs = position["players"][seat], position["players"][1 - seat]
        self.seat = seat

    def station(self, steps: int) -> tuple[int, int]:
        """Return the kind of a station ahead, and its coins."""
        ring = self.board.ring
        name = ring[(self.mine["pilgrim"] + steps) % len(ring)]
        if name in COASTAL:
            return 0, self.position["boutiques"][name][1]
        return KINDS.index(name), 0

    def market(self, die: int) -> list[int]:
        """Return the best price of each ware, the best sale and the best draw."""
        targets = {path[-1] for path in self.board.paths(self.mine["merchant"], die)}
        closed = {self.board.ring[player["pilgrim"]] for player in self.position["players"]}
        open_towns = (targets & set(COASTAL)) - closed - {self.theirs["merchant"]}
        offers = [self.position["boutiques"][town] for town in open_towns]
        prices = [max([price for ware, price in offers if ware == own], default=0) for own in WARES]
        sale = max([self.mine["wares"][ware] * price for ware, price in offers], default=0)
        draws = [number for town, number in self.board.mountains.items() if town in targets]
        return [*prices, sale, max(draws, default=0)]

    def areas(self, die: int) -> list[int]:
        """Return the icons in reach, and the most other characters around an area in reach."""
        paths = self.board.paths(self.mine["artist"], die)
        wave = self.position["waves"]["artist"]
        inspired = wave["side"] == "inspired" and wave["owner"] == self.seat
        touched = {area for path in paths for area in (path if inspired else path[-1:])}
        icons = {self.board.icons[area] for area in touched}
        neighbours = [self.others(path[-1]) for path in paths]
        return [*(int(icon in icons) for icon in ICONS), max(neighbours, default=0)]

    def others(self, area: str) -> int:
        """Return the number of the other five characters in and around an area."""
        count = int(self.theirs["artist"] == area)
        for player in self.position["players"]:
            count += player["pilgrim"] in self.board.area_stations[area]
            count += player["merchant"] in self.board.area_towns[area]
        return count
