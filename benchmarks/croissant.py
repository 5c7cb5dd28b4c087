"""Machine-readable metadata of the published data: croissant.json, made from the files.

    python benchmarks/croissant.py            write it
    python benchmarks/croissant.py --check    only check whether it is up to date

The format is Croissant 1.1 (JSON-LD) with the responsible-AI fields: size and SHA-256 of each file;
columns, types and shapes of each record set. `docs/benchmarks/published-data.md` describes the data
for people. `mlcroissant validate --jsonld croissant.json` must print no warning.
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
from parquet_files import GAME_COLUMNS, GAMES, REGRET, REGRET_COLUMNS

from tokaido_env.cli.tabular_io import TEXTS, WORD
from tokaido_env.files import write_text

ROOT = Path(__file__).resolve().parents[1]
CARD = ROOT / "croissant.json"
NAME = "tokaido-env-data"
DATA_DATE = "2026-11-26"
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
    "description": {"@container": "@language"},
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
    "name": {"@container": "@language"},
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
    ".parquet": "application/x-parquet",
    ".toml": "application/toml",
}


MADE = "Programs made it from seeds; no person took part."
RESPONSIBLE: Data = {
    "rai:dataCollection": (
        "Programs of the repository play games and matches, and roll positions out. Each file "
        "follows from seeds; docs/dev/releasing.md has the commands."
    ),
    "rai:dataCollectionType": ["Software Collection", "Experiments"],
    "rai:dataCollectionTimeFrame": ["2026-11-22", DATA_DATE],
    "rai:dataCollectionMissingData": (
        "ladder-games has the first games of each match; their seeds give the others. In the "
        "regret set the least promising actions have fewer rollouts, which biases no value."
    ),
    "rai:dataCollectionRawData": "Seeds, from which the games are played again.",
    "rai:dataImputationProtocol": "None: nothing is imputed.",
    "rai:dataPreprocessingProtocol": [
        "Positions are drawn from games by strata: board, phase and round."
    ],
    "rai:dataDataManipulationProtocol": "None beyond sums and means of results.",
    "rai:dataAnnotationProtocol": (
        "Values of actions are mean results of rollouts by two policies, not by people: up to "
        "1,024 by each, with the same luck for every action."
    ),
    "rai:dataAnnotationPlatform": ["tokaido_env"],
    "rai:dataAnnotationAnalysis": [
        "Intervals by a bootstrap over positions; cross-validation corrects the best noisy mean."
    ],
    "rai:annotationsPerItem": "128 to 1,024 rollouts by each of two policies",
    "rai:annotatorDemographics": [MADE],
    "rai:machineAnnotationTools": ["tokaido_env: policies champion and heuristic"],
    "rai:dataUseCases": [
        "Testing: regret of agents, agreement of other implementations of the rules.",
        "Validation of ratings and of rating models.",
        "Not for training: figures on data that an agent has seen are not comparable.",
    ],
    "rai:dataLimitations": [
        "The default board is a reconstruction; results hold for it and for the boards named.",
        "Values are by two policies, not by perfect play, and underrate plans for stronger play.",
        "Agents and opponents are those of this package; no people were measured.",
    ],
    "rai:dataBiases": [
        "Positions come from games of two policies: positions that other players reach are rare.",
        "The first mover has an advantage; games are in pairs with seats swapped.",
    ],
    "rai:dataSocialImpact": (
        "Research on a board game: no effect on people is known. The game, its name and its art "
        "belong to their publisher and are not in the data."
    ),
    "rai:personalSensitiveInformation": ["None."],
    "rai:hasSyntheticData": True,
    "rai:dataReleaseMaintenancePlan": (
        "Versions follow the package. A change of the rules makes new files with new hashes; the "
        "repository keeps the old ones. Report errors as issues there."
    ),
}


class File(NamedTuple):
    """A data file.

    Attributes:
        path: relative to the root.
        about: its description.
        records: name of its record set; empty for a file without one.
        place: key of the records in a JSON file, as `scores`.
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
        "scores",
    ),
    File(
        "tokaido_env/arena/ladder-family.json",
        "The ladder on the 100 boards of family:valid.",
        "family-ladder-matches",
        "scores",
    ),
    File(
        "tokaido_env/study/regret.npz",
        "tokaido-regret-2: positions, and what each legal action is worth by rollouts; arrays.",
        "regret-set",
    ),
    File(
        "tokaido_env/study/solved.npz",
        "tokaido-solved-1: last rounds, and the exact value of each legal action; arrays.",
        "solved-set",
    ),
    File(
        f"data/{REGRET.name}",
        "tokaido-regret-2 as a table: the value of each legal action of each position.",
        "regret-actions",
    ),
    File(
        f"data/{GAMES.name}",
        "The first games of each match of both ladders, with all decisions.",
        "ladder-games",
    ),
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
    "winner": "0 or 1; null for a shared victory or an unfinished game",
    "end": "triggers, cap or forfeit",
    "rounds": "that were played; in the regret set the stratum of rounds",
    "a": "spec of an agent",
    "b": "spec of its opponent",
    "pairs": "pairs of games by the points of a: 0, ½, 1, 1½, 2",
    "value": "share of the points that a won",
    "low": "lower end of the 95 % interval of the value",
    "high": "upper end of the interval",
    "card": "JSON as bytes: how the set was made, its boards and strata",
    "states": "positions, one record each: fields in docs/benchmarks/published-data.md",
    "stratum": "which of the strata on the card",
    "starts": "position i has the actions starts[i] to starts[i + 1]",
    "actions": "legal actions by id; in ladder-games the decisions by label, in order",
    "position": "number of the position in the regret set",
    "state": "the position as JSON, for Game.from_dict",
    "phase": "of the decision: MOVE, EFFECT, DISCARD or REPEAT",
    "weight": "share of the position among the choices of games",
    "action": "label of a legal action",
    "value_champion": "mean result of its rollouts by champion: 1 win, -1 loss",
    "value_heuristic": "mean result of its rollouts by heuristic",
    "rollouts": "their number, by both policies",
    "ladder": "hash of the ladder",
    "seat_of_a": "0 if a is player_0 and begins, else 1",
    "result": "of a: 1, 0.5 or 0",
    "points_a": "total points of a",
    "points_b": "total points of b",
    "sums": "results of 64 rollouts each, by action, policy and block (-128: none), or exact ones",
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
            "action, and boards."
        ),
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "license": "https://spdx.org/licenses/MIT.html",
        "url": home,
        "version": project["version"],
        "creator": {"@type": "sc:Organization", "name": project["authors"][0]["name"]},
        "citeAs": f"tokaido_env {project['version']}, {home}",
        "datePublished": release_date(),
        **RESPONSIBLE,
        "keywords": project["keywords"],
        "inLanguage": "en",
        "isLiveDataset": False,
        "distribution": [file_of(one) for one in FILES],
        "recordSet": sets,
    }


def release_date() -> str:
    """Return the release date in the citation file, before a release that of the newest file."""
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    dates = [line.split(": ")[1] for line in lines if line.startswith("date-released: ")]
    return dates[0].strip("\"'") if dates else DATA_DATE


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
    check = "only check whether the file is up to date (default: off)"
    parser.add_argument("--check", action="store_true", help=check)
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
