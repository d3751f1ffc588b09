"""A numeric column of a csv, parquet or npy file with a value per client."""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer, check_interval
from ...arrays import FloatArray
from ...design.transforms.dithering import finite_values, grid_position
from ...errors import DataError
from ...extras import optional
from ...files import shown_path
from .column_file import (
    MISSING,
    MOST_BYTES,
    check_file,
    check_rows,
    chosen_column,
    csv_batches,
    csv_column,
    parquet_batches,
    parquet_column,
    reading,
)

with optional("pyarrow", "files of clients"):
    import pyarrow as pa
    import pyarrow.compute

FORMATS = (".csv", ".parquet", ".npy")
NPY_MAGIC = b"\x93NUMPY"
LONGEST_MESSAGE = 200
# Pattern of a number as text, without Python's underscores and without digits of other scripts. Blanks may surround it.
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
INFINITE = ("inf", "infinity")
BLANKS = " \t"


@dataclass(frozen=True, eq=False)
class DataColumn:
    """Values of clients, with the interval that they are clipped to.

    Attributes
    ----------
    name : str
        Name of the values, for tables and axes.
    source : str
        Origin of the values.
    values : ndarray of float64, shape (clients,)
        Finite values; not clipped.
    interval : tuple of float
        Ends (low, high) of the interval; a value outside counts as the nearer end.
    interval_is_public : bool
        Whether the interval was stated. Otherwise it is the range of the values, which reveals the smallest and the largest value, so that
        no guarantee covers results computed from it.
    """

    name: str
    source: str
    values: FloatArray
    interval: tuple[float, float]
    interval_is_public: bool = True

    @cached_property
    def clipped(self) -> FloatArray:
        """The values, with the nearer end in place of a value outside the interval."""
        return np.clip(self.values, *self.interval)

    @property
    def clipped_count(self) -> int:
        """Number of values outside the interval."""
        return int(np.count_nonzero(self.clipped != self.values))


def load_column(path: Path, column: str | None, interval: tuple[float, float] | None, *, most_bytes: int = MOST_BYTES) -> DataColumn:
    """Read a column, as `read_column` does, and attach its public interval (low, high).

    Without an interval, the function uses the smallest and the largest value, which is not private, as the result states. Equal values
    raise `DataError`.
    """
    if interval is not None:
        interval = check_interval("interval", interval)
    values = read_column(path, column, most_bytes)
    name, source = column if column is not None else shown_path(path.stem), shown_path(path.name)
    if interval is not None:
        return DataColumn(name, source, values, interval)
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise DataError(f"{shown_path(path)}: all values are {low:g}, which makes no interval: state one")
    return DataColumn(name, source, values, check_interval("interval", (low, high)), interval_is_public=False)


def read_column(path: Path, column: str | None, most_bytes: int = MOST_BYTES) -> FloatArray:
    """Read a numeric column, without skipping, filling or guessing values.

    Parameters
    ----------
    path : Path
        A csv file with a header, a parquet file or a npy file.
    column : str or None
        The column's name; in a two-dimensional npy array its number, counted from 0. None for a npy array with one dimension.
    most_bytes : int
        Largest size of the file, and of the column in memory.

    Raises
    ------
    DataError
        If there is no such file or column, the file is too large or unreadable, the number of rows differs from the independent count, or
        the column is empty or holds values other than finite numbers; the message gives their number and the first row (row 1 is the first
        row of data).
    """
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".npy": _read_npy}
    values = readers[check_file(path, FORMATS, most_bytes)](path, column, most_bytes)
    where = _where(path, column)
    _refuse(where, np.isnan(values), "missing or NaN")
    _refuse(where, np.isinf(values), "infinite")
    return values


def _where(path: Path, column: str | None) -> str:
    return shown_path(path) if column is None else f"{shown_path(path)}: column {column!r}"


def _read_csv(path: Path, column: str | None, most_bytes: int) -> FloatArray:
    opened = csv_column(path, column, most_bytes)
    if all(_is_number(name) for name in opened.names):
        raise DataError(f"{opened.where}: every field of the header is a number: the first line must name the columns")
    values, unread = np.empty(opened.rows), np.zeros(opened.rows, dtype=bool)
    start, first = 0, ""
    for batch in csv_batches(opened):
        rows = slice(start, start + len(batch))
        values[rows], unread[rows] = _numbers(batch)
        if not first and unread[rows].any():
            first = batch[int(np.argmax(unread[rows]))].as_py()
        start += len(batch)
    _refuse(opened.where, unread, "not numeric", f" ({first!r})")
    return values


def _is_number(text: str) -> bool:
    return NUMBER.fullmatch(text.strip(BLANKS)) is not None


