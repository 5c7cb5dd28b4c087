"""Tests of arena/tournament.py and match.py: paired games, equal under every executor."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matches import play_remaining, play_single_game, played_match, same_games
from networks import random_policy
from reversed_executor import ReversedExecutor

from tokaido_env.agent import AgentError
from tokaido_env.agents import Agent, make
from tokaido_env.arena.executors import open_executor
from tokaido_env.arena.executors.base import SerialExecutor
from tokaido_env.arena.match import SCORE_KEYS
from tokaido_env.arena.tournament import MatchState, executor_for, games_as_completed, play_match
from tokaido_env.boards.board import Board
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.rng import arena_seed, episode_seed, game_seed
from tokaido_env.trajectory import replay_actions, replay_chunks

FAMILY = "family:test/5"
POOL = BoardPool.load(FAMILY)


class Highest(Agent):
    """Plays the highest legal action, and stores the boards of `prepare` and the batch sizes."""

    spec = "highest"

    def __init__(self, games_at_once: int = 1000) -> None:
        self.games_at_once = games_at_once
        self.boards: list[str] = []
        self.sizes: list[int] = []

    def prepare(self, boards: Sequence[Board]) -> None:
        self.boards += [board.name for board in boards]

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        self.sizes.append(len(states))
        return np.array([int(mask).bit_length() - 1 for mask in legal])


class Net:
    """Plays as another agent, one game at a time or many."""

    def __init__(self, spec: str) -> None:
        self.agent = make(spec)

    def act(self, *arguments: Any) -> npt.NDArray[np.int64]:
        return self.agent.act(*arguments)


class greedy:  # noqa: N801  the name of another agent
    """Plays the lowest legal action, in one game at a time."""

    def choose(self, game: Any, rng: Any) -> int:
        return int(game.legal_actions()[0])


@pytest.fixture(scope="module")
def family_match() -> MatchState:
    return played_match("greedy", "random", 40, 3, FAMILY)


# Agents


def test_play_match__plays_two_objects_of_one_class_as_two_agents() -> None:
    heuristic, random = Net("heuristic"), Net("random")
    match = play_match(heuristic, random, 20, 0)  # type: ignore[arg-type]
    assert (match.a, match.b) == ("Net", "Net 2")
    expected = play_match(make("heuristic"), make("random"), 20, 0)
    assert (match.games == expected.games).all()
    same = play_match(random, random, 20, 0)  # type: ignore[arg-type]
    assert (same.a, same.b, same.score) == ("Net", "Net", 0.5)


def test_play_match__plays_an_object_with_the_name_of_another_agent_itself() -> None:
    match = play_match(greedy(), make("greedy"), 10, 0)  # type: ignore[arg-type]
    assert (match.a, match.b) == ("greedy 2", "greedy")
    assert match.score < 0.3  # the lowest action is worth little


@pytest.mark.parametrize("executor", ["processes:1", "reversed"])
def test_play_match__sends_no_object_to_other_processes(executor: str) -> None:
    sends = ReversedExecutor() if executor == "reversed" else open_executor(executor)
    with sends, pytest.raises(AgentError, match=r"^executor: .*'greedy'.*python:FILE:CLASS"):
        play_match(make("random"), greedy(), 4, 0, executor=sends)  # type: ignore[arg-type]


def test_match_state__has_the_files_of_both_agents(tmp_path: Path) -> None:
    files = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    for seed, file in enumerate(files):
        random_policy(seed=seed).save(file)
    match_state = MatchState(*(f"policy:{file}" for file in files), 2, 0, "shikoku")
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    assert [*match_state.files.values()] == hashes


# Pairs


@pytest.mark.parametrize("board", ["shikoku", FAMILY])
def test_play_match__agrees_with_single_games(board: str) -> None:
    a, b = make("greedy"), make("random")
    match, boards = play_match(a, b, 16, 5, board), set()
    pool = BoardPool.load(board)
    for pair in range(8):
        seed = int(arena_seed(5, pair))
        for swapped, agents in enumerate(((a, b), (b, a))):
            single = play_single_game(agents, seed, board)
            row = match.games[pair, swapped]
            assert (
                single.board.name == pool.board_of_seed(seed).name == pool[int(row["board"])].name
            )
            winner = single.winner()
            result = 0.5 if winner is None else float((winner == 0) != bool(swapped))
            assert (row["result"], row["seed"]) == (result, seed)
            scores = single.scores()[::-1] if swapped else single.scores()
            points = [[score[key] for key in SCORE_KEYS[:3]] for score in scores]
            assert row["points"].tolist() == points
            boards.add(single.board.name)
    assert len(boards) > (board == FAMILY)


def test_play_match__does_not_depend_on_batches_or_the_number_of_games(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = make("greedy"), make("random")
    many = play_match(a, b, 60, seed=1)
    monkeypatch.setattr("tokaido_env.arena.tournament.BATCH_SIZE", 8)
    few = play_match(a, b, 30, seed=1)
    assert (many.games[:15] == few.games).all()
    assert (few.games != play_match(a, b, 30, seed=2).games).all()


def test_arena_seeds__differ_from_the_seeds_of_training() -> None:
    trained = {
        int(episode_seed(seed, e))
        for s in range(100)
        for seed in (s, *(game_seed(s, i) for i in range(9)))
        for e in range(10)
    }
    assert not trained & {int(arena_seed(seed, pair)) for seed in range(10) for pair in range(1000)}


@pytest.mark.parametrize("games", [0, 7, 10**7 + 2])
def test_play_match__refuses_a_wrong_number_of_games(games: int) -> None:
    with pytest.raises(ValueError, match=r"^games: "):
        play_match(make("random"), make("random"), games, seed=0)


# Executors


def test_executors__give_the_same_games() -> None:
    """With an agent that plays one game at a time, and with batched agents."""
    agents = make("python:custom_agents:Dice"), make("greedy")
    serial = play_match(*agents, 6, seed=7, executor=SerialExecutor())
    assert len(np.unique(serial.actions[..., 0])) > 1
    a, b = make("random"), make("greedy")
    match_state = MatchState(a.spec, b.spec, 30, 0, Board.load())
    numbers: list[int] = []
    with open_executor("processes:2") as executor:
        match = play_match(*agents, 6, seed=7, executor=executor)
        for some in games_as_completed(match_state, a, b, executor=executor):
            numbers += some.numbers.tolist()
    assert (match.games == serial.games).all()
    assert (match.actions == serial.actions).all()
    assert sorted(numbers) == list(range(30))
    assert (match_state.to_match().games == play_match(a, b, 30, 0).games).all()


@pytest.mark.parametrize("executor", [SerialExecutor(), ReversedExecutor()])
def test_executors__give_the_same_games_on_a_pool_in_small_batches(
    family_match: MatchState,
    executor: SerialExecutor | ReversedExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tokaido_env.arena.tournament.BATCH_SIZE", 6)
    match_state = MatchState("greedy", "random", 40, 3, FAMILY)
    play_remaining(match_state, make("greedy"), make("random"), executor=executor)
    assert same_games(match_state, family_match)


def test_executor_for__starts_processes_for_agents_of_one_game(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tokaido_env.arena.executors.base.cpus", lambda: 5)
    one, many = make("python:custom_agents:Dice"), make("python:custom_agents:HighestAtOnce")
    for a, b, workers in ((many, make("greedy"), 1), (one, many, 5), (many, one, 5)):
        with executor_for(a, b) as executor:
            assert executor.workers == workers
    with executor_for(one, one, SerialExecutor()) as executor:
        assert executor.workers == 1


def test_play_match__respects_the_games_at_once_of_an_agent() -> None:
    expected = play_match(Highest(), make("random"), 20, seed=1)
    for order in (1, -1):
        slow = Highest(games_at_once=6)
        a, b = (slow, make("random"))[::order]
        assert len(play_match(a, b, 20, seed=1).games) == 10
        assert max(slow.sizes) == 6
    assert (play_match(slow, make("random"), 20, seed=1).actions == expected.actions).all()


def test_play_match__prepares_agents_for_each_board_once() -> None:
    agent = Highest()
    match = play_match(agent, make("random"), 40, 3, FAMILY)
    used = {POOL[number].name for number in match.games["board"].reshape(-1).tolist()}
    assert sorted(agent.boards) == sorted(used)


# Parts of a match


def test_games_as_completed__plays_the_first_games_and_later_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = make("greedy"), make("random")
    match_state = MatchState(a.spec, b.spec, 20, 3, Board.load())
    play_remaining(match_state, a, b, games=8)
    assert match_state.finished.tolist() == [True] * 8 + [False] * 12
    assert match_state.to_match().results.shape == match_state.to_match(12).results.shape == (4, 2)
    assert match_state.to_match(4).results.shape == (2, 2)
    play_remaining(match_state, a, b)
    monkeypatch.setattr("tokaido_env.arena.game_runner.Batch", None)
    play_remaining(match_state, a, b)  # no game is left
    assert match_state.finished.all()


def test_replay_chunks__have_one_board_each(family_match: MatchState) -> None:
    seeds, board_index = family_match.games["seed"], family_match.games["board"]
    found = []
    for some, part in replay_chunks(POOL, seeds, family_match.actions, size=3):
        assert len(some) == len(part) <= 3
        assert {POOL[int(board_index[i])].name for i in some} == {part.board.name}
        alone = replay_actions(part.board, seeds[some], family_match.actions[some])
        assert part.states.tobytes() == alone.states.tobytes()
        found += some.tolist()
    assert sorted(found) == list(range(40))
    assert list(replay_chunks(POOL, seeds[:0], family_match.actions[:0])) == []
