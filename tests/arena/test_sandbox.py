"""Tests of arena/sandbox.py: failures forfeit games, processes end, forfeits in records."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matches import play_recorded
from processes import ROOT, wait_for_end

from tokaido_env.agent import AgentError
from tokaido_env.agents import make
from tokaido_env.agents.line_process import ProcessFailure
from tokaido_env.arena.executors import open_executor
from tokaido_env.arena.executors.base import SerialExecutor
from tokaido_env.arena.game_runner import Forfeits
from tokaido_env.arena.match import Match
from tokaido_env.arena.records import RecordFile, merge_records, read_records
from tokaido_env.arena.sandbox import Limits, SandboxedAgent, check_limits, make_sandboxed
from tokaido_env.arena.tournament import MatchState, play_match, play_remaining
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import IDS
from tokaido_env.core.serialization import result_of
from tokaido_env.record import Forfeit, Record, RecordError, load, replay
from tokaido_env.trajectory import replay_labels

BOARD = Board.load()
LIMITS = Limits(seconds=5.0, memory=256)


def sandboxed_match(
    agent: str, *, executor: str = "serial", limits: Limits = LIMITS, games: int = 2
) -> tuple[Match, Forfeits]:
    """Play a sandboxed agent as `a` against `random`; return the match and its forfeits."""
    own = make_sandboxed(f"python:custom_agents:{agent}", limits)
    assert isinstance(own, SandboxedAgent)
    match_state = MatchState(own.spec, "random", games, 1, BOARD)
    with open_executor(executor) as chosen:
        play_remaining(match_state, own, make("random"), executor=chosen)
    own.close()
    assert match_state.finished.all()
    return match_state.to_match(), match_state.forfeits


@pytest.mark.parametrize(
    ("agent", "executor"), [("Dice", "processes:1"), ("HighestAtOnce", "serial")]
)
def test_sandboxed_agent__plays_as_in_this_process(agent: str, executor: str) -> None:
    match, forfeits = sandboxed_match(agent, executor=executor)
    own = make(f"python:custom_agents:{agent}")
    expected = play_match(own, make("random"), 2, 1, BOARD, executor=SerialExecutor())
    assert (match.games == expected.games).all()
    assert (match.actions == expected.actions).all()
    assert not forfeits


def test_make_sandboxed__makes_agents_of_this_package_without_a_process() -> None:
    assert not isinstance(make_sandboxed("greedy", LIMITS), SandboxedAgent)


# Forfeits


@pytest.mark.parametrize(
    ("agent", "reason", "detail"),
    [
        ("Fails,how=raises", "crash", "RuntimeError: cannot decide (custom_agents.py, line "),
        ("Fails,how=illegal", "illegal", "illegal action 48 (discard:fan): legal are "),
        ("Fails,how=label", "illegal", "choose: expected the id or the label of an action, got "),
        ("Dies", "exit", "it tried to end the command: SystemExit: 3 (custom_agents.py, line "),
        ("DiesAtOnce", "exit", "its process ended with status 3"),
        ("Eats", "memory", "it needs more than 256 MiB"),
        ("Interrupts,at=9", "crash", "KeyboardInterrupt: "),
        ("Talks", "illegal", "expected a list of 1 integers, got ['pass']"),
    ],
)
def test_failure__forfeits_the_game_with_its_reason(agent: str, reason: str, detail: str) -> None:
    match, forfeits = sandboxed_match(agent)
    games = match.games.reshape(-1)
    assert forfeits
    for number, forfeit in forfeits.items():
        assert forfeit.reason == reason
        assert forfeit.detail.startswith(detail)
        assert games["seat_of_a"][number] == forfeit.seat
        assert games["result"][number] == 0.0
    if agent.startswith("Fails") or agent == "Eats":  # in one seat only
        assert sorted(forfeits) == [1]
        assert not games["forfeit"][0]


def test_failure__of_a_batched_agent_forfeits_only_the_games_in_which_it_fails() -> None:
    """The agent fails in round 4: games that have not come to it continue."""
    match, forfeits = sandboxed_match("FailsAtOnce", games=6)
    assert sorted(forfeits) == [0, 1, 2, 3, 4, 5]
    assert {forfeit.reason for forfeit in forfeits.values()} == {"crash"}
    assert set(match.games["rounds"].reshape(-1).tolist()) == {4}


def test_failure__of_both_agents_forfeits_the_game_of_the_first() -> None:
    agents = [
        SandboxedAgent(f"python:custom_agents:{name}", LIMITS) for name in ("Dies", "DiesAtOnce")
    ]
    match_state = MatchState("A", "B", 2, 0, BOARD)
    play_remaining(match_state, *agents)
    assert sorted(match_state.forfeits) == [0, 1]
    seats = match_state.games["seat_of_a"]
    results = [int(match_state.forfeits[n].seat != seats[n]) for n in range(2)]
    assert match_state.games["result"].tolist() == results


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "python:custom_agents:Nobody",
            "agent 'python:custom_agents:Nobody': no class 'Nobody' in",
        ),
        (
            "python:custom_agents:Unmade",
            "'python:custom_agents:Unmade': Unmade cannot be made: MemoryErr",
        ),
    ],
)
def test_make_sandboxed__refuses_an_agent_that_cannot_be_made(spec: str, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        make_sandboxed(spec, LIMITS)


def test_failure__to_make_the_agent_during_a_match_is_the_reason_of_each_forfeit() -> None:
    agent = SandboxedAgent("python:custom_agents:Unmade", LIMITS)
    match_state = MatchState("A", "random", 2, 1, BOARD)
    play_remaining(match_state, agent, make("random"), executor=SerialExecutor())
    assert match_state.finished.all()
    assert all("cannot be made: Memory" in one.detail for one in match_state.forfeits.values())


def test_act__raises_the_failure_that_decide_returns() -> None:
    batch = Batch(1)
    batch.reset(0)
    games = batch.boards, batch.states, batch.legal, batch.keys(np.arange(1))
    with SandboxedAgent("python:custom_agents:DiesAtOnce", LIMITS) as agent:
        assert [type(one) for one in agent.decide(*games)] == [ProcessFailure]
        with pytest.raises(ProcessFailure, match="its process ended with status 3"):
            agent.act(*games)


@pytest.mark.parametrize(
    ("seconds", "memory", "message"),
    [
        *((seconds, None, "move seconds: exp") for seconds in (0.0, -1.0, float("nan"))),
        (None, 0, "memory: expected 1 to"),
    ],
)
def test_check_limits__refuses_limits_out_of_range(
    seconds: float | None, memory: int | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_limits(seconds, memory)


# Processes


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_failure__of_a_slow_decision_forfeits_the_game_and_ends_its_processes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "processes"
    _, forfeits = sandboxed_match(f"Holds,path={path}", limits=Limits(seconds=1.0), games=2)
    assert {(one.reason, one.detail) for one in forfeits.values()} == {("time", "no answer in 1 s")}
    wait_for_end(path.read_text().split())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends an agent that holds the GIL")
def test_processes__of_an_agent_end_with_the_parent(tmp_path: Path) -> None:
    path = tmp_path / "processes"
    script = f"""
