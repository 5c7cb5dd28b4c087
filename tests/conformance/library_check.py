"""A conformance test of a library, and its verdict."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

TESTED = {
    "agilerl": "2.58.0",
    "gymnasium": "1.4.0",
    "open_spiel": "2.0.2",
    "pettingzoo": "1.27.0",
    "ray": "2.60.0",
    "sb3_contrib": "2.9.2",
    "shimmy": "2.0.1",
    "skrl": "2.1.1",
    "stable_baselines3": "2.9.2",
    "supersuit": "3.11.0",
    "textarena": "0.7.4",
    "tianshou": "2.0.1",
    "torchrl": "0.14.1",
}
"""The versions that `make certify-all` tests with."""


@dataclass(frozen=True)
class Check:
    """A conformance test.

    Attributes:
        package: distribution that provides it.
        name: its name there, and the form of the environment.
        run: runs it, and returns a finding or None; raises if it fails.
        needs: modules that it needs besides the package.
    """

    package: str
    name: str
    run: Callable[[], str | None]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """A row of the table; its outcome is "passed", "FAILED" or "not installed"."""

    package: str
    version: str
    check: str
    outcome: str
    detail: str

    def __str__(self) -> str:
        package = f"{self.package} {self.version}".strip()
        return f"{self.outcome:<14} {package:<26} {self.check:<44} {self.detail}".rstrip()


def verdict_of(check: Check) -> Verdict:
    """Run a check of an installed library."""
    try:
        version = importlib.metadata.version(check.package)
    except importlib.metadata.PackageNotFoundError:
        return Verdict(check.package, "", check.name, "not installed", "")
    if missing := [name for name in check.needs if find_spec(name) is None]:
        detail = f"needs {', '.join(missing)}"
        return Verdict(check.package, version, check.name, "not installed", detail)
    try:
        # Output and warnings of libraries are no verdict; checks enable warnings themselves.
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            outcome, detail = "passed", check.run() or ""
    except Exception as error:  # any exception of a check is its verdict
        first = next(iter(str(error).splitlines()), "")
        outcome, detail = "FAILED", f"{type(error).__name__}: {first}"
    tested = TESTED.get(check.package, version)
    other = "" if version == tested else f" (tested with {tested})"
    return Verdict(check.package, version, check.name, outcome, (detail + other).strip())
