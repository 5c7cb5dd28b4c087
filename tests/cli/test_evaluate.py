"""Tests of `tokaido evaluate`: results, records, resume, ladders and errors."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from refusals import check_refused

from tokaido_env.arena.ladder import LADDER
from tokaido_env.arena.result import Result
from tokaido_env.cli.evaluate import main
from tokaido_env.record import load

ROOT = Path(__file__).resolve().parents[2]
Output = pytest.CaptureFixture[str]


def results(path: Path, *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json", str(path)]) == 0
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return written


def test_evaluate__writes_a_result_and_prints_tables(tmp_path: Path, capsys: Output) -> None:
    agents = ["greedy", "random", "random"]
    path = tmp_path / "r.json"
    results(path, *agents, "--games", "20", "--seed", "3")
    found = Result.load(path)
    assert found.command == "tokaido evaluate greedy random random --games 20 --seed 3"
    assert (found.protocol, found.seed, found.anchor) == ("matches", 3, "random")
    assert (found.agents, found.boards[0].name) == (("greedy", "random"), "shikoku")
    pairs = [("greedy", "random"), ("greedy", "random"), ("random", "random")]
    assert [(one.a, one.b) for one in found.scores] == pairs
    for score in found.scores:
        assert score.n == 20
        assert 0 <= score.low <= score.value <= score.high <= 1
    first, _, itself = found.scores
    assert first.value > 0.7  # greedy is the better one
    assert itself.value == 0.5
    rated = {one.agent: one for one in found.estimates_of("Elo")}
    assert rated["greedy"].n == rated["random"].n == 20  # each game counted once
    assert rated["greedy"].value > rated["random"].value == 0
    printed = capsys.readouterr()
    assert not set("\r\x1b") & set(printed.err)  # no bar where there is no terminal
    standings, matches = printed.out.split("Matches")
    assert "60 games, board shikoku, seed 3" in standings
    assert "Elo is relative, from these matches only (probit, random = 0)" in standings
    ranked = [line.split()[:4] for line in standings.splitlines() if line[:5].strip().isdigit()]
    shares = [f"{share:.1%}" for share in (first.value, 1 - first.value)]
    assert ranked == [["1", "greedy", "20", shares[0]], ["2", "random", "20", shares[1]]]
    assert " reference " in standings.splitlines()[4]
    scores = [line.split()[3] for line in matches.splitlines() if line.split()[1:2] == ["20"]]
    assert scores[:2] == shares


def test_evaluate__is_reproducible(tmp_path: Path) -> None:
    command = ["random", "greedy", "--games", "10"]
    written = []
    for name, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        results(tmp_path / name, *command, "--seed", seed)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1] != written[2]


def test_evaluate__prints_many_matches_only_on_request(capsys: Output) -> None:
    agents = ["random", "greedy", *(f"greedy:epsilon=0.{i}" for i in range(1, 5))]
    command = [*agents, "--games", "2"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert all(agent in printed for agent in agents)
    assert "15 matches: --all-matches prints them, --report and --json contain them" in printed
    assert "commerce" not in printed
    assert main([*command, "--until-decided"]) == 0
    assert capsys.readouterr().out.count(": undecided after 2 games") == 15
    assert main([*command, "--all-matches"]) == 0
    printed = capsys.readouterr().out
    assert "prints them" not in printed
    assert printed.partition("Matches")[2].count("greedy:epsilon=0.4") == 5


# Records, stop and resume

DICE = ["python:custom_agents:Dice", "random", "greedy"]
QUICK = ["--games", "8", "--seed", "2", "--executor", "serial"]


def test_records__contain_every_game_and_resume_to_the_same_results(
    tmp_path: Path, capsys: Output
) -> None:
    records = tmp_path / "games.jsonl"
    command = [*DICE, *QUICK, "--records", str(records)]
    first = results(tmp_path / "a.json", *command)
    written = records.read_bytes()
    assert written.count(b"\n") == 24
    capsys.readouterr()
    assert results(tmp_path / "b.json", *command) == first
    assert "evaluate: resumed from 24 recorded games" in capsys.readouterr().err
    assert records.read_bytes() == written
    for game, match in zip(load(records), [0] * 8 + [1] * 8 + [2] * 8, strict=True):
        score = first["scores"][match]
        assert set(game.players) == {score["a"], score["b"]}
    score = first["scores"][0]
    won = [game.players[game.winner] for game in load(records)[:8] if game.winner is not None]
    points = won.count(score["a"]) + score["games"]["draws"] / 2
    assert points == 8 * score["value"]


@pytest.mark.parametrize(("agent", "status"), [("Interrupts,at=700", 130), ("Fails,how=none", 1)])
def test_evaluate__saves_the_games_before_a_stop(
    tmp_path: Path, capsys: Output, agent: str, status: int
) -> None:
    files = ["--json", str(tmp_path / "r.json"), "--records", str(tmp_path / "g.jsonl")]
    command = [
        "greedy",
        "random",
        f"python:custom_agents:{agent}",
        "--on-failure=stop",
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
    assert sum(sum(score["pairs"]) for score in written["scores"]) == played // 2
    assert sum(written["scores"][0]["pairs"]) == 4
    assert not written["complete"]
    assert "greedy" in printed.out


def start(records: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a command in two processes; return it when the first game is recorded."""
    running = subprocess.Popen(
        [sys.executable, str(ROOT / "evaluate.py"), *arguments],
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
LONG_MATCH = ["python:custom_agents:Dice", "greedy", "--games", "24"]
GENERALISE = [
    "generalise",
    *LONG_MATCH[:1],
    "--opponent",
    "greedy",
    "--boards",
    "3",
    "--pairs",
    "3",
]
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
def test_evaluate__worker_processes_end_silently_after_a_kill(tmp_path: Path) -> None:
    records = tmp_path / "games.jsonl"
    running = start(records, *LONG_MATCH, "--records", str(records), "--executor", "processes:2")
    running.kill()
    _, error = running.communicate(timeout=60)  # until the last of them has ended
    assert error == b""


# Until it is decided


def test_until_decided__stops_decided_matches(tmp_path: Path, capsys: Output) -> None:
    command = ["greedy", "random", "random", "--until-decided", "--error", "0.02"]
    written = results(tmp_path / "r.json", *command, "--games", "300")
    decisions = [(one.get("decided"), 2 * sum(one["pairs"])) for one in written["scores"]]
    assert decisions == [("a", 100), ("a", 100), (None, 300)]
    printed = capsys.readouterr().out
    assert "greedy is better than random: decided after 100 games, error at most 0.02" in printed
    assert "random and random: undecided after 300 games" in printed
    longer = results(tmp_path / "s.json", *command, "--games", "800")
    assert longer["scores"][0] == written["scores"][0]


# Output and errors


def test_list__prints_all_agents(capsys: Output) -> None:
    assert main(["--list"]) == 0
    printed = capsys.readouterr().out
    policy = "policy:PATH[,temperature=T][,endings=network]"
    for usage in ("random", "greedy[:epsilon=E]", "heuristic", policy):
        assert f"{usage}\n    " in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("greedy", "nobody"), "unknown agent 'nobody': expected one of random, greedy"),
        (("greedy", "policy:nowhere"), "nowhere: no such policy file"),
        (("greedy", "random", "--games", "7"), "games: expected an even number from 2"),
        (("greedy", "random", "--replays", "2"), "--replays: expected together with --report"),
        (
            ("greedy", "random", "--report", "r.html", "--replays", "101"),
            "--replays: expected 0 to 100 games of a match, got 101",
        ),
        (("greedy", "random", "--board", "honshu"), "unknown board 'honshu'"),
        (("greedy", "random", "--json", "/nowhere/r.json"), "/nowhere/r.json: there is no folder"),
        (("greedy", "random", "--records", "/nowhere/g"), "/nowhere/g: there is no folder"),
        (("greedy", "random", "--report", "/nowhere/g"), "/nowhere/g: there is no folder"),
        (("greedy", "random", "--plots", __file__), "expected a folder, got a file"),
        (("greedy", "random", "--json", "x", "--records", "x"), "expected a different file"),
        (
            ("greedy", "random", "--executor", "processes:0"),
            "executor: expected serial, processes[:N] or ",
        ),
        (("greedy", "random", "--error", "0.1"), "--error: expected together with --until-dec"),
        (("greedy", "random", "--until-decided", "--error", "2"), "expected a rate from 1e-9 to"),
        (("greedy", "python:no_bots:Bot"), "no module 'no_bots'"),
        (("rate", "greedy", "--ladder", "no.json"), "no.json: no such ladder"),
        (
            ("rate", "greedy", "--json", "r", "--records", "x/r"),
            "--records: expected a file in ",
        ),
        (("verify", "no.json"), "no.json: no such result"),
        (("rate", "greedy", "--json", str(LADDER)), f"{LADDER}: is read too: expected another"),
        (("ladder", "greedy", "random", "--ladder", "/"), "/: expected a file or nothing"),
        (("ladder", "greedy", "nobody", "--ladder", "l.json"), "unknown agent 'nobody'"),
    ],
)
def test_evaluate__refuses_wrong_options_before_any_game(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr("tokaido_env.arena.game_runner.Batch", None)
    check_refused(capsys, ["evaluate", *arguments], message)


def test_evaluate__refuses_a_single_agent(capsys: Output) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["greedy"])
    assert stopped.value.code == 2
    message = "expected two or more agents, as: tokaido evaluate greedy random"
    assert message in capsys.readouterr().err


