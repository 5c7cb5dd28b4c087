"""Count the words and names that this project has replaced.

    python benchmarks/vocabulary.py                 print the counts
    python benchmarks/vocabulary.py --list          and each place
    python benchmarks/vocabulary.py --only arena    of paths that contain a text
    python benchmarks/vocabulary.py --since COMMIT  and the commits since then with a bad subject

Names are read from the syntax tree: definitions of functions and classes, arguments, assigned
names. Words are sought in comments, docstrings and messages. Nothing of the project is run.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

MODULES = """
core/box core/luck core/possible core/plain core/twins core/outcomes core/checks core/episode
core/loops core/extras core/bits core/cache core/fingerprint validity observing versus turn
boards/difference
boards/family boards/pool agents/guide agents/by_board agents/leaves agents/plan agents/outside
agents/opponent agents/exploiter agents/sight agents/inputs agents/simple agents/on_cuda agents/tree
arena/crew arena/crews arena/workers arena/cluster arena/nursery arena/guest arena/apart arena/again
arena/alone arena/merged arena/placing arena/playing arena/luck arena/stopping arena/verifying
arena/links arena/series learn/declared learn/lessons learn/games learn/sighted learn/rating
learn/interrupting learn/scale learn/zero learn/samples learn/refit learn/arrays learn/pool
study/judging study/regret_making study/reviews render/chart render/spread render/words
render/glyphs
cli/columns cli/matches cli/program web/showing web/table web/session
"""
NAMES = """
Crew Here Unit Sheet Job mark_of wanted_of portions cut fill_in shown brief plain told joined FINE
NO_EVENT NO_MOVE NOBODY SLOT MODE settle resolve standing still look Seen Given OneByOne play_out
_EXPLORATION _TRUST _FIRST_PLAY quieted taper crowds Played Chances Lesson Variety SampleBuffer late
beside average freeze_every slots seated has_sight sees_board rung probe Liked
Happened Told Entrant Rated _parting Versus Turn nursery guest crew lessons ledger holder gate
"""
FLAGS = """
--crew --luck --link --table --against --you --values-by --beside --late --every --thorough --reach
--trust --draws
"""
PAGE_WORDS = (
    *("Take back", "Go on", "Make decisions without a choice", "What chance may bring"),
    *("The table differs", "My board", "Play on it", "same as mine", "not compared"),
    *(
        "Save what differs",
        "as the judge would",
        "result less luck",
        "Beside the game on the table",
    ),
    *("is shown to have lost anything", "the game is kept, trying again", "The beginning"),
    *("What has happened", "draws that are due", "die in hand", "how it ended"),
)
WORDS = ("told", "whose", "whom", "anew", "whoever", "of one's own", "beside")
MOST_WORDS = 20  # in all
RELATIVE = re.compile(
    r"(what|who|whom|whose|whether|how|where|when|which|that|whoever|whatever)\b", re.I
)
SUBJECT = re.compile(r"[a-z0-9_., /-]+: [^ ].*")
LONGEST_SUBJECT = 72


class Finding(NamedTuple):
    """One place: the kind of its fault, file, line and text."""

    kind: str
    path: str
    line: int
    text: str


def tracked(*patterns: str) -> Iterator[Path]:
    """Yield the files of this checkout that match, but for golden data and this file."""
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, text=True, capture_output=True, check=True
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.exists() and "golden/" not in name and path != Path(__file__).resolve():
            yield path


def names_defined(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a module defines or assigns, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr, node.lineno


def in_code(path: Path) -> Iterator[Finding]:
    """Yield what a Python file has of old modules, old names, flags, and vague first lines."""
    text = path.read_text(encoding="utf-8")
    where, tree = str(path.relative_to(ROOT)), ast.parse(text)
    if where.removeprefix("tokaido_env/").removesuffix(".py") in MODULES.split():
        yield Finding("old module", where, 1, where)
    for name, line in names_defined(tree):
        if name in NAMES.split():
            yield Finding("old name", where, line, name)
    first = (ast.get_docstring(tree) or "").partition("\n")[0]
    if RELATIVE.match(first):
        yield Finding("vague module docstring", where, 1, first)


def in_text(path: Path) -> Iterator[Finding]:
    """Yield the old words, flags and page words of a file of any kind."""
    where = str(path.relative_to(ROOT))
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for word in WORDS:
            for _ in re.finditer(rf"\b{word}\b", line, re.I):
                yield Finding("word", where, number, line.strip())
        for flag in FLAGS.split():
            if re.search(rf"(?<![\w-]){flag}(?![\w-])", line):
                yield Finding("old flag", where, number, line.strip())
        for word in PAGE_WORDS:
            if word in line:
                yield Finding("old page word", where, number, line.strip())


def bad_subjects(since: str) -> Iterator[Finding]:
    """Yield the commits since one that are not `area: imperative` in 72 characters."""
    command = ["git", "log", "--no-merges", "--format=%h %s", f"{since}..HEAD"]
    listed = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)
    for line in listed.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > LONGEST_SUBJECT or not SUBJECT.fullmatch(subject):
            yield Finding("commit", commit, 0, subject)


def main() -> None:
    """Print the counts, and the places if asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print each place")
    parser.add_argument("--only", default="", metavar="TEXT", help="only paths that contain it")
    parser.add_argument("--since", metavar="COMMIT", help="check the commits after this one too")
    options = parser.parse_args()
    found = [finding for path in tracked("*.py") for finding in in_code(path)]
    code = tracked("*.py", "tokaido_env/web/static/*")
    found += [finding for path in code for finding in in_text(path)]
    found = [finding for finding in found if options.only in finding.path]
    found += bad_subjects(options.since) if options.since else []
    for kind in ("old module", "old name", "old flag", "old page word", "vague module docstring"):
        print(f"{kind}: {sum(finding.kind == kind for finding in found)} (0)")
    print(f"words ({', '.join(WORDS)}): {sum(f.kind == 'word' for f in found)} ({MOST_WORDS})")
    if options.since:
        print(f"commit subjects: {sum(finding.kind == 'commit' for finding in found)} (0)")
    if options.list:
        for kind, path, line, text in found:
            print(f"{path}:{line}: {kind}: {text}")


if __name__ == "__main__":
    main()
