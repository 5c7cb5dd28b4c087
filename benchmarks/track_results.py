"""Check the results of the tracks of Tokaido-100, add a row, and make the tables of its page.

    python benchmarks/track_results.py                 check the file, write the tables
    python benchmarks/track_results.py --add FILE ...  add a row of submissions, in order of seeds

`docs/benchmarks/results.json` has the scores on every board, from which the tables are made. The
status of a row is `verified` if `--repeated` names equal results of other runs, else `reported`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from pages import fill

from tokaido_env.arena.intervals import Estimate, mean_over_seeds
from tokaido_env.arena.result import Result, ResultError
from tokaido_env.boards.board_pool import BoardPool
from tokaido_env.decoding import Count, Name, Share, Source, Struct
from tokaido_env.files import write_text
from tokaido_env.report.comparison import test_scores
from tokaido_env.study.generalise import BOARDS, OPPONENT, SPLIT

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "tokaido-100.md"
RESULTS = PAGE.parent / "results.json"
VERSION = 1
LIMITED, OPEN, INCOMPLETE = "T100-2M", "T100-open", "incomplete"
SEEDS, MOST_DECISIONS = 5, 2_000_000  # of T100-2M
PAIRS = {LIMITED: 10, OPEN: 40, INCOMPLETE: 10}  # of each seed on each board, at least
BEGIN, END = "<!-- tracks -->", "<!-- end of tracks -->"
Text = Annotated[Name, Meta(min_length=1)]


class SeedResult(Struct, frozen=True):
    """The result of an agent of one training seed.

    Attributes:
        seed: of the training.
        pairs: of games, on each board.
        score: the mean over boards, with its interval.
        boards: the score on each board; empty if only the mean is known.
        records: SHA-256 of the record file; empty if there is none.
    """

    seed: Count
    pairs: Count
    score: Estimate
    boards: tuple[Share, ...]
    records: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]

    def __post_init__(self) -> None:
        if len(self.boards) not in (0, BOARDS):
            raise ValueError(f"boards: expected {BOARDS} scores or none, got {len(self.boards)}")
        if self.boards and abs(float(np.mean(self.boards)) - self.score.value) > 1e-5:
            raise ValueError(f"score: expected the mean of boards, got {self.score.value}")


class Row(Struct, frozen=True):
    """A method in a track.

    Attributes:
        method: its name or spec.
        track: of the row.
        status: "verified" if the maintainers repeated the results, "reported" if not.
        decisions: of the training of one seed; None without training, or if unknown.
        hours: processor time of the training of all seeds; None likewise.
        command: that trains and measures.
        version: of the package.
        hash: of the test boards.
        by: who submitted the row.
        date: of the measurement.
        seeds: a result for each training seed.
    """

    method: Text
    track: Literal["T100-2M", "T100-open", "incomplete"]
    status: Literal["verified", "reported"]
    decisions: Count | None
    hours: Annotated[float, Meta(ge=0, le=1e6)] | None
    command: Text
    version: Text
    hash: str
    by: Text
    date: Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    seeds: Annotated[tuple[SeedResult, ...], Meta(min_length=1, max_length=100)]

    def __post_init__(self) -> None:
        count, known = len(self.seeds), [bool(one.boards and one.records) for one in self.seeds]
        if self.track == LIMITED and count != SEEDS:
            raise ValueError(f"seeds: expected {SEEDS} of {LIMITED}, got {count}")
        if self.track == INCOMPLETE and count >= SEEDS:
            raise ValueError(f"seeds: expected fewer than {SEEDS}, got {count}: choose {LIMITED}")
        if self.track != OPEN and (self.decisions is None or self.decisions > MOST_DECISIONS):
            wanted = f"at most {MOST_DECISIONS:,} of {LIMITED}"
            raise ValueError(f"decisions: expected {wanted}, got {self.decisions}")
        if (self.track != OPEN or self.status == "verified" or count > 1) and not all(known):
            raise ValueError("seeds: expected the scores on all boards and the hash of records")
        if len({one.seed for one in self.seeds}) < count:
            raise ValueError("seeds: expected each seed once")
        if all(known) and len({one.records for one in self.seeds}) < count:
            raise ValueError("seeds: expected different games of each seed, got equal records")
        if min(one.pairs for one in self.seeds) < PAIRS[self.track]:
            raise ValueError(f"pairs: expected {PAIRS[self.track]} or more on each board")


class Results(Struct, frozen=True):
    """The rows of all tracks."""

    version: int
    rows: tuple[Row, ...]


def load(path: Path = RESULTS) -> Results:
    """Read a results file; raise `ResultError` for another schema, other boards or seeds."""
    source = Source.json(path, "results", ResultError)
    source.check_versions(version=VERSION)
    found, boards = source.decode(Results), BoardPool.load(f"family:{SPLIT}").hash
    for i, row in enumerate(found.rows):
        source.expect(row.hash == boards, f"rows[{i}].hash", boards, row.hash, "measure again")
    names = [(row.method, row.track) for row in found.rows]
    source.expect(len(set(names)) == len(names), "rows", "each method once a track", names)
    return found


def seed_result(path: Path, seed: int, repeated: Path | None = None) -> SeedResult:
    """Return the result in a submission; `repeated` is a file that must have the same hash."""
    found, source = Result.load(path), Source(path, None, ResultError)
    scores, test = test_scores(found), found.boards[0]
    source.expect(found.protocol == "generalise", "protocol", "generalise", found.protocol)
    protocol = scores[0].b, found.seed
    source.expect(protocol == (OPPONENT, 0), "opponent, seed", f"{OPPONENT}, 0", protocol)
    pool = BoardPool.load(f"family:{SPLIT}")
    source.expect(test.hash == pool.hash, "boards", f"{pool.hash} of {pool.name}", test.hash)
    source.expect(found.records, "records", "a file of all games", found.records)
    if repeated is not None:
        again = Result.load(repeated).hash
        source.expect(found.hash == again, "hash", f"{again} of {repeated}", found.hash)
    records = "" if found.records is None else found.records.sha256
    mean = found.estimate("mean score", other=OPPONENT, group=test.name)
    score = Estimate(mean.value, mean.low, mean.high)
    values = tuple(one.value for one in scores)
    return SeedResult(seed, sum(scores[0].pairs), score, values, records)


def add_row(
    files: Sequence[Path], repeated: Sequence[Path] = (), path: Path = RESULTS, **about: Any
) -> None:
    """Add a row of submissions, in order of training seeds, in place of an old one."""
    others = repeated or [None] * len(files)
    pairs = enumerate(zip(files, others, strict=True))
    seeds = [seed_result(file, seed, other).to_dict() for seed, (file, other) in pairs]
    row = {key: about[key] for key in ("method", "track")}
    row["status"] = "verified" if repeated else "reported"
    row |= {key: about[key] for key in ("decisions", "hours", "command")}
    row |= {"version": version("tokaido-env"), "hash": BoardPool.load(f"family:{SPLIT}").hash}
    row |= {"by": about["by"], "date": datetime.now(UTC).date().isoformat(), "seeds": seeds}
    Source("row", row, ResultError).decode(Row)
    old = {row["track"], INCOMPLETE} if row["track"] == LIMITED else {row["track"]}
    rows = [
        one.to_dict()
        for one in load(path).rows
        if one.method != row["method"] or one.track not in old
    ]
    write([*rows, row], path)


def write(rows: Sequence[dict[str, Any]], path: Path = RESULTS) -> None:
    """Write a results file, each seed on a line of its own."""
    texts = []
    for row in rows:
        seeds = ",\n".join(f"    {json.dumps(seed)}" for seed in row["seeds"])
        head = json.dumps({key: value for key, value in row.items() if key != "seeds"}, indent=3)
        texts.append(f'{head[:-2]},\n   "seeds": [\n{seeds}\n   ]\n  }}')
    write_text(path, f'{{\n "version": {VERSION},\n "rows": [\n  {",".join(texts)}\n ]\n}}\n')


def score_of(row: Row) -> tuple[Estimate, str]:
    """Return the mean score of a row over its seeds, and their spread as text."""
    if len(row.seeds) == 1:
        return row.seeds[0].score, ""
    mean, spread = mean_over_seeds(np.array([one.boards for one in row.seeds]))
    return mean, f"{100 * spread:.1f}"


def table(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown, best first."""
    lines = [
        "| method | score on test | spread | seeds | decisions | hours | status | command |",
        "|" + " --- |" * 8,
    ]
    for row in sorted(rows, key=lambda row: -score_of(row)[0].value):
        mean, spread = score_of(row)
        value, low, high = (f"{100 * x:.1f}" for x in (mean.value, *mean.interval))
        decisions = "" if row.decisions is None else f"{row.decisions:,}"
        cells = [row.method, f"{value} % ({low} to {high})", spread, str(len(row.seeds))]
        cells += [decisions, "" if row.hours is None else f"{row.hours:g}"]
        cells += [f"{row.status}, {row.by}, {row.date}, {row.version}", f"`{row.command}`"]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def tables(results: Results) -> str:
    """Return the tables of all tracks."""
    parts = []
    for track in (LIMITED, OPEN, INCOMPLETE):
        rows = [row for row in results.rows if row.track == track]
        if rows:
            title = track if track != INCOMPLETE else f"Incomplete, fewer than {SEEDS} seeds"
            parts.append(f"**{title}**\n\n{table(rows)}")
    return "\n" + "\n".join(parts)


def write_page(page: Path = PAGE) -> None:
    """Put the tables into the page."""
    fill(page, tables(load()), BEGIN, END)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the file, add a row if asked, write the page; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        if options.add:
            names = "method", "track", "decisions", "hours", "command", "by"
            about = {name: getattr(options, name) for name in names}
            add_row(options.add, options.repeated, **about)
        write_page()
    except ValueError as error:
        print(f"track_results: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    files = "add a row of these files of generalise --json, in order of training seeds 0, 1, …"
    add("--add", nargs="+", type=Path, metavar="FILE", help=files)
    again = "files of the same commands, run by the maintainers (default: none)"
    add("--repeated", nargs="+", type=Path, default=(), metavar="FILE", help=again)
    add("--method", default="", help="name of the method")
    add("--track", default=LIMITED, help=f"{LIMITED}, {OPEN} or {INCOMPLETE} (default: {LIMITED})")
    add("--decisions", type=int, help="of the training of one seed (default: no training)")
    add("--hours", type=float, help="processor time of the training of all seeds")
    add("--command", default="", help="command that trains and measures")
    add("--by", default="", help="name of who submits the row")
    return parser


if __name__ == "__main__":
    sys.exit(main())
