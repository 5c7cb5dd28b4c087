"""Bring croissant.json, the machine-readable metadata of the published data, up to date.

    python benchmarks/croissant.py            write it
    python benchmarks/croissant.py --check    only check whether it is up to date

The format is Croissant 1.1 (JSON-LD) with the responsible-AI fields. Texts are written in
croissant.json by hand: this program computes size and SHA-256 of each file there, and columns,
types and shapes of each record set. To add a file, a record set (with its first field) or a column,
write an entry with its name and description. `data/README.md` describes the data for people.
`mlcroissant validate --jsonld croissant.json` must print no warning.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from parquet_files import GAME_COLUMNS, REGRET, REGRET_COLUMNS

from tokaido_env.cli.tabular_io import TEXTS, WORD
from tokaido_env.files import write_text

ROOT = Path(__file__).resolve().parents[1]
CARD = ROOT / "croissant.json"
DATA_DATE = "2026-11-26"
NESTED = "start"  # start position of a record: Croissant has no type for such nesting
PLACE = "scores"  # key of the records in a ladder's file

Data = dict[str, Any]


def updated(old: Data) -> Data:
    """Return the metadata with what follows from the present files."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    home, version = project["urls"]["Repository"], project["version"]
    paths = {one["@id"]: ROOT / one["contentUrl"] for one in old["distribution"]}
    meanings = {
        one["name"]: one["description"] for several in old["recordSet"] for one in several["field"]
    }
    sets = []
    for several in old["recordSet"]:
        path = paths[several["field"][0]["source"]["fileObject"]["@id"]]
        fields = [field(several["name"], path, meanings, *column) for column in columns(path)]
        sets.append(several | {"field": fields})
    return old | {
        "url": home,
        "version": version,
        "creator": {"@type": "sc:Organization", "name": project["authors"][0]["name"]},
        "citeAs": f"tokaido_env {version}, {home}",
        "datePublished": release_date(),
        "keywords": project["keywords"],
        "distribution": [one | size_and_hash(paths[one["@id"]]) for one in old["distribution"]],
        "recordSet": sets,
    }


def release_date() -> str:
    """Return the release date in the citation file, before a release that of the newest file."""
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    dates = [line.split(": ")[1] for line in lines if line.startswith("date-released: ")]
    return dates[0].strip("\"'") if dates else DATA_DATE


def size_and_hash(path: Path) -> Data:
    """Return the computed entries of a file."""
    content = path.read_bytes()
    return {"contentSize": f"{len(content)} B", "sha256": hashlib.sha256(content).hexdigest()}


def field(
    records: str, path: Path, meanings: Data, name: str, kind: str, shape: Data, extract: Data
) -> Data:
    """Return the description of a column."""
    place = {"fileObject": {"@id": path.name}, "extract": extract}
    parts = {
        part: place | {"transform": {"jsonPath": f"$.{part}"}} for part in shape.get("parts", ())
    }
    data = {"@type": "cr:Field", "@id": f"{records}/{name}", "name": name}
    data["description"] = meanings[name]
    if not parts:
        return data | {"dataType": kind} | shape | {"source": place}
    data |= {"repeated": True, "subField": []}
    for part, source in parts.items():
        head = {"@type": "cr:Field", "@id": f"{records}/{name}/{part}", "name": part}
        data["subField"].append(head | {"dataType": kind, "source": source})
    return data


def columns(path: Path) -> Iterator[tuple[str, str, Data, Data]]:
    """Yield name, type, shape and place of each column of a file."""
    if path.suffix == ".parquet":
        for name, kind in (REGRET_COLUMNS if path.name == REGRET.name else GAME_COLUMNS).items():
            dtype = "sc:Text" if kind in (WORD, TEXTS) else array_type(np.zeros(1, str(kind)))[0]
            shape: Data = {"repeated": True} if kind == TEXTS else {}
            yield name, dtype, shape, {"column": name}
        return
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            for name in arrays.files:
                yield name, *array_type(arrays[name]), {"column": name}
        return
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
    else:
        rows = json.loads(path.read_text(encoding="utf-8"))[PLACE]
    for name in [name for name in rows[0] if name != NESTED]:
        is_row = path.suffix == ".jsonl"
        place = {"column": name} if is_row else {"jsonPath": f"$.{PLACE}[*].{name}"}
        yield name, *json_type([row[name] for row in rows]), place


def array_type(array: Any) -> tuple[str, Data]:
    """Return type and shape of an array."""
    shape = {"isArray": True, "arrayShape": ",".join(map(str, array.shape))}
    if array.dtype.fields:
        return "sc:Text", shape  # bytes: Croissant has no structured types
    name = array.dtype.name.capitalize().replace("Ui", "UI")
    return f"cr:{name}", shape


def json_type(values: Sequence[Any]) -> tuple[str, Data]:
    """Return type and shape of the values of a JSON key."""
    flat = [part for value in values for part in (value if isinstance(value, list) else [value])]
    repeated: Data = {"repeated": True} if any(isinstance(v, list) for v in values) else {}
    kinds = {type(part) for part in flat if part is not None}
    if kinds == {dict}:
        return json_type([part[name] for part in flat for name in part])[0], {"parts": [*flat[0]]}
    if kinds == {int}:
        return "sc:Integer", repeated
    if kinds <= {int, float}:
        return "sc:Float", repeated
    return "sc:Text", repeated


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the metadata or check whether they are up to date; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    check = "only check whether the file is up to date (default: off)"
    parser.add_argument("--check", action="store_true", help=check)
    old = CARD.read_text(encoding="utf-8")
    new = json.dumps(updated(json.loads(old)), indent=1, ensure_ascii=False) + "\n"
    if parser.parse_args(arguments).check:
        print(f"{CARD.name}: {'up to date' if new == old else 'not up to date: make golden'}")
        return int(new != old)
    write_text(CARD, new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
