"""Agents in processes of their own: what they fail in they lose, and nothing else."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matches import play_recorded
from processes import ROOT

from tokaido_env.agent import Agent, AgentError
from tokaido_env.agents import make
from tokaido_env.arena.executors import SerialExecutor, open_executor
from tokaido_env.arena.game_runner import Forfeits
from tokaido_env.arena.match import Match
from tokaido_env.arena.records import RecordFile, merge_records, read_records
from tokaido_env.arena.sandbox import (
    Limits,
    SandboxedAgent,
    SandboxFailure,
    check_limits,
    make_sandboxed,
)
from tokaido_env.arena.tournament import MatchState, play_match, play_remaining
from tokaido_env.batch import Batch
from tokaido_env.boards.board import Board
from tokaido_env.core.actions import IDS
from tokaido_env.core.serialization import result_of
from tokaido_env.record import Forfeit, Record, RecordError, load, replay
from tokaido_env.trajectory import replay_labels

BOARD = Board.load()
LIMITS = Limits(seconds=5.0, memory=256)


def played(
    agent: str, *, executor: str = "serial", limits: Limits = LIMITS, games: int = 4
) -> tuple[Match, Forfeits]:
    """Play against `random`, who is agent b; return the match, and what was forfeited."""
    own = make_sandboxed(f"python:custom_agents:{agent}", limits)
    assert isinstance(own, SandboxedAgent)
    match_state = MatchState(own.spec, "random", games, 1, BOARD)
    with open_executor(executor) as who:
        play_remaining(match_state, own, make("random"), executor=who)
    own.close()
    assert match_state.finished.all()
    return match_state.to_match(), match_state.forfeits


@pytest.mark.parametrize(
    ("agent", "executor"), [("Dice", "processes:1"), ("HighestAtOnce", "serial")]
)
def test_who_does_not_fail_plays_as_in_this_process(agent: str, executor: str) -> None:
    match, forfeits = played(agent, executor=executor, games=6)
    here = play_match(make(f"python:custom_agents:{agent}"), make("random"), 6, 1, BOARD)
    assert (match.games == here.games).all()
    assert (match.actions == here.actions).all()
    assert not forfeits


@pytest.mark.parametrize(
    ("agent", "reason", "detail"),
    [
        ("Fails,how=raises", "crash", "RuntimeError: cannot decide (custom_agents.py, line "),
        ("Fails,how=illegal", "illegal", "illegal action 48 (discard:fan): legal are "),
        ("Fails,how=label", "illegal", "choose: expected the id or the label of an action, got "),
        ("Fails,how=none", "illegal", "choose: expected the id or the label of an action, got N"),
        ("Dies", "exit", "it tried to end the command: SystemExit: 3 (custom_agents.py, line "),
        ("DiesAtOnce", "exit", "its process ended with status 3"),
        ("Eats", "memory", "it needs more than 256 MiB"),
        ("Interrupts,at=9", "crash", "KeyboardInterrupt: "),
    ],
)
def test_a_failure_loses_the_game_and_is_told(agent: str, reason: str, detail: str) -> None:
    match, forfeits = played(agent)
    games = match.games.reshape(-1)
    assert forfeits
    for number, forfeit in forfeits.items():
        assert forfeit.reason == reason
        assert forfeit.detail.startswith(detail)
        assert games["seat_of_a"][number] == forfeit.seat
        assert games["result"][number] == 0.0
    if agent.startswith("Fails") or agent == "Eats":  # in one seat only
        assert sorted(forfeits) == [1, 3]
        assert not games["forfeit"][[0, 2]].any()


def test_who_takes_too_long_loses_that_game() -> None:
    _, forfeits = played("Sleeps", limits=Limits(seconds=1.0), games=2)
    assert forfeits == {1: Forfeit(1, "time", "it took more than 1 s")}


def test_an_agent_for_many_games_loses_only_those_in_which_it_fails() -> None:
    """Six games at once: those that have come to the round fail, the others go on."""
    match, forfeits = played("FailsAtOnce", games=6)
    assert sorted(forfeits) == [0, 1, 2, 3, 4, 5]
    assert {forfeit.reason for forfeit in forfeits.values()} == {"crash"}
    assert set(match.games["rounds"].reshape(-1).tolist()) == {4}


def test_a_match_of_two_who_fail_is_played_to_its_end() -> None:
    agents = [
        SandboxedAgent(f"python:custom_agents:{name}", LIMITS) for name in ("Dies", "DiesAtOnce")
    ]
    match_state = MatchState("A", "B", 6, 0, BOARD)
    play_remaining(match_state, *agents)
    assert sorted(match_state.forfeits) == list(range(6))
    first = [
        int(match_state.forfeits[n].seat != match_state.games["seat_of_a"][n]) for n in range(6)
    ]
    assert match_state.games["result"].tolist() == first


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "python:custom_agents:Nobody",
            "agent 'python:custom_agents:Nobody': no class 'Nobody' in",
        ),
        ("python:nowhere:Nobody", "agent 'python:nowhere:Nobody': no module 'nowhere'"),
        (
            "python:custom_agents:Unmade",
            "'python:custom_agents:Unmade': Unmade cannot be made: MemoryError",
        ),
    ],
)
def test_who_cannot_be_made_is_told_of_before_a_game(spec: str, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        make_sandboxed(spec, LIMITS)


def test_who_cannot_be_made_any_more_loses_and_is_told_why() -> None:
    """It could when the match began: each game says what is wrong, not what follows from it."""
    agent = SandboxedAgent("python:custom_agents:Unmade", LIMITS)
    match_state = MatchState("A", "random", 4, 1, BOARD)
    play_remaining(match_state, agent, make("random"), executor=SerialExecutor())
    assert match_state.finished.all()
    assert all("cannot be made: Memory" in one.detail for one in match_state.forfeits.values())


@pytest.mark.parametrize("how", ["nested", "list", "flood"])
def test_who_talks_nonsense_loses(how: str) -> None:
    _, forfeits = played(f"Talks,how={how}", games=2)
    assert len(forfeits) == 2
    for forfeit in forfeits.values():
        assert (forfeit.reason, forfeit.detail) == (
            "exit",
            "its process sent no valid answer",
        )


def lives(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends who holds Python's lock")
@pytest.mark.parametrize("killed", [False, True])
def test_all_that_an_agent_began_ends_with_its_process_or_this_one(
    tmp_path: Path, killed: bool
) -> None:
    path = tmp_path / "processes"
    if killed:
        script = f"""
