"""Tests of boards/board.py: `difference` of boards."""

import json
import random
from typing import Any

import pytest
from positions import changed, other_board_data, shikoku_data

from tokaido_env import Board
from tokaido_env.boards.board import Difference, built_in_boards, difference


def differences_after(*changes: tuple[str, Any]) -> list[Difference]:
    """Return the differences to the default board after changes of its data."""
    data = shikoku_data()
    for where, value in changes:
        data = changed(data, where, value)
    return difference(Board.load(), Board.from_dict(data))


@pytest.mark.parametrize("name", [*built_in_boards(), "family:7"])
def test_difference__of_a_board_to_itself_is_empty(name: str) -> None:
    board = Board.load(name)
    assert difference(board, board) == difference(board, Board.from_dict(board.to_dict())) == []


CHANGES = [
    ("name", "mine", "name", "shikoku"),
    ("max_rounds", 100, "max_rounds", 200),
    ("dice.pilgrim.faces.0", 4, "dice.pilgrim.0", 1),
    ("dice.artist.faces.5", 6, "dice.artist.5", 3),
    ("ring.stations.1", "garden", "ring.1", "temple"),
    ("mountains.numbers.M1", 2, "mountains.M1", 3),
    ("areas.icons.A8", "bamboo", "areas.A8", "moon"),
    ("starts.player_0.pilgrim", "C2", "starts.player_0.pilgrim", "C1"),
    ("starts.player_1.merchant", "M1", "starts.player_1.merchant", "M4"),
    ("starts.player_1.artist", "A5", "starts.player_1.artist", "A4"),
    ("boutiques.tokens.0", ["doll", 3], "boutiques.0", ["kimono", 4]),
    ("commerce.points.6", 46, "commerce.6", 45),
    ("culture.points.10", 41, "culture.10", 40),
    ("temple.numbers.8", 10, "temple.8", 9),
    ("garden.numbers.0", 0, "garden.0", 1),
]


def test_difference__names_changed_values_in_the_order_of_the_file() -> None:
    found = differences_after(*((where, value) for where, value, _, _ in CHANGES))
    assert found == [(name, before, value) for _, value, name, before in CHANGES]
    start = "starts.player_0.pilgrim"
    assert differences_after((start, 1)) == [(start, "C1", 1)]
    assert json.loads(json.dumps(found)) == [list(change) for change in found]


def test_difference__ignores_notes_and_provenances() -> None:
    assert not differences_after(("ring.note", "as printed"), ("ring.provenance", "box"))
    assert not differences_after(("mountains.provenance_of", {"M1": "box"}))
    assert not differences_after(("starts.player_0.pilgrim", 0))


def test_difference__of_rings_with_other_sizes() -> None:
    ring = shikoku_data()["ring"]["stations"]
    longer = differences_after(("ring.stations", [*ring, "temple"]))
    assert longer == [("ring.28", None, "temple")]
    assert differences_after(("ring.stations", ring[:-1])) == [("ring.27", "seashore", None)]
    # The pilgrim of player_1 starts at C5, which has another index on this ring.
    shifted = differences_after(("ring.stations", ["C1", "temple", *ring[1:]]))
    assert {change.name.partition(".")[0] for change in shifted} == {"ring"}


def test_difference__compares_routes_as_a_set() -> None:
    pairs = shikoku_data()["routes"]["pairs"]
    for seed in range(20):
        rng = random.Random(seed)
        turned = [rng.sample(pair, 2) for pair in rng.sample(pairs, len(pairs))]
        assert differences_after(("routes.pairs", turned)) == []
        at = turned.index(next(pair for pair in turned if "C5" in pair))
        turned[at] = ["C5", "M3"]
        expected = [(f"routes.{at}", ["M4", "C5"], ["C5", "M3"])]
        assert differences_after(("routes.pairs", turned)) == expected


@pytest.mark.parametrize("name", [*built_in_boards(), *(f"family:{n}" for n in range(40))])
def test_difference__pairs_new_and_removed_routes(name: str) -> None:
    before, after = Board.load(), Board.load(name)
    found = [change for change in difference(before, after) if change.name.startswith("routes.")]
    old, new = ({frozenset(pair) for pair in board.routes} for board in (before, after))
    assert {frozenset(change.before) for change in found} == old - new
    assert {frozenset(change.after) for change in found} == new - old
    for change in found:
        assert list(after.routes[int(change.name.partition(".")[2])]) == change.after
    assert len(found) == len(new - old)


def test_difference__turns_one_board_into_the_other() -> None:
    """All values but routes."""
    before, after = shikoku_data(), other_board_data()
    after["routes"] = before["routes"]
    before["ring"]["stations"] = before["ring"]["stations"][:24]
    before["ring"]["stations"][21:] = ["C8", "garden", "temple"]
    mains = {"ring": "stations", "mountains": "numbers", "areas": "icons", "boutiques": "tokens"}
    mains |= {"temple": "numbers", "garden": "numbers", "culture": "points", "commerce": "points"}
    data = before
    for name, _, value in difference(Board.from_dict(before), Board.from_dict(after)):
        *tables, key = name.split(".")
        main = ["faces"] if tables[:1] == ["dice"] else [mains[t] for t in tables if t in mains]
        data = changed(data, ".".join([*tables, *main, key]), value)
    assert data == after
