"""Writer of tables as Parquet files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import atomic_write

GROUP = 1 << 14  # rows of a Parquet row group

TEXT = "text"
"""Kind of a column of strings."""

WORD = "word"
"""Kind of a column of few different strings, which a file contains once each."""

TEXTS = "texts"
"""Kind of a column of lists of strings."""

Kind = str | tuple[str, int]
"""TEXT, WORD, TEXTS, a dtype, or dtype and length of an array."""

Columns = Mapping[str, Kind]
"""Kinds of the columns by name, in order."""

Part = Mapping[str, Any]
"""Rows by column: arrays, (rows,) or (rows, width), or lists."""


def check_format(out: Path) -> None:
    """Check before any work that a file can be written as a table.

    Raises:
        ValueError: if its suffix is not .parquet.
        ModuleNotFoundError: if pyarrow is missing.
    """
    if out.suffix != ".parquet":
        raise ValueError(f"{out}: expected a name that ends in .parquet")
    require_extra("parquet files need", "data", "pyarrow")


@contextmanager
def table_file(
    path: Path, columns: Columns, about: Mapping[str, Any]
) -> Iterator[Callable[[Part], None]]:
    """Yield a function that adds rows to a Parquet file, which is written whole or not at all.

    Args:
        path: .parquet.
        columns: of the table.
        about: metadata, written as JSON under `tokaido_env` in the schema of the file.

    Raises:
        OSError: if the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [pa.field(name, _arrow_type(kind), nullable=False) for name, kind in columns.items()]
    schema = pa.schema(fields, metadata={"tokaido_env": json.dumps(about)})
    # Dictionary encoding of arrays takes time and saves nothing on top of compression.
    coded = [name for name, kind in columns.items() if not isinstance(kind, tuple)]
    group: list[Part] = []
    rows = 0
    with (
        atomic_write(path) as file,
        pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=coded) as writer,
    ):

        def write() -> None:
            nonlocal rows
            arrays = [_arrow_array([part[field.name] for part in group], field) for field in schema]
            table = pa.Table.from_arrays(arrays, schema=schema)
            writer.write_table(table, row_group_size=len(table))
            group.clear()
            rows = 0

        def add(part: Part) -> None:
            nonlocal rows
            group.append(part)
            rows += len(next(iter(part.values())))
            if rows >= GROUP:
                write()

        yield add
        if group:
            write()


def _arrow_type(kind: Kind) -> Any:
    import pyarrow as pa

    if isinstance(kind, tuple):
        return pa.list_(pa.from_numpy_dtype(kind[0]), kind[1])
    named = {
        TEXT: pa.string(),
        TEXTS: pa.list_(pa.string()),
        WORD: pa.dictionary(pa.int32(), pa.string()),
    }
    return named[kind] if kind in named else pa.from_numpy_dtype(kind)


def _arrow_array(parts: list[Any], field: Any) -> Any:
    import pyarrow as pa

    if isinstance(parts[0], list):
        return pa.array([value for part in parts for value in part], field.type)
    column = np.concatenate(parts)
    if column.ndim == 1:
        return pa.array(column, field.type)
    flat = pa.array(column.reshape(-1), field.type.value_type)
    return pa.FixedSizeListArray.from_arrays(flat, type=field.type)
