"""Reviews: losses against solved positions, luck against exact odds, and totals."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from solved import best, expected_result, is_small, solve

from tokaido_env import Game
from tokaido_env.agent import Agent
from tokaido_env.agents import make
from tokaido_env.arena.tournament import play_match
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.core.state import CHANCE_PHASES, OVER
from tokaido_env.study.review import MARKS, Review, review
from tokaido_env.trajectory import Trajectory, replay_actions, replay_labels

CHAMPION = make("champion")


class Solver(Agent):
    """Plays the last picks of a game perfectly and knows their values."""

    spec = "solver"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        return self.judge(boards, states, legal, keys)[0].argmax(axis=1)

    def judge(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        shares = np.zeros((len(states), N_ACTIONS), np.float32)
        values = np.zeros(len(states), np.float32)
        for i in range(len(states)):
            game = Game(chance="explicit")
            game.states[:] = states[i : i + 1]
            game._update_legal()
            in_last_round = bool(states["end_triggered"][i])
            of_action = solve(game) if in_last_round else dict.fromkeys(game.legal_actions(), 0.0)
            values[i] = best(game, of_action)
            shares[i, min(action for action in of_action if of_action[action] == values[i])] = 1
        return shares, values


def played_match(a: str, b: str, pairs: int) -> list[tuple[Trajectory, int]]:
    """Games of two agents, and the seat of the first."""
    match = play_match(make(a), make(b), 2 * pairs, 1, "shikoku")
    games = match.games.reshape(-1)
    actions = match.actions.reshape(len(games), -1)
    board = Game().board
    return [
        (
            replay_actions(board, games["seed"][i : i + 1], actions[i : i + 1]),
            int(games["seat_of_a"][i]),
        )
        for i in range(len(games))
    ]


def golden(seed: int = 3) -> Trajectory:
    game, rng = Game(seed=seed), np.random.default_rng(seed)
    while not game.is_over:
        game.play(int(rng.choice(game.legal_actions())))
    return game.trajectory()


# Decisions


def test_loss__is_that_of_solved_positions() -> None:
    """Within its interval, since chance is sampled."""
    lost, inside = 0, []
    for position in itertools.islice(decided_late(), 12):
        values = solve(position)
        sign = 1 - 2 * (position.player or 0)
        worst = min(values, key=lambda action: sign * values[action])
        played = replay_labels(position.board, [position.label(worst)], position.state)
        found = review(played, Solver(), Solver(), chance_samples=16)
        (row,) = found.choices().tolist()
        truth = sign * (best(position, values) - values[worst]) / 2
        assert found.loss[row] == pytest.approx(truth, abs=max(3 * found.error[row], 1e-6))
        inside.append(abs(found.loss[row] - truth) <= found.error[row] + 1e-6)
        lost += found.loss[row] > 0
    assert lost > 8
    assert np.mean(inside) > 0.8


def decided_late() -> Iterator[Game]:
    """Last picks of even games, with actions of different values."""
    for played, _ in played_match("greedy", "greedy", 150):
        choices = played.states["end_triggered"] & (np.bitwise_count(played.legal) > 1)
        for row in np.flatnonzero(choices)[::-1].tolist():
            game = Game.from_dict(played.position(row), chance="explicit")
            if len(game.to_dict()["dice_left"]) > 1 or not is_small(game):
                break
            if len({round(values, 6) for values in solve(game).values()}) > 1:
                yield game


def test_loss__of_the_judges_own_actions_is_zero() -> None:
    played, _ = played_match("champion", "champion", 1)[0]
    found = review(played, CHAMPION, CHAMPION)
    assert (found.best[found.choices()] == played.events[found.choices()]).all()
    assert (found.loss[found.choices()] == 0).all()
    assert (found.error[found.choices()] == 0).all()
    forced = played.decided & (np.bitwise_count(played.legal) == 1)
    assert forced.any()
    assert np.isnan(found.loss[forced]).all()
    assert [of["agreed"] for of in found.totals()] == [1.0, 1.0]
    assert all(of[mark] == 0 for of in found.totals() for mark in MARKS)


# Chance


def test_luck__has_mean_zero_by_exact_odds() -> None:
    """For a roll and a draw, expanded with `Game`."""
    played = golden()
    found = review(played, CHAMPION, CHAMPION)
    phases = played.states["phase"]
    rows = [np.flatnonzero(phases == phase)[5] for phase in CHANCE_PHASES[1:3]]
    for row in rows:
        position = Game.from_dict(played.position(int(row)), chance="explicit")
        mean = 0.0
        for label, odds in position.outcomes():
            then = position.copy()
            then.play(label)
            mean += odds * win_probability(then)
        assert found.values[row] == pytest.approx(mean, abs=1e-5)
        then = position.copy()
        then.play(played.labels()[row])
        assert found.luck[row] == pytest.approx(win_probability(then) - mean, abs=1e-5)


def win_probability(game: Game) -> float:
    """player_0's win probability by the champion, over all outcomes."""
    if game.is_over:
        return (1 + expected_result(game)) / 2
    if game.phase in CHANCE_PHASES:
        total = 0.0
        for label, odds in game.outcomes():
            then = game.copy()
            then.play(label)
            total += odds * win_probability(then)
        return total
    legal = np.array([game.legal_mask], np.uint64)
    _, values = CHAMPION.judge(game.boards, game.state, legal, np.zeros(1, np.uint64))
    assert values is not None
    return (1 + float(values[0])) / 2


