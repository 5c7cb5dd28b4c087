"""Calibration: statistics against plain loops, and `tokaido evaluate calibrate`."""

import json
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repeating_executor import RepeatingExecutor
from slow_cases import slow_except_first

from tokaido_env import Batch, Board, Game
from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.arena.executors import SerialExecutor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.tournament import play_selfplay
from tokaido_env.cli.evaluate import main
from tokaido_env.core.rules import MAX_OUTCOMES
from tokaido_env.core.state import SETUP
from tokaido_env.report import calibration as report
from tokaido_env.study.agent_values import values_after_chance
from tokaido_env.study.calibration import (
    ROUNDS,
    CalibrationConfig,
    DecisionValues,
    LuckBalance,
    RolloutResults,
    calibrate,
    calibration_error,
    chance_events,
    summarize,
)
from tokaido_env.trajectory import replay_actions

BOARD = Board.load()


class Steady(Agent):
    """Plays the lowest action; its values are a function of the states."""

    spec = "steady"

    def __init__(self, value: Any = lambda states: np.full(len(states), 0.25)) -> None:
        self.value = value

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return np.array([(int(mask) & -int(mask)).bit_length() - 1 for mask in legal], np.int64)

    def judge(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return super().judge(boards, states, legal, keys)[0], self.value(states)


def coins(states: Any) -> Any:
    """A known value that every kind of chance changes."""
    held = states["coins"].astype(float) + 2 * states["wares"].sum(axis=2)
    dice = states["dice"].sum(axis=1) / 10
    return np.tanh((held[:, 0] - held[:, 1]) / 10 + dice - 1)


# Statistics


def simulated(
    games: int = 3000, seed: int = 0
) -> tuple[DecisionValues, RolloutResults, LuckBalance]:
    """Games as random walks of true values: each step is as likely up as down."""
    rng = np.random.default_rng(seed)
    steps = 20
    values = np.zeros((games, steps))
    for step in range(1, steps):
        room = 1 - np.abs(values[:, step - 1])
        values[:, step] = values[:, step - 1] + rng.choice([-0.5, 0.5], games) * room
    results = np.where(rng.random(games) < (1 + values[:, -1]) / 2, 1.0, -1.0)
    movers = rng.choice([-1, 1], (games, steps))
    number = np.repeat(np.arange(games), steps)
    own = (movers * values).reshape(-1), (movers * results[:, None]).reshape(-1)
    judged = DecisionValues(number, np.tile(np.arange(1, steps + 1), games), *own)
    truth = rng.uniform(-0.6, 0.6, 800)
    wins = rng.random((800, 64)) < (1 + truth[:, None]) / 2
    rolled = RolloutResults(np.arange(800), truth + rng.normal(0, 0.2, 800), 2.0 * wins - 1)
    noise = rng.normal(0, 0.3, games)
    luck = LuckBalance(results - values[:, 0], results - values[:, 0] + noise, np.full(games, 0.09))
    return judged, rolled, luck


def test_summarize__matches_the_definitions_in_plain_loops() -> None:
    judged, rolled, luck = simulated(games=40)
    found = summarize(judged, rolled, luck)
    rows = list(zip(*(column.tolist() for column in judged), strict=True))
    for group, row in enumerate(found["by_round"]):
        last = ROUNDS[group + 1] if group + 1 < len(ROUNDS) else 10**6
        check_means(row, [one for one in rows if ROUNDS[group] <= one[1] < last])
    assert sum(row["bias"]["n"] for row in found["by_round"]) == len(rows) == found["positions"]
    distances = 0.0
    for row in found["reliability"]:
        low, high = row["values"]
        there = [one for one in rows if low <= one[2] < high or one[2] == high == 1.0]
        check_means(row, there)
        distances += abs(sum(value - result for *_, value, result in there))
    assert found["calibration_error"] == pytest.approx(distances / len(rows), abs=1e-5)
    squares = []
    for value, results in zip(rolled.values.tolist(), rolled.results.tolist(), strict=True):
        mean = sum(results) / 64
        spread = sum((result - mean) ** 2 for result in results) / 63
        squares.append((value - mean) ** 2 - spread / 64)
    assert found["rollouts"]["rms"]["value"] == pytest.approx(sqrt(np.mean(squares)), abs=1e-5)
    left = sum((g - x) ** 2 - n for g, x, n in zip(*luck, strict=True))
    share = 1 - left / sum(gain**2 for gain in luck.gains.tolist())
    assert found["luck"]["explained"]["value"] == pytest.approx(share, abs=1e-5)


def check_means(row: dict[str, Any], there: list[tuple[int, int, float, float]]) -> None:
    """Check means and intervals of some positions; errors are summed by game first."""
    assert row["bias"]["n"] == len(there)
    for name, values in (
        ("value", [value for *_, value, _ in there]),
        ("result", [result for *_, result in there]),
        ("bias", [value - result for *_, value, result in there]),
    ):
        mean = sum(values) / len(values)
        sums: dict[int, float] = {}
        for (game, *_), value in zip(there, values, strict=True):
            sums[game] = sums.get(game, 0.0) + value - mean
        variance = sum(each**2 for each in sums.values()) / len(values) ** 2
        half = 1.96 * sqrt(variance * len(sums) / (len(sums) - 1))
        assert row[name]["mean"] == pytest.approx(mean, abs=1e-5)
        assert row[name]["ci95"] == pytest.approx([mean - half, mean + half], abs=1e-4)


@pytest.mark.slow
def test_summarize__has_intervals_that_cover_the_truth_as_often_as_stated() -> None:
    inside = np.zeros(2)
    for seed in range(200):
        judged, rolled, luck = simulated(60, seed)
        found = summarize(judged, rolled, luck)
        assert len(rolled.values) == 800
        low, high = found["rollouts"]["rms"]["ci95"]
        inside[0] += low < 0.2 < high
        low, high = found["luck"]["explained"]["ci95"]
        inside[1] += low < 1 < high
        assert len(luck.gains) == 60
    assert (inside / 200 > 0.9).all()


def test_calibration_error__includes_values_of_plus_and_minus_one() -> None:
    ends = np.array([-1.0, 1.0])
    judged = DecisionValues(np.arange(2), np.ones(2, int), ends, ends)
    assert calibration_error(judged) == 0.0


# Measurements


def test_calibrate__compares_values_with_the_results_of_the_games() -> None:
    """Played with `Game`; the value is always 0.25 for player_0."""
    config = CalibrationConfig(games=12, positions=6, rollouts=4, seed=3)
    found = calibrate(Steady(), BOARD, config)
    biases, rounds = [], []
    for seed in config.seeds("games", config.games).tolist():
        game, movers = Game(seed=seed), []
        while not game.is_over:
            movers.append(1 - 2 * game.player)
            rounds.append(game.rounds)
            game.play(game.legal_actions()[0])
        winner = game.winner()
        result = 0 if winner is None else 1 - 2 * winner
        biases += [sign * (0.25 - result) for sign in movers]
    assert found["positions"] == len(biases) > 500
    assert found["bias"]["mean"] == pytest.approx(np.mean(biases), abs=1e-5)
    counts = np.bincount(np.digitize(rounds, ROUNDS) - 1)
    assert [row["bias"]["n"] for row in found["by_round"]] == counts[counts > 0].tolist()
    assert [row["values"] for row in found["reliability"]] == [[-0.4, -0.2], [0.2, 0.4]]
    assert found["rollouts"]["positions"] == 6


def test_chance_events__are_the_rows_between_decisions() -> None:
    seeds = np.arange(6)
    played, actions = play_selfplay(make("greedy"), BOARD, seeds)
    part = replay_actions(BOARD, seeds, actions)
    begins, ends = chance_events(part, 5)
    assert (part.games[begins] == part.games[ends]).all()
    assert part.games[begins].max() == 4
    known = {(int(a), int(b)) for a, b in zip(begins, ends, strict=True)}
    expected = set()
    for game in range(5):
        rows = part.rows(game)
        first = None
        for row in range(rows.start, rows.stop):
            chance = part.legal[row] == 0 and row < rows.stop - 1
            if chance and first is None and part.states["phase"][row] != SETUP:
                first = row
            if not chance and first is not None:
                expected.add((first, row))
                first = None
        expected.discard(min(pair for pair in expected if pair[0] >= rows.start))  # the first roll
    assert known == expected
    assert len(played) == 6


def mean_after(state: Any, value: Any) -> float:
    """The mean value over all outcomes of chance by their odds, down to decisions."""
    batch = Batch(1, BOARD, chance="explicit", autoreset=False, observation=None)
    batch.reset(0, state)
    if batch.over[0]:
        return float(batch.rewards(np.arange(1))[0, 0])
    if batch.legal[0]:
        return float(value(batch.states)[0])
    weights = batch.outcome_weights()[0]
    assert len(weights) == MAX_OUTCOMES
    total = 0.0
    for outcome in np.flatnonzero(weights).tolist():
        batch.reset(0, state)
        batch.step([outcome])
        total += weights[outcome] * mean_after(batch.states.copy(), value)
    return total / float(weights.sum())


def test_values_after_chance__have_the_exact_mean() -> None:
    agent, seeds = Steady(coins), np.arange(2)
    games, actions = play_selfplay(make("greedy"), BOARD, seeds)
    part = replay_actions(BOARD, seeds, actions)
    begins, _ = chance_events(part, 2)
    kinds = part.states["phase"][begins]
    some = np.concatenate([begins[kinds == kind][:3] for kind in np.unique(kinds)])
    luck = np.arange(len(some) * 3000).reshape(-1, 3000)
    samples = values_after_chance(agent, part, some, luck, SerialExecutor())
    assert len(np.unique(kinds)) == 3
    for row, values in zip(some.tolist(), samples, strict=True):
        exact = mean_after(part.states[row : row + 1].copy(), coins)
        assert abs(values.mean() - exact) < 5 * values.std() / sqrt(3000) + 1e-9
    assert len(games) == 2


# The command

SMALL = ["--games", "6", "--positions", "3", "--rollouts", "2"]


def run(*words: str) -> int:
    return main(["calibrate", *words])


def test_command__writes_the_same_bytes_for_a_seed(tmp_path: Path) -> None:
    """In another process too."""
    files = [tmp_path / name for name in ("a", "b", "c")]
    for path, seed, executor in zip(files, "112", ("serial", "processes:1", "serial"), strict=True):
        options = [
            "--json",
            str(path),
            "--seed",
            seed,
            "--plots",
            f"{path}.d",
            "--executor",
            executor,
        ]
        assert run("champion", *SMALL, *options) == 0
    assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()
    for name in ("calibration.png", "calibration.svg"):
        a, b, c = ((tmp_path / f"{path}.d" / name).read_bytes() for path in files)
        assert a == b != c
    found = json.loads(files[0].read_bytes())
    assert (found["agent"], found["seed"], found["games"]) == ("champion", 1, 6)
    assert found["hash"] == BOARD.hash


@pytest.mark.parametrize("spec", slow_except_first(["champion", "mcts:sims=4"]))
def test_calibrate__is_the_same_with_every_executor(spec: str) -> None:
    config, counts, executor = (
        CalibrationConfig(games=4, positions=5, rollouts=3, seed=1),
        list[int](),
        RepeatingExecutor(),
    )
    found = calibrate(make(spec), BOARD, config, counts.append, executor)
    assert found == calibrate(make(spec), BOARD, config)
    assert sum(counts) == config.total
    assert any(unit.startswith(f"values of '{spec}' after ") for unit in executor.tasks)


def test_command__without_rollouts_prints_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("champion", "--games", "4", "--positions", "0") == 0
    assert "rollouts" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["greedy"], "agent: expected one that gives values, got 'greedy': use"),
        (["champion", "--games", "1"], "games: expected 2 to 10,000,000, got 1"),
        (["champion", "--positions", "-1"], "positions: expected 0 to 10,000,000, got -1"),
        (["champion", "--games", "2", "--positions", "5000"], "positions: expected "),
    ],
)
def test_command__refuses_bad_options_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], message: str
) -> None:
    assert run(*words, "--json", str(tmp_path / "out")) == 1
    error = capsys.readouterr().err
    assert error.startswith("evaluate: ")
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda states: 1 / 0, "agent 'steady': ZeroDivisionError: division by zero"),
        (lambda states: np.full(len(states), 2.0), "judge: expected values from -1 to 1, got 2.0"),
        (
            lambda states: np.full(len(states), np.nan),
            "judge: expected values from -1 to 1, got nan",
        ),
        (lambda states: np.zeros(len(states) + 1), r"judge: expected values of shape \(\d+,\)"),
    ],
)
def test_calibrate__names_an_agent_that_fails(value: Any, message: str) -> None:
    with pytest.raises(AgentFailed, match=message):
        calibrate(Steady(value), BOARD, CalibrationConfig(games=2, positions=0))


# The conclusion


def test_meaning__names_the_rounds_with_a_bias() -> None:
    judged, rolled, luck = simulated()
    found = {"agent": "somebody", **summarize(judged, rolled, luck)}
    tilted = judged._replace(values=judged.values + np.where(judged.rounds < 4, 0.3, 0.0))
    off = {"agent": "somebody", **summarize(tilted, rolled, luck)}
    assert "somebody has a bias above 0.02 in rounds 1 – 3 (+0.3" in report.meaning(off)
    calm = {
        **found,
        "by_round": [row for row in found["by_round"] if abs(row["bias"]["mean"]) < 0.02],
    }
    assert report.meaning(calm).startswith("somebody is calibrated: its bias is at most 0.02")
