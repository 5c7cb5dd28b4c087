"""Matches: paired, repeatable, true to the games; and an interval that says what it claims."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from positions import shikoku_data, write_board

from tokaido_env import Game, IllegalMove, SeedError
from tokaido_env.agents import Agent, make
from tokaido_env.agents.arena import play_match, round_robin
from tokaido_env.agents.match import GAME, POINTS, Match, score_interval
from tokaido_env.luck import agent_keys, arena_seed, episode_seed

Floats = npt.NDArray[np.float64]


class Stubborn:
    """Always the same kind of choice: the highest legal action. Not random at all."""

    spec = "stubborn"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        return np.array([int(mask).bit_length() - 1 for mask in legal])


class Cheat(Stubborn):
    spec = "cheat"

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        return np.full(len(legal), 48)


def replayed(seed: int, agents: tuple[Agent, Agent]) -> Game:
    """A game played alone, agents by seat, with the keys that a match gives them."""
    game, decisions = Game(seed=seed), 0
    key = np.empty(1, np.uint64)
    while not game.is_over:
        seats, numbers = np.array([game.player], np.int8), np.array([decisions])
        agent_keys(np.array([seed]), seats, numbers, key)
        legal = np.array([game.legal_mask], np.uint64)
        game.play(int(agents[seats[0]].act(game.boards, game.state, legal, key)[0]))
        decisions += 1
    return game


# Pairs


@pytest.mark.parametrize("agent", [make("random"), make("greedy"), Stubborn()])
def test_an_agent_against_itself_wins_one_of_each_pair(agent: Agent) -> None:
    match = play_match(agent, agent, 40, seed=0)
    assert (match.results.sum(axis=1) == 1.0).all()
    assert match.score == 0.5
    assert (match.games["points"][:, 0, 0] == match.games["points"][:, 1, 1]).all()
    assert (match.games["points"][:, 0, 1] == match.games["points"][:, 1, 0]).all()


def test_a_match_is_its_games_played_alone() -> None:
    a, b = make("greedy"), make("random")
    match = play_match(a, b, 16, seed=5)
    for pair in range(8):
        seed = int(arena_seed(5, pair))
        for swapped, agents in enumerate(((a, b), (b, a))):
            game = replayed(seed, agents)
            winner = game.winner()
            result = 0.5 if winner is None else float((winner == 0) != bool(swapped))
            assert match.results[pair, swapped] == result
            scores = game.scores()[::-1] if swapped else game.scores()
            points = [[score[key] for key in POINTS[:3]] for score in scores]
            assert match.games["points"][pair, swapped].tolist() == points


def test_the_first_games_do_not_depend_on_how_many_there_are() -> None:
    a, b = make("greedy"), make("random")
    few, many = (play_match(a, b, games, seed=1) for games in (20, 60))
    assert (many.results[:10] == few.results).all()
    assert (many.games["points"][:10] == few.games["points"]).all()


def test_how_many_games_run_at_once_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = make("greedy"), make("random")
    at_once = play_match(a, b, 30, seed=1)
    monkeypatch.setattr("tokaido_env.agents.arena.CHUNK", 8)
    in_turn = play_match(a, b, 30, seed=1)
    assert (at_once.results == in_turn.results).all()
    assert (at_once.games["points"] == in_turn.games["points"]).all()


def test_a_match_is_repeatable_and_seeds_differ() -> None:
    def points(seed: int) -> list[Any]:
        match = play_match(make("random"), make("greedy"), 20, seed)
        return [match.games["points"].tolist(), match.results.tolist()]

    assert points(3) == points(3)
    assert points(3) != points(4)


def test_whom_the_match_is_told_of_makes_no_difference() -> None:
    there = play_match(make("greedy"), make("random"), 20, seed=2)
    back = play_match(make("random"), make("greedy"), 20, seed=2)
    assert (there.results == 1 - back.results[:, ::-1]).all()
    assert (there.games["points"] == back.games["points"][:, ::-1, ::-1]).all()


def test_evaluation_never_plays_the_games_of_training() -> None:
    trained = {int(episode_seed(s, e)) for s in range(100) for e in range(100)}
    assert not trained & {int(arena_seed(seed, pair)) for seed in range(10) for pair in range(1000)}


def test_the_cap_counts_half_for_both(tmp_path: Path) -> None:
    board = write_board(tmp_path / "short.toml", shikoku_data() | {"max_rounds": 1})
    match = play_match(make("greedy"), make("random"), 10, 0, board)
    assert match.to_dict()["draws"] == 10
    assert match.score == 0.5


def test_progress_counts_every_game() -> None:
    finished: list[int] = []
    play_match(make("random"), make("random"), 30, 0, progress=finished.append)
    assert sum(finished) == 30


@pytest.mark.parametrize("games", [-2, 0, 1, 7])
def test_an_odd_number_of_games_is_refused(games: int) -> None:
    with pytest.raises(ValueError, match=f"games: expected an even number from 2, .* got {games}"):
        play_match(make("random"), make("random"), games, seed=0)


def test_a_wrong_seed_is_refused() -> None:
    with pytest.raises(SeedError):
        play_match(make("random"), make("random"), 2, seed=-1)


@pytest.mark.parametrize("order", [1, -1])
def test_an_agent_that_plays_illegally_is_named(order: int) -> None:
    a, b = (make("random"), Cheat())[::order]
    message = r"agent 'cheat': game \d: illegal action 48 \(discard:fan\): legal are"
    with pytest.raises(IllegalMove, match=message):
        play_match(a, b, 4, seed=0)


def test_every_two_agents_meet_once() -> None:
    assert round_robin(4) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_a_match_as_json() -> None:
    results = np.array([[1.0, 0.5], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0]])
    games = np.zeros((4, 2), GAME)
    games["result"] = results
    games["points"][..., 0, :] = (1, 2, 3)
    games["points"][0, 0, 1] = (8, 0, 4)
    told = Match("x", "y", games, np.zeros((4, 2, 0), np.int8)).to_dict()
    assert (told["a"], told["b"], told["games"]) == ("x", "y", 8)
    assert (told["wins"], told["draws"], told["losses"], told["score"]) == (4, 2, 2, 0.625)
    assert told["mean"]["a"] == {"faith": 1.0, "commerce": 2.0, "culture": 3.0, "total": 6.0}
    assert told["mean"]["b"] == {"faith": 1.0, "commerce": 0.0, "culture": 0.5, "total": 1.5}
    assert told["ci95"] == [pytest.approx(x, abs=1e-6) for x in score_interval(results)]


# The interval


def independent(rng: np.random.Generator, pairs: int, p: float) -> Floats:
    return (rng.random((pairs, 2)) < p).astype(float)


def with_draws(rng: np.random.Generator, pairs: int, p: float) -> Floats:
    """Half of the games are shared; the others are such that the mean is p (0.25 to 0.75)."""
    shared = rng.random((pairs, 2)) < 0.5
    return np.where(shared, 0.5, rng.random((pairs, 2)) < 2 * p - 0.5)


def decided_by_luck(rng: np.random.Generator, pairs: int, p: float) -> Floats:
    """In half of the pairs the better dice win for whoever holds them; p as above."""
    swapped = rng.random((pairs, 1)) < 0.5
    first = rng.integers(0, 2, (pairs, 1))
    return np.where(swapped, np.hstack([first, 1 - first]), rng.random((pairs, 2)) < 2 * p - 0.5)


def decided_by_skill(rng: np.random.Generator, pairs: int, p: float) -> Floats:
    """Both games of a pair go to the same agent."""
    return np.repeat(rng.random((pairs, 1)) < p, 2, axis=1).astype(float)


@pytest.mark.parametrize("pairs", [20, 100, 500])
@pytest.mark.parametrize(
    ("kind", "p"),
    [
        *((independent, p) for p in (0.5, 0.7, 0.95)),
        *((with_draws, p) for p in (0.5, 0.7)),
        *((decided_by_luck, p) for p in (0.5, 0.7)),
        *((decided_by_skill, p) for p in (0.5, 0.7, 0.95)),
    ],
)
def test_95_of_100_intervals_hold_the_truth(
    kind: Callable[[np.random.Generator, int, float], Floats], p: float, pairs: int
) -> None:
    rng = np.random.default_rng(pairs)
    held = 0
    for _ in range(1000):
        results = kind(rng, pairs, p)
        low, high = score_interval(results)
        assert 0.0 <= low <= results.mean() <= high <= 1.0
        assert low < high
        held += low <= p <= high
    assert 900 <= held <= 990


@pytest.mark.parametrize("pairs", [1, 2, 50, 5000])
@pytest.mark.parametrize("result", [0.0, 0.5, 1.0])
def test_an_interval_is_never_without_width(result: float, pairs: int) -> None:
    low, high = score_interval(np.full((pairs, 2), result))
    assert 0.0 <= low <= high <= 1.0
    assert low - 1e-12 <= result <= high + 1e-12
    assert high - low > 1 / (10 * pairs)


def test_more_games_make_a_narrower_interval() -> None:
    rng = np.random.default_rng(0)
    widths = []
    for pairs in (10, 100, 1000, 10_000):
        low, high = score_interval(independent(rng, pairs, 0.6))
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[3] < 0.02


def test_pairs_that_cancel_the_luck_count_for_more() -> None:
    """The same score from less spread between pairs is surer."""
    rng = np.random.default_rng(0)
    luck = score_interval(decided_by_luck(rng, 400, 0.5))
    skill = score_interval(decided_by_skill(rng, 400, 0.5))
    assert luck[1] - luck[0] < 0.8 * (skill[1] - skill[0])
