"""Tests of the entity observation against the game and its board."""

import functools
import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from positions import other_board_data, random_position, random_walk, write_board

from tokaido_env import ACTIONS, Board, Game
from tokaido_env.boards.board import built_in_boards
from tokaido_env.core.board_features import BOARD_FEATURES, board_features_of
from tokaido_env.core.constants import (
    AREAS,
    CHARACTERS,
    COASTAL_TOWNS,
    ICONS,
    STATIONS,
    TOWNS,
    WARES,
)
from tokaido_env.core.entities import (
    ACTION_ENTITY,
    ENTITY_FEATURES,
    ENTITY_SHAPES,
    N_ENTITY_NUMBERS,
    N_TOKENS,
    TOKENS,
    board_entities,
    encode_entities_of_game,
    entity_arrays,
)
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.core.observation import FEATURES, N_FEATURES, encode_game

Vector = npt.NDArray[np.float32]
PREFIXES = ("my", "their")


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> list[Board]:
    other = write_board(tmp_path_factory.mktemp("boards") / "other.toml", other_board_data())
    named = [Board.load(name) for name in built_in_boards()]
    return [*named, Board.load(other), *(Board.generate(seed) for seed in range(8))]


@pytest.fixture(scope="module")
def games(boards: list[Board]) -> list[Game]:
    """Return games at all stages on all boards, and random positions."""
    games = []
    for seed in range(40 if INTERPRETED else 150):
        rng = random.Random(seed)
        games.append(random_walk(seed, rng.randrange(350), boards[seed % len(boards)]))
        games.append(Game.from_dict(random_position(rng), chance="explicit"))
    return games


@functools.cache
def static_part(board: Board) -> Vector:
    return board_entities(board.record)


def encoded(game: Game, seat: int) -> Vector:
    flat = np.full(N_FEATURES, 7, np.float32)
    (out,) = static_part(game.board).copy()
    encode_entities_of_game(game.boards, game.states, 0, seat, flat, out)
    return out


class Entities:
    """The entity observation of a game, read by the names of features."""

    def __init__(self, game: Game, seat: int) -> None:
        self.arrays = entity_arrays(encoded(game, seat))

    def numbers(self, kind: str, name: str) -> list[Any]:
        """Return the raw values by entity; one number each if the feature has one."""
        feature = next(each for each in ENTITY_FEATURES[kind] if each.name == name)
        raw = self.arrays[kind][..., feature.slice] * feature.scale
        whole = np.rint(raw)
        assert np.abs(raw - whole).max() < 1e-4, name
        values: list[Any] = whole.astype(int).tolist()
        return [row[0] for row in values] if kind != "globals" and feature.size == 1 else values

    def where(self, kind: str, name: str) -> int | None:
        """Return the entity with a set flag, None for none."""
        flags = self.numbers(kind, name)
        assert sum(flags) <= 1
        return flags.index(1) if any(flags) else None


# Against the game and its board, fact by fact


def test_encode_entities__places_the_characters(games: list[Game]) -> None:
    for game in games:
        position, stations = game.to_dict(), game.board.stations
        for seat in (0, 1):
            seen = Entities(game, seat)
            for prefix, player in zip(PREFIXES, (seat, 1 - seat), strict=True):
                pieces = position["players"][player]
                pilgrim, merchant = pieces["pilgrim"], TOWNS.index(pieces["merchant"])
                at = stations.index(pieces["merchant"]) if merchant < 8 else None
                town = stations[pilgrim]
                assert seen.where("stations", f"{prefix}_pilgrim") == pilgrim
                assert seen.where("stations", f"{prefix}_merchant") == at
                assert seen.where("towns", f"{prefix}_merchant") == merchant
                coast = TOWNS.index(town) if town in TOWNS else None
                assert seen.where("towns", f"{prefix}_pilgrim") == coast
                assert seen.where("areas", f"{prefix}_artist") == AREAS.index(pieces["artist"])
                steps = [(i - pilgrim) % len(stations) for i in range(len(stations))]
                empty = [0] * (40 - len(stations))
                assert seen.numbers("stations", f"{prefix}_steps") == steps + empty
            origin = position["origin"]
            assert seen.where("areas", "origin") == (origin and AREAS.index(origin))


def test_encode_entities__describes_the_board(boards: list[Board]) -> None:
    for board in boards:
        for seat in (0, 1):
            seen = Entities(Game(board, seed=0), seat)
            size = len(board.stations)
            kinds = [s if s in STATIONS else "coastal town" for s in board.stations]
            assert one_hots(seen.numbers("stations", "kind"), STATIONS) == pad(kinds)
            towns = [s if s in COASTAL_TOWNS else None for s in board.stations]
            assert one_hots(seen.numbers("stations", "coast"), COASTAL_TOWNS) == pad(towns)
            assert seen.numbers("stations", "space") == [*range(size), *[0] * (40 - size)]
            assert seen.arrays["token_mask"].tolist() == mask_of(size)
            assert one_hots(seen.numbers("towns", "town"), TOWNS) == [*TOWNS]
            assert one_hots(seen.numbers("areas", "area"), AREAS) == [*AREAS]
            assert one_hots(seen.numbers("areas", "icon"), ICONS) == [*board.area_icons]
            assert seen.numbers("towns", "mountain_number") == [0] * 8 + [*board.mountain_numbers]
            check_relations(seen, board)
            for prefix, start in zip(
                PREFIXES, (board.starts[seat], board.starts[1 - seat]), strict=True
            ):
                assert seen.where("stations", f"{prefix}_start") == start[0]
                assert seen.where("towns", f"{prefix}_start") == TOWNS.index(start[1])
                assert seen.where("areas", f"{prefix}_start") == AREAS.index(start[2])


