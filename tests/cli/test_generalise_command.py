"""Tests of `tokaido generalise`, and of `tokaido verify` for its results."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from refusals import check_refused

from tokaido_env.__main__ import main
from tokaido_env.record import load

ROOT = Path(__file__).resolve().parents[2]
OPPONENT = "greedy:epsilon=0.2"
SMALL = ["--opponent", OPPONENT, "--boards", "3", "--pairs", "2"]

Output = pytest.CaptureFixture[str]


def results(path: Path, *arguments: str) -> dict[str, Any]:
    assert main(["generalise", *arguments, *SMALL, "--json", str(path)]) == 0
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return written


def test_generalise__writes_json_and_prints_a_table(tmp_path: Path, capsys: Output) -> None:
    written = results(tmp_path / "r.json", "greedy", "--seed", "3")
    assert (written["agent"], written["opponent"], written["seed"]) == ("greedy", OPPONENT, 3)
    for kind, first in (("test", 2_000_000), ("train", 0)):
        scores = written[kind]
        assert (scores["pool"], scores["boards"], scores["pairs"]) == (f"family:{kind}/3", 3, 2)
        assert [one["board"] for one in scores["each"]] == [f"family:{first + i}" for i in range(3)]
        for one in (scores["mean"], scores["iqm"], scores["above_even"], *scores["each"]):
            low, high = one["ci95"]
            assert 0 <= low <= one["value"] <= high <= 1
    gap = written["test"]["mean"]["value"] - written["train"]["mean"]["value"]
    assert written["gap"]["value"] == pytest.approx(gap, abs=2e-6)
    printed = capsys.readouterr()
    assert f"greedy against {OPPONENT}, seed 3" in printed.out
    value = f"{100 * written['test']['mean']['value']:.1f} % ("
    (row,) = (line for line in printed.out.splitlines() if line.strip().startswith("mean score"))
    assert value in row
    assert "family:test/3" in printed.out
    assert "Gap, family:test/3 less family:train/3 (unseen boards of train" in printed.out


def test_generalise__is_reproducible(tmp_path: Path) -> None:
    for name, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        results(tmp_path / name, "greedy", "--seed", seed, "--plots", str(tmp_path / f"p{name}"))
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b != c
    pictures = sorted(path.name for path in (tmp_path / "pa").iterdir())
    assert pictures == ["boards.png", "boards.svg"]
    for name in pictures:
        one, again, other = ((tmp_path / f"p{run}" / name).read_bytes() for run in "abc")
        assert one == again != other


def test_generalise__resumes_from_records_of_both_splits(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "games.jsonl"
    first = results(tmp_path / "a", "greedy", "--records", str(file))
    whole = file.read_bytes()
    boards = [record.board for record in load(file)]
    assert boards == [f"family:{number}" for number in (2000000, 2000001, 2000002, 0, 1, 2)
                      for _ in range(4)]  # fmt: skip
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for size in (ends[5] + 9, ends[13]):
        file.write_bytes(whole[:size])
        capsys.readouterr()
        assert results(tmp_path / "b", "greedy", "--records", str(file)) == first
        assert f"{whole[:size].count(10)} recorded games" in capsys.readouterr().err
        assert file.read_bytes() == whole


def test_generalise__reuses_games_for_more_boards(tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "games.jsonl"
    few = results(tmp_path / "a", "greedy", "--records", str(file))
    capsys.readouterr()
    command = ["generalise", "greedy", *SMALL[:2], "--boards", "4", "--pairs", "2"]
    more = ["--records", str(file), "--json", str(tmp_path / "b")]
    assert main([*command, *more]) == 0
    assert "24 recorded games" in capsys.readouterr().err
    many = json.loads((tmp_path / "b").read_text(encoding="utf-8"))
    assert many["test"]["each"][:3] == few["test"]["each"]


# Submissions


@pytest.mark.parametrize(
    "more", [[], ["--no-gap"], ["--train", "2"], ["--no-gap", "--opponents", "greedy", "rusher"]]
)
def test_verify__accepts_results_with_their_records(
    more: list[str], tmp_path: Path, capsys: Output
) -> None:
    file = tmp_path / "r.json"
    written = results(file, "greedy", *more, "--records", str(tmp_path / "r.jsonl"))
    games = written["records"]["games"]
    assert games == (12 if more == ["--no-gap"] else 36 if "rusher" in more else 24)
    assert (written["train"] is None) == ("--no-gap" in more)
    capsys.readouterr()
    assert main(["verify", str(file), "--share", "1", "--agent", "greedy"]) == 0
    assert f"verified: {games} games replayed, " in capsys.readouterr().out


def test_verify__accepts_results_on_the_hand_made_boards(tmp_path: Path, capsys: Output) -> None:
    file, records = tmp_path / "r.json", str(tmp_path / "r.jsonl")
    command = ["generalise", "greedy", "--split", "handmade", "--opponent", "random", "--no-gap"]
    assert main([*command, "--pairs", "1", "--json", str(file), "--records", records]) == 0
    assert main(["verify", str(file), "--share", "1", "--agent", "greedy"]) == 0
    assert "verified: 12 games replayed, " in capsys.readouterr().out


def test_verify__refuses_a_changed_byte_and_other_boards(tmp_path: Path, capsys: Output) -> None:
    file, records = tmp_path / "r.json", tmp_path / "r.jsonl"
    written = results(file, "greedy", "--no-gap", "--records", str(records))
    whole = records.read_bytes()

    def refused(*more: str) -> str:
        capsys.readouterr()
        assert main(["verify", str(file), *more]) == 1
        return capsys.readouterr().err.splitlines()[-1]

    at = whole.index(b"roll:") + 5  # another roll of the dice
    records.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert "r.jsonl, line 1: event " in refused("--share", "0")
    records.write_bytes(whole.replace(b"\n", b" \n", 1))  # the same games
    assert "records: sha256: expected " in refused("--share", "0")
    records.write_bytes(whole)
    changes: dict[str, Any] = {
        "test: expected {": {"mean": written["test"]["mean"] | {"value": 0.75}},
        "hash: expected ": {"hash": "0" * 16},
        "boards: expected 100 of family:test, got 3": {"pool": "family:test"},
        "pool: expected boards of the family or handmade, got 'my.toml'": {"pool": "my.toml"},
    }
    for message, change in changes.items():
        data = written | {"test": written["test"] | change}
        file.write_text(json.dumps(data), encoding="utf-8")
        assert message in refused("--share", "0")
    shell = "exec:touch trace"
    share = {"opponent": shell, "value": 0.5, "ci95": [0.25, 0.75]}
    for change in ({"opponent": shell}, {"opponents": [share, share]}):
        file.write_text(json.dumps(written | change), encoding="utf-8")
        assert "opponent: 'exec:touch trace': a file may not name code to run" in refused()
    file.write_text(json.dumps(written | {"records": None}), encoding="utf-8")
    assert "records: expected a file of all games, got none" in refused()


# Comparison


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write results with 1, 10 and an unknown number of training boards; return their paths."""
    folder = tmp_path_factory.mktemp("several")
    files = [str(folder / f"{name}.json") for name in "abc"]
    for file, more in zip(files, (["--train", "1"], ["--train", "10"], []), strict=True):
        assert main(["generalise", "greedy", *SMALL, *more, "--json", file]) == 0
    return files