from tokaido_env.agents import make
from tokaido_env.arena.sandbox import Limits, SandboxedAgent
from tokaido_env.arena.tournament import play_match
if __name__ == "__main__":
    holds = SandboxedAgent("python:custom_agents:Holds,path={path}", Limits())
    play_match(holds, make("random"), 2, 0)
"""
        (tmp_path / "script.py").write_text(script)
        where = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
        command = [sys.executable, str(tmp_path / "script.py")]
        with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": where}) as running:
            while not path.exists():
                assert running.poll() is None
                time.sleep(0.05)
            running.kill()
    else:
        played(f"Holds,path={path}", limits=Limits(seconds=1.0), games=2)
    until = time.monotonic() + 10.0
    while any(lives(int(one)) for one in path.read_text().split()):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_agents_of_this_package_play_here() -> None:
    agent: Agent = make_sandboxed("greedy", LIMITS)
    assert not isinstance(agent, SandboxedAgent)


def test_an_agent_that_was_closed_or_killed_between_two_matches_begins_again() -> None:
    with SandboxedAgent("python:custom_agents:Highest", LIMITS) as agent:
        first = play_match(agent, make("random"), 2, 0, BOARD, executor=SerialExecutor())
        agent.close()
        second = play_match(agent, make("random"), 2, 0, BOARD, executor=SerialExecutor())
        assert agent._process is not None
        agent._process._process.kill()
        third = play_match(agent, make("random"), 2, 0, BOARD, executor=SerialExecutor())
    assert (second.games == first.games).all()
    assert (third.games == first.games).all()


def test_act_raises_what_decide_tells() -> None:
    batch = Batch(2)
    batch.reset(0)
    games = batch.boards, batch.states, batch.legal, batch.keys(np.arange(2))
    with SandboxedAgent("python:custom_agents:DiesAtOnce", LIMITS) as agent:
        assert [type(one) for one in agent.decide(*games)] == [SandboxFailure, SandboxFailure]
        with pytest.raises(SandboxFailure, match="exit: its process ended with status 3"):
            agent.act(*games)


@pytest.mark.parametrize(
    ("seconds", "memory"), [(0.0, None), (-1.0, None), (float("nan"), None), (None, 0)]
)
def test_limits_under_which_nobody_plays_are_refused(
    seconds: float | None, memory: int | None
) -> None:
    with pytest.raises(ValueError, match="expected"):
        check_limits(seconds, memory)


# Records


@pytest.fixture(scope="module")
def forfeited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record file of a match of which every second game is forfeited."""
    path = tmp_path_factory.mktemp("forfeited") / "games.jsonl"
    with SandboxedAgent("python:custom_agents:Fails,how=raises", LIMITS) as agent:
        match_state = new_sheet()
        records = RecordFile(path, [match_state])
        play_recorded(records, match_state, agent, make("random"))
        records.sort()
    return path


def new_sheet() -> MatchState:
    return MatchState("A", "random", 4, 1, BOARD)


def test_records_tell_forfeits_and_give_them_back(forfeited: Path) -> None:
    games = load(forfeited)
    told = [game.forfeit for game in games]
    assert [forfeit is not None for forfeit in told] == [False, True, False, True]
    for game in (games[1], games[3]):
        assert game.forfeit is not None
        assert game.players[game.forfeit.seat] == "A"
        assert (game.end, game.winner) == ("forfeit", 1 - game.forfeit.seat)
        assert game.forfeit.detail.startswith("RuntimeError: cannot decide")
        assert "forfeit" in json.loads(game.to_json())
        assert Record.from_json(game.to_json()) == game
        assert (replay(game).movers[-1]) == game.forfeit.seat
    assert "forfeit" not in json.loads(games[0].to_json())
    match_state = new_sheet()
    assert read_records(forfeited, [match_state]) == 4
    assert {n: forfeit.reason for n, forfeit in match_state.forfeits.items()} == {
        1: "crash",
        3: "crash",
    }
    assert Counter(match_state.games["result"][[1, 3]].tolist()) == {0.0: 2}


