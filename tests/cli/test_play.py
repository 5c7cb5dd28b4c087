"""`tokaido play --terminal`: whole games typed in, saved after every move, and what is refused."""

import io
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from tokaido_env import Game, record
from tokaido_env.__main__ import main
from tokaido_env.cli.play import _saying
from tokaido_env.cli.terminal import Terminal
from tokaido_env.core.actions import IDS
from tokaido_env.web.game_session import HUMAN, Session

Output = pytest.CaptureFixture[str]


def reader(lines: Iterable[str]) -> Callable[[str], str]:
    """What reads lines that are typed, then the end of input."""
    left = iter(lines)

    def read(prompt: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    return read


def typed(monkeypatch: pytest.MonkeyPatch, lines: Iterable[str]) -> None:
    monkeypatch.setattr("builtins.input", reader(lines))


def shown(session: Session, lines: Iterable[str], ask_forced: bool = False) -> str:
    """What a terminal shows while lines are typed."""
    out = io.StringIO()
    read = reader(lines)
    terminal = Terminal(session, advisor="greedy", ask_forced=ask_forced, out=out, read=read)
    assert terminal.run() == 0
    return out.getvalue()


def test_a_whole_game_is_played_by_numbers_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    file = tmp_path / "game.jsonl"
    asked = ["play", "--terminal", "--opponent", "greedy", "--save", str(file)]
    typed(monkeypatch, ["1"] * 1000)
    assert main([*asked, "--seed", "4"]) == 0
    told = capsys.readouterr().out
    assert "greedy wins" in told
    (kept,) = record.load(file)
    assert (kept.seed, kept.players, kept.end) == (4, (HUMAN, "greedy"), "triggers")
    game = Game(seed=4)
    for event in kept.events:
        if event in IDS:
            if game.player == 0:
                assert event == game.legal_labels()[0]
            game.play(event)
    assert game.is_over


def test_a_game_goes_on_where_it_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    file = tmp_path / "game.jsonl"
    asked = ["play", "--terminal", "--save", str(file)]
    typed(monkeypatch, ["1", "1", "1"])
    assert main([*asked, "--opponent", "greedy", "--seat", "1", "--seed", "4"]) == 0
    assert "the same command goes on" in capsys.readouterr().out
    (first,) = record.load(file)
    assert first.players == ("greedy", HUMAN)
    typed(monkeypatch, ["1", "1"])
    assert main(asked) == 0
    (second,) = record.load(file)
    assert len(second.events) > len(first.events)
    assert second.events[: len(first.events)] == first.events
    capsys.readouterr()
    assert main([*asked, "--seed", "4"]) == 1
    assert capsys.readouterr().err == (
        f"play: {file}: has a game, which goes on: --seed is for a new one\n"
    )
    assert record.load(file) == [second]


def test_choices_say_what_they_do() -> None:
    told = shown(Session((HUMAN, "greedy"), seed=7), ["1"])
    assert "   1  pilgrim         takes the pilgrim's 3 to C2\n" in told
    assert "   2  visit           gains 2 coins at C2\n" in told
    assert "human takes the pilgrim's 3 to C2" in told


def test_advice_odds_and_the_board_leave_the_game_as_it_is() -> None:
    session = Session((HUMAN, "greedy"), seed=7)
    events = session.game.events()
    told = shown(session, ["?", "o", "b", "h", "", "u", "merchant:X", "99", "0"])
    assert session.game.events() == events
    for line in (
        ": 100% of the choice\n",
        "  pilgrim   1 2 2 3 3 4\n",
        "take back your last choice",
        "there is nothing to take back",
        "illegal action 'merchant:X': legal are",
        "illegal action '99'",
    ):
        assert line in told
    assert told.count("Tokaido Duo · round 1") == 2


def test_a_choice_is_taken_back_and_a_game_begun_anew() -> None:
    session = Session((HUMAN, "greedy"), seed=7)
    events = session.game.events()
    shown(session, ["1", "2", "u", "u"])
    assert session.game.events() == events
    shown(session, ["1", "n"])
    assert session.game.rounds == 1
    assert len(session.game.events()) == len(events)
    assert session.game.events() != events


def test_a_table_brings_its_own_luck() -> None:
    session = Session((HUMAN, HUMAN), chance="explicit")
    told = shown(session, ["o", "boutique:C1=fan/2", "?", *["1"] * 11, "roll:1/2/3"])
    assert session.game.events()[0] == "boutique:C1=fan/2"
    assert session.game.phase.name == "MOVE"
    assert "advice is for decisions" in told
    assert "  30.8%  boutique:C1=" in told or "%  boutique:C1=fan/2" in told
    assert "such as roll:1/1/1" in told


def test_every_decision_is_asked_for_if_wanted() -> None:
    chosen, asked = [], 0
    session, rng = Session((HUMAN, HUMAN), seed=3), np.random.default_rng(0)
    while not session.game.is_over:
        asked += 1
        label = str(rng.choice(session.game.legal_labels()))
        if not session.is_forced:
            chosen.append(label)
        session.play(label)
    assert len(chosen) < asked
    again = Session((HUMAN, HUMAN), seed=3)
    shown(again, chosen)
    assert again.game == session.game
    stopped = Session((HUMAN, HUMAN), seed=3)
    shown(stopped, chosen, ask_forced=True)
    assert not stopped.game.is_over


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--opponent", "nobody"], "unknown agent 'nobody'"),
        (["--board", "atlantis"], "atlantis"),
        (["--seed", "-1"], "seed: expected an integer from 0"),
        (["--save", "no/such/folder.jsonl"], "there is no folder"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(options: list[str], error: str, capsys: Output) -> None:
    assert main(["play", "--terminal", *options]) == 1
    told = capsys.readouterr().err
    assert told.startswith("play: ")
    assert error in told
    assert told.count("\n") == 1


def test_a_record_names_no_code_to_run(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "game.jsonl"
    asked = ["play", "--terminal", "--save", str(file)]
    record.save([Game(seed=1).record((HUMAN, "python:os:system"))], file)
    assert main(asked) == 1
    assert "python:os:system" in capsys.readouterr().err
    record.save([], file)
    assert main(asked) == 1
    assert "expected a game to go on with, got none" in capsys.readouterr().err
    file.write_text("{}\n")
    assert main(asked) == 1
    assert "line 1" in capsys.readouterr().err
    assert file.read_text() == "{}\n"


def test_games_stay_in_the_file_and_the_last_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    file = tmp_path / "game.jsonl"
    asked = ["play", "--terminal", "--opponent", "greedy", "--save", str(file)]
    typed(monkeypatch, ["1", "1", "n", "1", "resign"])
    assert main([*asked, "--seed", "4"]) == 0
    assert "human resigns: greedy wins" in capsys.readouterr().out
    first, second = record.load(file)
    assert (first.seed, first.winner, second.winner) == (4, None, 1)
    assert second.forfeit == record.Forfeit(0, record.RESIGNED)
    typed(monkeypatch, ["n", "1"])
    assert main(asked[:2] + asked[4:]) == 0
    assert record.load(file)[:2] == [first, second]


def test_what_takes_long_is_told(capsys: Output) -> None:
    with _saying("soon", after=0.0):
        time.sleep(0.1)
    with _saying("never", after=60.0):
        pass
    assert capsys.readouterr().err == "soon\n"
