"""Tests of `tokaido rate` and `ladder`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tokaido_env.__main__ import main
from tokaido_env.arena.ladder import FAMILY_LADDER, Ladder
from tokaido_env.arena.result import Result

ROOT = Path(__file__).resolve().parents[2]

Output = pytest.CaptureFixture[str]


def results(path: Path, *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json", str(path)]) == 0
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return written


def test_rate__rates_an_agent_on_a_new_ladder(tmp_path: Path, capsys: Output) -> None:
    ladder = ["--ladder", str(tmp_path / "ladder.json"), "--games", "10"]
    assert main(["ladder", "greedy", "random", "--out", *ladder[1:]]) == 0
    rate = ["rate", "python:custom_agents:HighestAtOnce", *ladder]
    written = results(tmp_path / "r.json", *rate)
    measures = [one["measure"] for one in written["estimates"]]
    assert measures == ["Elo", "expected score", "expected score"]
    assert {(one["a"], one["b"]) for one in written["scores"]} == {
        (rate[1], "greedy"),
        (rate[1], "random"),
    }
    printed = capsys.readouterr().out
    assert rate[1] in printed
    assert "above the next" in printed
    assert "Elo across a clean sweep" in printed
    assert "probit, random = 0" in printed
    assert written["anchor"] == "random"
    assert f"on ladder {json.loads(Path(ladder[1]).read_text())['hash']}" in printed
    named = results(tmp_path / "r.json", "rate", f"mine={rate[1]}", *ladder)
    assert {**named, "command": 0} == {**written, "command": 0}  # the file has the spec
    printed = capsys.readouterr().out
    assert rate[1] not in printed
    assert "mine, board shikoku" in printed
    assert re.search(r"^mine +.?\d", printed, re.MULTILINE)


def test_rate__resumes_to_the_same_bytes(tmp_path: Path, capsys: Output) -> None:
    ladder, records = ["--ladder", str(tmp_path / "ladder.json")], tmp_path / "r.jsonl"
    assert main(["ladder", "greedy", "random", "--out", ladder[1], "--games", "20"]) == 0
    rate = ["rate", "heuristic", *ladder, "--games", "8", "--records", str(records)]
    written = results(tmp_path / "r.json", *rate)
    first = (tmp_path / "r.json").read_bytes(), records.read_bytes()
    assert written["records"]["games"] == 16
    lines = first[1].splitlines(keepends=True)
    records.write_bytes(b"".join(lines[10:14]) + b"".join(lines[:5]))
    results(tmp_path / "r.json", *rate)
    assert first == ((tmp_path / "r.json").read_bytes(), records.read_bytes())
    assert "9 recorded games" in capsys.readouterr().err
    assert main([*rate, "--opponent-count", "1"]) == 0
    assert "8 recorded games are against other opponents" in capsys.readouterr().err


def test_ladder__is_rated_again_with_another_anchor(tmp_path: Path, capsys: Output) -> None:
    path, data_file, tables = (tmp_path / name for name in ("l.json", "data.json", "tables.md"))
    agents = ["random", "greedy:epsilon=0.5", "greedy", "heuristic"]
    command = ["ladder", *agents, "--out", str(path), "--games", "20"]
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


def test_rate__takes_the_family_ladder_for_procedural_boards(
    tmp_path: Path, capsys: Output
) -> None:
    json_file = tmp_path / "r.json"
    options = ["--games", "10", "--opponent-count", "1", "--board", "family:train/7"]
    assert main(["rate", "random", "--json", str(json_file), *options]) == 0
    assert Result.load(json_file).boards[0].name == "family:valid"
    assert f"on ladder {Ladder.load(FAMILY_LADDER).result.hash}" in capsys.readouterr().out
