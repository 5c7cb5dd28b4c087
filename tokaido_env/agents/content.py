"""The files behind agents: records, results, ladders and runs hold their SHA-256."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path

from tokaido_env.agent import Agent
from tokaido_env.core.arguments import repr_short
from tokaido_env.files import expand_home, file_sha256, is_file
from tokaido_env.record import Files


def script_file(name: str) -> str:
    """Return FILE.py of a spec, or NAME.py in the current folder if there is one; "" else."""
    if name.endswith(".py") or "/" in name:
        return expand_home(name)
    return f"{name}.py" if is_file(Path(f"{name}.py")) else ""


def module_file(name: str) -> str:
    """Return the path of a file or dotted name, without importing it; "" if it has none."""
    if file := script_file(name):
        return file
    top, *rest = name.split(".")
    found = importlib.util.find_spec(top) or PathFinder.find_spec(top, [str(Path.cwd())])
    for part in rest:
        found = found and PathFinder.find_spec(part, found.submodule_search_locations or [])
    return (found and found.origin) or ""


def program_files(command: str) -> list[str]:
    """Return the words of a command that name files, or else the path of its program."""
    words = [expand_home(word) for word in shlex.split(command)]
    found = [word for word in words if is_file(Path(word))]
    return found or [shutil.which(words[0]) or ""]


def sha256_of_files(paths: Iterable[str]) -> str:
    """Return the SHA-256 of each file, 64 hex digits, joined by "+"; other paths are skipped."""
    return "+".join(file_sha256(Path(path)) for path in paths if is_file(Path(path)))


def files_of(name: str, spec: str, sha256: str) -> Files:
    """Return `Files` of one agent: `spec`, or `NAME=SPEC` if it has a name, with its SHA-256."""
    typed = spec if name == spec else f"{name}={spec}"
    return {typed: sha256 or None} if sha256 or name != spec else {}


def files_of_agents(agents: Iterable[Agent]) -> Files:
    """Return `Files` of agents named by their specs: spec to SHA-256, only of those with files."""
    return {agent.spec: agent.sha256 for agent in agents if agent.sha256}


def difference(recorded: Files, current: Files) -> str:
    """Return as text how the SHA-256 of agents' files differ, "" if they are the same."""
    new = sorted(current.items() - recorded.items())
    old = sorted(recorded.items() - current.items())
    return f"files: expected {_text(new)}, got {_text(old)}" if new or old else ""


def _text(entries: list[tuple[str, str | None]]) -> str:
    for typed, sha256 in entries:
        short = "+".join(f"{one[:16]}…" for one in (sha256 or "").split("+"))
        return repr_short(typed, 1000) + (f" with SHA-256 {short}" if sha256 else "")
    return "no file"
