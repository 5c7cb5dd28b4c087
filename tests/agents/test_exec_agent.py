"""Programs as agents: they play, fail with a reason, end with their processes, and are refused."""

import copy
import json
import os
import pickle
import re
import select
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matches import play_remaining
from processes import ROOT, wait_for_end

from tokaido_env import Game
from tokaido_env.__main__ import main
from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents import exec_agent, make
from tokaido_env.agents.line_process import ProcessFailure
from tokaido_env.agents.registry import parse_named_agent
from tokaido_env.arena.executors import open_executor
from tokaido_env.arena.tournament import MatchState
from tokaido_env.boards.board import Board

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes to poll")

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def bot(how: str, *more: object) -> str:
    """Return the spec of a program that answers right as player_0, as player_1 it fails."""
    words = sys.executable, "-S", ROOT / "tests" / "line_bot.py", how, *more
    return f"exec:{shlex.join(map(str, words))}"


def player(spec: str, seconds: float | None = None) -> Any:
    made: Any = make(spec)
    made.wrapped.seconds = seconds
    return made.wrapped


def game_of(seat: int) -> Game:
    game = Game(seed=1)
    while game.player != seat:
        game.play(game.legal_actions()[0])
    return game


def choose(program: Any, seat: int) -> int:
    return int(program.choose(game_of(seat), np.random.default_rng(5)))


def play(spec: str, board: Path, executor: str = "serial") -> MatchState:
    """Play four games of an agent against `random`."""
    match_state = MatchState(spec, "random", 4, 1, Board.load(board))
    with open_executor(executor) as chosen:
        play_remaining(match_state, make(spec), make("random"), executor=chosen)
    assert match_state.finished.all()
    return match_state


# Failures

ONE_LINE = "expected one line per request, got "


@pytest.mark.parametrize(
    ("how", "reason", "detail"),
    [
        ("exits", "exit", "its process ended with status 3"),
        ("closes", "exit", "its process closed its input or output"),
        ("hangs", "time", "no answer in 0.5 s"),
        ("floods stderr", "time", "no answer in 0.5 s"),
        ("no line end", "time", 'no answer in 0.5 s, only \'{"action": '),
        ("floods", "illegal", "an answer of more than 65,536 bytes"),
        ("garbage", "illegal", "expected a line such as"),
        ("bytes", "illegal", "expected a line such as"),
        ("illegal", "illegal", "illegal action 'discard:fan': legal are "),
        ("twice", "illegal", ONE_LINE),
    ],
)
def test_choose__reports_the_cause_and_standard_error(how: str, reason: str, detail: str) -> None:
    program = player(bot(how))
    choose(program, 0)
    program.seconds = 0.5 if reason == "time" else 30.0
    with pytest.raises(ProcessFailure) as failure:
        choose(program, 1)
    assert failure.value.reason == reason
    assert failure.value.detail.startswith(detail)
    noise = "noise | noise" if how == "floods stderr" else f"; stderr: first | about to: {how}"
    assert noise in failure.value.detail
    assert len(failure.value.detail) <= 300
    assert str(failure.value).startswith(("agent 'exec:", 'agent "exec:'))
    program.seconds = None
    assert choose(program, 0) in game_of(0).legal_actions()  # started again


def test_choose__ignores_empty_lines() -> None:
    assert choose(player(bot("blank")), 1) in game_of(1).legal_actions()


def test_choose__reports_a_second_answer_that_comes_later() -> None:
    program = player(bot("twice, later"))
    choose(program, 1)
    select.select([program.process._output], [], [], 30.0)
    with pytest.raises(ProcessFailure, match=ONE_LINE):
        choose(program, 0)


def test_start__needs_an_answer_of_this_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    for spec, message in (
        (bot("mute"), "no answer in 0.5 s"),
        (bot("newer"), "expected protocol 1, got 2"),
        ("exec:cat", 'expected a line such as {"protocol": 1}, got \'{"type": "hello"'),
        ("exec:true", "its process ended with status 0"),
    ):
        monkeypatch.setattr(exec_agent, "START_SECONDS", 0.5 if "mute" in spec else 60.0)
        with pytest.raises(AgentError) as error:
            choose(player(spec), 0)
        assert not isinstance(error.value, ProcessFailure)  # so that it forfeits no game
        assert message in str(error.value)


@pytest.mark.parametrize("executor", ["serial", "processes:1"])
def test_match__forfeits_only_the_games_in_which_a_program_fails(
    short: Path, executor: str
) -> None:
    match_state = play(bot("illegal"), short, executor)
    assert sorted(match_state.forfeits) == [1, 3]
    assert {forfeit.reason for forfeit in match_state.forfeits.values()} == {"illegal"}
    assert match_state.games["result"][[1, 3]].tolist() == [0.0, 0.0]


