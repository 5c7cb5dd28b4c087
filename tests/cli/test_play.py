"""Tests of `tokaido play --terminal`: typed games, saved games, and refused input."""

import io
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import check_refused
from test_files import held_elsewhere

from tokaido_env import Board, Game, record
from tokaido_env.__main__ import main
from tokaido_env.agent import Agent
from tokaido_env.cli.terminal import Terminal
from tokaido_env.core.actions import IDS
from tokaido_env.web.game_file import GameFile
from tokaido_env.web.game_session import HUMAN, Session
from tokaido_env.web.live_game import LiveGame

Output = pytest.CaptureFixture[str]


def reader(lines: Iterable[str]) -> Callable[[str], str]:
    """Return a function that returns the lines in turn, then raises the end of input."""
    left = iter(lines)

    def read(prompt: str) -> str:
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    return read


def typed(monkeypatch: pytest.MonkeyPatch, lines: Iterable[str]) -> None:
    monkeypatch.setattr("builtins.input", reader(lines))


def terminal_output(session: Session, lines: Iterable[str]) -> str:
    """Return the output of a terminal after some typed lines."""
    return terminal_after(session, lines)[1]


def terminal_after(session: Session, lines: Iterable[str]) -> tuple[Terminal, str]:
    """Return a terminal after some typed lines, and its output."""
    out = io.StringIO()
    terminal = Terminal(session, advisor="greedy", out=out, read=reader(lines))
    assert terminal.run() == 0
    return terminal, out.getvalue()


def test_play__saves_a_game_typed_as_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    file = tmp_path / "game.jsonl"
    asked = ["play", "--terminal", "--opponent", "greedy", "--save", str(file)]
    typed(monkeypatch, ["1"] * 1000)
    assert main([*asked, "--seed", "4"]) == 0
    assert "greedy wins" in capsys.readouterr().out
    (kept,) = record.load(file)
    assert (kept.seed, kept.players, kept.end) == (4, (HUMAN, "greedy"), "triggers")
    game = Game(seed=4)
    for event in kept.events:
        if event in IDS:
            if game.player == 0:
                assert event == game.legal_labels()[0]
            game.play(event)
    assert game.is_over


def test_terminal__names_the_error_of_an_agent_and_goes_on() -> None:
    class Failing(Agent):
        spec = "failing"

        def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> Any:
            raise RuntimeError("no model")

    out = terminal_output(Session((HUMAN, Failing()), seed=4), ["1"] * 30 + ["u", "q"])
    assert "failing: RuntimeError: no model; u takes your move back, q quits" in out


def test_terminal__goes_on_without_advice_or_a_saved_file(tmp_path: Path) -> None:
    out, gone = io.StringIO(), GameFile(tmp_path / "gone" / "game.jsonl")
    session = Session((HUMAN, HUMAN), seed=4)
    lines = ["?", "1", "q"]
    assert Terminal(session, gone, "python:gone:Bot", out=out, read=reader(lines)).run() == 0
    printed = out.getvalue()
    assert "no advice: agent 'python:gone:Bot'" in printed
    assert "not saved: " in printed
    assert "saved in" not in printed
    assert session.decisions == 1


def stopped_after(lines: Iterable[str]) -> Callable[[str], str]:
    """Return as `reader` a function that ends with Ctrl-C."""
    left = iter(lines)

    def read(prompt: str) -> str:
        for line in left:
            return line
        raise KeyboardInterrupt

    return read


