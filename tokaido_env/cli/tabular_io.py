"""Tables in files for other programs: parquet, written as rows come, and the archives of NumPy."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.optional_deps import require_extra
from tokaido_env.files import atomic_write

SUFFIXES = (".parquet", ".npz")
GROUP = 1 << 14  # rows of a parquet file that are held and written at once

TEXT = "text"
"""The kind of a column of strings."""

WORD = "word"
"""The kind of a column of few different strings: a file holds each of them once."""

TEXTS = "texts"
"""The kind of a column of lists of strings; only parquet files have it."""

Kind = str | tuple[str, int]
"""One of these three, a dtype, or the dtype and the length of an array."""

Columns = Mapping[str, Kind]
"""The names of columns, in their order, and their kinds."""

Part = Mapping[str, Any]
"""Some rows by the names of their columns: each an array, (rows,) or (rows, width), or a list."""


def check_format(out: Path) -> None:
    """Refuse a file that could not be written as a table, before work is done for it.

    Raises:
        ValueError: if its suffix is another one.
        ModuleNotFoundError: if pyarrow is missing, for a parquet file.
    """
    if out.suffix not in SUFFIXES:
        raise ValueError(f"{out}: expected a name that ends in .parquet or .npz")
    if out.suffix == ".parquet":
        require_extra("parquet files need", "data", "pyarrow")


@contextmanager
def table_file(
    path: Path, columns: Columns, about: Mapping[str, Any]
) -> Iterator[Callable[[Part], None]]:
    """Yield a function that takes rows part by part; the file is written whole or not at all.

    A parquet file is written as rows come. The rows of an archive are held until all are there; it
    has an array a column, and of a column of words the array NAME_words that its numbers index.

    Args:
        path: .parquet or .npz.
        columns: of the table.
        about: what the file says of itself, under `metadata` or, in the schema of a parquet file,
            `tokaido_env`: JSON.

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
    # A dictionary finds nothing in rows of numbers that compression does not, and takes its time.
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
    """Return an archive for `numpy.load`, compressed."""
    return zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)


def npz_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """Return an array of an archive, to be written in the format of NumPy's files."""
    return archive.open(name + ".npy", "w", force_zip64=True)


def write_member(archive: zipfile.ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    """Write a whole array into an archive."""
    with npz_member(archive, name) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)
