"""Is this commit ready to be released? All that can be told without the forge, a line a check.

    python benchmarks/release_check.py                    all of it
    python benchmarks/release_check.py --only wheel core  only checks whose names hold a word
    python benchmarks/release_check.py --tag v0.1.0       the version must be that of the tag

Each line says passed, FAILED and why, or skipped and why. What passes lies in `dist`. `--tools`
names the folder of programs that check other people's formats, which `make release-check` sets up.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from release_build import ROOT, BuildError, build, copy, project

EXTRAS_APART = {"rllib": ("gymnasium",)}
"""Extras that ask for versions of their own: constraints.txt does not count for these packages."""

NOT_LOADED = "regret-set"
"""The record set that mlcroissant does not load: arrays of NumPy."""

OFFLINE = ("NewConnectionError", "NameResolutionError", "ConnectTimeout", "Network is unreachable")

PLAY = """
import tokaido_env
from tokaido_env import Game, agents
game = Game(seed=1)
while not game.is_over:
    game.play(game.legal_actions()[-1])
assert "site-packages" in tokaido_env.__file__, tokaido_env.__file__
assert agents.make("heuristic").choose(Game(seed=1), 1) >= 0
print(tokaido_env.__version__, game.scores())
"""

LINKS = """
import sys
from readme_renderer.markdown import render
html = render(sys.stdin.read())
sys.exit("it does not render") if html is None else print(html)
"""

AT_THE_FORGE = """What only the forge can tell (docs/releasing.md):
  the workflows pass there, on macOS and Windows too
  the trusted publisher and the environment `pypi`; Pages; private reports of vulnerabilities
  the variable TORCH_INDEX, without which Linux fetches CUDA"""


class FailedError(Exception):
    """A check that failed: the message says why."""


class SkippedError(Exception):
    """A check that cannot be made here: the message says why."""


@dataclass
class Place:
    """Where things lie.

    Attributes:
        work: a folder that is gone afterwards.
        dist: what is released.
        tools: the folder of the programs that check formats.
        tag: of the release, or None.
    """

    work: Path
    dist: Path
    tools: Path
    tag: str | None

    def one(self, pattern: str) -> Path:
        """Return the file of a release; skips if it was not built."""
        found = sorted(self.dist.glob(pattern))
        if len(found) != 1:
            raise SkippedError("it was not built")
        return found[0]

    def tool(self, name: str) -> str:
        """Return the path of a program; skips if it is not there."""
        if not (self.tools / name).is_file():
            raise SkippedError(f"there is no {name}: make release-check sets it up")
        return str(self.tools / name)


def run(*words: str, cwd: Path = ROOT, given: str | None = None, outside: bool = False) -> str:
    """Run a command, outside: without the checkout's own path; return what it printed.

    Raises:
        FailedError: with the end of what it printed.
        SkippedError: if it was the network.
    """
    environment = dict(os.environ)
    if outside:
        environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        words, cwd=cwd, env=environment, input=given, capture_output=True, text=True, check=False
    )
    told = done.stdout + done.stderr
    if done.returncode and any(word in told for word in OFFLINE):
        raise SkippedError("no network")
    if done.returncode:
        lines = [line for line in told.strip().splitlines() if line.strip()]
        raise FailedError(" / ".join(lines[-6:])[-600:])
    return done.stdout


# What is there


def tree(place: Place) -> str:
    """Check that all is committed."""
    changed = run("git", "status", "--porcelain").splitlines()
    if changed:
        raise FailedError(f"{len(changed)} files are not committed: {', '.join(changed[:5])}")
    return run("git", "rev-parse", "--short", "HEAD").strip()


def versions(place: Place) -> str:
    """Check that the version is the same everywhere, and that the changelog has its date."""
    ours = project()["version"]

    def first(path: str, pattern: str) -> str:
        found = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        return found[1] if found else "nothing"

    said = {
        "tokaido_env/__init__.py": first("tokaido_env/__init__.py", r'^__version__ = "(.+)"'),
        "CITATION.cff": first("CITATION.cff", r"^version: (\S+)"),
        "croissant.json": first("croissant.json", r'^ "version": "(.+)"'),
        "CHANGELOG.md": first("CHANGELOG.md", r"^## (\S+)"),
    }
    if place.tag is not None:
        said["the tag"] = place.tag.removeprefix("v")
    wrong = [f"{where} has {version}" for where, version in said.items() if version != ours]
    if wrong:
        raise FailedError(f"pyproject.toml has {ours}, {', '.join(wrong)}")
    date = first("CHANGELOG.md", r"^## \S+ \((.*)\)$")
    cited = first("CITATION.cff", r"^date-released: [\"']?([\d-]+)")
    if date != cited:
        raise FailedError(f"CHANGELOG.md: {ours} is of {date!r}, CITATION.cff of {cited}")
    return f"{ours}, {date}"


def addresses(place: Place) -> str:
    """Check that the addresses are those of the repository this is in."""
    urls, home = project()["urls"], project()["urls"]["Repository"]
    others = [name for name, url in urls.items() if not url.startswith(home)]
    if f"repository-code: {home}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        others.append("CITATION.cff: repository-code")
    if others:
        raise FailedError(f"not below Repository ({home}), to be confirmed: {', '.join(others)}")
    if "GITHUB_REPOSITORY" in os.environ:
        real = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    else:
        done = subprocess.run(
            ["git", "remote", "get-url", "origin"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        remote = done.stdout.strip().removesuffix(".git")
        real = re.sub(r"^(ssh://)?git@([^:/]+)[:/]", r"https://\2/", remote)
    if real != home:
        raise FailedError(
            f"Repository is {home}, this checkout is not from there: confirm the address, "
            f"or write the right one into pyproject.toml ({', '.join(urls)}) and CITATION.cff"
        )
    return home


def style(place: Place) -> str:
    """Check lint, format and types."""
    run(sys.executable, "-m", "ruff", "check", ".")
    run(sys.executable, "-m", "ruff", "format", "--check", ".")
    return run(sys.executable, "-m", "mypy").strip().splitlines()[-1]


def citation(place: Place) -> str:
    """Check CITATION.cff against its schema."""
    program = place.tool("check-jsonschema")
    run(program, "--builtin-schema", "vendor.citation-file-format", "CITATION.cff")
    return "as its schema says"


def workflows(place: Place) -> str:
    """Check workflows and forms of issues against their schemas."""
    program, folder = place.tool("check-jsonschema"), ROOT / ".github"
    files = {
        "github-workflows": sorted((folder / "workflows").glob("*.yml")),
        "github-issue-forms": sorted((folder / "ISSUE_TEMPLATE").glob("[!c]*.yml")),
        "dependabot": [folder / "dependabot.yml"],
    }
    for schema, paths in files.items():
        run(program, "--builtin-schema", f"vendor.{schema}", *map(str, paths))
    return f"{sum(map(len, files.values()))} files as their schemas say"


def metadata(place: Place) -> str:
    """Check that croissant.json is that of the data, and that others' programs can read it."""
    run(sys.executable, "benchmarks/croissant.py", "--check")
    program = place.tool("mlcroissant")
    run(program, "validate", "--jsonld", "croissant.json")
    told = json.loads((ROOT / "croissant.json").read_text(encoding="utf-8"))
    for name in (one["name"] for one in told["recordSet"] if one["name"] != NOT_LOADED):
        words = ("--jsonld", "croissant.json", "--record_set", name, "--num_records", "1")
        run(program, "load", *words)
    return f"{len(told['distribution'])} files, {len(told['recordSet'])} record sets"


