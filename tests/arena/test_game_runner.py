"""Tests of arena/game_runner.py: errors of agents, stops, and each game simulated once."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matches import play_recorded, play_remaining

from tokaido_env import IllegalMove, trajectory
from tokaido_env.agents import Agent, make
from tokaido_env.arena import game_runner
from tokaido_env.arena.executors import open_executor
from tokaido_env.arena.executors.base import SerialExecutor
from tokaido_env.arena.game_runner import AgentFailed
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.tournament import MatchState, games_as_completed, play_match
from tokaido_env.batch import Batch, advance_checked
from tokaido_env.boards.board import Board
from tokaido_env.core.rng import arena_seed

GAMES = 20
Answer = Callable[[Any], Any]


class Scripted(Agent):
    """Plays the highest legal action unless `answer`, called with the states, returns another."""

    spec = "scripted"

    def __init__(self, answer: Answer = lambda states: ..., games_at_once: int = 1000) -> None:
        self.answer, self.games_at_once = answer, games_at_once

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        answer: npt.NDArray[np.int64] = self.answer(states)
        if answer is ...:
            return np.array([int(mask).bit_length() - 1 for mask in legal])
        return answer


def raises(error: type[BaseException], when: Callable[[Any], bool]) -> Answer:
    """Return an answer that raises an error when a condition of the states holds."""

    def answer(states: Any) -> Any:
        if when(states):
            raise error("of nothing")
        return ...

    return answer


def play_until_stopped(
    agent: str, games: int = 12, executor: str = "serial"
) -> tuple[MatchState, list[int], str]:
    """Play against `random` until an error; return the match, the yielded games, the message."""
    a, b = make(agent), make("random")
    match_state = MatchState(a.spec, b.spec, games, 0, Board.load())
    numbers: list[int] = []
    errors = IllegalMove, AgentFailed, KeyboardInterrupt
    with open_executor(executor) as chosen, pytest.raises(errors) as error:
        numbers.extend(
            n
            for some in games_as_completed(match_state, a, b, executor=chosen)
            for n in some.numbers
        )
    return match_state, numbers, str(error.value)


# Errors name the agent, the game and the decision


def test_illegal_move__in_a_batch_names_its_game() -> None:
    class Cheats(Scripted):
        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
            moves = super().act(boards, states, legal, keys)
            moves[2:3] = 48
            return moves

    cheats = Cheats()
    message = r"agent 'scripted': game 5 of 12, seed \d+, seat 0, decision 0: illegal action 48 "
    with pytest.raises(IllegalMove, match=message):
        play_match(cheats, cheats, 12, seed=0)


@pytest.mark.parametrize(
    ("how", "executor", "error"),
    [
        ("illegal", "serial", "illegal action 48 (discard:fan): legal are "),
        ("illegal", "processes:1", "illegal action 48 (discard:fan): legal are "),
        ("raises", "serial", "RuntimeError: cannot decide (custom_agents.py, line "),
    ],
)
def test_failure__names_the_place_under_every_executor(how: str, executor: str, error: str) -> None:
    spec = f"python:custom_agents:Fails,how={how}"
    _, _, message = play_until_stopped(spec, executor=executor)
    assert error in message
    found = re.match(
        r"agent '(.*)': game (\d+) of 12, seed (\d+), seat 1, decision (\d+): ", message
    )
    assert found is not None
    assert found[1] == spec
    game, seed, decision = int(found[2]), int(found[3]), int(found[4])
    assert seed == arena_seed(0, (game - 1) // 2)
    assert game % 2 == 0  # `a` has seat 1 in every other game
    assert decision > 40
    assert "legal are " in message


def test_failure__in_a_batch_is_attributed_to_its_game() -> None:
    agent = Scripted(
        raises(
            ZeroDivisionError,
            lambda s: bool((s["round"] > 3).any() and (s["pilgrim"][:, 0] == 5).any()),
        )
    )
    with pytest.raises(AgentFailed) as error:
        play_match(make("random"), agent, 200, seed=0)
    message = r"agent 'scripted': game \d+ of 200, seed (\d+), .*: ZeroDivisionError: of nothing \("
    assert re.match(message, str(error.value))
    assert isinstance(error.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("answer", [np.zeros(3, np.int64), np.zeros(8), None])
def test_failure__of_an_answer_that_holds_no_actions(answer: Any) -> None:
    message = r"agent 'scripted': .*ValueError: moves: expected integ"
    with pytest.raises(AgentFailed, match=message):
        play_match(Scripted(lambda states: answer), make("random"), 8, seed=0)


def test_failure__of_an_agent_that_calls_exit() -> None:
    _, _, message = play_until_stopped("python:custom_agents:Dies")
    assert "agent 'python:custom_agents:Dies': game 1 of 12, " in message
    assert "SystemExit: 3 (custom_agents.py, line " in message


# Stops


@pytest.mark.parametrize("agent", ["Fails,how=raises,from_round=42", "Interrupts,at=200"])
def test_stop__keeps_finished_games_and_the_rest_can_be_played_later(agent: str) -> None:
    match_state, numbers, _ = play_until_stopped(f"python:custom_agents:{agent}", games=8)
    assert numbers == np.flatnonzero(match_state.finished).tolist()
    assert 0 < len(numbers) < 8
    dice, random = make("python:custom_agents:Dice"), make("random")
    whole = play_match(dice, random, 8, 0, executor=SerialExecutor())
    pairs = match_state.finished.reshape(-1, 2).all(axis=1)
    assert (match_state.to_match().games == whole.games[pairs]).all()
    for some in games_as_completed(match_state, dice, random, executor=SerialExecutor()):
        numbers += some.numbers.tolist()
    assert sorted(numbers) == list(range(8))
    assert (match_state.to_match().games == whole.games).all()
    assert (match_state.to_match().actions == whole.actions).all()


def test_stop__keeps_the_finished_games_of_a_batch() -> None:
    stops_late = Scripted(raises(KeyboardInterrupt, lambda states: len(states) < 5))
    match_state = MatchState("scripted", "random", 60, 0, Board.load())
    with pytest.raises(KeyboardInterrupt):
        play_remaining(match_state, stops_late, make("random"))
    finished = match_state.finished
    assert 30 < finished.sum() < 60
    whole = play_match(Scripted(), make("random"), 60, 0)
    assert (match_state.games[finished] == whole.games.reshape(-1)[finished]).all()
    assert (match_state.actions[~finished] == -1).all()


# A game is simulated once


@pytest.mark.parametrize("luck", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_games__are_played_once_and_replayed_only_for_events_or_luck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: bool, luck: bool
) -> None:
    moves, replayed = 0, 0
    replay_games = trajectory._replay_games

    def count_moves(batch: Batch, games: Any, chosen: Any) -> None:
        nonlocal moves
        moves += len(games)
        advance_checked(batch, games, chosen)

    def count_games(offsets: Any, first: int, *rest: Any) -> int:
        nonlocal replayed
        last = replay_games(offsets, first, *rest)
        replayed += last - first
        return last

    monkeypatch.setattr(game_runner, "advance_checked", count_moves)
    monkeypatch.setattr(trajectory, "_replay_games", count_games)
    match_state = MatchState("greedy", "random", GAMES, 3, "shikoku")
    match_state.with_luck = luck
    if recorded:
        records = RecordFile(tmp_path / "games.jsonl", [match_state])
        play_recorded(records, match_state, make("greedy"), make("random"))
    else:
        play_remaining(match_state, make("greedy"), make("random"))
    assert moves == match_state.games["decisions"].sum()
    assert replayed == (GAMES if recorded or luck else 0)


def test_games__have_the_same_rows_when_read_from_their_records(tmp_path: Path) -> None:
    played, loaded = (MatchState("greedy", "random", GAMES, 3, "family:test/5") for _ in range(2))
    played.with_luck = loaded.with_luck = True
    path = tmp_path / "games.jsonl"
    play_recorded(RecordFile(path, [played]), played, make("greedy"), make("random"))
    assert RecordFile(path, [loaded]).loaded == GAMES
    assert (loaded.games == played.games).all()
    assert (played.games["luck"] != 0).all()
