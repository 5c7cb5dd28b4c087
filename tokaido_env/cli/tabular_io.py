"""Writers of tables as Parquet files and NumPy archives."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tokaido_env.boards.board_pool import Boards
from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import atomic_write, check_outputs

SUFFIXES = (".parquet", ".npz")
GROUP = 1 << 14  # rows of a Parquet row group

TEXT = "text"
"""Kind of a column of strings."""

WORD = "word"
"""Kind of a column of few different strings, which a file contains once each."""

TEXTS = "texts"
"""Kind of a column of lists of strings, in Parquet files only."""

Kind = str | tuple[str, int]
"""TEXT, WORD, TEXTS, a dtype, or dtype and length of an array."""

Columns = Mapping[str, Kind]
"""Kinds of the columns by name, in order."""

Part = Mapping[str, Any]
"""Rows by column: arrays, (rows,) or (rows, width), or lists."""


def check_format(out: Path) -> None:
    """Check before any work that a file can be written as a table.

    Raises:
        ValueError: if its suffix is neither .parquet nor .npz.
        ModuleNotFoundError: if pyarrow is missing, for a parquet file.
    """
    if out.suffix not in SUFFIXES:
        raise ValueError(f"{out}: expected a name that ends in .parquet or .npz")
    if out.suffix == ".parquet":
        require_extra("parquet files need", "data", "pyarrow")


def check_export(records: str | Path, out: str | Path, board: Boards | None) -> tuple[Path, Path]:
    """Check that a table of recorded games can be written; return both paths.

    Raises:
        ValueError, ModuleNotFoundError: as `check_format` and `check_outputs`.
    """
    source, target = Path(records), Path(out)
    check_format(target)
    check_outputs(target, read=[source, board if isinstance(board, str | Path) else None])
    return source, target


@contextmanager
def table_file(
    path: Path, columns: Columns, about: Mapping[str, Any]
) -> Iterator[Callable[[Part], None]]:
    """Yield a function that adds rows to a table file, which is written whole or not at all.

    A Parquet file is written as rows arrive. An archive is written at the end: it has an array per
    column; the numbers of a column of kind WORD index the array NAME_words.

    Args:
        path: .parquet or .npz.
        columns: of the table.
        about: metadata, written as JSON under `metadata` or, in the schema of a Parquet file,
            under `tokaido_env`.

    Raises:
        OSError: if the file cannot be written.
    """
    write = _npz if path.suffix == ".npz" else _parquet
    with atomic_write(path) as file, write(file, columns, json.dumps(about)) as add:
        yield add


@contextmanager
def _parquet(file: IO[bytes], columns: Columns, metadata: str) -> Iterator[Callable[[Part], None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [pa.field(name, _arrow_type(kind), nullable=False) for name, kind in columns.items()]
    schema = pa.schema(fields, metadata={"tokaido_env": metadata})
    # Dictionary encoding of arrays takes time and saves nothing on top of compression.
    coded = [name for name, kind in columns.items() if not isinstance(kind, tuple)]
    group: list[Part] = []
    with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=coded) as writer:

        def write() -> None:
            arrays = [_arrow_array([part[field.name] for part in group], field) for field in schema]
            table = pa.Table.from_arrays(arrays, schema=schema)
            writer.write_table(table, row_group_size=len(table))
            group.clear()

        def add(part: Part) -> None:
            group.append(part)
            if sum(len(next(iter(part.values()))) for part in group) >= GROUP:
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


@contextmanager
def _npz(file: IO[bytes], columns: Columns, metadata: str) -> Iterator[Callable[[Part], None]]:
    words: dict[str, dict[str, int]] = {name: {} for name, kind in columns.items() if kind == WORD}
    stored = {TEXT: "U", WORD: "int32"}
    dtypes = {name: stored.get(str(kind), kind) for name, kind in columns.items()}
    held: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in columns}

    def add(part: Part) -> None:
        for name, values in part.items():
            if name in words:
                values = [words[name].setdefault(word, len(words[name])) for word in values]
            held[name].append(np.asarray(values, np.dtype(dtypes[name]).base))

    with npz_archive(file) as archive:
        yield add
        for name, parts in held.items():
            write_member(archive, name, np.concatenate(parts or [np.zeros(0, dtypes[name])]))
        for name, known in words.items():
            write_member(archive, f"{name}_words", np.array(list(known), np.str_))
        write_member(archive, "metadata", np.array(metadata))


def npz_archive(file: IO[bytes]) -> zipfile.ZipFile:
    """Return a new compressed archive for `numpy.load`."""
    return zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)


def npz_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """Open an array of an archive, to be written in NumPy's file format."""
    return archive.open(name + ".npy", "w", force_zip64=True)


def write_member(archive: zipfile.ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    """Write a whole array into an archive."""
    with npz_member(archive, name) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)
