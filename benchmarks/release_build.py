"""Build sdist and wheel of a release from a copy of this checkout.

The copy's README has absolute links, because package indexes show it without the other files. Files
have the time of the last commit (SOURCE_DATE_EPOCH), so that the same commit gives the same bytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv*", ".*_cache", "__pycache__", "runs", "build", "_build", "dist", "*.egg-info")
)
PICTURES = (".svg", ".png", ".gif", ".jpg")

# [text](place), src="place", srcset="place", href="place", with relative places only.
_LINK = re.compile(r'(\]\(|\bsrc="|\bsrcset="|\bhref=")(?![a-z]+:|#|/)([^)"\s]+)')


class BuildError(Exception):
    """A build that failed; the message is the end of its output."""


def project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        table: dict[str, Any] = tomllib.load(file)["project"]
    return table


def absolute(text: str, home: str, version: str) -> str:
    """Return a page from the root of the repository with links to the released version."""

    def whole(found: re.Match[str]) -> str:
        before, place = found.groups()
        kind = "raw" if place.partition("#")[0].endswith(PICTURES) else "blob"
        return f"{before}{home}/{kind}/v{version}/{place.removeprefix('./')}"

    return _LINK.sub(whole, text)


def copy(folder: Path) -> Path:
    """Copy the checkout to a folder, with absolute links in the README; return its path."""
    source, metadata = folder / "source", project()
    shutil.copytree(ROOT, source, symlinks=True, ignore=LEFT_OUT)
    readme = source / "README.md"
    text = readme.read_text(encoding="utf-8")
    text = absolute(text, metadata["urls"]["Repository"], metadata["version"])
    readme.write_text(text, encoding="utf-8")
    return source


def build(source: Path, out: Path, *kinds: str) -> list[Path]:
    """Build a source folder; return the files.

    Raises:
        BuildError: with the end of the output.
    """
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *kinds]
    environment = os.environ | {"SOURCE_DATE_EPOCH": commit_time()}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [*command, str(source)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BuildError((done.stdout + done.stderr)[-1000:])
    return sorted([*out.glob("*.whl"), *out.glob("*.tar.gz")])


def commit_time() -> str:
    """Return the time of the last commit in seconds; 1980 without git."""
    words = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "315532800"