def test_evaluate__reports_forfeits_and_keeps_records_of_one_limit(
    short: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["evaluate", f"Wrong={bot('illegal')}", "random", "--games", "4", "--board", str(short)]
    words += ["--records", str(tmp_path / "games.jsonl"), "--move-seconds"]
    assert main([*words, "60"]) == 0
    reported = (
        "of 4 games of Wrong against random on shikoku ended by forfeit, the first by illegal:"
    )
    assert reported in capsys.readouterr().err
    assert main([*words, "50"]) == 1
    assert " illegal --move-seconds 50' with SHA-256" in capsys.readouterr().err


RUNNER = ROOT / "agents" / "python_program.py"


@LINUX
@pytest.mark.parametrize(
    ("agent", "found"),
    [
        pytest.param("Dies", "its process ended with status 3", marks=pytest.mark.slow),
        ("Eats 2048", "MemoryError"),
    ],
)
def test_python_program__forfeits_the_games_in_which_a_python_agent_fails(
    short: Path, monkeypatch: pytest.MonkeyPatch, agent: str, found: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT / "tests"))))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    spec = f"exec:{shlex.join([sys.executable, str(RUNNER)])} custom_agents:{agent}"
    forfeits = play(spec, short).forfeits
    assert {1, 3} <= set(forfeits)
    assert {forfeit.reason for forfeit in forfeits.values()} == {"exit"}
    assert all(found in forfeit.detail for forfeit in forfeits.values())


def test_python_program__plays_the_agent(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT / "tests"))))
    spec = f"exec:{shlex.join([sys.executable, str(RUNNER)])} custom_agents:Highest"
    expected = play("python:custom_agents:Highest", short)
    assert (play(spec, short).actions == expected.actions).all()


@LINUX
def test_failure__ends_all_processes_of_a_program(tmp_path: Path) -> None:
    path = tmp_path / "processes"
    with pytest.raises(ProcessFailure, match=r"no answer in 0\.5 s"):
        choose(player(bot("forks", path), 0.5), 1)
    assert len(path.read_text().split()) == 2
    wait_for_end(path.read_text().split())


# Games


def test_choose__sends_the_board_once_and_whole_positions(tmp_path: Path) -> None:
    program = player(bot("logs", tmp_path / "log"), 60.0)
    for seat in (0, 1):
        choose(program, seat)
    hello, board, *decisions = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert hello == {"type": "hello", "protocols": [1], "rules": 2, "seconds": 60.0}
    known = Board.load()
    assert board == {"type": "board", "board_hash": known.hash, "board": known.to_dict()}
    seed = int(np.random.default_rng(5).integers(2**53))
    for seat, decision in enumerate(decisions):
        game = game_of(seat)
        assert decision == {
            **{"type": "decide", "board_hash": known.hash, "position": game.to_dict()},
            **{"legal": game.legal_labels(), "seed": seed, "seconds": 60.0},
        }
    assert len(decisions) == 2


def test_copy__starts_a_program_of_its_own() -> None:
    program = player(bot("plays"))
    choose(program, 0)
    for other in (copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        assert choose(other, 0) == choose(program, 0)
        assert other.process._process.pid != program.process._process.pid


# Specs


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("true --depth=2 a,b=c", ["true", "--depth=2", "a,b=c"]),
        (" true 'x y' \"z\"", ["true", "x y", "z"]),
        ("true ~/x", ["true", str(Path.home() / "x")]),
    ],
)
def test_make__splits_a_command_as_a_shell_does(command: str, words: list[str]) -> None:
    agent: Any = make(f"exec:{command}")
    assert isinstance(agent, Agent)
    assert agent.wrapped._words == words
    assert agent.spec == f"exec:{command}"
    assert parse_named_agent(f"Bot=exec:{command}") == ("Bot", agent.spec)
    assert parse_named_agent(agent.spec) == (agent.spec, agent.spec)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("exec:", "exec:PROGRAM [ARGS]"),
        ("exec:no-such-program", "no-such-program"),
        (f"exec:{__file__}", "chmod +x"),
        ("exec:true 'x", "No closing quotation"),
        ("exec:true " + "x" * 1000, "at most 1000 characters"),
    ],
)
def test_make__refuses_what_is_no_program(spec: str, name: str) -> None:
    with pytest.raises(AgentError, match=re.escape(name)):
        make(spec)
