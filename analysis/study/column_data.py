"""One numeric column of a csv, parquet or npy file: one value per client, and the public interval that values are clipped to."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from ...arguments import check_interval
from ...arrays import FloatArray
from ...errors import DataError
from ...files import MEGABYTE, check_size

FORMATS = (".csv", ".parquet", ".npy")
MOST_BYTES = 4000 * MEGABYTE
NPY_MAGIC = b"\x93NUMPY"
LONGEST_MESSAGE = 200
# What a csv cell without a number may say, in lower case.
MISSING = ("", "na", "n/a", "nan", "none", "null")


@dataclass(frozen=True, eq=False)
class DataColumn:
    """Values, one per client, with the interval that is known without looking at them.

    Attributes
    ----------
    name : str
        What the values are, for tables and axes.
    source : str
        Where they come from.
    values : ndarray of float64, shape (clients,)
        Finite values; not clipped.
    interval : tuple of float
        (low, high); a value outside counts as the nearer end.
    interval_is_public : bool
        Whether the interval was stated. False: it is the range of the values, which reveals the smallest and the largest, so that no
        guarantee covers what is computed from it.
    """

    name: str
    source: str
    values: FloatArray
    interval: tuple[float, float]
    interval_is_public: bool = True

    @cached_property
    def clipped(self) -> FloatArray:
        """The values, those outside the interval moved to its nearer end."""
        return np.clip(self.values, *self.interval)

    @property
    def clipped_count(self) -> int:
        """Number of values outside the interval."""
        return int(np.count_nonzero(self.clipped != self.values))


def load_column(path: Path, column: str | None, interval: tuple[float, float] | None, *, most_bytes: int = MOST_BYTES) -> DataColumn:
    """Read a column, as `read_column` does, and attach its public interval (low, high).

    Without one, the smallest and the largest value are taken: this is not private, and the result says so. `DataError` if these are equal.
    """
    if interval is not None:
        interval = check_interval("interval", interval)
    values = read_column(path, column, most_bytes)
    name = column if column is not None else path.stem
    if interval is not None:
        return DataColumn(name, path.name, values, interval)
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise DataError(f"{path}: all values are {low:g}, which makes no interval: state one")
    return DataColumn(name, path.name, values, check_interval("interval", (low, high)), interval_is_public=False)


def read_column(path: Path, column: str | None, most_bytes: int = MOST_BYTES) -> FloatArray:
    """Read one numeric column; nothing is skipped, filled or guessed.

    Parameters
    ----------
    path : Path
        A csv file with a header, a parquet file or a npy file.
    column : str or None
        The column's name; in a two-dimensional npy array its number, counted from 0. None for a npy array with one dimension.

    most_bytes : int
        Largest file that is read, and most bytes that the column may take.

    Raises
    ------
    DataError
        If there is no such file or column, the file is too large or cannot be read, or the column is empty or holds anything but finite
        numbers; the message gives their number and the first row (row 1 is the first row of data).
    """
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".npy": _read_npy}
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise DataError(f"{path}: the file's name must end in one of {', '.join(FORMATS)}")
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    check_size(path, most_bytes)
    try:
        values = readers[suffix](path, column)
    except (pa.ArrowException, UnicodeDecodeError, EOFError, OSError) as error:
        raise DataError(f"{path}: the file cannot be read: {str(error).splitlines()[0]}") from error
    where = f"{path}" if column is None else f"{path}: column {column!r}"
    if values.nbytes > most_bytes:
        raise DataError(f"{where}: the values take {values.nbytes / MEGABYTE:g} megabytes, {most_bytes / MEGABYTE:g} are allowed")
    if len(values) == 0:
        raise DataError(f"{where}: there are no rows")
    _refuse(where, np.isnan(values), "missing or NaN")
    _refuse(where, np.isinf(values), "infinite")
    return values


def _read_csv(path: Path, column: str | None) -> FloatArray:
    # With one thread, pyarrow's messages name the row at fault.
    serial = pyarrow.csv.ReadOptions(use_threads=False)
    with pyarrow.csv.open_csv(path, read_options=serial) as reader:
        name = chosen_column(path, column, reader.schema.names)
    table = pyarrow.csv.read_csv(
        path,
        read_options=serial,
        # An empty line is a missing value: in a file with one column the two look the same.
        parse_options=pyarrow.csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()}, strings_can_be_null=False),
    )
    texts = table.column(0).to_pandas()
    numbers = np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=float)
    unread = np.isnan(numbers)
    unread[unread] = [text.strip().lower() not in MISSING for text in texts[unread]]
    _refuse(f"{path}: column {name!r}", unread, "not numeric", lambda row: f" ({texts[row]!r})")
    return numbers


def _read_parquet(path: Path, column: str | None) -> FloatArray:
    schema = pyarrow.parquet.read_schema(path)
    name = chosen_column(path, column, schema.names)
    kind = schema.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"{path}: column {name!r} is not numeric: it holds {kind}")
    values = pyarrow.parquet.read_table(path, columns=[name]).column(0)
    return np.asarray(pyarrow.compute.cast(values, pa.float64(), safe=False).to_numpy(), dtype=float)


def _read_npy(path: Path, column: str | None) -> FloatArray:
    with path.open("rb") as file:
        if file.read(len(NPY_MAGIC)) != NPY_MAGIC:
            raise DataError(f"{path}: the file is not an npy array: it does not begin as one")
    try:
        # Mapped, so that a shape larger than the file is refused and no memory is taken for it.
        with np.errstate(over="raise"):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, ArithmeticError) as error:
        raise DataError(f"{path}: the file is not an npy array of numbers: {str(error)[:LONGEST_MESSAGE]}") from error
    if array.dtype.names is not None and array.ndim == 1:
        array = array[chosen_column(path, column, list(array.dtype.names))]
    elif array.ndim == 2:
        array = array[:, int(chosen_column(path, column, [str(number) for number in range(array.shape[1])]))]
    elif array.ndim != 1:
        raise DataError(f"{path}: the array must have one or two dimensions, it has {array.ndim}")
    elif column is not None:
        raise DataError(f"{path}: there is no column {column!r}: the array has one dimension, so name no column")
    if array.dtype.kind not in "iuf":
        raise DataError(f"{path}: the array is not numeric: it holds {array.dtype}")
    return np.array(array, dtype=float)


def chosen_column(path: Path, column: str | None, names: list[str]) -> str:
    """Return the name of the one column that was asked for; a ``DataError`` lists those that there are."""
    there = f"the columns are: {', '.join(names)}"
    if column is None:
        raise DataError(f"{path}: name a column; {there}")
    if column not in names:
        raise DataError(f"{path}: there is no column {column!r}; {there}")
    if names.count(column) > 1:
        raise DataError(f"{path}: there are {names.count(column)} columns {column!r}; {there}")
    return column


def _refuse(where: str, wrong: NDArray[np.bool_], fault: str, example: Callable[[int], str] = lambda _: "") -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        count = int(np.count_nonzero(wrong))
        raise DataError(
            f"{where}: {count} of {len(wrong)} values {'is' if count == 1 else 'are'} {fault}, first in row {row + 1}{example(row)}"
        )
