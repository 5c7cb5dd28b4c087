"""Tests of table files: every kind of column."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from tokaido_env.cli import tabular_io
from tokaido_env.cli.tabular_io import TEXT, TEXTS, WORD, table_file

COLUMNS = {"n": "int16", "x": "float64", "row": ("uint8", 3), "name": TEXT, "phase": WORD}
PARTS: list[dict[str, Any]] = [
    {
        "n": [1, 2],
        "x": np.array([0.5, np.nan]),
        "row": np.array([[1, 2, 3], [4, 5, 6]], np.uint8),
        "name": ["Søren | x", ""],
        "phase": ["ROLL", "MOVE"],
    },
    {
        "n": [3],
        "x": np.array([-1.0]),
        "row": np.array([[7, 8, 9]], np.uint8),
        "name": ["b"],
        "phase": ["ROLL"],
    },
]


def written(path: Path, *parts: dict[str, Any], columns: Any = COLUMNS) -> Path:
    with table_file(path, columns, {"format": "a", "version": 1}) as add:
        for part in parts:
            add(part)
    return path


def test_parquet__has_every_kind_of_column(tmp_path: Path) -> None:
    columns = COLUMNS | {"labels": TEXTS}
    labels: list[list[list[str]]] = [[["a", "b"], []], [["c"]]]
    parts = [part | {"labels": each} for part, each in zip(PARTS, labels, strict=True)]
    path = written(tmp_path / "t.parquet", *parts, columns=columns)
    schema = pq.read_schema(path)
    assert json.loads(schema.metadata[b"tokaido_env"]) == {"format": "a", "version": 1}
    assert {field.name: str(field.type) for field in schema} == {
        "n": "int16",
        "x": "double",
        "row": "fixed_size_list<element: uint8>[3]",
        "name": "string",
        "phase": "dictionary<values=string, indices=int32, ordered=0>",
        "labels": "list<element: string>",
    }
    table = pd.read_parquet(path)
    assert table["n"].tolist() == [1, 2, 3]
    assert np.stack(table["row"]).tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert table["name"].tolist() == ["Søren | x", "", "b"]
    assert table["phase"].tolist() == ["ROLL", "MOVE", "ROLL"]
    assert [list(each) for each in table["labels"]] == [["a", "b"], [], ["c"]]


def test_parquet__writes_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = written(tmp_path / "a.parquet", *PARTS)
    monkeypatch.setattr(tabular_io, "GROUP", 2)
    in_turn = written(tmp_path / "b.parquet", *PARTS)
    assert [pq.read_metadata(path).num_row_groups for path in (at_once, in_turn)] == [1, 2]
    pd.testing.assert_frame_equal(pd.read_parquet(at_once), pd.read_parquet(in_turn))
