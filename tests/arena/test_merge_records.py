"""Tests of arena/records.py: matches from several record files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokaido_env import Game
from tokaido_env.__main__ import main
from tokaido_env.agents import make
from tokaido_env.arena.records import merge_records
from tokaido_env.arena.tournament import play_match
from tokaido_env.record import RecordError, save

AGENTS = ("random", "greedy", "heuristic")
Output = pytest.CaptureFixture[str]


def evaluate(folder: Path, name: str, *options: str) -> Path:
    """Run `evaluate`; return the record file."""
    records = folder / f"{name}.jsonl"
    words = ["evaluate", *AGENTS, "--games", "20", "--seed", "5", "--records", str(records)]
    assert main([*words, *options]) == 0
    return records


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    return evaluate(folder, "games", "--json", str(folder / "games.json"))


def merged(folder: Path, *files: Path) -> dict[str, Any]:
    """Return the results that `evaluate --from-records` writes."""
    path = folder / "merged.json"
    command = ["evaluate", "--from-records", *map(str, files), "--json", str(path)]
    assert main(command) == 0
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def test_merge__gives_the_results_of_the_whole_run(
    whole: Path, tmp_path: Path, capsys: Output
) -> None:
    direct = json.loads(whole.with_suffix(".json").read_text(encoding="utf-8"))
    first = merged(tmp_path, whole)
    assert "60 games, board shikoku" in capsys.readouterr().out
    # Files name no seed; everything else, the intervals too, is that of the games played directly.
    for score in direct["scores"]:
        score["seed"] = None
    for key in ("agents", "boards", "scores", "estimates", "anchor"):
        assert first[key] == direct[key], key


def test_merge__joins_several_seeds_to_one_match(whole: Path, tmp_path: Path) -> None:
    found = merged(tmp_path, whole, evaluate(tmp_path, "other", "--seed", "6"))
    assert [sum(score["pairs"]) for score in found["scores"]] == [20, 20, 20]
    for match in found["scores"]:
        a, b = make(match["a"]), make(match["b"])
        results = [play_match(a, b, 20, seed).results for seed in (5, 6)]
        assert match["value"] == pytest.approx(np.concatenate(results).mean(), abs=1e-6)


def test_merge__gives_the_same_ratings_for_lines_in_any_order(whole: Path, tmp_path: Path) -> None:
    lines, part = whole.read_text(encoding="utf-8").splitlines(), tmp_path / "part.jsonl"
    expected = merged(tmp_path, whole)["estimates"]
    for seed in range(3):
        part.write_text("\n".join(np.random.default_rng(seed).permutation(lines)), encoding="utf-8")
        assert merged(tmp_path, part)["estimates"] == expected
    part.write_text("\n".join(lines[::-1]), encoding="utf-8")
    assert merged(tmp_path, part)["estimates"] == expected


def test_merge__accepts_games_on_several_boards(tmp_path: Path) -> None:
    files = [
        evaluate(tmp_path, f"on-{i}", "--board", board)
        for i, board in enumerate(("family:test/3", "shikoku_ring"))
    ]
    found = merge_records(files)
    assert (found.games, found.unpaired) == (120, 0)
    assert len(found.match_states[0].pool) > 2


def test_merge__leaves_out_games_without_their_pair(
    whole: Path, tmp_path: Path, capsys: Output
) -> None:
    part, lines = tmp_path / "part.jsonl", whole.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[:7]))
    assert [sum(score["pairs"]) for score in merged(tmp_path, part)["scores"]] == [3]
    assert "left out 1 of 7 games: the records lack" in capsys.readouterr().err
    part.write_bytes(lines[0])
    assert main(["evaluate", "--from-records", str(part)]) == 1
    assert "expected pairs of games with swapped seats, got none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line[:-40], "line 1: not a whole line of JSON"),
        (lambda line: line.replace(b'"seed": ', b'"seed": 1'), "line 1: "),
        (lambda line: line.replace(b'"shikoku"', b'"honshu"'), "unknown board 'honshu'"),
        (lambda line: b"", "expected games, got none"),
    ],
)
def test_merge__refuses_a_wrong_file_in_one_line(
    whole: Path, tmp_path: Path, capsys: Output, change: Any, message: str
) -> None:
    part = tmp_path / "part.jsonl"
    part.write_bytes(change(whole.read_bytes().splitlines(keepends=True)[0]))
    assert main(["evaluate", "--from-records", str(part)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_merge__counts_equal_games_of_overlapping_files_once(
    whole: Path, tmp_path: Path, capsys: Output
) -> None:
    part, lines = tmp_path / "part.jsonl", whole.read_text(encoding="utf-8").splitlines()
    part.write_text(json.dumps(json.loads(lines[3]), sort_keys=True), encoding="utf-8")
    expected = merged(tmp_path, whole)
    capsys.readouterr()
    assert merged(tmp_path, whole, part, whole)["hash"] == expected["hash"]
    assert "61 left out" in capsys.readouterr().err
    found = merge_records([whole, part, whole])
    assert (found.games, found.equal, found.unpaired) == (60, 61, 0)


def test_merge__keeps_the_equal_games_of_a_pair_and_counts_them(tmp_path: Path) -> None:
    file = tmp_path / "itself.jsonl"
    assert main(["evaluate", "greedy", "greedy", "--games", "20", "--records", str(file)]) == 0
    assert len(set(file.read_bytes().splitlines())) == 10
    found = merged(tmp_path, file, file)
    assert [score["pairs"] for score in found["scores"]] == [[0, 0, 10, 0, 0]]
    assert found["scores"][0]["games"]["equal"] == 10


def test_merge__refuses_a_game_that_does_not_begin_with_its_seed(tmp_path: Path) -> None:
    game = Game(seed=3)
    for _ in range(9):
        game.play(game.legal_actions()[0])
    path = tmp_path / "copy.jsonl"
    save([game.copy(seed=8).record(("a", "b"))], path)
    with pytest.raises(RecordError, match="line 1: expected a game of two agents, by its seed"):
        merge_records([path])
