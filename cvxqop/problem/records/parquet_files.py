"""Parquet files before anything is read of them: which there are, their row groups, their columns.

What is taken is decided by names and types alone. Words of pyarrow may hold values, so that every
call of it that fails is reported in words of our own, outside the handler.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from typing import Any

from cvxqop.errors import OptionError, ProblemError

__all__ = ["File", "Table", "file_status", "find_table", "open_file", "row_counts"]

# Bytes of a column that are read ahead: without them, pyarrow reads a row group as a whole.
BUFFER = 2**16
VERB = "parquet_columns"


@dataclass(frozen=True)
class File:
    """A file as it was when it was found: its size in bytes, and the rows of each row group."""

    path: str
    size: int
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """Files with the same columns, and the names of those that are read.

    ``boolean`` says whether the target holds False and True.
    """

    files: tuple[File, ...]
    features: tuple[str, ...]
    target: str | None
    boolean: bool


def find_table(path: Any, features: Any, target: str | None) -> Table:
    """The files at ``path`` and the columns, found usable without a look at a row.

    Raises
    ------
    ProblemError
        There is no file, one is not a Parquet file, or a column is missing or not of numbers.
    OptionError
        ``features`` is no list of names, empty, or holds the target.
    """
    names = _listed(features, target)
    paths = _paths(path)
    first = open_file(paths[0])
    types = _types(first, paths[0])
    wanted = None if names is None else names if target is None else (*names, target)
    if names is None:
        skipped = {target, *_index_columns(first)}
        names = tuple(c for c in types if c not in skipped and _real(types[c]))
        if not names:
            raise ProblemError(f"{VERB}: {paths[0]} has no column of numbers beside the target.")
    for column in names if target is None else (*names, target):
        _check(column, types)
    files = []
    for place in paths:
        file = first if place == paths[0] else open_file(place)
        others = _types(file, place)
        for column in wanted or {**types, **others}:
            if others.get(column) != types.get(column):
                raise ProblemError(
                    f"{VERB}: column {column!r} is not in both {place} and {paths[0]} with one "
                    "type. The files of a folder must have the same columns."
                )
        files.append(File(place, file_status(place).st_size, row_counts(file)))
        file.close()
    boolean = target is not None and str(types[target]) == "bool"
    return Table(tuple(files), names, target, boolean)


def open_file(path: str) -> Any:
    """A ``pyarrow.parquet.ParquetFile`` that reads no more than it is asked for."""
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER)
    except Exception:
        pass
    raise ProblemError(f"{path} cannot be opened as a Parquet file.")


def row_counts(file: Any) -> tuple[int, ...]:
    """The rows of each row group."""
    metadata = file.metadata
    return tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))


def file_status(path: str) -> os.stat_result:
    """What the operating system says of a file that has been there."""
    try:
        return os.stat(path)
    except OSError:
        pass
    raise ProblemError(f"The file {path} is gone.")


def _listed(features: Any, target: str | None) -> tuple[str, ...] | None:
    if target is not None and not isinstance(target, str):
        raise OptionError(f"{VERB}: target must be the name of a column or None.")
    if features is None:
        return None
    if isinstance(features, str):
        raise OptionError(f"{VERB}: features must be a list of names, such as [{features!r}].")
    names = tuple(features) if isinstance(features, list | tuple) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(f"{VERB}: features must be a list of names of columns, or None.")
    if target in names:
        raise OptionError(f"{VERB}: the target {target!r} is among the features; leave it out.")
    return names


def _paths(path: Any) -> list[str]:
    """The file itself, or the files of a folder in the order of their names."""
    if not isinstance(path, str | os.PathLike):
        raise OptionError(f"{VERB}: path must be a str or a path, not {type(path).__name__}.")
    place = os.path.abspath(os.fspath(path))
    if not os.path.isdir(place):
        if not os.path.exists(place):
            raise ProblemError(f"{VERB}: there is no file or folder {place}.")
        return [place]
    with os.scandir(place) as entries:
        seen = sorted((e.name, e.is_dir()) for e in entries if e.name[0] not in "._")
    for name, is_folder in seen:
        if is_folder and "=" in name:
            raise ProblemError(
                f"{VERB}: {place} is partitioned by folders such as {name!r}, whose names hold a "
                "column. That is not supported: write the files into one folder with that column "
                "in them."
            )
        if is_folder:
            raise ProblemError(f"{VERB}: {place} holds the folder {name!r}; pass one folder.")
    if not seen:
        raise ProblemError(f"{VERB}: the folder {place} holds no file.")
    return [os.path.join(place, name) for name, _ in seen]


def _types(file: Any, path: str) -> dict[str, Any]:
    """The type of each column by name."""
    schema = file.schema_arrow
    types = dict(zip(schema.names, schema.types, strict=True))
    if len(types) < len(schema.names):
        raise ProblemError(f"{VERB}: two columns of {path} have the same name; rename one.")
    return types


def _index_columns(file: Any) -> list[Any]:
    """Columns that pandas wrote for the index of a frame."""
    metadata = file.schema_arrow.pandas_metadata or {}
    return [c for c in metadata.get("index_columns", []) if isinstance(c, str)]


def _check(column: str, types: dict[str, Any]) -> None:
    if column not in types:
        close = difflib.get_close_matches(column, list(types))
        hint = f" Is it {' or '.join(map(repr, close))}?" if close else ""
        raise ProblemError(f"{VERB}: there is no column {column!r}.{hint}")
    if not _real(types[column]):
        raise ProblemError(
            f"{VERB}: column {column!r} must hold real numbers, not type {_word(types[column])}: "
            f"leave it out, or write the file anew with {_cure(column, types[column])}."
        )


def _real(kind: Any) -> bool:
    from pyarrow import types

    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _word(kind: Any) -> str:
    """The type in one word: what is inside of a nested one is no matter."""
    return str(kind).partition("<")[0]


def _cure(column: str, kind: Any) -> str:
    from pyarrow import types

    if types.is_duration(kind):
        return f"a number of days, polars.col({column!r}).dt.total_days(), in its place"
    if types.is_temporal(kind):
        return (
            f"the days since a public date, (polars.col({column!r}) - date).dt.total_days(), in "
            "its place"
        )
    if types.is_nested(kind):
        return "its entries as columns of their own"
    if types.is_null(kind):
        return f"polars.col({column!r}).cast(polars.Float64) in its place"
    return (
        "one 0/1 column a category, such as "
        f"polars.read_parquet(path).to_dummies({column!r}).write_parquet(other)"
    )
