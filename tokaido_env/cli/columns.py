"""Columns in files for other programs: parquet, written as rows come, and the archives of NumPy."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from tokaido_env.core.extras import missing

SUFFIXES = (".parquet", ".npz")
GROUP = 1 << 14  # rows of a parquet file that are held and written at once

Part = Mapping[str, Any]
"""Some rows by the names of their columns: each an array, (rows,) or (rows, k), or a list."""


def check_format(out: Path) -> None:
    """Refuse a file that could not be written as columns, before work is done for it.

    Raises:
        ValueError: if its suffix is another one.
        ModuleNotFoundError: if pyarrow is missing, for a parquet file.
    """
    if out.suffix not in SUFFIXES:
        raise ValueError(f"{out}: expected a name that ends in .parquet or .npz")
    if out.suffix == ".npz":
        return
    try:
        import pyarrow  # noqa: F401  asked before anything is read
    except ModuleNotFoundError as error:
        raise missing("parquet files need", error.name, "data") from None


@contextmanager
def parquet_rows(
    file: IO[bytes], schema: Any, coded: Sequence[str] | bool = True
) -> Iterator[Callable[[Part], None]]:
    """Give what takes rows part by part; it writes whole parts by the about `GROUP` rows.

    Args:
        file: that is written to.
        schema: of pyarrow.
        coded: the columns in which values are kept once each, True for all.
    """
    import pyarrow.parquet as pq

    group: list[Part] = []
    with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=coded) as writer:

        def write() -> None:
            table = _table(group, schema)
            writer.write_table(table, row_group_size=len(table))
            group.clear()

        def add(part: Part) -> None:
            group.append(part)
            if sum(map(_length, group)) >= GROUP:
                write()

        yield add
        if group:
            write()


def _length(part: Part) -> int:
    return len(next(iter(part.values())))


def _table(group: list[Part], schema: Any) -> Any:
    """Return some rows as an Arrow table."""
    import pyarrow as pa

    arrays = []
    for field in schema:
        columns = [part[field.name] for part in group]
        if isinstance(columns[0], list):
            arrays.append(pa.array([value for column in columns for value in column], field.type))
            continue
        column = np.concatenate(columns)
        if column.ndim == 2:
            flat = pa.array(column.reshape(-1), field.type.value_type)
            arrays.append(pa.FixedSizeListArray.from_arrays(flat, type=field.type))
        else:
            arrays.append(pa.array(column, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


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
