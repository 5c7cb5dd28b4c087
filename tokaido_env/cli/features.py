"""`tokaido features`: print the layouts of observations and afterstates."""

from __future__ import annotations

from tokaido_env.cli import command as cli
from tokaido_env.core.board_features import BOARD_FEATURES
from tokaido_env.core.observation import FEATURES, INDEX_FORMULAS, Feature, width
from tokaido_env.features.afterstate_observation import (
    AFTERSTATE_FEATURES,
    AFTERSTATE_INPUTS,
    GEOMETRY,
    Column,
)


@cli.command("features")
def main(options: cli.NoOptions) -> int:
    """Print the layouts of the observation, the board features, the geometry and afterstates."""
    print("\n\n".join(tables()))
    return 0


def tables() -> list[str]:
    """Return the tables as text: observation, board features, geometry, afterstates."""
    return [
        table_of("observation", FEATURES),
        table_of("board features, with see_board=True", BOARD_FEATURES),
        columns_table("observation='geometry'", GEOMETRY),
        columns_table("observation, with observation='afterstates'", AFTERSTATE_INPUTS),
        columns_table("actions, with observation='afterstates'; a row", AFTERSTATE_FEATURES),
    ]


def table_of(title: str, features: tuple[Feature, ...]) -> str:
    """Return the table of a layout as text, a line per feature."""
    rows = [title, f"{'from':>4} {'to':>4} {'scale':>5}  {'name':<20} meaning"]
    for feature in features:
        last = feature.start + feature.size - 1
        where = f"{feature.start:>4} {last:>4} {feature.scale:>5}"
        formula = f"; index {index_formula(feature)}" if index_formula(feature) else ""
        rows.append(f"{where}  {feature.name:<20} {feature.meaning}{formula}")
    rows.append(f"{width(features)} numbers, each a raw value / scale, in [0, 1]")
    return "\n".join(rows)


def columns_table(title: str, columns: tuple[Column, ...]) -> str:
    """Return the table of a layout with units and bounds as text, a line per column."""
    rows = [
        title,
        f"{'from':>4} {'to':>4} {'unit':>8} {'low':>9} {'high':>9}  {'name':<24} meaning",
    ]
    for each in columns:
        where = f"{each.start:>4} {each.slice.stop - 1:>4}"
        numbers = f"{each.unit:>8.5g} {each.low:>9.5g} {each.high:>9.5g}"
        rows.append(f"{where} {numbers}  {each.name:<24} {each.meaning}")
    rows.append(f"{columns[-1].slice.stop} numbers, each a count times its unit")
    return "\n".join(rows)


def index_formula(feature: Feature) -> str:
    """Return the index of a number within a feature of two axes, "" for one of a single axis."""
    name = feature.name.removeprefix("my_").removeprefix("their_")
    return INDEX_FORMULAS.get(name, "")
