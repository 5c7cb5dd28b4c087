"""What is seen as entities: every fact of the observation and of the board, where it belongs."""

import functools
import itertools
import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from positions import (
    AREAS,
    COASTAL,
    ICONS,
    TOWNS,
    other_board_data,
    random_position,
    random_walk,
    write_board,
)

from tokaido_env import ACTIONS, Board, Game
from tokaido_env.boards.board import built_in_boards
from tokaido_env.core.board_features import BOARD_FEATURES, board_blocks
from tokaido_env.core.constants import CHARACTERS, STATIONS, WARES
from tokaido_env.core.entities import (
    ACTION_ENTITY,
    ENTITY_FEATURES,
    ENTITY_LAYOUT_HASH,
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
LAYOUT = "5e8aac951e63acab"  # frozen: policies and data sets depend on it
WHOSE = ("my", "their")


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> list[Board]:
    other = write_board(tmp_path_factory.mktemp("boards") / "other.toml", other_board_data())
    named = [Board.load(name) for name in built_in_boards()]
    return [*named, Board.load(other), *(Board.generate(seed) for seed in range(8))]


@pytest.fixture(scope="module")
def games(boards: list[Board]) -> list[Game]:
    """Games at all stages on all boards, and positions that are made up: not to be played on."""
    found = []
    for seed in range(40 if INTERPRETED else 150):
        rng = random.Random(seed)
        found.append(random_walk(seed, rng.randrange(350), boards[seed % len(boards)]))
        found.append(Game.from_dict(random_position(rng), chance="explicit"))
    return found


@functools.cache
def still_of(board: Board) -> Vector:
    return board_entities(board.record)


def encoded(game: Game, seat: int) -> Vector:
    flat = np.full(N_FEATURES, 7, np.float32)
    (out,) = still_of(game.board).copy()
    encode_entities_of_game(game.boards, game.states, 0, seat, flat, out)
    return out


class Seen:
    """Reads arrays by the names of their features."""

    def __init__(self, game: Game, seat: int) -> None:
        self.arrays = entity_arrays(encoded(game, seat))

    def numbers(self, kind: str, name: str) -> list[Any]:
        """The raw values, by entity; a number for each where the feature is one."""
        feature = next(each for each in ENTITY_FEATURES[kind] if each.name == name)
        raw = self.arrays[kind][..., feature.slice] * feature.scale
        whole = np.rint(raw)
        assert np.abs(raw - whole).max() < 1e-4, name
        values: list[Any] = whole.astype(int).tolist()
        return [row[0] for row in values] if kind != "globals" and feature.size == 1 else values

    def where(self, kind: str, name: str) -> int | None:
        """The entity of which a feature holds, None for none."""
        flags = self.numbers(kind, name)
        assert sum(flags) <= 1
        return flags.index(1) if any(flags) else None


# Against the game and its board, fact by fact


def test_characters_stand_where_they_are(games: list[Game]) -> None:
    for game in games:
        position, stations = game.to_dict(), game.board.stations
        for seat in (0, 1):
            seen = Seen(game, seat)
            for whose, player in zip(WHOSE, (seat, 1 - seat), strict=True):
                here = position["players"][player]
                pilgrim, merchant = here["pilgrim"], TOWNS.index(here["merchant"])
                at = stations.index(here["merchant"]) if merchant < 8 else None
                town = stations[pilgrim]
                assert seen.where("stations", f"{whose}_pilgrim") == pilgrim
                assert seen.where("stations", f"{whose}_merchant") == at
                assert seen.where("towns", f"{whose}_merchant") == merchant
                coast = TOWNS.index(town) if town in TOWNS else None
                assert seen.where("towns", f"{whose}_pilgrim") == coast
                assert seen.where("areas", f"{whose}_artist") == AREAS.index(here["artist"])
                steps = [(i - pilgrim) % len(stations) for i in range(len(stations))]
                empty = [0] * (40 - len(stations))
                assert seen.numbers("stations", f"{whose}_steps") == steps + empty
            origin = position["origin"]
            assert seen.where("areas", "origin") == (origin and AREAS.index(origin))


def test_the_board_is_seen_entity_by_entity(boards: list[Board]) -> None:
    for board in boards:
        for seat in (0, 1):
            seen = Seen(Game(board, seed=0), seat)
            size = len(board.stations)
            kinds = [s if s in STATIONS else "coastal town" for s in board.stations]
            assert one_hots(seen.numbers("stations", "kind"), STATIONS) == pad(kinds)
            towns = [s if s in COASTAL else None for s in board.stations]
            assert one_hots(seen.numbers("stations", "coast"), COASTAL) == pad(towns)
            assert seen.numbers("stations", "space") == [*range(size), *[0] * (40 - size)]
            assert seen.arrays["token_mask"].tolist() == mask_of(size)
            assert one_hots(seen.numbers("towns", "town"), TOWNS) == [*TOWNS]
            assert one_hots(seen.numbers("areas", "area"), AREAS) == [*AREAS]
            assert one_hots(seen.numbers("areas", "icon"), ICONS) == [*board.area_icons]
            assert seen.numbers("towns", "mountain_number") == [0] * 8 + [*board.mountain_numbers]
            check_relations(seen, board)
            for whose, start in zip(
                WHOSE, (board.starts[seat], board.starts[1 - seat]), strict=True
            ):
                assert seen.where("stations", f"{whose}_start") == start[0]
                assert seen.where("towns", f"{whose}_start") == TOWNS.index(start[1])
                assert seen.where("areas", f"{whose}_start") == AREAS.index(start[2])


def check_relations(seen: Seen, board: Board) -> None:
    routes = {frozenset(route) for route in board.routes}
    between = [[float({a, b} in routes) for b in TOWNS] for a in TOWNS]
    assert seen.arrays["town_adjacency"].tolist() == between
    beside = [[float(b in board.neighbours[a]) for b in range(8)] for a in range(8)]
    assert seen.arrays["area_adjacency"].tolist() == beside
    borders = [[int(town in board.borders[a]) for a in range(8)] for town in TOWNS]
    assert seen.numbers("towns", "areas") == borders
    around = []
    for i, station in enumerate(board.stations):
        last = sum(s in COASTAL for s in board.stations[: i + 1]) - 1
        areas = {last, (last - 1) % 8} if station in COASTAL else {last}
        around.append([int(a in areas) for a in range(8)])
    assert seen.numbers("stations", "areas") == around + [[0] * 8] * (40 - len(around))


def one_hots(rows: list[list[int]], names: tuple[str, ...]) -> list[str | None]:
    assert all(set(row) <= {0, 1} and sum(row) <= 1 for row in rows)
    return [names[row.index(1)] if any(row) else None for row in rows]


def pad(names: list[Any]) -> list[Any]:
    return names + [None] * (40 - len(names))


def mask_of(size: int) -> list[int]:
    return [1] + [1] * size + [0] * (40 - size) + [1] * 20


def test_boutiques_are_at_their_towns(games: list[Game]) -> None:
    for game in games:
        seen = Seen(game, 0)
        wares = one_hots(seen.numbers("towns", "boutique_ware"), WARES)
        prices = seen.numbers("towns", "boutique_price")
        shown = {
            town: [ware, price] for town, ware, price in zip(TOWNS, wares, prices, strict=True)
        }
        told = {town: token or [None, 0] for town, token in game.to_dict()["boutiques"].items()}
        assert shown == told | {town: [None, 0] for town in TOWNS[8:]}


def test_arrivals_are_where_the_pilgrim_gets_to(games: list[Game]) -> None:
    """From either seat: what is told is about the mover."""
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
            assert {Seen(game, seat).where("stations", name) for seat in (0, 1)} == {station}
    assert min(tried.values()) > (5 if INTERPRETED else 20)


def test_globals_are_the_rest_of_the_observation_and_of_the_board(games: list[Game]) -> None:
    names = {feature.name: feature for feature in (*FEATURES, *BOARD_FEATURES)}
    for game in games:
        seat = game.states["round"][0] % 2
        vector = np.empty(N_FEATURES, np.float32)
        encode_game(game.boards, game.states, 0, seat, vector)
        both = {feature.name: vector[feature.slice] for feature in FEATURES}
        (block,) = board_blocks(game.boards)
        both |= {feature.name: block[feature.slice] for feature in BOARD_FEATURES}
        told = entity_arrays(encoded(game, seat))["globals"]
        for feature in ENTITY_FEATURES["globals"]:
            assert (told[feature.slice] == both[feature.name]).all()
            assert feature[2:] == names[feature.name][2:]


def test_what_was_seen_before_on_the_board_does_not_survive(games: list[Game]) -> None:
    """One row for each board, written over by other games and the other seat."""
    rows: dict[str, Vector] = {}
    flat = np.empty(N_FEATURES, np.float32)
    for seat, game in itertools.product((0, 1), games):
        out = rows.setdefault(game.board.hash, still_of(game.board)[0].copy())
        encode_entities_of_game(game.boards, game.states, 0, seat, flat, out)
        assert out.tobytes() == encoded(game, seat).tobytes()


# The tables


def test_actions_are_about_the_entity_that_their_label_names() -> None:
    assert (ACTION_ENTITY.shape, ACTION_ENTITY.dtype) == ((len(ACTIONS),), np.int16)
    assert not ACTION_ENTITY.flags.writeable
    tokens = ["globals", *range(40), *TOWNS, *AREAS]
    assert len(tokens) == N_TOKENS
    for label, token in zip(ACTIONS, ACTION_ENTITY.tolist(), strict=True):
        _, _, goal = label.partition(":")
        is_place = label.startswith(CHARACTERS[1:]) and goal != "stay"
        assert tokens[token] == (goal if is_place else "globals"), label


def test_arrays_have_the_shapes_that_are_told() -> None:
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


def test_numbers_lie_between_0_and_1(games: list[Game]) -> None:
    highest = np.zeros(N_ENTITY_NUMBERS, np.float32)
    for game in games:
        numbers = encoded(game, game.states["round"][0] % 2)
        assert numbers.min() >= 0
        assert numbers.max() <= 1
        np.maximum(highest, numbers, out=highest)
    arrays = entity_arrays(highest)
    never = {
        feature.name
        for kind, features in ENTITY_FEATURES.items()
        for feature in features
        if not arrays[kind][..., feature.slice].any()
    }
    assert never == {"commerce_beyond", "culture_beyond"}  # 64 points and more


def test_the_layout_stays() -> None:
    assert ENTITY_LAYOUT_HASH == LAYOUT
