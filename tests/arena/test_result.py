"""Tests of arena/result.py: the file, its checks, and the data frame."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matches import match_of_results
from msgspec import structs
from valid_files import generalisation, with_hash

from tokaido_env.arena.intervals import score_interval
from tokaido_env.arena.result import Games, Result, ResultError, Score
from tokaido_env.core.state import END_CAP

Data = dict[str, Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "result.json"


def written(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_score__agrees_with_hand_computed_values() -> None:
    results = np.array([[1.0, 0.5], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0]])
    match = match_of_results(results)
    match.games["points"][..., 0, :] = (1, 2, 3)
    match.games["points"][0, 0, 1] = (8, 0, 4)
    match.games["forfeit"][1, 0] = 1  # that `a` lost
    match.games["end"][2] = END_CAP
    score = Score.of(match, "shikoku", 7, decided="a")
    assert (score.a, score.b, score.board, score.seed, score.n) == ("x", "y", "shikoku", 7, 8)
    assert (score.pairs, score.points, score.value) == ((0, 1, 1, 1, 1), 5.0, 0.625)
    interval = score_interval(results)
    assert (score.low, score.high) == tuple(pytest.approx(x, abs=1e-6) for x in interval)
    points = (1.0, 2.0, 3.0), (round(8 / 7, 4), 0.0, round(4 / 7, 4))  # of seven games
    assert score.games == Games(2, (0.625, 0.625), points, (1, 0), 2)
    assert score.decided == "a"


def test_result__loads_what_it_saves(path: Path) -> None:
    for changes in ({}, {"trained_on": None}, {"seed": None, "estimates": [], "complete": False}):
        result = Result.load(written(path, with_hash(generalisation(**changes))))
        result.save(path)
        assert Result.load(path) == result
        data = json.loads(path.read_text(encoding="utf-8"))
        assert data == result.to_dict()
        assert data["hash"] == result.hash
        assert max(map(len, path.read_text(encoding="utf-8").splitlines())) < 400


def test_hash__changes_with_what_was_measured_only(path: Path) -> None:
    result = Result.load(written(path, generalisation()))
    assert structs.replace(result, command="tokaido evaluate", package="9").hash == result.hash
    for changes in ({"seed": 1}, {"agents": ("a",)}, {"scores": ()}, {"anchor": "x"}, {"rules": 1}):
        assert structs.replace(result, **changes).hash != result.hash


def test_games__counts_pairs_of_equal_games() -> None:
    actions = np.array([[[4, 5], [4, 5]], [[4, 5], [4, -1]], [[-1, -1], [-1, -1]]], np.int8)
    match = match_of_results(np.array([[1.0, 0.0]] * 3))
    match.games["decisions"] = (actions >= 0).sum(axis=2)
    match.games["forfeit"][2] = 1  # at the first decision
    assert Games.of(replace(match, actions=actions)).equal == 2


def test_estimate__is_found_by_measure_other_and_group(path: Path) -> None:
    result = Result.load(written(path, generalisation()))
    found = result.estimate("worst tenth", other="greedy", group="family:train/1")
    assert (found.measure, found.agent, found.other) == ("worst tenth", result.agents[0], "greedy")
    for at in ({"other": "nobody"}, {"agent": "nobody", "other": "greedy"}, {"group": "x"}):
        with pytest.raises(ResultError, match=r"estimates: expected worst tenth of .*, got none"):
            result.estimate("worst tenth", **at)


def test_to_frame__has_a_row_for_each_score_and_estimate(path: Path) -> None:
    pytest.importorskip("pandas")
    result = Result.load(written(path, generalisation()))
    frame = result.to_frame()
    assert len(frame) == len(result.scores) + len(result.estimates)
    scores = frame[frame["measure"] == "score"]
    assert scores["board"].tolist() == [one.board for one in result.scores]
    assert scores["n"].sum() == sum(one.n for one in result.scores)
    (gap,) = frame[frame["measure"] == "gap"].to_dict("records")
    assert (gap["value"], gap["low"], gap["high"]) == (-0.125, -0.25, 0.0625)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda data: data.update(version=2), "version"),
        (lambda data: data.update(rules=0), "rules"),
        (lambda data: data.update(more=1), "more"),
        (lambda data: data.update(hash="0" * 16), "hash"),
        (lambda data: data["agents"].append(5), r"agents\[1\]"),
        (lambda data: data["scores"][0].update(pairs=[10**15] * 5), r"scores\[0\]\.pairs\[0\]"),
    ],
)
def test_load__refuses_a_wrong_file(path: Path, change: Callable[[Data], Any], name: str) -> None:
    data = generalisation()
    change(data)
    written(path, data if data["hash"] == "0" * 16 else with_hash(data))
    with pytest.raises(ResultError, match=f"{path}: .*{name}"):
        Result.load(path)
