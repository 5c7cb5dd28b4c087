"""Write recorded games as a dataset."""

from __future__ import annotations

from collections.abc import Sequence

from tokaido_env.cli import dataset, games_table, minari_dataset
from tokaido_env.cli.command import CommandParser, reports_errors
from tokaido_env.cli.minari_dataset import PREFIX


@reports_errors("export")
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the dataset; return the exit status."""
    parser = CommandParser("export", __doc__)
    parser.add_argument("file", help="a record file, JSON Lines")
    parser.add_argument("out", help="the dataset to write: .parquet, .npz, or minari:NAME-v0")
    parser.add_argument(
        "--board", help="the board file of the games, if neither built in nor of the family"
    )
    parser.add_argument(
        "--rows",
        choices=("decisions", "games"),
        default="decisions",
        help="what a row is; docs/records.md has the columns (default: decisions)",
    )
    parser.add_argument("--uint8", action="store_true", help="observations as raw values")
    options = parser.parse_args(arguments)
    if options.rows == "games":
        count = games_table.export(options.file, options.out, options.board)
        print(f"{options.out}: {count} games")
        return 0
    dtype: dataset.Dtype = "uint8" if options.uint8 else "float32"
    if options.out.startswith(PREFIX):
        name = options.out.removeprefix(PREFIX)
        rows, games = minari_dataset.export(options.file, name, options.board, dtype)
    else:
        rows, games = dataset.export(options.file, options.out, options.board, dtype)
    print(f"{options.out}: {rows} decisions of {games} games")
    return 0