def test_play__same_command_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """Also after a new game in the terminal, and with agents that a record file may not name."""
    source = tmp_path / "source.jsonl"
    record.save([play_labels(5).record(("a", "b"))], source)
    board = tmp_path / "mine.toml"
    board.write_text(Board.load().to_toml().replace('"shikoku"', '"mine"', 1), encoding="utf-8")
    commands = (
        ["--physical", "--seed", "4", "--opponent", "greedy"],
        ["--seed", "4", "--opponent", "greedy", "--seat", "1"],
        ["--opponent", "greedy:epsilon=0.50"],
        ["--opponent", "human", "--player", "human", "--board", "shikoku_ring"],
        ["--opponent", "python:custom_agents:Dice", "--board", "family:train/50", "--seed", "3"],
        ["--opponent", "random", "--board", str(board)],
        ["--opponent", "random", "--from", str(source), "--at", "30", "--seed", "8"],
    )
    for number, options in enumerate(commands):
        file = tmp_path / f"{number}.jsonl"
        asked = ["play", "--terminal", *options, "--save", str(file)]
        new_game = ["n", "y"] if "--from" not in options else []
        monkeypatch.setattr("builtins.input", stopped_after([*["1"] * 14, *new_game]))
        assert main(asked) == 0, options
        assert "the same command resumes the game" in capsys.readouterr().out
        first = record.load(file, board if "mine" in str(options) else None)
        assert len(first) == 1 + ("n" in new_game)
        monkeypatch.setattr("builtins.input", stopped_after(["1"] * 12))
        assert main(asked) == 0, (options, capsys.readouterr().err)
        second = record.load(file, board if "mine" in str(options) else None)
        assert (second[:-1], second[-1].players) == (first[:-1], first[-1].players)
        assert second[-1].events[: len(first[-1].events)] == first[-1].events
        assert len(second[-1].events) > len(first[-1].events)


def play_labels(seed: int) -> Game:
    game = Game(seed=seed)
    for _ in range(20):
        game.play(game.legal_labels()[0])
    return game


def test_play__names_the_options_that_differ(tmp_path: Path, capsys: Output) -> None:
    """They are those of no game of the file."""
    sampled, physical, source = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    record.save([Game(seed=4).record((HUMAN, "greedy"))], sampled)
    record.save([Game(chance="explicit").record((HUMAN, HUMAN))], physical)
    record.save([play_labels(5).record()], source)
    cases: tuple[tuple[Path, list[str]], ...] = (
        (sampled, ["--seed", "5"]),
        (sampled, ["--seat", "1"]),
        (sampled, ["--seat", "1", "--opponent", "greedy"]),
        (sampled, ["--opponent", "random"]),
        (sampled, ["--opponent", "human"]),
        (sampled, ["--player", "random"]),
        (sampled, ["--physical"]),
        (sampled, ["--board", "shikoku_ring"]),
        (sampled, ["--from", str(source)]),
        (physical, ["--seed", "5"]),
        (physical, ["--opponent", "greedy"]),
    )
    for file, options in cases:
        before = file.read_bytes()
        error = f"{options[0]}: {file} has no such game"
        check_refused(capsys, ["play", "--terminal", *options, "--save", str(file)], error)
        assert file.read_bytes() == before