# What is built


def packages(place: Place) -> str:
    """Build sdist and wheel, from a copy."""
    place.dist.mkdir(exist_ok=True)
    for old in place.dist.iterdir():
        old.unlink()
    made = build(copy(place.work / "tree"), place.dist)
    return ", ".join(f"{path.name} {path.stat().st_size:,} B" for path in made)


def description(place: Place) -> str:
    """Check what the index will show: it renders, and its links lead to files that are here."""
    files = [str(place.one(pattern)) for pattern in ("*.whl", "*.tar.gz")]
    run(place.tool("twine"), "check", "--strict", *files)
    with zipfile.ZipFile(place.one("*.whl")) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode().partition("\n\n")[2]
    html = run(place.tool("python"), "-c", LINKS, given=text)
    home, links = (
        project()["urls"]["Repository"],
        re.findall(r'(?:href|src|srcset)="([^"]*)"', html),
    )
    wrong = [link for link in links if not link.startswith(("https://", "#"))]
    inside = rf"{re.escape(home)}/(?:blob|raw)/v[^/]+/([^#]+)"
    wrong += [
        link
        for link in links
        if (found := re.match(inside, link)) and not (ROOT / found[1]).exists()
    ]
    if wrong:
        raise FailedError(f"links to nowhere: {', '.join(wrong[:5])}")
    return f"{len(links)} links"


