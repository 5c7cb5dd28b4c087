"""Matches: paired, repeatable, true to the games; and an interval that says what it claims."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cases import rest_slow
from matches import (
    Kind,
    decided_by_luck,
    decided_by_skill,
    independent,
    played_alone,
    with_draws,
)
from positions import shikoku_data, write_board

from tokaido_env import IllegalMove, SeedError
from tokaido_env.agents import Agent, make
from tokaido_env.arena.executors import SerialExecutor, open_executor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.intervals import score_interval
from tokaido_env.arena.match import GAME, SCORE_KEYS, Match
from tokaido_env.arena.tournament import (
    MatchState,
    executor_for,
    games_as_completed,
    play_match,
    play_remaining,
)
from tokaido_env.boards.board import Board
from tokaido_env.core.rng import arena_seed, episode_seed

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
            game = played_alone(agents, seed)
            winner = game.winner()
            result = 0.5 if winner is None else float((winner == 0) != bool(swapped))
            assert match.results[pair, swapped] == result
            scores = game.scores()[::-1] if swapped else game.scores()
            points = [[score[key] for key in SCORE_KEYS[:3]] for score in scores]
            assert match.games["points"][pair, swapped].tolist() == points


def test_neither_batches_nor_the_number_of_games_make_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = make("greedy"), make("random")
    many = play_match(a, b, 60, seed=1)
    monkeypatch.setattr("tokaido_env.arena.tournament.BATCH_SIZE", 8)
    few = play_match(a, b, 30, seed=1)
    assert (many.games[:15] == few.games).all()
    assert (few.games != play_match(a, b, 30, seed=2).games).all()


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


@pytest.mark.parametrize("games", [-2, 0, 1, 7, 10**7 + 2, 10**30])
def test_an_odd_number_of_games_is_refused(games: int) -> None:
    message = f"games: expected an even number from 2 to 10,000,000 .*, got {games}"
    with pytest.raises(ValueError, match=message):
        play_match(make("random"), make("random"), games, seed=0)


def test_a_wrong_seed_is_refused() -> None:
    with pytest.raises(SeedError):
        play_match(make("random"), make("random"), 2, seed=-1)


# Executors


def test_who_plays_makes_no_difference() -> None:
    """Of agents that play one game at a time, of others, and with several games at once."""
    agents = make("python:outsiders:Dice"), make("greedy")
    first = play_match(*agents, 12, seed=7, executor=SerialExecutor())
    assert len(np.unique(first.actions[..., 0])) > 1
    a, b = make("random"), make("greedy")
    match_state = MatchState(a.spec, b.spec, 30, 0, Board.load())
    kept: list[int] = []
    with open_executor("processes:2") as executor:
        match = play_match(*agents, 12, seed=7, executor=executor)
        for some in games_as_completed(match_state, a, b, executor=executor):
            kept += some.numbers.tolist()
    assert (match.games == first.games).all()
    assert (match.actions == first.actions).all()
    assert sorted(kept) == list(range(30))
    assert (match_state.to_match().games == play_match(a, b, 30, 0).games).all()


def test_who_plays_suits_the_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokaido_env.arena.executors.processes.cpus", lambda: 5)
    one, many = make("python:outsiders:Dice"), make("python:outsiders:HighestAtOnce")
    for a, b, workers in ((many, make("greedy"), 1), (one, many, 5), (many, one, 5)):
        with executor_for(a, b) as executor:
            assert executor.workers == workers
    with executor_for(one, one, SerialExecutor()) as executor:
        assert executor.workers == 1


def test_an_agent_is_asked_about_no_more_games_than_it_wants() -> None:
    asked: list[int] = []

    class Slow(Stubborn):
        games_at_once = 6

        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
            asked.append(len(states))
            return super().act(boards, states, legal, keys)

    for a, b in ((Slow(), make("random")), (make("random"), Slow())):
        match = play_match(a, b, 20, seed=1)
        alike = play_match(*(Stubborn() if x.spec == "stubborn" else x for x in (a, b)), 20, seed=1)
        assert (match.actions == alike.actions).all()
    assert max(asked) == 6


# Matches that are stopped


def stopped_by(
    agent: str, games: int = 12, who: str = "serial"
) -> tuple[MatchState, list[int], str]:
    """Play until it is stopped; return the match_state, the games that were kept, and why."""
    a, b = make(agent), make("random")
    match_state = MatchState(a.spec, b.spec, games, 0, Board.load())
    kept: list[int] = []
    errors = IllegalMove, AgentFailed, KeyboardInterrupt
    with open_executor(who) as executor, pytest.raises(errors) as error:
        kept.extend(
            n
            for some in games_as_completed(match_state, a, b, executor=executor)
            for n in some.numbers
        )
    return match_state, kept, str(error.value)


@pytest.mark.parametrize("order", [1, -1])
def test_an_agent_that_plays_illegally_is_named(order: int) -> None:
    a, b = (make("random"), Cheat())[::order]
    message = (
        r"agent 'cheat': game \d of 4, seed \d+, seat \d, decision \d+: illegal action 48 "
        r"\(discard:fan\): legal are [a-z]"
    )
    with pytest.raises(IllegalMove, match=message):
        play_match(a, b, 4, seed=0)


@pytest.mark.parametrize(
    ("how", "who", "error"),
    [
        ("illegal", "serial", "illegal action 48 (discard:fan): legal are "),
        ("illegal", "processes:1", "illegal action 48 (discard:fan): legal are "),
        ("raises", "serial", "RuntimeError: cannot decide (outsiders.py, line "),
    ],
)
def test_a_failure_says_where_it_was(how: str, who: str, error: str) -> None:
    _, _, message = stopped_by(f"python:outsiders:Fails,how={how}", who=who)
    assert error in message
    found = re.match(
        r"agent '(.*)': game (\d+) of 12, seed (\d+), seat 1, decision (\d+): ", message
    )
    assert found is not None
    assert found[1] == f"python:outsiders:Fails,how={how}"
    game, seed, decision = int(found[2]), int(found[3]), int(found[4])
    assert seed == arena_seed(0, (game - 1) // 2)
    assert game % 2 == 0  # `a` sits in seat 1 of every other game
    assert decision > 40
    assert "legal are " in message


def test_a_failure_in_a_batch_is_found_in_its_game() -> None:
    """An agent that is asked about many games at once fails in one of them."""

    class Fails(Stubborn):
        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
            if (states["round"] > 3).any() and (states["pilgrim"][:, 0] == 5).any():
                raise ZeroDivisionError("of nothing")
            return super().act(boards, states, legal, keys)

    with pytest.raises(AgentFailed) as error:
        play_match(make("random"), Fails(), 200, seed=0)
    message = r"agent 'stubborn': game \d+ of 200, seed (\d+), .*: ZeroDivisionError: of nothing \("
    assert re.match(message, str(error.value))
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_a_failure_that_does_not_come_again_is_placed_where_only_one_game_was_asked_about() -> None:
    class FailsOnce(Stubborn):
        games_at_once = 1
        asked = 0

        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
            self.asked += 1
            if self.asked == 30:
                raise ZeroDivisionError("of nothing")
            return super().act(boards, states, legal, keys)

    message = r"agent 'stubborn': game 1 of 4, seed \d+, seat 1, .*: ZeroDivisionError: of nothing"
    with pytest.raises(AgentFailed, match=message):
        play_match(make("random"), FailsOnce(), 4, seed=0)


@pytest.mark.parametrize("answer", [np.zeros(3, np.int64), np.zeros(8), None])
def test_an_answer_that_is_no_actions_is_refused(answer: Any) -> None:
    class Mute(Stubborn):
        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
            answered: npt.NDArray[np.int64] = answer
            return answered

    with pytest.raises(AgentFailed, match=r"agent 'stubborn': .*ValueError: moves: expected integ"):
        play_match(Mute(), make("random"), 8, seed=0)


@pytest.mark.parametrize("agent", ["Fails,how=raises,late=42", "Interrupts,at=500"])
def test_what_was_finished_is_kept_and_the_rest_played_later(agent: str) -> None:
    match_state, kept, _ = stopped_by(f"python:outsiders:{agent}", games=20)
    assert kept == np.flatnonzero(match_state.finished).tolist()
    assert 0 < len(kept) < 20
    whole = play_match(
        make("python:outsiders:Dice"), make("random"), 20, 0, executor=SerialExecutor()
    )
    pairs = match_state.finished.reshape(-1, 2).all(axis=1)
    so_far = match_state.to_match()
    assert (so_far.games == whole.games[pairs]).all()
    asked = len(kept)
    dice = make("python:outsiders:Dice")
    for some in games_as_completed(match_state, dice, make("random"), executor=SerialExecutor()):
        kept += some.numbers.tolist()
    assert sorted(kept) == list(range(20))
    assert len(kept) - asked == 20 - asked
    assert (match_state.to_match().games == whole.games).all()
    assert (match_state.to_match().actions == whole.actions).all()


def test_games_of_a_batch_that_are_over_are_kept_when_it_is_stopped() -> None:
    class Late(Stubborn):
        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
            if len(states) < 5:
                raise KeyboardInterrupt
            return super().act(boards, states, legal, keys)

    match_state = MatchState("stubborn", "random", 60, 0, Board.load())
    with pytest.raises(KeyboardInterrupt):
        play_remaining(match_state, Late(), make("random"))
    done = match_state.finished
    assert 30 < done.sum() < 60
    whole = play_match(Stubborn(), make("random"), 60, 0)
    assert (match_state.games[done] == whole.games.reshape(-1)[done]).all()
    assert (match_state.actions[~done] == -1).all()


def test_an_agent_that_wants_to_end_the_command_is_told_of() -> None:
    _, _, message = stopped_by("python:outsiders:Dies")
    assert "agent 'python:outsiders:Dies': game 1 of 12, " in message
    assert "SystemExit: 3 (outsiders.py, line " in message


def test_an_agent_that_other_processes_cannot_make_is_told_of() -> None:
    agent = Stubborn()
    match_state = MatchState(agent.spec, "random", 4, 0, Board.load())
    unknown = pytest.raises(AgentFailed, match="AgentError: unknown agent 'stubborn'")
    with open_executor("processes:1") as executor, unknown:
        play_remaining(match_state, agent, make("random"), executor=executor)
    assert not match_state.finished.any()


def test_a_part_of_a_match(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = make("greedy"), make("random")
    match_state = MatchState(a.spec, b.spec, 20, 3, Board.load())
    play_remaining(match_state, a, b, games=8)
    assert match_state.finished.tolist() == [True] * 8 + [False] * 12
    assert match_state.to_match().results.shape == match_state.to_match(12).results.shape == (4, 2)
    assert match_state.to_match(4).results.shape == (2, 2)
    play_remaining(match_state, a, b)
    monkeypatch.setattr("tokaido_env.arena.game_runner.Batch", None)
    play_remaining(match_state, a, b)  # nothing is left to play
    assert match_state.finished.all()


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


@pytest.mark.parametrize("pairs", [20, 100, 500])
@pytest.mark.parametrize(
    ("kind", "p"),
    rest_slow(
        [
            *((decided_by_luck, p) for p in (0.7, 0.5)),
            *((independent, p) for p in (0.5, 0.7, 0.95)),
            *((with_draws, p) for p in (0.5, 0.7)),
            *((decided_by_skill, p) for p in (0.5, 0.7, 0.95)),
        ]
    ),
)
def test_95_of_100_intervals_hold_the_truth(kind: Kind, p: float, pairs: int) -> None:
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