from tokaido_env.agents import make
from tokaido_env.arena.sandbox import Limits, SandboxedAgent
from tokaido_env.arena.tournament import play_match
holds = SandboxedAgent("python:custom_agents:Holds,path={path}", Limits())
play_match(holds, make("random"), 2, 0)
"""
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}) as parent:
        while not path.exists():
            assert parent.poll() is None
            time.sleep(0.05)
        parent.kill()
    wait_for_end(path.read_text().split())


def test_sandboxed_agent__starts_again_after_close_or_kill() -> None:
    with SandboxedAgent("python:custom_agents:Highest", LIMITS) as agent:

        def play() -> Match:
            return play_match(agent, make("random"), 2, 0, BOARD, executor=SerialExecutor())

        first = play()
        agent.close()
        second = play()
        agent._player.process._process.kill()
        third = play()
    assert (second.games == first.games).all()
    assert (third.games == first.games).all()


# Records


def new_match() -> MatchState:
    return MatchState("A", "random", 4, 1, BOARD)


@pytest.fixture(scope="module")
def forfeited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record file of a match in which every second game is forfeited."""
    path = tmp_path_factory.mktemp("forfeited") / "games.jsonl"
    with SandboxedAgent("python:custom_agents:Fails,how=raises", LIMITS) as agent:
        match_state = new_match()
        records = RecordFile(path, [match_state])
        play_recorded(records, match_state, agent, make("random"))
        records.sort()
    return path