def check_relations(seen: Entities, board: Board) -> None:
    routes = {frozenset(route) for route in board.routes}
    between = [[float({a, b} in routes) for b in TOWNS] for a in TOWNS]
    assert seen.arrays["town_adjacency"].tolist() == between
    adjacent = [[float(b in board.neighbours[a]) for b in range(8)] for a in range(8)]
    assert seen.arrays["area_adjacency"].tolist() == adjacent
    borders = [[int(town in board.borders[a]) for a in range(8)] for town in TOWNS]
    assert seen.numbers("towns", "areas") == borders
    around = []
    for i, station in enumerate(board.stations):
        last = sum(s in COASTAL_TOWNS for s in board.stations[: i + 1]) - 1
        areas = {last, (last - 1) % 8} if station in COASTAL_TOWNS else {last}
        around.append([int(a in areas) for a in range(8)])
    assert seen.numbers("stations", "areas") == around + [[0] * 8] * (40 - len(around))


def one_hots(rows: list[list[int]], names: tuple[str, ...]) -> list[str | None]:
    assert all(set(row) <= {0, 1} and sum(row) <= 1 for row in rows)
    return [names[row.index(1)] if any(row) else None for row in rows]


def pad(names: list[Any]) -> list[Any]:
    return names + [None] * (40 - len(names))


def mask_of(size: int) -> list[int]:
    return [1] + [1] * size + [0] * (40 - size) + [1] * 20


def test_encode_entities__places_the_boutiques(games: list[Game]) -> None:
    for game in games:
        seen = Entities(game, 0)
        wares = one_hots(seen.numbers("towns", "boutique_ware"), WARES)
        prices = seen.numbers("towns", "boutique_price")
        tokens = {
            town: [ware, price] for town, ware, price in zip(TOWNS, wares, prices, strict=True)
        }
        expected = {town: token or [None, 0] for town, token in game.to_dict()["boutiques"].items()}
        assert tokens == expected | {town: [None, 0] for town in TOWNS[8:]}


def test_encode_entities__marks_the_arrival_of_the_movers_pilgrim(games: list[Game]) -> None:
    """The mark is the same from either seat."""
    tried = {"pilgrim": 0, "pilgrim:wave": 0}
    for game in games:
        for label, name in (("pilgrim", "arrival"), ("pilgrim:wave", "arrival_wave")):
            station = None
            if label in game.legal_labels():
                player, other = game.player, game.copy(luck="same")
                assert player is not None
                other.play(label)
                station = int(other.state["pilgrim"][0, player])
                tried[label] += 1
            assert {Entities(game, seat).where("stations", name) for seat in (0, 1)} == {station}
    assert min(tried.values()) > (5 if INTERPRETED else 20)


def test_encode_entities__keeps_the_other_features_as_globals(games: list[Game]) -> None:
    names = {feature.name: feature for feature in (*FEATURES, *BOARD_FEATURES)}
    for game in games:
        seat = game.states["round"][0] % 2
        vector = np.empty(N_FEATURES, np.float32)
        encode_game(game.boards, game.states, 0, seat, vector)
        both = {feature.name: vector[feature.slice] for feature in FEATURES}
        (block,) = board_features_of(game.boards)
        both |= {feature.name: block[feature.slice] for feature in BOARD_FEATURES}
        numbers = entity_arrays(encoded(game, seat))["globals"]
        for feature in ENTITY_FEATURES["globals"]:
            assert (numbers[feature.slice] == both[feature.name]).all()
            assert feature[2:] == names[feature.name][2:]


# The tables


def test_action_entity__is_the_entity_in_the_label() -> None:
    assert (ACTION_ENTITY.shape, ACTION_ENTITY.dtype) == ((len(ACTIONS),), np.int16)
    assert not ACTION_ENTITY.flags.writeable
    tokens = ["globals", *range(40), *TOWNS, *AREAS]
    assert len(tokens) == N_TOKENS
    for label, token in zip(ACTIONS, ACTION_ENTITY.tolist(), strict=True):
        _, _, goal = label.partition(":")
        is_place = label.startswith(CHARACTERS[1:]) and goal != "stay"
        assert tokens[token] == (goal if is_place else "globals"), label


def test_entity_arrays__have_the_declared_shapes() -> None:
    rows = np.arange(3 * N_ENTITY_NUMBERS, dtype=np.float32).reshape(3, -1)
    arrays = entity_arrays(rows)
    assert {name: each.shape[1:] for name, each in arrays.items()} == ENTITY_SHAPES
    assert all(np.shares_memory(each, rows) for each in arrays.values())
    flat = np.concatenate([each.reshape(3, -1) for each in arrays.values()], axis=1)
    assert (flat == rows).all()
    for kind, number in TOKENS.items():
        features = ENTITY_FEATURES[kind]
        shape = (sum(feature.size for feature in features),)
        assert ENTITY_SHAPES[kind] == (shape if kind == "globals" else (number, *shape))
        starts = np.cumsum([0, *(feature.size for feature in features)])[:-1]
        assert [feature.start for feature in features] == starts.tolist()
        assert len({feature.name for feature in features}) == len(features)
        assert all(feature.meaning and feature.scale > 0 for feature in features)