def wheel(place: Place) -> str:
    """Check that the wheel holds the files of the package, the licence, and nothing else."""
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tokaido_env").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(place.one("*.whl")) as archive:
        names = set(archive.namelist())
        links = [i.filename for i in archive.infolist() if (i.external_attr >> 28) == 0o12]
    held = {name for name in names if ".dist-info/" not in name}
    if held != ours:
        raise FailedError(
            f"missing: {sorted(ours - held)[:5]}, unexpected: {sorted(held - ours)[:5]}"
        )
    if links or not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        raise FailedError(f"links: {links}" if links else "no licence")
    return f"{len(held)} files, no links, with its licence"


def sdist(place: Place) -> str:
    """Check that the wheel that the sdist gives is the same."""
    folder = place.work / "sdist"
    with tarfile.open(place.one("*.tar.gz")) as archive:
        links = [member.name for member in archive if member.issym() or member.islnk()]
        archive.extractall(folder, filter="data")
    if links:
        raise FailedError(f"links: {links[:5]}")
    (source,) = folder.iterdir()
    (made,) = build(source, place.work / "again", "--wheel")
    contents = []
    for path in (place.one("*.whl"), made):
        with zipfile.ZipFile(path) as whole:
            contents.append({name: whole.read(name) for name in whole.namelist()})
    ours, theirs = contents
    other = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if other:
        raise FailedError(f"the wheel from the sdist differs in {', '.join(other[:5])}")
    return "the same wheel"


# What is installed


def fresh(place: Place) -> Path:
    """Return the programs of a new environment, made once."""
    folder = place.work / "fresh"
    if not folder.exists():
        run(sys.executable, "-m", "venv", str(folder))
    return folder / ("Scripts" if os.name == "nt" else "bin")


def core(place: Place) -> str:
    """Install the wheel with what it requires and nothing else; play, and ask the command."""
    path, programs = place.one("*.whl"), fresh(place)
    run(str(programs / "pip"), "install", "--quiet", str(path), outside=True)
    python, command = str(programs / "python"), str(programs / "tokaido")
    run(python, "-c", PLAY, cwd=place.work, outside=True)
    run(command, "evaluate", "random", "greedy", "--games", "100", cwd=place.work, outside=True)
    return run(command, "--version", cwd=place.work, outside=True).strip().splitlines()[0]


def extras(place: Place) -> str:
    """Check that every extra resolves with the versions that the project is tested with."""
    path, pip = place.one("*.whl"), str(fresh(place) / "pip")
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    failed, names = [], sorted(project()["optional-dependencies"])
    for extra in names:
        own = EXTRAS_APART.get(extra, ())
        kept = [line for line in lines if line.partition("==")[0] not in own]
        constraints = place.work / "constraints.txt"
        constraints.write_text("\n".join(kept), encoding="utf-8")
        words = ("install", "--dry-run", "--quiet", "--ignore-installed", "-c", str(constraints))
        try:
            run(pip, *words, f"{path}[{extra}]", outside=True)
        except FailedError as error:
            failed.append(f"[{extra}] {error}")
    if failed:
        raise FailedError("; ".join(failed))
    return f"{len(names)} resolve"


CHECKS: dict[str, Callable[[Place], str]] = {
    "clean tree": tree,
    "version": versions,
    "addresses": addresses,
    "style and types": style,
    "citation": citation,
    "workflows": workflows,
    "croissant": metadata,
    "build": packages,
    "description": description,
    "wheel": wheel,
    "sdist": sdist,
    "core alone": core,
    "extras": extras,
}


def tell(name: str, check: Callable[[Place], str], place: Place) -> bool:
    """Make a check and print its line; return whether it did not fail."""
    began = time.monotonic()
    try:
        verdict = f"passed: {check(place)}"
    except SkippedError as error:
        verdict = f"skipped: {error}"
    except (FailedError, BuildError) as error:
        verdict = f"FAILED: {error}"
    print(f"{name:<16} {verdict} ({time.monotonic() - began:.0f} s)", flush=True)
    return not verdict.startswith("FAILED")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the checks; return 1 if one has failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--only", nargs="+", default=[""], metavar="WORD", help="only checks with it in the name")
    add("--tag", metavar="vX.Y.Z", help="of the release")
    add("--dist", type=Path, default=ROOT / "dist", metavar="FOLDER", help="(dist)")
    tools = ROOT / ".venv-release" / "bin"
    add("--tools", type=Path, default=tools, metavar="FOLDER", help="(.venv-release/bin)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        place = Place(Path(work), options.dist.resolve(), options.tools.resolve(), options.tag)
        chosen = [name for name in CHECKS if any(word in name for word in options.only)]
        fine = [tell(name, CHECKS[name], place) for name in chosen]
    print(AT_THE_FORGE)
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
