"""Tests of web/game_file.py: games are appended, and the game in progress is the last line."""

import os
from pathlib import Path

import pytest

from tokaido_env import record
from tokaido_env.web.game_file import GameFile
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame


def played(session: Session, decisions: int) -> Session:
    for _ in range(decisions):
        session.play(session.game.legal_labels()[0])
    return session


def test_file__keeps_every_other_line_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    session = Session((HUMAN, HUMAN), seed=1)
    first, foreign = played(session, 3).record(), Session((HUMAN, HUMAN), seed=2).record()
    path.write_text(first.to_json())  # without an end of line
    file = GameFile(path)
    file.save(foreign)
    assert record.load(path) == [first, foreign]
    file = GameFile(path, resumes=True)
    second = Session.from_record(foreign, (HUMAN, HUMAN))
    for length in (4, 2):  # after an undo it is shorter
        file.save(played(second, length).record())
        assert record.load(path) == [first, second.record()]
    with path.open("a") as appended:  # by another program
        appended.write(first.to_json() + "\n")
    file.save(played(second, 1).record())
    assert record.load(path)[2:] == [first, second.record()]
    file.start_game()
    file.save(foreign)
    assert len(record.load(path)) == 5


def test_file__has_its_last_state_after_a_failed_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, session = tmp_path / "games.jsonl", Session((HUMAN, HUMAN), seed=1)
    file = GameFile(path)
    file.save(session.record())
    before, fsync = path.read_bytes(), os.fsync

    def full(number: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        file.save(played(session, 2).record())
    assert path.read_bytes() == before
    file.save(session.record())
    assert record.load(path) == [session.record()]


def test_live_game__keeps_games_with_decisions_once(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    path.write_text(Session((HUMAN, HUMAN), seed=1).record().to_json() + "\n")
    live_game = LiveGame(Session((HUMAN, HUMAN), seed=3), GameFile(path))
    live_game.command("new_game", {"seed": 4})  # without a decision: not kept
    live_game.command("new_game", {"seed": 5})
    for _ in range(2):
        state = live_game.state()
        move, length = state["choices"][0]["label"], len(state["log"])
        live_game.command("play", {"move": move, "log_length": length})
        line = live_game.query("record", {})
    live_game.command("load_record", {"record": line})  # the same game goes on
    live_game.command("resign", {})
    live_game.command("continue_from", {"at": 13})
    live_game.close()
    saved = record.load(path)
    assert [one.seed for one in saved] == [1, 5, 5]
    assert [one.forfeit is None for one in saved] == [True, False, True]
