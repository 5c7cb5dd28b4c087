"""A game is simulated once: who plays keeps what the match, its records and its luck need."""

from pathlib import Path
from typing import Any

import pytest
from matches import play_recorded

from tokaido_env import trajectory
from tokaido_env.agents import make
from tokaido_env.arena.records import RecordFile
from tokaido_env.arena.tournament import MatchState, play_remaining
from tokaido_env.batch import Batch

GAMES = 20


@pytest.mark.parametrize("luck", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_games_are_played_once_and_passed_through_once_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: bool, luck: bool
) -> None:
    """None is passed through again where nobody asks for its events or its luck."""
    moves, passed = 0, 0
    advance, play_all = Batch.advance, trajectory._play_all

    def count_moves(self: Batch, games: Any, chosen: Any, **options: Any) -> None:
        nonlocal moves
        moves += len(games)
        advance(self, games, chosen, **options)

    def count_games(offsets: Any, first: int, *rest: Any) -> int:
        nonlocal passed
        last = play_all(offsets, first, *rest)
        passed += last - first
        return last

    monkeypatch.setattr(Batch, "advance", count_moves)
    monkeypatch.setattr(trajectory, "_play_all", count_games)
    match_state = MatchState("greedy", "random", GAMES, 3, "shikoku")
    match_state.with_luck = luck
    if recorded:
        records = RecordFile(tmp_path / "games.jsonl", [match_state])
        play_recorded(records, match_state, make("greedy"), make("random"))
    else:
        play_remaining(match_state, make("greedy"), make("random"))
    assert moves == match_state.games["decisions"].sum()
    assert passed == (GAMES if recorded or luck else 0)


def test_what_was_noted_while_playing_is_what_a_replay_of_the_records_finds(tmp_path: Path) -> None:
    match_state, again = (
        MatchState("greedy", "random", GAMES, 3, "family:test/5") for _ in range(2)
    )
    match_state.with_luck = again.with_luck = True
    path = tmp_path / "games.jsonl"
    records = RecordFile(path, [match_state])
    play_recorded(records, match_state, make("greedy"), make("random"))
    del records
    assert RecordFile(path, [again]).loaded == GAMES
    assert (again.games == match_state.games).all()
    assert (match_state.games["luck"] != 0).all()
