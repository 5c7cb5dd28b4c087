"""Check that this commit is ready for a release, with a line per check.

    python benchmarks/release_check.py                    all checks
    python benchmarks/release_check.py --only sdist core  only checks with a word in their names
    python benchmarks/release_check.py --tag v0.1.0       require the version of the tag

A line reports passed, FAILED or skipped, with the reason. The built files are in `dist`. `--tools`
is the folder of programs that validate file formats, which `make release-check` sets up.
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

UNCONSTRAINED = {"rllib": ("gymnasium",)}
"""Packages for which an extra needs other versions than constraints.txt."""

NOT_LOADED = "regret-set"
"""The record set that mlcroissant cannot load: NumPy arrays."""

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

AT_THE_FORGE = """Check on the forge (docs/dev/releasing.md):
  the workflows pass, on macOS and Windows too
  the trusted publisher and the environment `pypi`; Pages; private reports of vulnerabilities
  the variable TORCH_INDEX, without which Linux fetches CUDA"""


class FailedError(Exception):
    """A failed check; the message is the reason."""


class SkippedError(Exception):
    """A check that this machine cannot run; the message is the reason."""


@dataclass
class Paths:
    """Folders of a release check, and its tag.

    Attributes:
        work: temporary folder.
        dist: folder of the built files.
        tools: folder of the programs that validate formats.
        tag: of the release, or None.
    """

    work: Path
    dist: Path
    tools: Path
    tag: str | None

    def one(self, pattern: str) -> Path:
        """Return the one built file that matches; skip the check if it was not built."""
        found = sorted(self.dist.glob(pattern))
        if len(found) != 1:
            raise SkippedError("it was not built")
        return found[0]

    def tool(self, name: str) -> str:
        """Return the path of a program; skip the check if it is missing."""
        if not (self.tools / name).is_file():
            raise SkippedError(f"needs {name}: make release-check sets it up")
        return str(self.tools / name)


def run(*words: str, cwd: Path = ROOT, given: str | None = None, outside: bool = False) -> str:
    """Run a command; return its output.

    Args:
        words: the command.
        cwd: its working folder.
        given: its input.
        outside: whether to drop PYTHONPATH, so that it imports the installed package.

    Raises:
        FailedError: with the end of its output.
        SkippedError: if it failed for lack of a network.
    """
    environment = dict(os.environ)
    if outside:
        environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        words, cwd=cwd, env=environment, input=given, capture_output=True, text=True, check=False
    )
    output = done.stdout + done.stderr
    if done.returncode and any(word in output for word in OFFLINE):
        raise SkippedError("no network")
    if done.returncode:
        lines = [line for line in output.strip().splitlines() if line.strip()]
        raise FailedError(" / ".join(lines[-6:])[-600:])
    return done.stdout


# Checkout


def tree(paths: Paths) -> str:
    """Check that all changes are committed."""
    changed = run("git", "status", "--porcelain").splitlines()
    if changed:
        raise FailedError(f"{len(changed)} files are not committed: {', '.join(changed[:5])}")
    return run("git", "rev-parse", "--short", "HEAD").strip()


def versions(paths: Paths) -> str:
    """Check that all files have the same version, and that the changelog has its date."""
    ours = project()["version"]

    def first(path: str, pattern: str) -> str:
        found = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
        return found[1] if found else "nothing"

    found_versions = {
        "tokaido_env/__init__.py": first("tokaido_env/__init__.py", r'^__version__ = "(.+)"'),
        "CITATION.cff": first("CITATION.cff", r"^version: (\S+)"),
        "croissant.json": first("croissant.json", r'^ "version": "(.+)"'),
        "CHANGELOG.md": first("CHANGELOG.md", r"^## (\S+)"),
    }
    if paths.tag is not None:
        found_versions["the tag"] = paths.tag.removeprefix("v")
    wrong = [
        f"{where} has {version}" for where, version in found_versions.items() if version != ours
    ]
    if wrong:
        raise FailedError(f"pyproject.toml has {ours}, {', '.join(wrong)}")
    date = first("CHANGELOG.md", r"^## \S+ \((.*)\)$")
    cited = first("CITATION.cff", r"^date-released: [\"']?([\d-]+)")
    if date != cited:
        raise FailedError(f"CHANGELOG.md: {ours} is of {date!r}, CITATION.cff of {cited}")
    return f"{ours}, {date}"


def addresses(paths: Paths) -> str:
    """Check that the addresses name the repository of this checkout."""
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


def citation(paths: Paths) -> str:
    """Check the README's BibTeX entry against CITATION.cff, and that against its schema."""
    cited, readme = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "README.md")
    )
    entry = re.search(r"^@software\{.*?^\}", readme, re.MULTILINE | re.DOTALL)
    without_braces = re.sub(r"[{}\\]", "", entry[0] if entry else "")
    for key in ("  - name", "title", "version", "repository-code", "date-released"):
        found = re.search(rf"^{key}: [\"']?(.*?)[\"']?$", cited, re.MULTILINE)
        if found is None and key == "date-released":  # before the release
            continue
        value = found[1] if found else "nothing"
        value = value[:4] if key == "date-released" else value
        if not re.search(rf"= (Version )?{re.escape(value)}(,|$)", without_braces, re.MULTILINE):
            key = key.strip(" -")
            raise FailedError(f"README.md: BibTeX: expected {key} {value!r}, as CITATION.cff")
    program = paths.tool("check-jsonschema")
    files = "CITATION.cff", "data/CITATION.cff"
    run(program, "--builtin-schema", "vendor.citation-file-format", *files)
    return "valid"


