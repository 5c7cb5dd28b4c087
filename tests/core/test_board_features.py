"""What is seen of a board: all that play can notice, and nothing else."""

import copy
import random
import tomllib
from collections.abc import Callable, Sequence
from itertools import combinations, count, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from positions import (
    AREAS,
    COASTAL,
    ICONS,
    TOWNS,
    WARES,
    changed,
    other_board_data,
    shikoku_data,
    write_board,
)

from tokaido_env import Board, BoardError
from tokaido_env.boards.board import BOARDS_FOLDER
from tokaido_env.core.board_features import (
    BOARD_FEATURES,
    BOARD_LAYOUT_HASH,
    BOARD_SCALES,
    N_BOARD_FEATURES,
    board_blocks,
)
from tokaido_env.core.box import BOARD, CHARACTERS, STATIONS
from tokaido_env.core.observation import FEATURES

Data = dict[str, Any]

BOARDS = 300
LAYOUT = "9e592abee4f6eab0"  # frozen: policies and data sets depend on it


# One thing changed at random; what is no board then is refused by its reader


def max_rounds(data: Data, rng: random.Random) -> None:
    data["max_rounds"] = rng.randint(1, 400)


def a_face(data: Data, rng: random.Random) -> None:
    rng.choice(list(data["dice"].values()))["faces"][rng.randrange(6)] = rng.randint(1, 6)


def order_of_faces(data: Data, rng: random.Random) -> None:
    for die in data["dice"].values():
        rng.shuffle(die["faces"])


def a_station(data: Data, rng: random.Random) -> None:
    ring = data["ring"]["stations"]
    at, how = rng.randrange(1, len(ring)), rng.randrange(4)
    if how == 0:
        ring.insert(at, rng.choice(STATIONS[1:]))
    elif how == 1:
        ring[at - 1 : at + 1] = ring[at : at - 2 : -1] if at > 1 else ring[:2]
    elif ring[at] not in COASTAL:
        ring[at : at + 1] = [rng.choice(STATIONS[1:])] if how == 2 else []


def a_route(data: Data, rng: random.Random) -> None:
    """A coastal town on the mountain town of the next one, or any two towns."""
    pairs = data["routes"]["pairs"]
    town = rng.randrange(8)
    at, beside = (index_of(pairs, COASTAL[i % 8]) for i in (town, town + 1))
    (hill,) = set(pairs[beside]) - set(COASTAL)
    pairs[at] = [COASTAL[town], hill] if rng.random() < 0.8 else rng.sample(TOWNS, 2)


def an_inner_route(data: Data, rng: random.Random) -> None:
    pairs = data["routes"]["pairs"]
    inner = [i for i, pair in enumerate(pairs) if not set(pair) & set(COASTAL)]
    pairs[rng.choice(inner)] = rng.sample(TOWNS[8:], 2)


def index_of(pairs: list[list[str]], town: str) -> int:
    return next(i for i, pair in enumerate(pairs) if town in pair)


def order_of_routes(data: Data, rng: random.Random) -> None:
    data["routes"]["pairs"] = [
        rng.sample(pair, 2) for pair in rng.sample(data["routes"]["pairs"], 11)
    ]


def names_of_mountain_towns(data: Data, rng: random.Random) -> None:
    names = dict(zip(TOWNS[8:], rng.sample(TOWNS[8:], 4), strict=True))
    pairs = data["routes"]["pairs"]
    data["routes"]["pairs"] = [[names.get(a, a), names.get(b, b)] for a, b in pairs]


def coasts_turned(data: Data, rng: random.Random) -> None:
    names = dict(zip(COASTAL, COASTAL[1:] + COASTAL[:1], strict=True))
    pairs = data["routes"]["pairs"]
    data["routes"]["pairs"] = [[names.get(a, a), names.get(b, b)] for a, b in pairs]


def a_mountain(data: Data, rng: random.Random) -> None:
    data["mountains"]["numbers"][rng.choice(TOWNS[8:])] = rng.randint(2, 4)


def an_icon(data: Data, rng: random.Random) -> None:
    data["areas"]["icons"][rng.choice(AREAS)] = rng.choice(ICONS)


def a_start(data: Data, rng: random.Random) -> None:
    start = data["starts"][rng.choice(("player_0", "player_1"))]
    where = {"pilgrim": range(40), "merchant": TOWNS, "artist": AREAS}
    who = rng.choice(list(where))
    start[who] = rng.choice(where[who])


def seats_changed(data: Data, rng: random.Random) -> None:
    starts = data["starts"]
    starts["player_0"], starts["player_1"] = starts["player_1"], starts["player_0"]


def a_token(data: Data, rng: random.Random) -> None:
    token = [rng.choice(sorted(WARES)), rng.randint(2, 4)]
    data["boutiques"]["tokens"][rng.randrange(8)] = token


def order_of_tokens(data: Data, rng: random.Random) -> None:
    rng.shuffle(data["boutiques"]["tokens"])


