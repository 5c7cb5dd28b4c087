"""Machine-readable metadata of the published data: croissant.json, made from the files.

    python benchmarks/croissant.py            write it
    python benchmarks/croissant.py --check    only check whether it is up to date

The format is Croissant 1.0 (JSON-LD): size and SHA-256 of each file; columns, types and shapes of
each record set. `docs/benchmarks/published-data.md` describes the data for people.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tokaido_env.files import write_text

ROOT = Path(__file__).resolve().parents[1]
CARD = ROOT / "croissant.json"
NAME = "tokaido-env-data"
NESTED = "start"  # start position of a record: Croissant has no type for such nesting

Data = dict[str, Any]

CONTEXT: Data = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "equivalentProperty": "cr:equivalentProperty",
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}

FORMATS = {
    ".jsonl": "application/jsonlines",
    ".json": "application/json",
    ".npz": "application/zip",
    ".toml": "application/toml",
}


class File(NamedTuple):
    """A data file.

    Attributes:
        path: relative to the root.
        about: its description.
        records: name of its record set; empty for a file without one.
        place: key of the records in a JSON file, as `matches`.
    """

    path: str
    about: str
    records: str = ""
    place: str = ""


FILES = (
    File(
        "tests/golden/games.jsonl",
        "Games at random that fix rules and luck: six, one from a position shortly before the cap.",
        "games",
    ),
    File(
        "tokaido_env/arena/ladder.json",
        "The ladder: agents that played each other on the board shikoku, their ratings.",
        "ladder-matches",
        "matches",
    ),
    File(
        "tokaido_env/arena/ladder-family.json",
        "The ladder on the 100 boards of family:valid.",
        "family-ladder-matches",
        "matches",
    ),
    File(
        "tokaido_env/study/regret.npz",
        "tokaido-regret-1: positions, and what each legal action is worth by rollouts; arrays.",
        "regret-set",
    ),
    File(
        "tokaido_env/arena/tokaido-bench-1.json", "The suite tokaido-bench-1: opponents and boards."
    ),
    File("benchmarks/analysis.json", "How games of search against itself go, with intervals."),
    *(
        File(f"tokaido_env/boards/shikoku{kind}.toml", f"A board of the game: shikoku{kind}.")
        for kind in ("", "_art", "_dice", "_market", "_remix", "_ring", "_routes")
    ),
)

MEANINGS = {
    "format": "of the line: tokaido-duo",
    "version": "of the format",
    "rules": "version of the rules",
    "board": "name of the board; in the regret set which of the boards on its card",
    "board_hash": "of all that the board is",
    "seed": "of the luck: the game follows from it and from the decisions",
    "players": "names of player_0 and player_1",
    "events": "labels of decisions and outcomes of chance, in order",
    "scores": "points of each player",
    "winner": "0 or 1; null for a shared victory or a game at the cap",
    "end": "triggers, cap or forfeit",
    "rounds": "that were played",
    "a": "spec of an agent",
    "b": "spec of its opponent",
    "pairs": "pairs of games by the points of a: 0, ½, 1, 1½, 2",
    "score": "share of the points that a won",
    "ci95": "95 % interval of the score",
    "card": "JSON as bytes: how the set was made, its boards and strata",
    "states": "positions, one record each: fields in docs/benchmarks/published-data.md",
    "stratum": "which of the strata on the card",
    "starts": "position i has the actions starts[i] to starts[i + 1]",
    "actions": "ids of legal actions",
    "sums": "results of 64 rollouts each, by action, policy and block; -128: not rolled out",
}


def card() -> Data:
    """Return the metadata of the present files."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    home = project["urls"]["Repository"]
    sets = [records_of(one) for one in FILES if one.records]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": NAME,
        "description": (
            "Data of tokaido_env, the board game Tokaido Duo as a reinforcement-learning "
            "environment: recorded games, results of matches, positions with the worth of each "
            "action, a suite and boards."
        ),
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "license": "https://spdx.org/licenses/MIT.html",
        "url": home,
        "version": project["version"],
        "creator": {"@type": "sc:Organization", "name": project["authors"][0]["name"]},
        "citeAs": f"tokaido_env {project['version']}, {home}",
        **release_date(),
        "keywords": project["keywords"],
        "inLanguage": "en",
        "isLiveDataset": False,
        "distribution": [file_of(one) for one in FILES],
        "recordSet": sets,
    }


def release_date() -> Data:
    """Return the release date in the citation file, which has none before a release."""
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    dates = [line.split(": ")[1] for line in lines if line.startswith("date-released: ")]
    return {"datePublished": dates[0].strip("\"'")} if dates else {}


def file_of(one: File) -> Data:
    """Return the description of a file."""
    content = (ROOT / one.path).read_bytes()
    return {
        "@type": "cr:FileObject",
        "@id": Path(one.path).name,
        "name": Path(one.path).name,
        "description": one.about,
        "contentUrl": one.path,
        "contentSize": f"{len(content)} B",
        "encodingFormat": FORMATS[Path(one.path).suffix],
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def records_of(one: File) -> Data:
    """Return the record set of a file, with a field per column."""
    fields = [field(one, *column) for column in columns(one)]
    return {
        "@type": "cr:RecordSet",
        "@id": one.records,
        "name": one.records,
        "description": one.about,
        "field": fields,
    }


def field(one: File, name: str, kind: str, shape: Data, extract: Data) -> Data:
    """Return the description of a column."""
    place = {"fileObject": {"@id": Path(one.path).name}, "extract": extract}
    parts = {
        part: place | {"transform": {"jsonPath": f"$.{part}"}} for part in shape.get("parts", ())
    }
    data = {"@type": "cr:Field", "@id": f"{one.records}/{name}", "name": name}
    data["description"] = MEANINGS[name]
    if not parts:
        return data | {"dataType": kind} | shape | {"source": place}
    data |= {"repeated": True, "subField": []}
    for part, source in parts.items():
        head = {"@type": "cr:Field", "@id": f"{one.records}/{name}/{part}", "name": part}
        data["subField"].append(head | {"dataType": kind, "source": source})
    return data


def columns(one: File) -> Iterator[tuple[str, str, Data, Data]]:
    """Yield name, type, shape and place of each column of a file."""
    path = ROOT / one.path
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            for name in arrays.files:
                yield name, *array_type(arrays[name]), {"column": name}
        return
    if path.suffix == ".jsonl":
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
    else:
        rows = json.loads(path.read_text(encoding="utf-8"))[one.place]
    for name in [name for name in rows[0] if name != NESTED]:
        place = {"jsonPath": f"$.{one.place}[*].{name}"} if one.place else {"column": name}
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
    parser.add_argument(
        "--check",
        action="store_true",
        help="only check whether the file is up to date (default: off)",
    )
    options = parser.parse_args(arguments)
    text = json.dumps(card(), indent=1, ensure_ascii=False) + "\n"
    if options.check:
        same = CARD.is_file() and CARD.read_text(encoding="utf-8") == text
        print(f"{CARD.name}: {'up to date' if same else 'not up to date: make golden'}")
        return 0 if same else 1
    write_text(CARD, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
