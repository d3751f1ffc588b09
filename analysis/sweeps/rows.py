"""Rows of a sweep's table: their format, and writing them to a parquet file in pieces."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from ...design.contracts.privacy import Scalar
from ...extras import optional
from ...files import atomic_file

with optional("pyarrow", "tables of results"):
    import pyarrow as pa
    import pyarrow.parquet as pq

# Number of rows of a parquet row group, and so of rows in memory.
GROUP_ROWS = 2**15
TYPES = {"none": pa.null(), "bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "text": pa.string()}
KINDS = ((bool, "bool"), (int, "int"), (float, "float"), (str, "text"))


@dataclass(frozen=True)
class EncodedRows:
    """A task's rows as text.

    Attributes
    ----------
    layout : str
        JSON list of the columns' names in order, each with its type: ``"none"``, ``"bool"``, ``"int"``, ``"float"`` or ``"text"``.
    values : str
        JSON of the number of rows, and a list of values for each column; a column of equal values has a list of a single value.
    """

    layout: str
    values: str

    def decoded(self) -> list[dict[str, Scalar]]:
        """Return the rows."""
        count, columns = json.loads(self.values)
        names = [name for name, _ in json.loads(self.layout)]
        whole = [column if len(column) == count else column * count for column in columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*whole, strict=True)]


def encode_rows(rows: Sequence[Mapping[str, Scalar]]) -> EncodedRows:
    """Return rows as text; None stands for a missing column.

    Raises ValueError for values that a table cannot hold.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    # Rows with the same columns in the same order are the usual case, and transposed at once.
    alike = all(list(row) == names for row in rows)
    columns = list(zip(*(row.values() for row in rows), strict=True)) if alike else [tuple(row.get(name) for row in rows) for name in names]
    # Comparison by identity is exact: equal numbers may differ in their sign or type.
    short = [[_plain(value) for value in (values[:1] if len(set(map(id, values))) == 1 else values)] for values in columns]
    layout = [(name, _kind_of_all(name, values)) for name, values in zip(names, short, strict=True)]
    return EncodedRows(json.dumps(layout), json.dumps((len(rows), short)))


def combined_columns(layouts: Iterable[str]) -> dict[str, str]:
    """Return the columns of consecutive tables, in order of appearance, with their types."""
    columns: dict[str, str] = {}
    for layout in layouts:
        for name, kind in json.loads(layout):
            columns[name] = _combined(name, columns.get(name, "none"), kind)
    return columns


def write_rows(path: Path, columns: Mapping[str, str], parts: Iterable[tuple[str, str, Mapping[str, Scalar]]]) -> None:
    """Write tables in turn to a parquet file; each has a layout, values, and constant columns."""
    schema = pa.schema([(name, TYPES[kind]) for name, kind in columns.items()])
    with atomic_file(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for table in _groups(schema, parts):
            writer.write_table(table)


def _groups(schema: pa.Schema, parts: Iterable[tuple[str, str, Mapping[str, Scalar]]]) -> Iterator[pa.Table]:
    """Yield the rows in tables of about `GROUP_ROWS`, at least one, which may be empty."""
    names: dict[str, list[str]] = {}
    values: dict[str, list[Any]] = {name: [] for name in schema.names}
    total, yielded = 0, False

    def table() -> pa.Table:
        arrays = [pa.array(values[field.name], field.type) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)

    for layout, text, same in parts:
        if layout not in names:
            names[layout] = [name for name, _ in json.loads(layout)]
        count, columns = json.loads(text)
        given = {name: column if len(column) == count else column * count for name, column in zip(names[layout], columns, strict=True)}
        for name, column in values.items():
            column.extend(given[name] if name in given else repeat(same.get(name), count))
        total += count
        if total >= GROUP_ROWS:
            yield table()
            total, yielded = 0, True
            for column in values.values():
                column.clear()
    if total or not yielded:
        yield table()


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _kind_of_all(name: str, values: Sequence[Any]) -> str:
    kind = "none"
    for value in values:
        kind = _combined(name, kind, _kind(name, value))
    return kind


def _kind(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"column {name} must hold whole numbers of at most 64 bits, got {value}")
    for held, kind in KINDS:
        if isinstance(value, held):
            return kind
    raise ValueError(f"column {name} must hold numbers, texts, True or False, or None, got {value!r}")


def _combined(name: str, first: str, second: str) -> str:
    if first == second or second == "none":
        return first
    if first == "none":
        return second
    if {first, second} == {"int", "float"}:
        return "float"
    raise ValueError(f"column {name} must hold values of one kind in all tasks, got {first} and {second}")