# Ladders


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


def test_rate__rates_an_agent_on_a_new_ladder(tmp_path: Path, capsys: Output) -> None:
    ladder = ["--ladder", str(tmp_path / "ladder.json"), "--games", "10"]
    assert main(["ladder", "greedy", "random", *ladder]) == 0
    rate = ["rate", "python:custom_agents:HighestAtOnce", *ladder]
    written = results(tmp_path / "r.json", *rate)
    assert [one["agent"] for one in written["estimates"]] == [rate[1]]
    assert {(one["a"], one["b"]) for one in written["scores"]} == {
        (rate[1], "greedy"),
        (rate[1], "random"),
    }
    printed = capsys.readouterr().out
    assert rate[1] in printed
    assert "above the next" in printed
    assert "Row above column" in printed
    assert "probit, random = 0" in printed
    assert written["anchor"] == "random"
    assert f"on ladder {json.loads(Path(ladder[1]).read_text())['hash']}" in printed


def test_rate__resumes_to_the_same_bytes_and_is_verified(tmp_path: Path, capsys: Output) -> None:
    ladder, records = ["--ladder", str(tmp_path / "ladder.json")], tmp_path / "r.jsonl"
    assert main(["ladder", "greedy", "random", *ladder, "--games", "20"]) == 0
    rate = ["rate", "heuristic", *ladder, "--games", "8", "--records", str(records)]
    written = results(tmp_path / "r.json", *rate)
    first = (tmp_path / "r.json").read_bytes(), records.read_bytes()
    assert written["records"]["games"] == 16
    lines = first[1].splitlines(keepends=True)
    records.write_bytes(b"".join(lines[10:14]) + b"".join(lines[:5]))
    results(tmp_path / "r.json", *rate)
    assert first == ((tmp_path / "r.json").read_bytes(), records.read_bytes())
    assert "9 recorded games" in capsys.readouterr().err
    verify = ["verify", str(tmp_path / "r.json"), *ladder, "--share", "1"]
    assert main([*verify, "--agent", "heuristic"]) == 0
    printed = capsys.readouterr().out
    assert "verified: 16 games replayed, " in printed
    assert "probit, random = 0" in printed
    assert main(verify[:2]) == 1  # on the ladder of the package
    assert "name its ladder by --ladder" in capsys.readouterr().err
    assert main([*rate, "--opponents", "1"]) == 1
    assert "--records: expected games against greedy, got some ag" in capsys.readouterr().err


