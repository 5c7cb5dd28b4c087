"""Tests of `tokaido evaluate suite` and `verify`."""

import json
import shutil
from pathlib import Path

import pytest
from refusals import check_refused

from tokaido_env.arena.suite import Suite
from tokaido_env.cli.evaluate import main

ROOT = Path(__file__).resolve().parents[2]
SMALL = ROOT / "tests" / "golden" / "small-suite.json"

Output = pytest.CaptureFixture[str]


def measured(folder: Path, agent: str = "heuristic", *more: str) -> dict[str, bytes]:
    """Return the bytes of an agent's submission and records."""
    files = [f"--{key}={folder / name}" for key, name in NAMES.items()]
    assert main(["suite", agent, f"--suite={SMALL}", *files, *more]) == 0
    return {key: (folder / name).read_bytes() for key, name in NAMES.items() if key != "timing"}


NAMES = {"json": "mine.json", "records": "mine.jsonl", "timing": "mine.timing.json"}


def test_suite__resumes_to_the_same_bytes(tmp_path: Path, capsys: Output) -> None:
    first = measured(tmp_path)
    printed = capsys.readouterr().out
    for text in ("TB-1, the default board", "TB-G, the test boards", "core-seconds per move"):
        assert text in printed
    lines = first["records"].splitlines(keepends=True)
    (tmp_path / "mine.jsonl").write_bytes(b"".join(lines[10:14]) + b"".join(lines[:5]))
    (tmp_path / "mine.json").unlink()
    assert measured(tmp_path, "heuristic", "--executor", "serial") == first
    assert "9 recorded games" in capsys.readouterr().err
    timing = json.loads((tmp_path / "mine.timing.json").read_text(encoding="utf-8"))
    assert timing["suite"] == Suite.load(SMALL).hash
    assert timing["moves"] > 100
    assert 0 < timing["seconds_a_move"] < 1


def test_verify__accepts_a_submission_that_compare_tabulates(
    tmp_path: Path, capsys: Output
) -> None:
    measured(tmp_path)
    path = str(tmp_path / "mine.json")
    verify = ["verify", path, "--suite", str(SMALL), "--share", "1", "--agent", "heuristic"]
    assert main(verify) == 0
    assert "verified: 24 games replayed, " in capsys.readouterr().out
    other = tmp_path / "other.json"
    shutil.copy(path, other)
    markdown = tmp_path / "table.md"
    table = ["suite", "--suite", str(SMALL), "--compare", path, str(other)]
    assert main([*table, "--markdown", str(markdown)]) == 0
    rows = markdown.read_text(encoding="utf-8").splitlines()
    assert rows[0] == "| agent | TB-1 | TB-G | worst board | core-seconds per move |"
    timed, untimed = (row.split(" | ") for row in rows[2:])
    assert timed[:4] == untimed[:4]
    assert timed[4] != untimed[4] == " |"
    assert main([*verify[:2], "--share", "0"]) == 1  # of tokaido-bench-1 it is not
    assert "suite: expected tokaido-bench-1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("suite", "greedy", "--suite", "no.json"), "no.json: no such suite"),
        (("suite", "greedy", "--markdown", "x.md"), "--markdown: expected together with --compare"),
        (
            ("suite", "greedy", "--compare", "x.json"),
            "--compare: expected only result files",
        ),
        (("verify", "no.json"), "no.json: no such submission"),
        (("verify", str(SMALL)), "suite: expected tokaido-bench-1, got None: expected a submis"),
    ],
)
def test_suite__refuses_wrong_options_in_one_line(
    capsys: Output, arguments: tuple[str, ...], message: str
) -> None:
    check_refused(capsys, ["evaluate", *arguments], message)