def workflows(paths: Paths) -> str:
    """Check workflows and issue forms against their schemas."""
    program, folder = paths.tool("check-jsonschema"), ROOT / ".github"
    files = {
        "github-workflows": sorted((folder / "workflows").glob("*.yml")),
        "github-issue-forms": sorted((folder / "ISSUE_TEMPLATE").glob("[!c]*.yml")),
        "dependabot": [folder / "dependabot.yml"],
    }
    for schema, paths in files.items():
        run(program, "--builtin-schema", f"vendor.{schema}", *map(str, paths))
    return f"{sum(map(len, files.values()))} valid files"


def metadata(paths: Paths) -> str:
    """Check that croissant.json matches the data, and that mlcroissant reads it."""
    run(sys.executable, "benchmarks/croissant.py", "--check")
    program = paths.tool("mlcroissant")
    run(program, "validate", "--jsonld", "croissant.json")
    data = json.loads((ROOT / "croissant.json").read_text(encoding="utf-8"))
    for name in (one["name"] for one in data["recordSet"] if one["name"] != NOT_LOADED):
        words = ("--jsonld", "croissant.json", "--record_set", name, "--num_records", "1")
        run(program, "load", *words)
    return f"{len(data['distribution'])} files, {len(data['recordSet'])} record sets"


# Packages


def packages(paths: Paths) -> str:
    """Build sdist and wheel from a copy."""
    paths.dist.mkdir(exist_ok=True)
    for old in paths.dist.iterdir():
        old.unlink()
    made = build(copy(paths.work / "tree"), paths.dist)
    return ", ".join(f"{path.name} {path.stat().st_size:,} B" for path in made)


def description(paths: Paths) -> str:
    """Check that the README renders on the index, and that its links name existing files."""
    files = [str(paths.one(pattern)) for pattern in ("*.whl", "*.tar.gz")]
    run(paths.tool("twine"), "check", "--strict", *files)
    with zipfile.ZipFile(paths.one("*.whl")) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode().partition("\n\n")[2]
    html = run(paths.tool("python"), "-c", LINKS, given=text)
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