def points(data: Data, rng: random.Random) -> None:
    entry, key = rng.choice(TRACKS)
    values = data[entry][key]
    at = rng.randrange(len(values))
    values[at] = rng.choice((values[at] + 1, values[at] - 1, rng.randint(0, 255)))
    if rng.random() < 0.5:
        values.sort()


TRACKS = (
    ("commerce", "points"),
    ("culture", "points"),
    ("temple", "numbers"),
    ("garden", "numbers"),
)


def quarters(*inner: str) -> Data:
    """A board with two coastal towns at each mountain town, of which three lead to given ones."""
    data = shikoku_data()
    hills = [hill for hill in TOWNS[8:] for _ in range(2)]
    ways = [*zip(COASTAL, hills, strict=True), *zip(TOWNS[9:], inner, strict=True)]
    data["routes"]["pairs"] = [list(way) for way in ways]
    return data


IDLE = (order_of_faces, order_of_routes, order_of_tokens)
"""What play does not notice."""

Mutation = Callable[[Data, random.Random], None]
MUTATIONS: tuple[Mutation, ...] = (
    *(max_rounds, a_face, a_station, a_route, an_inner_route, names_of_mountain_towns),
    *(coasts_turned, a_mountain, an_icon, a_start, seats_changed, a_token, points),
    *IDLE,
)