def test_luck__is_at_chance_only_and_the_last_value_is_the_result() -> None:
    for played, _ in played_match("champion", "greedy", 1):
        found = review(played, CHAMPION, CHAMPION)
        chance = np.isin(played.states["phase"], [*CHANCE_PHASES[1:]])
        assert (found.luck[~chance] == 0).all()
        assert (found.luck[chance] != 0).any()
        assert played.states["phase"][-1] == OVER
        game = Game.from_dict(played.position(len(played.states) - 1))
        assert found.values[-1] == {0: 1.0, 1: 0.0, None: 0.5}[game.winner()]
        first, second = found.totals()
        assert first["luck"] == pytest.approx(-second["luck"])
        assert first["result"] + second["result"] == 1
        assert first["result_less_luck"] == pytest.approx(first["result"] - first["luck"], abs=1e-5)


# Whole reviews


def are_equal(one: Review, other: Review) -> bool:
    names = ("values", "luck", "best", "loss", "error")
    return all(np.array_equal(getattr(one, n), getattr(other, n), equal_nan=True) for n in names)


def test_review__is_the_same_for_a_seed() -> None:
    played, judge = golden(), make("mcts:sims=50")
    one, again, other = (review(played, judge, CHAMPION, seed=seed) for seed in (1, 1, 2))
    assert are_equal(one, again)
    assert not are_equal(one, other)
    assert (one.luck == other.luck).all()


def test_review__of_an_unfinished_game_covers_its_events() -> None:
    game = Game(seed=2)
    assert review(game.trajectory(), CHAMPION, CHAMPION).choices().tolist() == []
    for _ in range(25):
        game.play(game.legal_actions()[-1])
    found = review(game.trajectory(), CHAMPION, CHAMPION)
    assert 0 < found.totals()[0]["result"] < 1
    assert len(found.values) == len(game.events()) + 1


def test_mark__needs_a_significant_loss() -> None:
    found: Review = review(golden(), make("mcts:sims=10"), CHAMPION)
    row = int(found.choices()[0])
    for loss, error, mark in (
        (0.09, 0.05, "blunder"),
        (0.09, 0.10, None),
        (0.05, 0.01, "mistake"),
        (0.025, 0.01, "inaccuracy"),
        (0.01, 0.0, None),
        (-0.1, 0.0, None),
    ):
        found.loss[row], found.error[row] = loss, error
        assert found.mark(row) == mark, (loss, error)