def test_files_with_forfeits_merge_and_have_luck(forfeited: Path) -> None:
    found = merge_records([forfeited], luck=True)
    assert found.games == 4
    assert found.match_states[0].forfeits.keys() == {1, 3}
    assert (found.match_states[0].to_match().games["luck"] != 0).all()


def altered(path: Path, tmp_path: Path, **changes: object) -> Path:
    """Return the file of a game that was forfeited, altered."""
    lines = path.read_text(encoding="utf-8").splitlines()
    data = json.loads(lines[1])
    forfeit = changes.pop("forfeit", {})
    assert isinstance(forfeit, dict)
    data["forfeit"] |= forfeit
    (tmp_path / "x.jsonl").write_text(json.dumps(data | changes) + "\n", encoding="utf-8")
    return tmp_path / "x.jsonl"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"forfeit": {"seat": 0}}, "player_0 cannot forfeit after the last event: it was player_1"),
        ({"forfeit": {"seat": 2}}, "forfeit.seat: expected an integer <= 1, got 2"),
        ({"forfeit": {"seat": True}}, "forfeit.seat: expected an integer, got True"),
        ({"forfeit": {"reason": "luck"}}, r"forfeit.reason: expected .*crash\|illegal\|exit\|time"),
        ({"forfeit": {"reason": []}}, "forfeit.reason: expected a text, got"),
        ({"forfeit": {"detail": "x" * 301}}, "forfeit.detail: expected a text of length <= 300"),
        ({"forfeit": {"more": 1}}, "forfeit: expected no key more, got"),
        ({"winner": 1}, "winner: expected 0 after the last event"),
        ({"end": "triggers"}, "end: expected 'forfeit' after the last event"),
    ],
)
def test_what_cannot_have_been_forfeited_is_refused(
    forfeited: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    path = altered(forfeited, tmp_path, **changes)
    with pytest.raises(RecordError, match=message):
        load(path)
    with pytest.raises(RecordError, match=message):
        read_records(path, [new_sheet()])


def test_a_game_that_is_over_cannot_be_forfeited(forfeited: Path, tmp_path: Path) -> None:
    games = load(forfeited)
    over = replace(games[0], forfeit=Forfeit(1, "crash"), end="forfeit", winner=0)
    path = tmp_path / "over.jsonl"
    path.write_text(over.to_json() + "\n", encoding="utf-8")
    message = "player_1 cannot forfeit after the last event: nobody was to decide"
    for read in (lambda: load(path), lambda: read_records(path, [new_sheet()])):
        with pytest.raises(RecordError, match=message):
            read()


def test_an_unfinished_game_is_no_game_of_a_match(forfeited: Path, tmp_path: Path) -> None:
    game = load(forfeited)[0]
    made = [event for event in game.events if event in IDS]
    cut = game.events[: game.events.index(made[20], 60)]
    played_on = replay_labels(BOARD, cut)
    unfinished = replace(game, events=cut, **result_of(BOARD.record, played_on.ends))
    path = tmp_path / "cut.jsonl"
    path.write_text(unfinished.to_json() + "\n", encoding="utf-8")
    assert load(path)[0].end is None  # a record, but of no match
    with pytest.raises(RecordError, match="expected a game that is over, got an unfinished one"):
        read_records(path, [new_sheet()])


# Agents added and left out


def test_games_of_others_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"

    def run(*names: str) -> tuple[RecordFile, list[MatchState]]:
        match_states = [
            MatchState(a, b, 4, 0, BOARD) for i, a in enumerate(names) for b in names[i + 1 :]
        ]
        records = RecordFile(path, match_states, names)
        for match_state in match_states:
            play_recorded(records, match_state, make("random"), make("random"))
        records.sort()
        return records, match_states

    records, _ = run("A", "B", "C")
    whole = path.read_bytes()
    assert (records.loaded, records.other_games) == (0, 0)
    del records
    records, match_states = run("C", "A")  # B left out, the order another
    assert (records.loaded, records.other_games) == (4, 8)
    assert match_states[0].finished.all()
    del records
    assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())
    records, _ = run("A", "B", "C", "D")
    assert (records.loaded, records.other_games) == (12, 0)
    del records
    assert len(path.read_bytes().splitlines()) == 24
    path.unlink()
    run("A", "B", "C")
    assert path.read_bytes() == whole
    with pytest.raises(RecordError, match="is no game of these matches"):
        RecordFile(path, [MatchState("A", "B", 2, 0, BOARD)], ["A", "B"])  # fewer games
