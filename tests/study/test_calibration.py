"""`tokaido evaluate calibrate`: figures against a second way to compute them, and what it says."""

import json
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import rest_slow
from twice import Twice

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
from tokaido_env.study.agent_values import values_after
from tokaido_env.study.calibration import (
    ROUNDS,
    Judged,
    Lucky,
    Plan,
    Rolled,
    calibrate,
    calibration_error,
    events_of,
    figures,
)
from tokaido_env.trajectory import replay_actions

BOARD = Board.load()


class Steady(Agent):
    """Takes the lowest action; expects of every position what a function of the state tells."""

    spec = "steady"

    def __init__(self, worth: Any = lambda states: np.full(len(states), 0.25)) -> None:
        self.worth = worth

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return np.array([(int(mask) & -int(mask)).bit_length() - 1 for mask in legal], np.int64)

    def judge(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return super().judge(boards, states, legal, keys)[0], self.worth(states)


def coins(states: Any) -> Any:
    """A value that every event of chance may move: not what it should be, but known."""
    held = states["coins"].astype(float) + 2 * states["wares"].sum(axis=2)
    dice = states["dice"].sum(axis=1) / 10
    return np.tanh((held[:, 0] - held[:, 1]) / 10 + dice - 1)


# The figures, from data


def simulated(games: int = 3000, seed: int = 0) -> tuple[Judged, Rolled, Lucky]:
    """Games as walks of a value that is true: with the next step as likely up as down."""
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
    judged = Judged(number, np.tile(np.arange(1, steps + 1), games), *own)
    truth = rng.uniform(-0.6, 0.6, 800)
    wins = rng.random((800, 64)) < (1 + truth[:, None]) / 2
    rolled = Rolled(np.arange(800), truth + rng.normal(0, 0.2, 800), 2.0 * wins - 1)
    noise = rng.normal(0, 0.3, games)
    luck = Lucky(results - values[:, 0], results - values[:, 0] + noise, np.full(games, 0.09))
    return judged, rolled, luck


def test_figures_are_those_of_loops() -> None:
    """Each by its definition, position after position."""
    judged, rolled, luck = simulated(games=40)
    told = figures(judged, rolled, luck)
    rows = list(zip(*(column.tolist() for column in judged), strict=True))
    for group, row in enumerate(told["by_round"]):
        last = ROUNDS[group + 1] if group + 1 < len(ROUNDS) else 10**6
        check_means(row, [one for one in rows if ROUNDS[group] <= one[1] < last])
    assert sum(row["bias"]["n"] for row in told["by_round"]) == len(rows) == told["positions"]
    distances = 0.0
    for row in told["reliability"]:
        low, high = row["values"]
        there = [one for one in rows if low <= one[2] < high or one[2] == high == 1.0]
        check_means(row, there)
        distances += abs(sum(value - result for *_, value, result in there))
    assert told["calibration_error"] == pytest.approx(distances / len(rows), abs=1e-5)
    squares = []
    for value, results in zip(rolled.values.tolist(), rolled.results.tolist(), strict=True):
        mean = sum(results) / 64
        spread = sum((result - mean) ** 2 for result in results) / 63
        squares.append((value - mean) ** 2 - spread / 64)
    assert told["rollouts"]["rms"]["value"] == pytest.approx(sqrt(np.mean(squares)), abs=1e-5)
    left = sum((g - x) ** 2 - n for g, x, n in zip(*luck, strict=True))
    share = 1 - left / sum(gain**2 for gain in luck.gains.tolist())
    assert told["luck"]["explained"]["value"] == pytest.approx(share, abs=1e-5)


def check_means(row: dict[str, Any], there: list[tuple[int, int, float, float]]) -> None:
    """The means of some positions, and the interval that sums the errors of each game first."""
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
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of rollouts, whose noise is taken off, and of the share that luck explains."""
    inside = np.zeros(2)
    for seed in range(200):
        judged, rolled, luck = simulated(60, seed)
        told = figures(judged, rolled, luck)
        assert len(rolled.values) == 800
        low, high = told["rollouts"]["rms"]["ci95"]
        inside[0] += low < 0.2 < high
        low, high = told["luck"]["explained"]["ci95"]
        inside[1] += low < 1 < high
        assert len(luck.gains) == 60
    assert (inside / 200 > 0.9).all()


def test_the_ends_of_the_scale_have_bins() -> None:
    ends = np.array([-1.0, 1.0])
    judged = Judged(np.arange(2), np.ones(2, int), ends, ends)
    assert calibration_error(judged) == 0.0


# Games


def test_what_a_steady_agent_expects_is_held_against_its_games() -> None:
    """By `Game`: at each decision a quarter for player_0, whatever comes."""
    plan = Plan(games=12, positions=6, rollouts=4, seed=3)
    told = calibrate(Steady(), BOARD, plan)
    biases, rounds = [], []
    for seed in plan.seeds("games", plan.games).tolist():
        game, movers = Game(seed=seed), []
        while not game.is_over:
            movers.append(1 - 2 * game.player)
            rounds.append(game.rounds)
            game.play(game.legal_actions()[0])
        winner = game.winner()
        result = 0 if winner is None else 1 - 2 * winner
        biases += [sign * (0.25 - result) for sign in movers]
    assert told["positions"] == len(biases) > 500
    assert told["bias"]["mean"] == pytest.approx(np.mean(biases), abs=1e-5)
    counts = np.bincount(np.digitize(rounds, ROUNDS) - 1)
    assert [row["bias"]["n"] for row in told["by_round"]] == counts[counts > 0].tolist()
    assert [row["values"] for row in told["reliability"]] == [[-0.4, -0.2], [0.2, 0.4]]
    assert told["rollouts"]["positions"] == 6


def test_chance_is_what_comes_between_decisions() -> None:
    seeds = np.arange(6)
    played, actions = play_selfplay(make("greedy"), BOARD, seeds)
    part = replay_actions(BOARD, seeds, actions)
    begins, ends = events_of(part, 5)
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


def mean_after(state: Any, worth: Any) -> float:
    """The mean of what comes of chance: over every outcome by its odds, down to a decision."""
    batch = Batch(1, BOARD, chance="explicit", autoreset=False, observation=None)
    batch.reset(0, state)
    if batch.over[0]:
        return float(batch.rewards(np.arange(1))[0, 0])
    if batch.legal[0]:
        return float(worth(batch.states)[0])
    weights = batch.outcome_weights()[0]
    assert len(weights) == MAX_OUTCOMES
    total = 0.0
    for outcome in np.flatnonzero(weights).tolist():
        batch.reset(0, state)
        batch.step([outcome])
        total += weights[outcome] * mean_after(batch.states.copy(), worth)
    return total / float(weights.sum())


def test_what_chance_might_have_brought_has_its_odds() -> None:
    """The means of many draws, against the exact ones; and luck as the sum of the surprises."""
    agent, seeds = Steady(coins), np.arange(2)
    games, actions = play_selfplay(make("greedy"), BOARD, seeds)
    part = replay_actions(BOARD, seeds, actions)
    begins, _ = events_of(part, 2)
    kinds = part.states["phase"][begins]
    some = np.concatenate([begins[kinds == kind][:3] for kind in np.unique(kinds)])
    luck = np.arange(len(some) * 3000).reshape(-1, 3000)
    drawn = values_after(agent, part, some, luck, SerialExecutor())
    assert len(np.unique(kinds)) == 3
    for row, values in zip(some.tolist(), drawn, strict=True):
        exact = mean_after(part.states[row : row + 1].copy(), coins)
        assert abs(values.mean() - exact) < 5 * values.std() / sqrt(3000) + 1e-9
    assert len(games) == 2


# The command

SMALL = ["--games", "6", "--positions", "3", "--rollouts", "2"]


def run(*words: str) -> int:
    return main(["calibrate", *words])


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
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
    told = json.loads(files[0].read_bytes())
    assert (told["agent"], told["seed"], told["games"]) == ("champion", 1, 6)
    assert told["hash"] == BOARD.hash


@pytest.mark.parametrize("spec", rest_slow(["champion", "mcts:sims=4"]))
def test_whoever_plays_and_judges_the_figures_are_the_same(spec: str) -> None:
    plan, counts, executor = Plan(games=4, positions=5, rollouts=3, seed=1), list[int](), Twice()
    told = calibrate(make(spec), BOARD, plan, counts.append, executor)
    assert told == calibrate(make(spec), BOARD, plan)
    assert sum(counts) == plan.total
    assert any(unit.endswith(f"draws of chance judged by '{spec}'") for unit in executor.units)


def test_without_rollouts_nothing_is_said_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("champion", "--games", "4", "--positions", "0") == 0
    assert "rollouts" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["greedy"], "'greedy' does not tell what results it expects: expected an agent that"),
        (["champion", "--games", "1"], "games: expected 2 to 10,000,000, got 1"),
        (["champion", "--positions", "-1"], "positions: expected 0 to 10,000,000, got -1"),
        (["champion", "--games", "2", "--positions", "5000"], "positions: expected at most "),
    ],
)
def test_what_cannot_be_measured_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], message: str
) -> None:
    assert run(*words, "--json", str(tmp_path / "out")) == 1
    error = capsys.readouterr().err
    assert error.startswith("evaluate: ")
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("worth", "message"),
    [
        (lambda states: 1 / 0, "agent 'steady': ZeroDivisionError: division by zero"),
        (lambda states: np.full(len(states), 2.0), "judge: expected results from -1 to 1, got 2.0"),
        (
            lambda states: np.full(len(states), np.nan),
            "judge: expected results from -1 to 1, got nan",
        ),
        (lambda states: np.zeros(len(states) + 1), r"judge: expected results of shape \(\d+,\)"),
    ],
)
def test_an_agent_that_fails_is_named(worth: Any, message: str) -> None:
    with pytest.raises(AgentFailed, match=message):
        calibrate(Steady(worth), BOARD, Plan(games=2, positions=0))


# What is said


def test_meaning_names_the_rounds_that_are_off() -> None:
    judged, rolled, luck = simulated()
    told = {"agent": "somebody", **figures(judged, rolled, luck)}
    tilted = judged._replace(values=judged.values + np.where(judged.rounds < 4, 0.3, 0.0))
    off = {"agent": "somebody", **figures(tilted, rolled, luck)}
    assert "somebody has a bias above 0.02 in rounds 1 – 3 (+0.3" in report.meaning(off)
    calm = {
        **told,
        "by_round": [row for row in told["by_round"] if abs(row["bias"]["mean"]) < 0.02],
    }
    assert report.meaning(calm).startswith("somebody is calibrated: its bias is at most 0.02")
