"""`tokaido export`: export recorded games as a dataset."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from tokaido_env.cli import command as cli, dataset
from tokaido_env.cli.cli_options import note_equal_games
from tokaido_env.files import expand_home
from tokaido_env.observers import ObservationFormat
from tokaido_env.record import read_unverified


@cli.options
class Export(cli.Recorded):
    """Options of `tokaido export`; the docstring of each field is its help."""

    out: Annotated[str, cli.text_option(expand_home, "OUT")] = field(kw_only=False)
    """dataset to write, .parquet"""
    rows: Literal["decisions", "games"] = "decisions"
    """content of a row; docs/reference/file-formats.md lists the columns"""
    observation: ObservationFormat = "float32"
    """observation of each decision, as of the environment"""
    distinct: bool = False
    """of a player's decisions in equal positions on one board, write only the first"""


@cli.command("export")
def main(options: Export) -> int:
    """Export recorded games as a dataset.

    Examples:
        tokaido export games.jsonl decisions.parquet
        tokaido export games.jsonl games.parquet --rows games
        tokaido export games.jsonl positions.parquet --observation afterstates --distinct
    """
    rows, games = dataset.export(
        *(options.file, options.out, options.board),
        *(options.observation, options.rows, options.distinct),
    )
    decisions = f"{rows} decisions of " if options.rows == "decisions" else ""
    print(f"{options.out}: {decisions}{games} games")
    note_equal_games(sum(1 for _ in read_unverified(options.file)) - games)
    return 0