def test_verify__takes_ladder_and_board_of_files(tmp_path: Path, capsys: Output) -> None:
    shutil.copy(ROOT / "tokaido_env" / "boards" / "shikoku_art.toml", tmp_path / "mine.toml")
    board = ["--board", str(tmp_path / "mine.toml"), "--ladder", str(tmp_path / "ladder.json")]
    agent = "python:custom_agents:HighestAtOnce"
    assert main(["ladder", agent, "random", *board, "--games", "20"]) == 0
    files = ["--json", str(tmp_path / "r.json"), "--records", str(tmp_path / "r.jsonl")]
    allowed = [*board, "--allow-agents", agent]
    assert main(["rate", "greedy", *allowed, "--games", "8", *files]) == 0
    assert main(["verify", str(tmp_path / "r.json"), *allowed]) == 0
    assert "verified: 16 games replayed" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "r.json"), *board]) == 1
    assert "a file may not name code to run" in capsys.readouterr().err


def test_ladder__is_rated_again_with_another_anchor(tmp_path: Path, capsys: Output) -> None:
    path, data_file, tables = (tmp_path / name for name in ("l.json", "data.json", "tables.md"))
    agents = ["random", "greedy:epsilon=0.5", "greedy", "heuristic"]
    command = ["ladder", *agents, "--ladder", str(path), "--games", "20"]
    assert main(command) == 0
    first = json.loads(path.read_text(encoding="utf-8"))
    assert (first["protocol"], first["anchor"]) == ("ladder", "random")
    capsys.readouterr()
    files = ["--json", str(data_file), "--markdown", str(tables)]
    assert main([*command, *files, "--anchor", "greedy"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    again = json.loads(path.read_text(encoding="utf-8"))
    assert again["anchor"] == "greedy"
    assert again["scores"] == first["scores"]
    data = Result.load(data_file)
    assert data.to_dict()["estimates"][: len(again["estimates"])] == again["estimates"]
    baselines = [one for one in data.estimates_of("Elo") if one.group]
    assert {one.agent for one in baselines} == set(agents) - {"heuristic"}
    assert data.ladder == again["hash"]
    assert f"Ladder {again['hash']}, " in printed.out
    differences = [one.other for one in data.estimates_of("Elo difference") if not one.group]
    assert differences == ["greedy"]
    for text in (printed.out, tables.read_text(encoding="utf-8")):
        assert "Epsilon baselines, a separate scale: probit, greedy = 0" in text
        assert "degrees of freedom" in text
    assert main([*command, "--anchor", "mcts"]) == 1
    assert "--anchor: expected one of 'random'" in capsys.readouterr().err
