"""Solved positions against the naive reference, and how they are drawn."""

import copy
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT
from reference import Reference

from tokaido_env import Game
from tokaido_env.core.actions import IDS, PASS
from tokaido_env.core.jit import INTERPRETED
from tokaido_env.core.rules import legal_mask
from tokaido_env.core.state import CHANCE_PHASES, copy_rows
from tokaido_env.position import to_dict
from tokaido_env.study.regret_set import SOLVED, RegretSet

sys.path.insert(0, str(ROOT / "benchmarks"))

import solved_set
from exact_values import exact_values

SET = RegretSet.load("solved")
RECORDS = copy_rows(SET.boards.records, SET.board.astype(np.int64))
BELOW = 60 if INTERPRETED else 300  # most positions that the reference visits below one


class TooManyError(Exception):
    """More positions than `BELOW`."""


def values_of(i: int) -> dict[int, float]:
    """The exact results of the actions of a position, from the file."""
    rows = slice(SET.starts[i], SET.starts[i + 1])
    return dict(zip(SET.actions[rows].tolist(), SET.sums[rows, 0, 0].tolist(), strict=True))


def solved(records: Any, states: Any) -> tuple[Any, Any]:
    legal = [legal_mask(records, states, i) for i in range(len(states))]
    return exact_values(records, states, np.array(legal, np.uint64))


def result_after(game: Reference, label: str, left: list[int]) -> Fraction:
    """The expected result of player_0 under best play: plain recursion, fractions, no table."""
    left[0] -= 1
    if left[0] < 0:
        raise TooManyError
    after = copy.copy(game)
    after.position = copy.deepcopy(game.position)
    after.play(label)
    if after.position["phase"] == "OVER":
        return Fraction({0: 1, 1: -1, None: 0}[after.winner()])
    if outcomes := after.outcomes():
        return sum((odds * result_after(after, name, left) for name, odds in outcomes), Fraction())
    better = max if after.position["player"] == 0 else min
    return better(result_after(after, action, left) for action in after.legal_labels())


@pytest.mark.slow
def test_solved_set__has_the_values_of_the_naive_reference(tmp_path: Path) -> None:
    checked: dict[tuple[str, str], int] = {}
    for i in range(0, len(SET), 40 if INTERPRETED else 8):
        board = SET.boards[int(SET.board[i])]
        board.save(tmp_path / "board.toml")
        game, values = Reference(tmp_path / "board.toml", to_dict(board, SET.states[i])), {}
        left, sign = [BELOW], 1 - 2 * int(SET.states[i]["player"])
        try:
            for label in game.legal_labels():
                values[IDS[label]] = sign * float(result_after(game, label, left))
        except TooManyError:
            continue
        assert values_of(i) == pytest.approx(values, abs=1e-12), i
        stratum = SET.card["strata"][SET.stratum[i]]
        kind = stratum["phase"], stratum["rounds"]
        checked[kind] = checked.get(kind, 0) + 1
    assert sum(checked.values()) >= 12
    assert {end for _, end in checked} == {"trigger", "cap"}


@pytest.mark.skipif(INTERPRETED, reason="a hundred thousand positions")
def test_exact_values__are_those_of_the_file_also_one_step_later() -> None:
    some = np.arange(0, len(SET), 9)
    values, counts = solved(RECORDS[some], copy_rows(SET.states, some))
    for i, own in zip(some.tolist(), values, strict=True):
        assert values_of(i) == {a: own[a] for a in np.flatnonzero(~np.isnan(own)).tolist()}
    leaves: list[tuple[int, int, float, Game]] = []  # position, action, odds and game
    for i in some[np.argsort(-counts)[:12]].tolist():  # the reference cannot solve these
        board = SET.boards[int(SET.board[i])]
        game = Game.from_dict(to_dict(board, SET.states[i]), chance="explicit")
        for action in game.legal_actions():
            leaves += [(i, action, odds, leaf) for odds, leaf in next_decisions(game, action)]
    going = [leaf for _, _, _, leaf in leaves if not leaf.is_over]
    boards, states = ([getattr(leaf, name) for leaf in going] for name in ("boards", "state"))
    found, _ = solved(np.concatenate(boards), np.concatenate(states))
    results = iter(np.nanmax(found, axis=1).tolist())
    expected: dict[tuple[int, int], float] = {}
    for i, action, odds, leaf in leaves:
        winner = {0: 1.0, 1: -1.0, None: 0.0}[leaf.winner()]
        result = winner if leaf.is_over else next(results) * (1 - 2 * leaf.state[0]["player"])
        signed = odds * result * (1 - 2 * SET.states[i]["player"])
        expected[i, action] = expected.get((i, action), 0.0) + float(signed)
    for i, action in expected:
        assert values_of(i)[action] == pytest.approx(expected[i, action], abs=1e-12)


def next_decisions(game: Game, move: int | str, odds: float = 1.0) -> list[tuple[float, Game]]:
    """The next decisions or ends after a move, with their odds."""
    after = game.copy()
    after.play(move)
    if after.is_over or after.phase not in CHANCE_PHASES:
        return [(odds, after)]
    parts = [next_decisions(after, label, odds * p) for label, p in after.outcomes()]
    return [one for part in parts for one in part]


def test_solved_set__has_hard_decisions_of_last_rounds_on_all_test_boards() -> None:
    states = SET.states
    capped = states["round"] == RECORDS["max_rounds"]
    assert len(SET) == 2000
    assert SOLVED.stat().st_size < 500_000
    assert (capped ^ (states["end_triggered"] == 1)).all()
    assert (np.bincount(SET.board[capped], minlength=100) == 10).all()
    assert (np.bincount(SET.board[~capped], minlength=100) == 10).all()
    assert len({state.tobytes() for state in states}) == len(SET)
    dice = np.bitwise_count(states["dice_left"].astype(np.uint8))
    assert set(dice.tolist()) == {0, 1, 2, 3}
    for i in range(len(SET)):
        values = values_of(i)
        passing = values.pop(PASS, -1.0)
        assert max(values.values()) - min(values.values()) > 1e-9 or passing > max(values.values())


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="thousands of games")
def test_make_set__gives_the_same_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solved_set, "SOURCES", ("greedy", "heuristic"))
    monkeypatch.setattr(solved_set, "BOARDS", "family:test/3")
    one, again = (solved_set.make_set(positions=4, games=60) for _ in range(2))
    assert one.hash == again.hash
    assert np.bincount(one.board).tolist() == [4, 4, 4]
    with pytest.raises(ValueError, match="GAMES"):
        solved_set.make_set(positions=40, games=6)
