"""Matches, records and ladders on pools: each game is that of its own board, played alone."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matches import finished, played_alone, same
from twice import Twice

from tokaido_env import Board, BoardError, Game
from tokaido_env.agents import Agent, make
from tokaido_env.arena.executors import SerialExecutor
from tokaido_env.arena.ladder import (
    FAMILY_LADDER,
    LADDER,
    Ladder,
    LadderError,
    ladder_for,
    make_ladder,
)
from tokaido_env.arena.match import SCORE_KEYS, Match
from tokaido_env.arena.records import RecordFile, records_of
from tokaido_env.arena.tournament import MatchState, play_match, play_remaining
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.core.rng import arena_seed
from tokaido_env.record import RecordError, load
from tokaido_env.trajectory import replay_actions, replay_chunks

SPEC = "family:test/5"
POOL = BoardPool.load(SPEC)


def played(games: int = 40, seed: int = 3, a: str = "greedy", b: str = "random") -> MatchState:
    match_state = MatchState(a, b, games, seed, SPEC)
    play_remaining(match_state, make(a), make(b))
    return match_state


@pytest.fixture(scope="module")
def whole() -> MatchState:
    return played()


# Matches


def test_each_pair_is_two_games_on_the_board_of_its_seed(whole: MatchState) -> None:
    """Against `Game`, which draws its board itself, with the keys that a match gives."""
    agents, seen = (make("greedy"), make("random")), set()
    for number, game in enumerate(whole.games[:16]):
        seed, swapped = int(arena_seed(3, number // 2)), number % 2
        alone = played_alone(agents[::-1] if swapped else agents, seed, SPEC)
        assert alone.board.name == POOL.board_of_seed(seed).name
        assert alone.board.name == POOL[int(game["board"])].name
        scores = alone.scores()[::-1] if swapped else alone.scores()
        assert game["points"].tolist() == [[one[key] for key in SCORE_KEYS[:3]] for one in scores]
        assert int(game["seed"]) == seed
        seen.add(alone.board.name)
    assert len(seen) > 2


@pytest.mark.parametrize("executor", [SerialExecutor(), Twice()])
def test_neither_batches_nor_executors_make_a_difference(
    whole: MatchState, executor: SerialExecutor | Twice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokaido_env.arena.tournament.BATCH_SIZE", 6)
    match_state = MatchState("greedy", "random", 40, 3, SPEC)
    play_remaining(match_state, make("greedy"), make("random"), executor=executor)
    assert same(match_state, whole)


def test_a_pool_travels_to_other_processes_as_it_is() -> None:
    """Boards that no other process could make."""
    boards = [Board.load(), Board.load("shikoku_ring"), *POOL]
    pool = BoardPool("ours", boards, drawn=True)
    few = play_match(make("greedy"), make("random"), 24, 0, pool)
    many = play_match(make("greedy"), make("random"), 24, 0, pool, executor=Twice())
    assert (few.games == many.games).all()
    assert (few.actions == many.actions).all()
    assert len(np.unique(few.games["board"])) > 3


class Told(Agent):
    """Plays the first legal action and keeps of which boards it heard."""

    spec = "told"

    def __init__(self) -> None:
        self.boards: list[str] = []

    def prepare(self, boards: Sequence[Board]) -> None:
        self.boards += [board.name for board in boards]

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
        return np.array([(int(mask) & -int(mask)).bit_length() - 1 for mask in legal])


def test_agents_hear_of_the_boards_once_each() -> None:
    agent = Told()
    match = play_match(agent, make("random"), 40, 3, SPEC)
    used = {POOL[number].name for number in match.games["board"].reshape(-1).tolist()}
    assert sorted(agent.boards) == sorted(used)


def test_boards_that_are_not_drawn_are_refused() -> None:
    with pytest.raises(BoardError, match="expected one board or a pool such as family:train"):
        play_match(make("greedy"), make("random"), 2, 0, ["shikoku", "family:1"])


def test_parts_are_of_one_board_each(whole: MatchState) -> None:
    seeds, which = whole.games["seed"], whole.games["board"]
    found = []
    for some, part in replay_chunks(POOL, seeds, whole.actions, size=3):
        assert len(some) == len(part) <= 3
        assert {POOL[int(which[i])].name for i in some} == {part.board.name}
        alone = replay_actions(part.board, seeds[some], whole.actions[some])
        assert part.states.tobytes() == alone.states.tobytes()
        found += some.tolist()
    assert sorted(found) == list(range(40))
    assert list(replay_chunks(POOL, seeds[:0], whole.actions[:0])) == []


# Records


def test_each_record_names_its_board_and_needs_no_pool(whole: MatchState, tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    records = RecordFile(path, [whole])
    records.append(whole, finished(whole))
    read = load(path)
    assert read == load(path, SPEC)
    for record, game in zip(read, whole.games, strict=True):
        board = POOL[int(game["board"])]
        assert (record.board, record.board_hash) == (board.name, board.hash)
        again = Game(board=SPEC, seed=record.seed)
        assert again.board.hash == record.board_hash
        for event in record.events:
            if event in {label for label in again.legal_labels()}:
                again.play(event)
        assert again.record(record.players) == record
    assert len({record.board for record in read}) == 5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"board": "(family:[0-9]+)"', '"board": "shikoku"', "a game on board 'shikoku'"),
        ('"board": "(family:[0-9]+)"', '"board": "family:3"', "a game on board 'family:3' .*'fam"),
        ('"board": "(family:[0-9]+)"', '"board": "family:abc"', "on board 'family:abc'"),
        ('"board_hash": "[0-9a-f]+"', f'"board_hash": "{"0" * 16}"', r"\(0000.* are on 'family:2"),
        ('"seed": [0-9]+', '"seed": 5', "on 'family:[0-9]+', seed 5, is no game of these matches"),
    ],
)
def test_what_is_no_game_on_these_boards_is_refused(
    whole: MatchState, tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "games.jsonl"
    (record,) = records_of(whole, np.array([0]))
    path.write_text(re.sub(old, new, record.to_json()) + "\n", encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(RecordError, match=f"line 1: .*{message}"):
        RecordFile(path, [MatchState("greedy", "random", 40, 3, SPEC)])
    assert path.read_bytes() == before


def test_a_game_on_another_board_of_the_pool_is_no_game_of_its_seed(
    whole: MatchState, tmp_path: Path
) -> None:
    path = tmp_path / "games.jsonl"
    game = whole.games[0]
    other = POOL[(int(game["board"]) + 1) % 5]
    alone = MatchState.from_pairs(
        "greedy", "random", BoardPool.load(other), game["seed"].reshape(1), np.zeros(1, np.int64)
    )
    play_remaining(alone, make("greedy"), make("random"))
    (record,) = records_of(alone, np.array([0]))
    path.write_text(record.to_json() + "\n", encoding="utf-8")
    with pytest.raises(RecordError, match=f"on '{other.name}', seed .* is no game of these"):
        RecordFile(path, [MatchState("greedy", "random", 40, 3, SPEC)])


# Ladders


def test_which_ladder_is_for_which_boards() -> None:
    assert ladder_for(BoardPool.load()) == LADDER
    assert ladder_for(BoardPool.load("shikoku_ring")) == LADDER
    for spec in ("family:7", "family:train/1000", "family:valid"):
        assert ladder_for(BoardPool.load(spec)) == FAMILY_LADDER


def test_the_ladder_of_the_family_is_on_boards_to_choose_by() -> None:
    ladder = Ladder.load(FAMILY_LADDER, "family:train/10")
    assert (ladder.board, ladder.pool.name, len(ladder.pool)) == ("family:valid",) * 2 + (100,)
    assert ladder.board_hash == BoardPool.load("family:valid").hash
    assert {"random", "greedy", "heuristic", "mcts:sims=400", "champion"} <= {
        rating.agent for rating in ladder.agents
    }
    assert ladder == Ladder.load(FAMILY_LADDER)


def ladder_on(board: str, path: Path) -> Ladder:
    def two(a: str, b: str, games: int, seed: int) -> Match:
        return play_match(make(a), make(b), games, seed, board)

    return make_ladder(["random", "greedy"], lambda a, b: 20, 0, board, two, path)


def test_a_ladder_on_a_pool(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    made = ladder_on(SPEC, path)
    assert (made.board, made.board_hash) == (SPEC, POOL.hash)
    before = path.read_bytes()
    assert ladder_on(SPEC, path) == made
    assert path.read_bytes() == before
    for board in (None, SPEC, "family:train/3", "family:7"):
        assert Ladder.load(path, board).pool.name == SPEC
    with pytest.raises(LadderError, match=r"board_hash: .* of 'shikoku'.* on another board"):
        Ladder.load(path, "shikoku")
    with pytest.raises(LadderError, match=r"board_hash: .* of 'family:test/6'.* on another board"):
        ladder_on("family:test/6", path)
    assert path.read_bytes() == before


def test_a_file_does_not_make_a_reader_wait_for_boards(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    ladder = ladder_on(SPEC, path).to_dict()
    from tokaido_env.arena.ladder import content_hash

    ladder["board"] = "family:train/100000"
    body = {key: value for key, value in ladder.items() if key != "hash"}
    path.write_text(json.dumps(body | {"hash": content_hash(body)}), encoding="utf-8")
    for board in (None, "family:3"):
        with pytest.raises(LadderError, match=r"at most 1,000 boards.*100,000 boards"):
            Ladder.load(path, board)
