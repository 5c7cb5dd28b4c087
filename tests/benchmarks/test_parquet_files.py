"""Tests of `benchmarks/parquet_files.py`: the Parquet files against the games and the set."""

import json
import sys
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from processes import ROOT

from tokaido_env import Game
from tokaido_env.arena.ladder import Ladder
from tokaido_env.core.actions import LABELS
from tokaido_env.study.regret_set import BLOCK, NOT_ROLLED, RegretSet

sys.path.insert(0, str(ROOT / "benchmarks"))

import parquet_files

parquet = pytest.importorskip("pyarrow.parquet")
Rows = dict[str, list[Any]]


@pytest.fixture(scope="module")
def actions() -> Rows:
    rows: Rows = parquet.read_table(parquet_files.REGRET).to_pydict()
    return rows


@pytest.fixture(scope="module")
def games() -> Rows:
    rows: Rows = parquet.read_table(parquet_files.GAMES).to_pydict()
    return rows


def test_regret_actions__have_the_values_of_the_set(actions: Rows) -> None:
    regret_set = RegretSet.load()
    assert list(actions) == list(parquet_files.REGRET_COLUMNS)
    assert actions["action"] == [LABELS[one] for one in regret_set.actions.tolist()]
    assert len(set(actions["position"])) == len(regret_set)
    weights = dict(zip(actions["position"], actions["weight"], strict=True))
    assert sum(weights.values()) == pytest.approx(1)
    for row in (0, 17, 5_000, 7_721):
        for policy, name in enumerate(regret_set.card["policies"]):
            sums = [int(one) for one in regret_set.sums[row, policy] if one != NOT_ROLLED]
            mean = sum(sums) / (BLOCK * len(sums))
            assert actions[f"value_{name}"][row] == pytest.approx(mean)
            assert actions["rollouts"][row] == 2 * BLOCK * len(sums)


def test_regret_actions__are_the_legal_ones_of_their_positions(actions: Rows) -> None:
    position = np.array(actions["position"])
    for number in (0, 3, 999, 1_999):
        rows = np.flatnonzero(position == number)
        game = Game.from_dict(json.loads(actions["state"][rows[0]]))
        assert game.board.name == actions["board"][rows[0]]
        assert game.phase.name == actions["phase"][rows[0]]
        assert game.legal_labels() == [actions["action"][row] for row in rows]


def test_ladder_games__are_those_of_their_seeds_and_decisions(games: Rows) -> None:
    assert list(games) == list(parquet_files.GAME_COLUMNS)
    for row in (0, 1, 777, 1_649, 2_000, 2_849):
        game = Game(games["board"][row], seed=games["seed"][row])
        for action in games["actions"][row]:
            game.play(action)
        seat = games["seat_of_a"][row]
        winner, totals = game.winner(), [one["total"] for one in game.scores()]
        assert (game.end, game.rounds) == (games["end"][row], games["rounds"][row])
        assert (totals[seat], totals[1 - seat]) == (games["points_a"][row], games["points_b"][row])
        assert games["result"][row] == (0.5 if winner is None else float(winner == seat))


def test_ladder_games__are_of_the_present_ladders(games: Rows) -> None:
    found = dict.fromkeys(zip(games["ladder"], games["a"], games["b"], strict=True))
    ladders = [Ladder.load(path) for path in parquet_files.LADDERS]
    assert list(found) == [
        (one.result.hash, m.a, m.b) for one in ladders for m in one.result.scores
    ]


def test_game_rows__check_a_whole_match_against_its_ladder() -> None:
    ladder = Ladder.load(parquet_files.LADDER)
    first = ladder.result.scores[0]
    part = parquet_files.game_rows(ladder, first, 4)
    assert part["a"] == ["random"] * 4
    whole = replace(first, pairs=(0, 0, 2, 0, 0))
    with pytest.raises(
        ValueError, match=r"random – greedy:epsilon=0.8: expected \[0, 0, 2, 0, 0\]"
    ):
        parquet_files.game_rows(ladder, whole, 4000)


def test_dataset_card__has_the_numbers_of_rows_and_the_hash(actions: Rows, games: Rows) -> None:
    card = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    assert f"; {len(actions['action']):,} actions" in card
    assert f"; {len(games['seed']):,} games" in card
    cited = (ROOT / "data" / "CITATION.cff").read_text(encoding="utf-8")
    regret_set = RegretSet.load()
    assert f"{regret_set.card['name']} {regret_set.hash}" in cited
