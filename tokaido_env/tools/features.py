"""`tokaido features`: the layout of the observation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tokaido_env.core.observation import FEATURES, N_FEATURES
from tokaido_env.tools.program import program


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    argparse.ArgumentParser(
        program("features"), description="Print the layout of the observation."
    ).parse_args(arguments)
    print(features_table())
    return 0


def features_table() -> str:
    """Return the FEATURES table as text."""
    rows = [f"{'from':>4} {'to':>4} {'scale':>5}  {'name':<20} meaning"]
    for feature in FEATURES:
        last = feature.start + feature.size - 1
        where = f"{feature.start:>4} {last:>4} {feature.scale:>5}"
        rows.append(f"{where}  {feature.name:<20} {feature.meaning}")
    rows.append(f"{N_FEATURES} numbers, each a raw value / scale, in [0, 1]")
    return "\n".join(rows)
