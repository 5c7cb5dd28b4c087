"""`evaluate.py`: what it writes, that it writes it again, and what it says when it cannot."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
MATCH = {"a", "b", "games", "wins", "draws", "losses", "score", "ci95", "mean"}  # DESIGN 7
POINTS = ["faith", "commerce", "culture", "total"]

Output = pytest.CaptureFixture[str]

main: Callable[[list[str]], int] = runpy.run_path(str(ROOT / "evaluate.py"))["main"]


def results(path: Path, *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json", str(path)]) == 0
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return written


def test_the_results_as_json(tmp_path: Path) -> None:
    agents = ["greedy", "random", "random"]
    written = results(tmp_path / "r.json", *agents, "--games", "20", "--seed", "3")
    assert list(written) == ["version", "seed", "board", "agents", "matches", "ratings"]
    assert (written["version"], written["seed"], written["board"]) == (1, 3, "shikoku")
    assert written["agents"] == agents
    assert [(m["a"], m["b"]) for m in written["matches"]] == [
        *(("greedy", "random"), ("greedy", "random"), ("random", "random")),
    ]
    for match in written["matches"]:
        assert set(match) == MATCH
        assert match["games"] == match["wins"] + match["draws"] + match["losses"] == 20
        assert match["score"] == (match["wins"] + match["draws"] / 2) / 20
        low, high = match["ci95"]
        assert 0 <= low <= match["score"] <= high <= 1
        for mean in match["mean"].values():
            assert list(mean) == POINTS
            assert mean["total"] == pytest.approx(sum(mean[key] for key in POINTS[:3]))
    assert set(written["matches"][0]["mean"]) == {"a", "b"}
    assert written["matches"][0]["score"] > 0.7  # greedy is the better one


def test_the_same_command_gives_the_same_bytes(tmp_path: Path) -> None:
    command = ["random", "greedy", "--games", "10"]
    written = []
    for name, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        results(tmp_path / name, *command, "--seed", seed)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1] != written[2]


def test_the_table_has_each_agent_with_its_interval_and_the_number_of_games(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["greedy", "random", "--games", "10", "--seed", "2"]) == 0
    shown = capsys.readouterr().out
    assert "10 games a pair, seats swapped, seed 2, board shikoku" in shown
    assert "95 % interval" in shown
    rows = [line.split() for line in shown.splitlines()]
    scores = {
        row[0]: float(row[2].rstrip("%")) for row in rows if row[:1] in (["greedy"], ["random"])
    }
    assert scores["greedy"] + scores["random"] == pytest.approx(100)


def test_the_agents_are_listed(capsys: Output) -> None:
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    for usage in ("random", "greedy", "policy:PATH[,temperature=T]"):
        assert f"{usage}\n    " in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("greedy", "nobody"), "unknown agent 'nobody': expected one of random, greedy, policy:"),
        (("greedy", "policy"), "policy:PATH"),
        (("greedy", "policy:nowhere"), "nowhere: no such policy file"),
        (("greedy", "random", "--games", "7"), "games: expected an even number from 2"),
        (("greedy", "random", "--games", "0"), "games: expected an even number from 2"),
        (("greedy", "random", "--seed", "-1"), "seed: expected an integer from 0"),
        (("greedy", "random", "--board", "honshu"), "unknown board 'honshu'"),
        (("greedy", "random", "--games", "2", "--json", "/nowhere/r.json"), "/nowhere/r.json"),
    ],
)
def test_an_error_is_one_line_and_status_1(
    capsys: Output, arguments: tuple[str, ...], message: str
) -> None:
    assert main(list(arguments)) == 1
    error = capsys.readouterr().err
    assert error.startswith("evaluate: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("agents", [[], ["greedy"]])
def test_one_agent_is_too_few(capsys: Output, agents: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(agents)
    assert stopped.value.code == 2
    assert "expected two or more agents, as: evaluate.py greedy random" in capsys.readouterr().err