def _numbers(texts: pa.Array) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return numbers, NaN for other texts, and a mask of unreadable texts.

    Unreadable texts are neither numbers nor marks of missing values.
    """
    trimmed = pyarrow.compute.utf8_trim(texts, BLANKS)
    numeric = pyarrow.compute.match_substring_regex(trimmed, f"^{NUMBER.pattern}$")
    numbers = np.array(pyarrow.compute.if_else(numeric, trimmed, "nan").cast(pa.float64()), dtype=float)
    unread = np.zeros(len(texts), dtype=bool)
    for row in np.flatnonzero(~np.asarray(numeric)).tolist():
        text = trimmed[row].as_py().lower()
        if text.lstrip("+-") in INFINITE:
            numbers[row] = math.inf
        else:
            unread[row] = text.strip() not in MISSING
    return numbers, unread


def _read_parquet(path: Path, column: str | None, most_bytes: int) -> FloatArray:
    opened = parquet_column(path, column, most_bytes)
    if not (pa.types.is_integer(opened.kind) or pa.types.is_floating(opened.kind) or pa.types.is_decimal(opened.kind)):
        raise DataError(f"{shown_path(path)}: column {opened.name!r} is not numeric: it holds {opened.kind}")
    values, start = np.empty(opened.rows), 0
    for batch in parquet_batches(opened):
        # The conversion turns nulls into NaN.
        numbers = pyarrow.compute.cast(batch, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        values[start : start + len(batch)] = numbers
        start += len(batch)
    return values


def _read_npy(path: Path, column: str | None, most_bytes: int) -> FloatArray:
    with reading(path), path.open("rb") as file:
        if file.read(len(NPY_MAGIC)) != NPY_MAGIC:
            raise DataError(f"{shown_path(path)}: the file is not an npy array: it does not begin as one")
    try:
        # The array is mapped, so that a shape larger than the file is refused and takes no memory.
        with reading(path), np.errstate(over="raise"):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except DataError:
        raise
    except (ValueError, ArithmeticError) as error:
        raise DataError(f"{shown_path(path)}: the file is not an npy array of numbers: {str(error)[:LONGEST_MESSAGE]}") from error
    where = _where(path, column)
    rest = path.stat().st_size - array.offset - array.nbytes
    if rest:
        raise DataError(f"{where}: the file goes on for {rest} bytes after its array of shape {array.shape}")
    if array.dtype.names is not None and array.ndim == 1:
        array = array[array.dtype.names[chosen_column(path, column, array.dtype.names)]]
        if array.ndim != 1:
            raise DataError(f"{where}: must hold one number in each row, it holds arrays of shape {array.shape[1:]}")
    elif array.ndim == 2:
        array = array[:, _column_number(path, column, array.shape[1])]
    elif array.ndim != 1:
        raise DataError(f"{shown_path(path)}: the array must have one or two dimensions, it has {array.ndim}")
    elif column is not None:
        raise DataError(f"{shown_path(path)}: there is no column {column!r}: the array has one dimension, so name no column")
    if array.dtype.kind not in "iuf":
        raise DataError(f"{shown_path(path)}: the array is not numeric: it holds {array.dtype}")
    check_rows(where, len(array), most_bytes)
    return np.array(array, dtype=float)


def _column_number(path: Path, column: str | None, columns: int) -> int:
    there = f"the columns are numbered from 0 to {columns - 1}"
    if column is None:
        raise DataError(f"{shown_path(path)}: name a column; {there}")
    if not (column.isascii() and column.isdecimal() and column == str(int(column)) and int(column) < columns):
        raise DataError(f"{shown_path(path)}: there is no column {column!r}; {there}")
    return int(column)


def _refuse(where: str, wrong: NDArray[np.bool_], fault: str, example: str = "") -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        count = int(np.count_nonzero(wrong))
        raise DataError(f"{where}: {count} of {len(wrong)} values {'is' if count == 1 else 'are'} {fault}, first in row {row + 1}{example}")


def body_mass_index() -> DataColumn:
    """Return the body mass index of the patients in scikit-learn's diabetes data.

    The source is Efron, Hastie, Johnstone, Tibshirani 2004. Each patient is a client with a private value, and the clinic estimates the
    mean. The interval, 15 to 45 kg/m2, is common medical knowledge, from severely underweight to severely obese, and was chosen without the
    data.

    Examples
    --------
    >>> column = body_mass_index()
    >>> len(column.values), round(float(column.values.mean()), 2), column.clipped_count
    (442, 26.38, 0)
    """
    # scikit-learn takes a second to import, and only this function needs it.
    with optional("sklearn", "the diabetes data"):
        from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    values = np.asarray(bunch.data[:, bunch.feature_names.index("bmi")], dtype=float)
    return DataColumn("body mass index (kg/m²)", "scikit-learn's diabetes data: 442 patients", values, (15.0, 45.0))


def grid_prior(values: FloatArray, interval: tuple[float, float], bits_in: int) -> FloatArray:
    """Return the average use of each grid input when given values are encoded with dithering.

    The result has shape (2**bits_in,) and sums to one. The prior determines the table, which is public, so use public or past data, never
    the values of the protected clients.

    Parameters
    ----------
    values : ndarray of shape (values,)
        Finite values, at least one; values outside the interval count as its nearer end.
    interval : tuple of float
        The grid's ends (low, high).
    bits_in : int
        Number of bits of the grid index, 1 to 9.

    Examples
    --------
    >>> grid_prior(np.array([0.0, 0.5]), (0.0, 1.0), 1).tolist()
    [0.75, 0.25]
    """
    steps = 2 ** check_integer("bits_in", bits_in, low=1, high=9) - 1
    positions = grid_position(finite_values("values", values), check_interval("interval", interval), steps)
    if positions.size == 0:
        raise ValueError("values must hold at least one number, got none")
    lower = np.minimum(positions.astype(np.intp), steps - 1)
    fraction = positions - lower
    weights = np.bincount(lower, 1 - fraction, steps + 1) + np.bincount(lower + 1, fraction, steps + 1)
    return np.asarray(weights / weights.sum())