def test_play__locks_the_file_of_its_games(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "two.jsonl"
    for _ in ("a new file", "a file with a game"):
        with held_elsewhere(file):
            refused = "two.jsonl: another command is working on it"
            check_refused(capsys, ["play", "--terminal", "--save", str(file)], refused)
        record.save([Game(seed=4).record((HUMAN, "greedy"))], file)


def test_play__starts_from_a_position_of_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    source, file = tmp_path / "source.jsonl", tmp_path / "game.jsonl"
    game = play_labels(5)
    record.save([Game(seed=1).record(), game.record()], source)
    asked = ["play", "--terminal", "--opponent", "greedy", "--from", str(source)]
    typed(monkeypatch, [])
    assert main([*asked, "--at", "14", "--save", str(file)]) == 0
    (kept,) = record.load(file)
    assert kept.start == game.trajectory().position(14)
    assert kept.players == (HUMAN, "greedy")
    capsys.readouterr()
    check_refused(
        capsys, [*asked, "--at", "400"], f"--at: expected 0 to {len(game.events())} event"
    )
    check_refused(capsys, [*asked[:-2], "--at", "4"], "--at: expected together with --from")
    check_refused(capsys, [*asked, "--save", str(source)], "is read too")


def test_page__offers_a_game_unless_one_was_given(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    server = pytest.importorskip("tokaido_env.web.server")
    served: list[tuple[bool, socket.socket]] = []

    def serve(game: LiveGame, listener: socket.socket, token: str) -> None:
        served.append((game.state()["is_chosen"], listener))
        game.close()

    monkeypatch.setattr(server, "serve", serve)
    for options, is_chosen in ((), False), (("--seed", "3"), True), (("--physical",), True):
        assert main(["play", "--no-browser", *options]) == 0
        assert served[-1][0] is is_chosen
        assert f":{served[-1][1].getsockname()[1]}/#" in capsys.readouterr().out
    assert len({one.getsockname()[1] for _, one in served}) == 3  # as the others are in use
    for _, listener in served:
        listener.close()


def test_terminal__prints_advice_and_errors_without_changing_the_game() -> None:
    session = Session((HUMAN, "greedy"), seed=7)
    events = session.game.events()
    out = terminal_output(session, ["?", "b", "h", "", "u", "merchant:X", "99", "0"])
    assert session.game.events() == events
    for line in (
        "   1  pilgrim         C2 · +2 coins\n",
        ": preference 100 %\n",
        "undo your last choice",
        "there is nothing to undo",
        "illegal action 'merchant:X'",
        "illegal action '99'",
    ):
        assert line in out
    assert out.count("Tokaido Duo · round 1") == 2


def test_terminal__undoes_choices_and_starts_a_new_game() -> None:
    session = Session((HUMAN, "greedy"), seed=7)
    events = session.game.events()
    terminal_output(session, ["1", "2", "u", "u"])
    assert session.game.events() == events
    out = terminal_output(session, ["1", "n", "no"])
    assert "the game continues" in out
    assert session.decisions
    then = terminal_after(session, ["n", "y"])[0].session
    assert (then.game.rounds, then.names, then.agents) == (1, session.names, session.agents)
    assert then.game.board is session.game.board
    assert len(then.game.events()) == len(events)
    assert then.game.events() != events


def test_terminal__asks_for_the_outcomes_of_a_physical_game() -> None:
    session = Session((HUMAN, HUMAN), chance="explicit")
    out = terminal_output(session, ["boutique:C1=fan/2", "?", *["1"] * 11, "roll:1/2/3"])
    assert session.game.events()[0] == "boutique:C1=fan/2"
    assert session.game.phase.name == "MOVE"
    assert "cannot advise: no player is to move" in out
    assert "such as roll:1/1/1" in out


def test_terminal__plays_forced_moves() -> None:
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
    terminal_output(again, chosen)
    assert again.game == session.game


def test_play__runs_no_code_named_in_a_record(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "game.jsonl"
    asked = ["play", "--terminal", "--save", str(file)]
    record.save([Game(seed=1).record((HUMAN, "python:os:system"))], file)
    assert main(asked) == 1
    assert "python:os:system" in capsys.readouterr().err
    record.save([], file)
    assert main(asked) == 1
    assert "expected a game to resume, got none" in capsys.readouterr().err
    file.write_text("{}\n")
    assert main(asked) == 1
    assert "line 1" in capsys.readouterr().err
    assert file.read_text() == "{}\n"


def test_play__keeps_earlier_games_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    file = tmp_path / "game.jsonl"
    asked = ["play", "--terminal", "--opponent", "greedy", "--save", str(file)]
    typed(monkeypatch, ["1", "1", "n", "y", "1", "resign"])
    assert main([*asked, "--seed", "4"]) == 0
    assert "human resigns: greedy wins" in capsys.readouterr().out
    first, second = record.load(file)
    assert (first.seed, first.winner, second.winner) == (4, None, 1)
    assert second.forfeit == record.Forfeit(0, record.RESIGNED)
    typed(monkeypatch, ["n", "1"])
    assert main(asked[:2] + asked[4:]) == 0
    assert record.load(file)[:2] == [first, second]
