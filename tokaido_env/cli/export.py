"""Export recorded games as a dataset.

tokaido export games.jsonl decisions.parquet
tokaido export games.jsonl games.parquet --rows games
"""

from __future__ import annotations

from collections.abc import Sequence

from tokaido_env.cli import dataset, minari_dataset
from tokaido_env.cli.command import CommandParser, reports_errors
from tokaido_env.cli.minari_dataset import PREFIX
from tokaido_env.files import expand_home


@reports_errors("export")
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the dataset; return the exit status."""
    parser = CommandParser("export", __doc__)
    parser.add_record_file()
    out = "dataset to write: .parquet, or minari:NAME-v0"
    parser.add_argument("out", type=expand_home, help=out)
    parser.add_argument(
        "--rows",
        choices=("decisions", "games"),
        default="decisions",
        help="content of a row; docs/reference/file-formats.md lists the columns",
    )
    parser.add_argument("--uint8", action="store_true", help="write observations as raw values")
    options = parser.parse_args(arguments)
    dtype: dataset.Dtype = "uint8" if options.uint8 else "float32"
    if options.out.startswith(PREFIX) and options.rows == "decisions":
        name = options.out.removeprefix(PREFIX)
        rows, games = minari_dataset.export(options.file, name, options.board, dtype)
    else:
        rows, games = dataset.export(
            options.file, options.out, options.board, dtype, rows=options.rows
        )
    decisions = f"{rows} decisions of " if options.rows == "decisions" else ""
    print(f"{options.out}: {decisions}{games} games")
    return 0