def test_compare__writes_table_and_curve(
    several: list[str], tmp_path: Path, capsys: Output
) -> None:
    table, plots = tmp_path / "table.md", tmp_path / "plots"
    command = ["generalise", "--compare", *several]
    assert main([*command, "--markdown", str(table), "--plots", str(plots)]) == 0
    printed = capsys.readouterr().out
    assert f"gainst {OPPONENT} on family:test/3: 3 boards, 2 pairs on each" in printed
    lines = table.read_text(encoding="utf-8").splitlines()
    assert [line.count("|") for line in lines] == [10] * 5
    assert lines[0].split("|")[6].strip() == "worst tenth"
    for file, line in zip(several, lines[2:], strict=True):
        data = json.loads(Path(file).read_text(encoding="utf-8"))
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[:2] == ["greedy", data["trained_on"] or ""]
        low, high = (100 * end for end in data["test"]["mean"]["ci95"])
        mean = 100 * data["test"]["mean"]["value"]
        assert cells[2] == f"{mean:.1f} % ({low:.1f} to {high:.1f})"
        worst = 100 * data["test"]["worst_tenth"]["value"]
        assert cells[5].startswith(f"{worst:.1f} % (")
        assert cells[8][:6] == ("" if file == several[0] else "50.0 %")  # the same games
        assert cells[7].split(" ")[0].lstrip("+−") == f"{abs(100 * data['gap']['value']):.1f}"
    names = [f"{name}.{kind}" for name in ("curve", "profiles") for kind in ("png", "svg")]
    assert sorted(path.name for path in plots.iterdir()) == names
    before = {path.name: path.read_bytes() for path in [table, *plots.iterdir()]}
    assert main([*command, "--markdown", str(table), "--plots", str(plots)]) == 0
    assert before == {path.name: path.read_bytes() for path in [table, *plots.iterdir()]}


def test_compare__refuses_results_of_another_protocol(
    several: list[str], tmp_path: Path, capsys: Output
) -> None:
    other = tmp_path / "other.json"
    assert main(["generalise", "greedy", *SMALL, "--seed", "1", "--json", str(other)]) == 0
    assert main(["generalise", "--compare", several[0], str(other)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"generalise: {other}: expected the protocol of {several[0]}, ")
    assert "seed 0; got " in error


def test_compare__without_known_training_boards_draws_profiles_only(
    several: list[str], tmp_path: Path
) -> None:
    plots = tmp_path / "plots"
    assert main(["generalise", "--compare", several[2], "--plots", str(plots)]) == 0
    assert sorted(path.name for path in plots.iterdir()) == ["profiles.png", "profiles.svg"]


def test_compare__combines_training_seeds(
    several: list[str], tmp_path: Path, capsys: Output
) -> None:
    table = tmp_path / "table.md"
    other = str(shutil.copy(several[2], tmp_path / "d.json"))
    command = ["generalise", "--compare", *several, other, "--markdown", str(table)]
    assert main([*command, "--runs", "2"]) == 0
    capsys.readouterr()
    rows = table.read_text(encoding="utf-8").splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == ["greedy, 2 seeds"] * 2
    check_refused(
        capsys,
        [*command, "--runs", "3"],
        "--runs: expected a divisor of 4, the number of files, got 3",
    )


def test_generalise__plays_several_opponents(tmp_path: Path, capsys: Output) -> None:
    written = results(tmp_path / "r.json", "random", "--opponents", "rusher", "hoarder")
    assert [one["opponent"] for one in written["opponents"]] == [OPPONENT, "rusher", "hoarder"]
    printed = capsys.readouterr().out
    default = results(tmp_path / "s.json", "rusher", "--no-gap", "--opponents")
    others = [OPPONENT, "mcts:sims=400", "heuristic", "generalist", "hoarder"]  # not the agent
    assert [one["opponent"] for one in default["opponents"]] == others
    for name in (OPPONENT, "rusher", "hoarder", "mean", "worst: "):
        assert any(line.strip().startswith(name) for line in printed.splitlines())