def test_records__contain_forfeits_and_load_them(forfeited: Path) -> None:
    games = load(forfeited)
    assert [game.forfeit is not None for game in games] == [False, True, False, True]
    for game in (games[1], games[3]):
        assert game.forfeit is not None
        assert game.players[game.forfeit.seat] == "A"
        assert (game.end, game.winner) == ("forfeit", 1 - game.forfeit.seat)
        assert game.forfeit.detail.startswith("RuntimeError: cannot decide")
        assert "forfeit" in json.loads(game.to_json())
        assert Record.from_json(game.to_json()) == game
        assert replay(game).movers[-1] == game.forfeit.seat
    assert "forfeit" not in json.loads(games[0].to_json())
    match_state = new_match()
    assert read_records(forfeited, [match_state]) == 4
    reasons = {n: forfeit.reason for n, forfeit in match_state.forfeits.items()}
    assert reasons == {1: "crash", 3: "crash"}
    assert match_state.games["result"][[1, 3]].tolist() == [0.0, 0.0]
    merged = merge_records([forfeited], luck=True)
    assert merged.games == 4
    assert merged.match_states[0].forfeits.keys() == {1, 3}
    assert (merged.match_states[0].to_match().games["luck"] != 0).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"forfeit": {"seat": 0}}, "player_0 cannot forfeit after the last event: it was player_1"),
        ({"forfeit": {"seat": 2}}, "forfeit.seat: expected an integer <= 1, got 2"),
        ({"forfeit": {"reason": "luck"}}, "forfeit.reason: expected one of crash, illegal"),
        ({"forfeit": {"detail": "x" * 301}}, "forfeit.detail: expected a text of length <= 300"),
        ({"winner": 1}, "winner: expected 0 after the last event"),
        ({"end": "triggers"}, "end: expected 'forfeit' after the last event"),
    ],
)
def test_records__refuse_an_impossible_forfeit(
    forfeited: Path, tmp_path: Path, changes: dict[str, dict[str, object]], message: str
) -> None:
    data = json.loads(forfeited.read_text(encoding="utf-8").splitlines()[1])
    changes = changes | {"forfeit": data["forfeit"] | changes.get("forfeit", {})}
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(data | changes) + "\n", encoding="utf-8")
    for read in (load, lambda path: read_records(path, [new_match()])):
        with pytest.raises(RecordError, match=message):
            read(path)


def test_records__refuse_a_forfeit_of_a_finished_game(forfeited: Path, tmp_path: Path) -> None:
    over = replace(load(forfeited)[0], forfeit=Forfeit(1, "crash"), end="forfeit", winner=0)
    path = tmp_path / "over.jsonl"
    path.write_text(over.to_json() + "\n", encoding="utf-8")
    message = "player_1 cannot forfeit after the last event: nobody was to decide"
    for read in (load, lambda path: read_records(path, [new_match()])):
        with pytest.raises(RecordError, match=message):
            read(path)


def test_read_records__refuses_an_unfinished_game(forfeited: Path, tmp_path: Path) -> None:
    game = load(forfeited)[0]
    decisions = [event for event in game.events if event in IDS]
    begun = game.events[: game.events.index(decisions[20], 60)]
    result = result_of(BOARD.record, replay_labels(BOARD, begun).ends)
    path = tmp_path / "cut.jsonl"
    path.write_text(replace(game, events=begun, **result).to_json() + "\n", encoding="utf-8")
    assert load(path)[0].end is None  # a valid record, but of no match
    with pytest.raises(RecordError, match="expected a game that is over, got an unfinished one"):
        read_records(path, [new_match()])


SCRIPT = """
import multiprocessing
from tokaido_env.__main__ import main

def evaluate(*options):
    main(["evaluate", "python:json.py:Bot", "random", "--games", "2", *options])

evaluate("--executor", "serial")
process = multiprocessing.get_context("fork").Process(target=evaluate, daemon=True)
process.start()
process.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_sandboxed_agent__plays_in_any_process(tmp_path: Path) -> None:
    """In a daemonic one, and for a script on standard input without a guard of its main code.

    No process imports a module of the current folder.
    """
    bot = "import os\nassert 'PYTHONSAFEPATH' not in os.environ\nclass Bot:\n"
    bot += "    def choose(self, game, rng):\n        return game.legal_actions()[0]\n"
    for name in ("json", "pickle", "socket", "numpy"):
        (tmp_path / f"{name}.py").write_text(bot, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-"],
        cwd=tmp_path,
        input=SCRIPT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.count("2 games, board shikoku, seed 0") == 2
    assert "forfeit" not in done.stdout