class Family:
    """Boards as data and compiled: those of the package and others, then what became of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        drawn = [folder / f"drawn_{number}.toml" for number in range(6)]
        for number, path in enumerate(drawn):
            Board.generate(number).save(path)
        paths = [*sorted(BOARDS_FOLDER.glob("*.toml")), *drawn]
        texts = [path.read_text(encoding="utf-8") for path in paths]
        self.data = [tomllib.loads(text) for text in texts] + [other_board_data()]
        self.data += [quarters("M1", "M1", "M1"), quarters("M1", "M2", "M3")]
        for place in ("commerce.points.6", "culture.points.10"):
            self.data += [changed(shikoku_data(), place, last) for last in (100, 101)]
        self.boards = [self.load(data) for data in self.data]

    def load(self, data: Data) -> Board:
        path = self.folder / f"{next(self.numbers)}.toml"  # a file is read once
        return Board.load(write_board(path, data))

    def grow(self, mutation: Mutation, rng: random.Random) -> tuple[Board, Board] | None:
        """Add a board that differs by one mutation; return both, None if it would be none."""
        parent = rng.randrange(len(self.data))
        data = copy.deepcopy(self.data[parent])
        mutation(data, rng)
        try:
            board = self.load(data)
        except BoardError:
            return None
        self.data.append(data)
        self.boards.append(board)
        return self.boards[parent], board

    numbers = count()


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return Family(tmp_path)


def noticed(board: np.void) -> str:
    """What play can notice in a record, as text: all of it but the order of kinds and faces."""
    values = {name: board[name].tolist() for name in BOARD.names or ()}
    size = values["ring_size"]
    for name in ("station_areas", "station_kind"):
        assert not any(values[name][size:])
    values["faces"] = [sorted(faces) for faces in values["faces"]]
    kinds = [values.pop(f"kind_{name}")[: values["kinds"]] for name in ("ware", "price", "count")]
    return repr(values | {"tokens": sorted(zip(*kinds, strict=True))})


def block(board: Board, dtype: str = "float32") -> npt.NDArray[Any]:
    (numbers,) = board_blocks(board.record, dtype)
    return np.asarray(numbers)


def test_boards_have_one_block_if_and_only_if_they_play_alike(family: Family) -> None:
    rng = random.Random(0)
    tried = {mutation: 0 for mutation in MUTATIONS}
    while len(family.boards) < BOARDS:
        mutation = rng.choice(MUTATIONS)
        tried[mutation] += family.grow(mutation, rng) is not None
    assert min(tried.values()) > 3
    records = np.concatenate([board.record for board in family.boards])
    keys = [noticed(record) for record in records]
    assert len(set(keys)) > 0.6 * BOARDS
    small = records["max_rounds"] <= 255
    for dtype, some in (("float32", np.ones(len(records), bool)), ("uint8", small)):
        blocks = different(board_blocks(records[some], dtype))
        told = [key for key, one in zip(keys, some, strict=True) if one]
        assert len(set(blocks)) == len(set(told)) == len(set(zip(blocks, told, strict=True)))
    check_that_all_is_needed(board_blocks(records))


def different(blocks: npt.NDArray[Any]) -> list[bytes]:
    return [numbers.tobytes() for numbers in blocks]


def check_that_all_is_needed(blocks: npt.NDArray[Any]) -> None:
    """Without any of its features the block would not tell all of these boards apart."""
    number = len(set(different(blocks)))
    for feature in BOARD_FEATURES:
        without = np.delete(blocks, feature.slice, axis=1)
        follows = feature.name == "ring_size"  # from the ring, whose end it tells at once
        assert (len(set(different(without))) < number) != follows, feature.name


# A reader, written from the meanings of the table alone


def test_the_block_of_a_board_read_by_hand(family: Family) -> None:
    for board in family.boards:
        values = read(block(board))
        assert values == read(block(board, "uint8"), raw=True)
        assert values["max_rounds"] == [board.max_rounds]
        faces = np.reshape(values["dice_faces"], (3, 6))
        assert [faces_of(counts) for counts in faces] == [tuple(sorted(f)) for f in board.faces]
        assert stations(values) == [s if s in STATIONS else "coastal town" for s in board.stations]
        assert values["ring_size"] == [len(board.stations)]
        assert routes(values) == {frozenset(route) for route in board.routes}
        assert tuple(values["mountain_numbers"]) == board.mountain_numbers
        assert tuple(picks(values["area_icons"], ICONS)) == board.area_icons
        for seat, start in enumerate(board.starts):
            space, town, area = (values[f"start_{who}"][seat] for who in CHARACTERS)
            assert (space, TOWNS[town], AREAS[area]) == start
        assert tokens(values) == sorted(board.boutiques)
        for name in ("commerce", "culture"):
            both = zip(values[name], values[f"{name}_beyond"], strict=True)
            assert tuple(map(sum, both)) == getattr(board, name)
        assert (tuple(values["temple"]), tuple(values["garden"])) == (board.temple, board.garden)


def read(numbers: npt.NDArray[Any], raw: bool = False) -> dict[str, list[int]]:
    """The raw values of each feature, whole numbers all."""
    values = {}
    for feature in BOARD_FEATURES:
        exact = numbers[feature.slice] * (1 if raw else feature.scale)
        whole = np.rint(exact).astype(int)
        assert np.abs(exact - whole).max() < 1e-4, feature.name
        values[feature.name] = whole.tolist()
    return values


def picks(bits: list[int], names: Sequence[str]) -> list[str | None]:
    """The name that each row of a one-hot picks, None for zeros."""
    rows = np.reshape(bits, (-1, len(names))).tolist()
    assert all(sorted(row)[:-1] == [0] * (len(names) - 1) for row in rows)
    return [names[row.index(1)] if any(row) else None for row in rows]


def faces_of(counts: npt.NDArray[Any]) -> tuple[int, ...]:
    return tuple(value for value in range(1, 7) for _ in range(counts[value - 1]))


def stations(values: dict[str, list[int]]) -> list[str | None]:
    ring = picks(values["ring"], STATIONS)
    size = ring.index(None) if None in ring else len(ring)
    assert not any(ring[size:])
    return ring[:size]


def routes(values: dict[str, list[int]]) -> set[frozenset[str | None]]:
    inner = zip(combinations(TOWNS[8:], 2), values["mountain_routes"], strict=True)
    outer = zip(COASTAL, picks(values["coast_routes"], TOWNS[8:]), strict=True)
    return {frozenset(way) for way in (*outer, *(way for way, is_one in inner if is_one))}


def tokens(values: dict[str, list[int]]) -> list[tuple[str, int]]:
    kinds = product(("kimono", "pottery", "doll", "fan"), (2, 3, 4))
    counted = zip(kinds, values["boutiques"], strict=True)
    return sorted(kind for kind, number in counted for _ in range(number))


def test_numbers_lie_between_0_and_1_and_reach_both(tmp_path: Path) -> None:
    highest = other_board_data() | {"max_rounds": 400}
    for entry, key in TRACKS:
        highest[entry][key] = [255] * len(highest[entry][key])
    numbers = board_blocks(Board.load(write_board(tmp_path / "high.toml", highest)).record)
    assert (numbers.dtype, numbers.shape) == (np.float32, (1, N_BOARD_FEATURES))
    assert (numbers.min(), numbers.max()) == (0, 1)
    points = [f for f in BOARD_FEATURES if f.name.startswith(("commerce", "culture", "temple"))]
    assert all((numbers[0, feature.slice] == 1).all() for feature in points)


def test_what_bytes_cannot_hold_is_refused(family: Family) -> None:
    def many(data: Data, rng: random.Random) -> None:
        data["max_rounds"] = 256

    assert family.grow(many, random.Random(0))
    record = family.boards[-1].record
    assert board_blocks(record)[0, 0] * 400 == 256
    with pytest.raises(ValueError, match="max_rounds 256 does not fit 'uint8'"):
        board_blocks(record, "uint8")
    with pytest.raises(ValueError, match="dtype: expected"):
        board_blocks(record, "int8")


def test_no_boards_have_no_blocks() -> None:
    assert board_blocks(np.zeros(0, BOARD)).shape == (0, N_BOARD_FEATURES)


def test_features_tile_the_block() -> None:
    start = 0
    for feature in BOARD_FEATURES:
        assert (feature.start, feature.size > 0, feature.scale > 0) == (start, True, True)
        assert feature.meaning
        assert (BOARD_SCALES[feature.slice] == feature.scale).all()
        start += feature.size
    assert start == N_BOARD_FEATURES == len(BOARD_SCALES)
    assert not BOARD_SCALES.flags.writeable
    assert not {f.name for f in BOARD_FEATURES} & {f.name for f in FEATURES}


def test_the_layout_stays() -> None:
    assert BOARD_LAYOUT_HASH == LAYOUT
