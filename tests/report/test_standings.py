"""Tests of standings against counts by hand."""

import numpy as np
import pytest

from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.ratings import Rating, rate_matches
from tokaido_env.report.standings import Standing, standings
from tokaido_env.report.tables import plain_table, standings_table


def match(a: str, b: str, results: list[list[float]], points: tuple[int, int], seed: int) -> Match:
    games = np.zeros((len(results), 2), GAME)
    games["seed"] = seed + np.arange(len(results))[:, None]
    games["seat_of_a"] = [0, 1]
    games["result"] = results
    games["points"][:, :, 0, 0] = points[0]
    games["points"][:, :, 1, 2] = points[1]
    return Match(a, b, games, np.zeros((len(results), 2, 1), np.int8))


def three() -> list[Match]:
    """Return three matches of a, b and c, with the results of the first agent per pair."""
    return [
        match("a", "b", [[1.0, 0.5], [0.0, 1.0]], (30, 20), 0),
        match("a", "c", [[1.0, 1.0]], (60, 10), 0),
        match("c", "b", [[0.0, 0.5]], (40, 50), 7),
    ]


# By hand. In the first game of a pair the first named is player_0, in the second player_1.
BY_HAND = [
    # 1 + 0.5 + 0 + 1 and 1 + 1; as player_0 1, 0 and 1, as player_1 0.5, 1 and 1
    Standing(1, "a", 6, 4, 1, 1, 0, 4.5 / 6, (2 / 3, 2.5 / 3), (4 * 30 + 2 * 60) / 6, None),
    # 0 + 0.5 + 1 + 0 and 1 + 0.5; as player_0 0.5, 0 and 0.5, as player_1 0, 1 and 1
    Standing(2, "b", 6, 2, 2, 2, 0, 3 / 6, (1 / 3, 2 / 3), (4 * 20 + 2 * 50) / 6, None),
    # 0 + 0 and 0 + 0.5; as player_0 0 and 0, as player_1 0 and 0.5
    Standing(3, "c", 4, 0, 1, 3, 0, 0.5 / 4, (0.0, 0.25), (2 * 10 + 2 * 40) / 4, None),
]


def test_standings__equal_counts_by_hand() -> None:
    assert standings(three()) == [
        row._replace(score=pytest.approx(row.score), seats=pytest.approx(row.seats))
        for row in BY_HAND
    ]


def test_standings__skip_self_play_and_repeated_games() -> None:
    itself = match("a", "a", [[1.0, 0.0]], (9, 9), 0)
    only_itself = match("d", "d", [[1.0, 0.0]], (9, 9), 0)
    assert standings([*three(), itself, three()[0], only_itself]) == standings(three())
    there, back = three()[0], match("b", "a", [[1.0, 1.0]], (20, 30), 5)
    assert [row.games for row in standings([there, back])] == [6, 6]  # of other seeds
    assert standings([itself]) == []


def test_standings__are_ordered_by_rating_with_shared_ranks() -> None:
    ratings = [Rating("c", 10.0, (-5.0, 30.0), 4), Rating("a", 10.001, (0.0, 20.0), 6)]
    rows = standings(three(), ratings)
    assert [(row.rank, row.agent) for row in rows] == [(1, "a"), (1, "c"), (3, "b")]
    assert [row.rating for row in rows] == [ratings[1], ratings[0], None]
    even = match("x", "y", [[0.5, 0.5]], (1, 1), 0)
    assert [row.rank for row in standings([even], rate_matches([even]))] == [1, 1]


def test_standing__to_dict() -> None:
    ratings = [Rating("a", 12.345, (-5.0, 30.0), 6)]
    first, _, last = standings(three(), ratings)
    assert first.to_dict() == {
        **{"rank": 1, "agent": "a", "games": 6, "wins": 4, "draws": 1, "losses": 1},
        **{"forfeits": 0, "score": 0.75, "seats": [0.666667, 0.833333], "points": 40.0},
        "rating": {"elo": 12.35 if round(12.345, 2) == 12.35 else 12.34, "ci95": [-5.0, 30.0]},
    }
    assert last.to_dict()["rating"] is None


def test_standings_table__has_optional_columns() -> None:
    rows = standings(three(), [Rating("a", 12.4, (-5.0, 30.0), 6)])
    lines = [line.split() for line in plain_table(standings_table(rows, "t")).splitlines()[2:]]
    assert lines[1] == ["1", "a", "6", "75.0%", "12", "−5", "–", "30", "40.0", "66.7%", "83.3%"]
    assert lines[3] == ["3", "c", "4", "12.5%", "–", "–", "25.0", "0.0%", "25.0%"]
    assert "forfeits" not in lines[0]
    with_forfeits = plain_table(standings_table([rows[0]._replace(forfeits=2)], "t")).splitlines()
    assert with_forfeits[2].endswith("forfeits")
    assert with_forfeits[3].split()[-1] == "2"
    unrated = plain_table(standings_table(standings(three()), "t"))
    assert "Elo" not in unrated