def sdist(paths: Paths) -> str:
    """Check that the sdist builds the same wheel."""
    folder = paths.work / "sdist"
    with tarfile.open(paths.one("*.tar.gz")) as archive:
        links = [member.name for member in archive if member.issym() or member.islnk()]
        archive.extractall(folder, filter="data")
    if links:
        raise FailedError(f"links: {links[:5]}")
    (source,) = folder.iterdir()
    (made,) = build(source, paths.work / "again", "--wheel")
    contents = []
    for path in (paths.one("*.whl"), made):
        with zipfile.ZipFile(path) as whole:
            contents.append({name: whole.read(name) for name in whole.namelist()})
    ours, theirs = contents
    other = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if other:
        raise FailedError(f"the wheel from the sdist differs in {', '.join(other[:5])}")
    return "the same wheel"


# Installation


def fresh(paths: Paths) -> Path:
    """Return the programs folder of a new environment, which this creates once."""
    folder = paths.work / "fresh"
    if not folder.exists():
        run(sys.executable, "-m", "venv", str(folder))
    return folder / ("Scripts" if os.name == "nt" else "bin")


def core(paths: Paths) -> str:
    """Install the wheel with its required packages only, play a game, and run the command."""
    path, programs = paths.one("*.whl"), fresh(paths)
    run(str(programs / "pip"), "install", "--quiet", str(path), outside=True)
    python, command = str(programs / "python"), str(programs / "tokaido")
    run(python, "-c", PLAY, cwd=paths.work, outside=True)
    run(command, "evaluate", "random", "greedy", "--games", "100", cwd=paths.work, outside=True)
    return run(command, "--version", cwd=paths.work, outside=True).strip().splitlines()[0]


def extras(paths: Paths) -> str:
    """Check that every extra resolves with the tested versions."""
    path, pip = paths.one("*.whl"), str(fresh(paths) / "pip")
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    failed, names = [], sorted(project()["optional-dependencies"])
    for extra in names:
        own = UNCONSTRAINED.get(extra, ())
        kept = [line for line in lines if line.partition("==")[0] not in own]
        constraints = paths.work / "constraints.txt"
        constraints.write_text("\n".join(kept), encoding="utf-8")
        words = ("install", "--dry-run", "--quiet", "--ignore-installed", "-c", str(constraints))
        try:
            run(pip, *words, f"{path}[{extra}]", outside=True)
        except FailedError as error:
            failed.append(f"[{extra}] {error}")
    if failed:
        raise FailedError("; ".join(failed))
    return f"{len(names)} resolve"


CHECKS: dict[str, Callable[[Paths], str]] = {
    "clean tree": tree,
    "version": versions,
    "addresses": addresses,
    "citation": citation,
    "workflows": workflows,
    "croissant": metadata,
    "build": packages,
    "description": description,
    "sdist": sdist,
    "core alone": core,
    "extras": extras,
}


def report_check(name: str, check: Callable[[Paths], str], paths: Paths) -> bool:
    """Run a check and print its line; return False if it failed."""
    began = time.monotonic()
    try:
        verdict = f"passed: {check(paths)}"
    except SkippedError as error:
        verdict = f"skipped: {error}"
    except (FailedError, BuildError) as error:
        verdict = f"FAILED: {error}"
    print(f"{name:<16} {verdict} ({time.monotonic() - began:.0f} s)", flush=True)
    return not verdict.startswith("FAILED")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    only = "only checks with one of these words in their names (default: all)"
    add("--only", nargs="+", default=[""], metavar="WORD", help=only)
    add("--tag", metavar="vX.Y.Z", help="tag of the release (default: none)")
    add("--dist", type=Path, default=ROOT / "dist", metavar="FOLDER", help="(default: dist)")
    tools = ROOT / ".venv-release" / "bin"
    add("--tools", type=Path, default=tools, metavar="FOLDER", help="(default: .venv-release/bin)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as work:
        paths = Paths(Path(work), options.dist.resolve(), options.tools.resolve(), options.tag)
        chosen = [name for name in CHECKS if any(word in name for word in options.only)]
        fine = [report_check(name, CHECKS[name], paths) for name in chosen]
    print(AT_THE_FORGE)
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
