"""Tests of `tokaido evaluate`: results, records and resume."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tokaido_env.__main__ import main
from tokaido_env.arena.result import Result
from tokaido_env.record import load

ROOT = Path(__file__).resolve().parents[2]
Output = pytest.CaptureFixture[str]


def results(path: Path, *arguments: str) -> dict[str, Any]:
    assert main(["evaluate", *arguments, "--json", str(path)]) == 0
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return written


def test_evaluate__writes_a_result_and_prints_tables(tmp_path: Path, capsys: Output) -> None:
    agents = ["greedy", "random", "random"]
    path = tmp_path / "r.json"
    results(path, *agents, "--games", "20", "--seed", "3")
    found = Result.load(path)
    printed = capsys.readouterr()
    assert main(["evaluate", *agents, f"--json={path}", "--games", "20", "--seed", "3"]) == 0
    assert Result.load(path) == found
    assert found.command == "tokaido evaluate greedy random random --games 20 --seed 3"
    assert (found.protocol, found.seed, found.anchor) == ("matches", 3, "random")
    assert (found.agents, found.boards[0].name) == (("greedy", "random"), "shikoku")
    pairs = [("greedy", "random"), ("random", "random")]  # each two meet once
    assert [(one.a, one.b) for one in found.scores] == pairs
    for score in found.scores:
        assert score.n == 20
        assert 0 <= score.low <= score.value <= score.high <= 1
    first, itself = found.scores
    assert first.value > 0.7  # greedy is the better one
    assert itself.value == 0.5
    rated = {one.agent: one for one in found.estimates_of("Elo")}
    assert rated["greedy"].n == rated["random"].n == 20  # each game counted once
    assert rated["greedy"].value > rated["random"].value == 0
    assert not set("\r\x1b") & set(printed.err)  # no bar where there is no terminal
    standings, matches = printed.out.split("Matches")
    assert "40 games, board shikoku, seed 3" in standings
    assert "Elo is relative, from these matches only (probit, random = 0)" in standings
    ranked = [line.split()[:4] for line in standings.splitlines() if line[:5].strip().isdigit()]
    shares = [f"{share:.1%}" for share in (first.value, 1 - first.value)]
    assert ranked == [["1", "greedy", "20", shares[0]], ["2", "random", "20", shares[1]]]
    assert " reference " in standings.splitlines()[4]
    scores = [line.split()[4] for line in matches.splitlines() if line.split()[2:3] == ["20"]]
    assert scores[:2] == shares


# Records, stop and resume

DICE = ["python:custom_agents:Dice", "random", "greedy"]
QUICK = ["--games", "8", "--seed", "2", "--executor", "serial"]


def test_records__contain_every_game_and_resume_to_the_same_results(
    tmp_path: Path, capsys: Output
) -> None:
    records = tmp_path / "games.jsonl"
    command = [*DICE, *QUICK, "--games", "4", "--records", str(records)]
    first = results(tmp_path / "a.json", *command)
    written = records.read_bytes()
    assert written.count(b"\n") == 12
    capsys.readouterr()
    assert results(tmp_path / "b.json", *command) == first
    assert "evaluate: resumed from 12 recorded games" in capsys.readouterr().err
    assert records.read_bytes() == written
    for game, match in zip(load(records), [0] * 4 + [1] * 4 + [2] * 4, strict=True):
        score = first["scores"][match]
        assert set(game.players) == {score["a"], score["b"]}
    score = first["scores"][0]
    won = [game.players[game.winner] for game in load(records)[:4] if game.winner is not None]
    points = won.count(score["a"]) + score["games"]["draws"] / 2
    assert points == 4 * score["value"]


@pytest.mark.parametrize(("agent", "status"), [("Interrupts,at=700", 130), ("Fails,how=none", 1)])
def test_evaluate__saves_the_games_before_a_stop(
    tmp_path: Path, capsys: Output, agent: str, status: int
) -> None:
    files = ["--json", str(tmp_path / "r.json"), "--records", str(tmp_path / "g.jsonl")]
    command = [
        "evaluate",
        "greedy",
        "random",
        f"python:custom_agents:{agent}",
        *QUICK,
        *files,
    ]
    assert main(command) == status
    printed = capsys.readouterr()
    played = len(load(tmp_path / "g.jsonl"))
    assert 8 <= played < 24
    assert f"evaluate: {played} of 24 games are played and saved in " in printed.err
    if status == 1:
        assert "game 1 of 8, seed" in printed.err
    else:
        assert "evaluate: interrupted\n" in printed.err
    written = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert {sum(score["pairs"]) for score in written["scores"]} == {4}  # no part of a match
    assert not written["complete"]
    assert "greedy" in printed.out


def start(records: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a command in two processes; return it when the first game is recorded."""
    running = subprocess.Popen(
        [sys.executable, "-m", "tokaido_env", *arguments],
        env=os.environ | {"PYTHONPATH": SOURCES, "SECONDS_A_DECISION": "0.01"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while not records.is_file() or not records.stat().st_size:
        assert running.poll() is None
        time.sleep(0.01)
    return running


SOURCES = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
LONG_MATCH = ["evaluate", "python:custom_agents:Dice", "greedy", "--games", "24"]
GENERALISE = ["generalise", LONG_MATCH[1], "--opponent", "greedy", "--boards", "3", "--pairs", "3"]
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows lacks these signals")


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize(
    ("command", "games", "how"),
    [
        (LONG_MATCH, 24, signal.SIGINT),
        (GENERALISE, 36, signal.SIGINT),
        (GENERALISE, 36, signal.SIGKILL),
    ],
)
def test_evaluate__resumes_to_the_same_bytes(
    tmp_path: Path, command: list[str], games: int, how: signal.Signals
) -> None:
    """Ctrl-C and kills reach all processes; a power cut may leave half a line."""
    a, b = (tmp_path / name for name in "ab")  # results name their file of records
    for folder in (a, b):
        folder.mkdir()
    whole, parts = (
        [
            *(*command, "--json", str(folder / "results.json")),
            *("--records", str(folder / "games.jsonl"), "--executor"),
        ]
        for folder in (a, b)
    )
    assert main([*whole, "serial"]) == 0
    records = b / "games.jsonl"
    running = start(records, *parts, "processes:2")
    os.killpg(running.pid, how)
    _, error = running.communicate(timeout=120)
    assert b"Traceback" not in error
    if how is signal.SIGINT:
        assert running.returncode == 130
        assert f" of {games} games are played and saved in ".encode() in error
    with records.open("ab") as file:
        file.write(b'{"format": "tokaido-duo", "version": 1, "ru')
    assert main([*parts, "serial"]) == 0
    for file in ("results.json", "games.jsonl"):
        assert (a / file).read_bytes() == (b / file).read_bytes()


@pytest.mark.slow
@needs_signals
def test_evaluate__worker_processes_end_after_a_kill(tmp_path: Path) -> None:
    records = tmp_path / "games.jsonl"
    running = start(records, *LONG_MATCH, "--records", str(records), "--executor", "processes:2")
    running.kill()
    _, error = running.communicate(timeout=60)  # until the last of them has ended
    assert b"Traceback" not in error


# Until it is decided


def test_until_decided__stops_decided_matches(tmp_path: Path, capsys: Output) -> None:
    command = ["greedy", "random", "random", "--until-decided", "--error", "0.02"]
    written = results(tmp_path / "r.json", *command, "--games", "300")
    decisions = [(one.get("decided"), 2 * sum(one["pairs"])) for one in written["scores"]]
    assert decisions == [("a", 100), (None, 300)]
    printed = capsys.readouterr().out
    assert "greedy is better than random: decided after 100 games, error at most 0.02" in printed
    assert "random and random: undecided after 300 games" in printed
    longer = results(tmp_path / "s.json", *command, "--games", "400")
    assert longer["scores"][0] == written["scores"][0]


# Luck-adjusted scores


def test_luck_adjusted__adds_adjusted_scores(tmp_path: Path, capsys: Output) -> None:
    command = ["greedy", "heuristic", "random", "--games", "60"]
    unadjusted = results(tmp_path / "unadjusted.json", *command)
    both = results(tmp_path / "both.json", *command, "--luck-adjusted")
    assert "Luck-adjusted scores" in capsys.readouterr().out
    assert both["scores"] == unadjusted["scores"]
    adjusted = [x for x in both["estimates"] if x["measure"] == "luck-adjusted score"]
    assert both["estimates"][: -len(adjusted)] == unadjusted["estimates"]
    assert [(x["agent"], x["other"]) for x in adjusted] == [("greedy", "heuristic")]  # rest: won
    assert adjusted[0]["low"] <= adjusted[0]["value"] <= adjusted[0]["high"]
    assert adjusted[0]["n"] > 0.8 * 60


def test_evaluate__plays_on_a_board_pool(tmp_path: Path, capsys: Output) -> None:
    board = ["--board", "family:test/3"]
    records = ["--records", str(tmp_path / "g.jsonl"), "--json", str(tmp_path / "r.json")]
    report = ["--report", str(tmp_path / "r.html"), "--luck-adjusted"]
    assert main(["evaluate", "greedy", "random", "--games", "8", *board, *records, *report]) == 0
    assert "board family:test/3" in capsys.readouterr().out
    written = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert written["boards"][0]["name"] == "family:test/3"
    assert "family:test/3" in (tmp_path / "r.html").read_text(encoding="utf-8")
    read = load(tmp_path / "g.jsonl")
    assert {record.board for record in read} <= {f"family:{2000000 + i}" for i in range(3)}
    assert len({record.board for record in read}) > 1
