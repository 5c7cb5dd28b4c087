"""Tests of `benchmarks/croissant.py`: the metadata of the data files."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import croissant

Data = dict[str, Any]


@pytest.fixture(scope="module")
def card() -> Data:
    data: Data = json.loads((ROOT / "croissant.json").read_text(encoding="utf-8"))
    return data


def test_croissant__is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert croissant.main(["--check"]) == 0
    assert capsys.readouterr().out == "croissant.json: up to date\n"


def test_croissant__lists_all_data_files(card: Data) -> None:
    listed = {file["contentUrl"] for file in card["distribution"]}
    package = ROOT / "tokaido_env"
    data = [*package.glob("*/*.json"), *package.glob("study/*.npz"), *package.glob("boards/*.toml")]
    assert len(data) > 8
    assert {path.relative_to(ROOT).as_posix() for path in data} <= listed


def test_croissant__lists_the_columns_of_the_files(card: Data) -> None:
    sets = {
        one["name"]: {field["name"]: field for field in one["field"]} for one in card["recordSet"]
    }
    with (ROOT / "tests/golden/games.jsonl").open(encoding="utf-8") as lines:
        first = json.loads(next(lines))
    assert {*sets["games"], "start"} == set(first)
    assert sets["games"]["scores"]["subField"][0]["dataType"] == "sc:Integer"
    with np.load(ROOT / "tokaido_env/study/regret.npz", allow_pickle=False) as arrays:
        shapes = {name: ",".join(map(str, arrays[name].shape)) for name in arrays.files}
    assert {name: field["arrayShape"] for name, field in sets["regret-set"].items()} == shapes


def test_croissant_check__fails_for_a_changed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, card: Data, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy.deepcopy(card)
    other["distribution"][0]["sha256"] = "0" * 64
    path = tmp_path / "croissant.json"
    path.write_text(json.dumps(other, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    monkeypatch.setattr(croissant, "CARD", path)
    assert croissant.main(["--check"]) == 1
    assert "not up to date" in capsys.readouterr().out
    assert croissant.main([]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == card
