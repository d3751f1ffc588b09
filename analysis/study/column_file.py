"""A column of a csv or parquet file, read batch by batch, completely or not at all.

A refusal names the file, the row and the reason. The module also counts the records of a csv file from its bytes, independently of the
parser, and refuses files with ambiguous quotes.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...extras import optional
from ...files import MEGABYTE, check_encoding_mark, check_size, shown_path

with optional("pyarrow", "files of clients"):
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet

MOST_BYTES = 4000 * MEGABYTE
# Number of bytes of a row, for a number or an item's number.
ROW_BYTES = 8
# Number of rows per batch of decoding.
BATCH_ROWS = 2**16
# Largest number of names that a message lists.
MOST_LISTED = 20
# Marks of missing or withheld values, in lower case.
MISSING = frozenset(
    (
        *("", "-", "--", "---", "?", ".", "..", "*", "\u2013", "\u2014", "missing", "none", "nil", "null", "(null)", "#null!", "\\n"),
        *("na", "n/a", "n.a.", "#na", "#n/a", "#n/a n/a", "<na>", "nat", "nan", "-nan", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
        *("#value!", "#ref!", "#div/0!", "#num!", "#name?"),
    )
)
NUL, NEWLINE, RETURN, QUOTE, COMMA = b'\x00\n\r",'
# Number of bytes per piece of a scan; a header fits in a piece.
PIECE = 2**20


@dataclass(frozen=True, eq=False)
class Column:
    """A column to read.

    Attributes
    ----------
    path : Path
        The file.
    name : str
        The column's name.
    names : tuple of str
        Names of all columns.
    kind : pyarrow.DataType
        Type of the values; bytes for csv.
    rows : int
        Number of rows, counted without reading the column.
    """

    path: Path
    name: str
    names: tuple[str, ...]
    kind: pa.DataType
    rows: int

    @property
    def where(self) -> str:
        """The file and the column, for messages."""
        return f"{shown_path(self.path)}: column {self.name!r}"


def check_file(path: Path, formats: Sequence[str], most_bytes: int) -> str:
    """Return the ending of a file's name, in lower case.

    Raises ``DataError`` if the file does not exist, or its format or size is not allowed.
    """
    suffix = path.suffix.lower()
    if suffix not in formats:
        raise DataError(f"{shown_path(path)}: the file's name must end in one of {', '.join(formats)}")
    if not path.is_file():
        raise DataError(f"{shown_path(path)}: there is no such file")
    check_size(path, most_bytes)
    return suffix


def check_rows(where: str, rows: int, most_bytes: int) -> None:
    """Refuse empty files, and rows beyond the allowed memory, before any allocation."""
    if rows == 0:
        raise DataError(f"{where}: there are no rows")
    if rows * ROW_BYTES > most_bytes:
        raise DataError(f"{where}: {rows} rows take {rows * ROW_BYTES / MEGABYTE:g} megabytes, {most_bytes / MEGABYTE:g} are allowed")


def check_count(where: str, counted: int, read: int) -> None:
    """Refuse a column if the parser read a wrong number of rows."""
    if counted != read:
        raise DataError(f"{where}: the file has {counted} rows, its parser read {read}")


def chosen_column(path: Path, column: str | None, names: Sequence[str]) -> int:
    """Return the index of the requested column; a ``DataError`` lists the existing columns."""
    listed = ", ".join(names[:MOST_LISTED]) + (f", ... ({len(names)} in all)" if len(names) > MOST_LISTED else "")
    there = f"the columns are: {listed}"
    if column is None:
        raise DataError(f"{shown_path(path)}: name a column; {there}")
    places = [place for place, name in enumerate(names) if name == column]
    if not places:
        raise DataError(f"{shown_path(path)}: there is no column {column!r}; {there}")
    if len(places) > 1:
        raise DataError(f"{shown_path(path)}: there are {len(places)} columns {column!r}; {there}")
    return places[0]


def column_names(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a csv or parquet file.

    Reading the header suffices. Other files have no names.
    """
    if path.suffix.lower() == ".csv":
        with path.open("rb") as file:
            check_encoding_mark(path, file)
            return _header_names(path, file.read(PIECE))
    if path.suffix.lower() == ".parquet":
        with reading(path):
            return tuple(pyarrow.parquet.read_schema(path).names)
    return ()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of a parser into a ``DataError`` that names the file."""
    try:
        yield
    except (pa.ArrowException, EOFError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{shown_path(path)}: the file cannot be read: {str(error).splitlines()[0]}") from error


def csv_column(path: Path, column: str | None, most_bytes: int) -> Column:
    """Return a column of a csv file with a header; its records are counted without the parser."""
    records = csv_records(path)
    name = records.names[chosen_column(path, column, records.names)]
    result = Column(path, name, records.names, pa.binary(), records.rows)
    check_rows(result.where, result.rows, most_bytes)
    return result


def csv_batches(column: Column) -> Iterator[pa.Array]:
    """Yield the texts of a csv column as they are written.

    Raises ``DataError`` at the first text that is not UTF-8.
    """
    # Numbers identify columns, because names may occur twice. The parser skips the header as a row, since the header may have its own line
    # ends.
    numbers = [str(number) for number in range(len(column.names))]
    chosen = numbers[column.names.index(column.name)]
    read = 0
    with reading(column.path), column.path.open("rb") as file:
        check_encoding_mark(column.path, file)
        batches = pyarrow.csv.open_csv(
            file,
            read_options=pyarrow.csv.ReadOptions(column_names=numbers, skip_rows_after_names=1),
            # An empty line is a row, which in a file with a single column looks like an empty value.
            parse_options=pyarrow.csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=[chosen], column_types={chosen: pa.binary()}, strings_can_be_null=False
            ),
        )
        for batch in batches:
            yield _utf8(column.where, batch.column(0), read)
            read += batch.num_rows
    check_count(column.where, column.rows, read)


def text_lines(path: Path, most_bytes: int) -> Iterator[pa.Array]:
    """Yield the lines of a text file, which end only in LF or CRLF.

    The caller has counted the lines.
    """
    where, rows = shown_path(path), _count_lines(path)
    check_rows(where, rows, most_bytes)
    read = 0
    with reading(path), path.open("rb") as file:
        check_encoding_mark(path, file)
        while lines := [line.removesuffix(b"\n").removesuffix(b"\r") for line in islice(file, BATCH_ROWS)]:
            for row, line in enumerate(lines, read + 1):
                if b"\r" in line:
                    raise DataError(f"{where}: row {row} has a carriage return without a line feed")
            yield _utf8(where, pa.array(lines, pa.binary()), read)
            read += len(lines)
    check_count(where, rows, read)


def _count_lines(path: Path) -> int:
    count, last = 0, b""
    with path.open("rb") as file:
        check_encoding_mark(path, file)
        while piece := file.read(PIECE):
            count += piece.count(b"\n")
            last = piece[-1:]
    return count + (last not in (b"", b"\n"))


def parquet_column(path: Path, column: str | None, most_bytes: int) -> Column:
    """Return a column of a parquet file, with rows and sizes of the file's metadata."""
    with reading(path), path.open("rb") as file:
        parquet = pyarrow.parquet.ParquetFile(file)
        schema, metadata = parquet.schema_arrow, parquet.metadata
        field = schema.field(chosen_column(path, column, schema.names))
        result = Column(path, field.name, tuple(schema.names), field.type, metadata.num_rows)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        leaves = [leaf for group in groups for leaf in map(group.column, range(group.num_columns)) if leaf.path_in_schema == field.name]
    check_rows(result.where, result.rows, most_bytes)
    check_count(result.where, result.rows, sum(group.num_rows for group in groups))
    # Runs of equal values and dictionaries decode to more bytes than stated; `check_rows` counts the decoded bytes.
    stated = sum(leaf.total_uncompressed_size for leaf in leaves)
    if stated > most_bytes:
        raise DataError(f"{result.where}: the values take {stated / MEGABYTE:g} megabytes, {most_bytes / MEGABYTE:g} are allowed")
    return result


def parquet_batches(column: Column, *, as_dictionary: bool = False) -> Iterator[pa.Array]:
    """Yield the values of a parquet column in batches.

    With `as_dictionary`, texts with few different values take less memory.
    """
    read = 0
    with reading(column.path), column.path.open("rb") as file:
        parquet = pyarrow.parquet.ParquetFile(file, read_dictionary=[column.name] if as_dictionary else None)
        for batch in parquet.iter_batches(BATCH_ROWS, columns=[column.name], use_threads=False):
            if batch.schema.names != [column.name]:
                raise DataError(f"{column.where} holds other columns")
            yield batch.column(0)
            read += batch.num_rows
    check_count(column.where, column.rows, read)


def _utf8(where: str, values: pa.Array, before: int) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        for row, value in enumerate(values.to_pylist(), before + 1):
            try:
                value.decode("utf-8")
            except UnicodeDecodeError:
                raise DataError(f"{where}: row {row} is not UTF-8 text: save the file in UTF-8") from None
        raise


@dataclass(frozen=True)
class CsvRecords:
    """Header fields and number of records of a csv file.

    Attributes
    ----------
    names : tuple of str
        The header's fields.
    rows : int
        Number of records after the header; an empty line is a record.
    """

    names: tuple[str, ...]
    rows: int


def csv_records(path: Path) -> CsvRecords:
    """Count the records of a csv file, and read its header.

    The file follows RFC 4180: fields are separated by commas; a field with a comma, a line end or a quotation mark is in quotation marks,
    which are doubled inside. Lines end in LF or CRLF. The function refuses files that other programs might read in another way.

    Raises
    ------
    DataError
        If the file is empty or UTF-16, holds a NUL byte or a carriage return without line feed, has a quotation mark inside a field
        without quotes, text after a closing quotation mark or a quotation mark that is never closed, or records with another number of
        fields than the header has. The message names the first row at fault.
    """
    scan, beginning = _Scan(path), b""
    with path.open("rb") as file:
        check_encoding_mark(path, file)
        while piece := file.read(PIECE):
            if beginning and not scan.records:
                raise DataError(f"{shown_path(path)}: the header is longer than {PIECE} bytes")
            beginning = beginning or piece
            scan.read(np.frombuffer(piece, dtype=np.uint8))
    records = scan.end()
    return CsvRecords(_header_names(path, beginning), records - 1)


def _header_names(path: Path, beginning: bytes) -> tuple[str, ...]:
    text = io.TextIOWrapper(io.BytesIO(beginning), encoding="utf-8", errors="surrogateescape", newline="")
    try:
        # An empty line is a header of a single field without a name.
        names = tuple(next(csv.reader(text, strict=True))) or ("",)
        "".join(names).encode("utf-8")
    except csv.Error as error:
        raise DataError(f"{shown_path(path)}: the header cannot be read: {error}") from None
    except UnicodeEncodeError:
        raise DataError(f"{shown_path(path)}: the header is not UTF-8 text: save the file in UTF-8") from None
    return names


class _Scan:
    """State of a scan between two pieces of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records = 0
        self._quoted = False
        self._opened_in = 0
        self._before = NEWLINE
        self._commas = 0
        self._fields: int | None = None

    def read(self, data: NDArray[np.uint8]) -> None:
        """Count the records that end in a piece, and refuse ambiguous text."""
        quotes = data == QUOTE
        quoted = ((np.cumsum(quotes) - quotes + self._quoted) & 1).astype(bool)
        before = np.concatenate([np.array([self._before], dtype=np.uint8), data[:-1]])
        ends = ~quoted & (data == NEWLINE)
        opening = quotes & ~quoted
        after_closing = ~quoted & (before == QUOTE)
        separated = (before == COMMA) | (before == NEWLINE) | (before == QUOTE)
        faults = {
            "holds a NUL byte": data == NUL,
            "has a carriage return without a line feed": ~quoted & (before == RETURN) & (data != NEWLINE),
            "has a quotation mark inside a field that does not begin with one": opening & ~separated,
            "has text after a closing quotation mark": after_closing & ~np.isin(data, (QUOTE, COMMA, NEWLINE, RETURN)),
        }
        places = {int(np.argmax(wrong)): fault for fault, wrong in faults.items() if wrong.any()}
        if places:
            place = min(places)
            self._refuse(self.records + int(np.count_nonzero(ends[:place])), places[place])
        self._count_fields(np.flatnonzero(ends), np.cumsum(~quoted & (data == COMMA)))
        if opening.any():
            last = len(opening) - 1 - int(np.argmax(opening[::-1]))
            self._opened_in = self.records + int(np.count_nonzero(ends[:last]))
        self.records += int(np.count_nonzero(ends))
        self._quoted = bool(quoted[-1] ^ quotes[-1])
        self._before = int(data[-1])

    def end(self) -> int:
        """Return the number of records."""
        if self._quoted:
            self._refuse(self._opened_in, "has a quotation mark that is never closed")
        if self._before == RETURN:
            self._refuse(self.records, "has a carriage return without a line feed")
        if self._before != NEWLINE:
            self._check_fields(np.array([self._commas]) + 1)
            self.records += 1
        if self.records == 0:
            raise DataError(f"{shown_path(self._path)}: the file is empty")
        return self.records

    def _count_fields(self, ends: NDArray[np.intp], commas: NDArray[np.intp]) -> None:
        """Compare the number of fields of every record that ends in a piece.

        `commas` are running counts of separators.
        """
        at_ends = commas[ends]
        if len(ends):
            self._check_fields(np.diff(at_ends, prepend=-self._commas) + 1)
            self._commas = 0
        self._commas += int(commas[-1] - (at_ends[-1] if len(ends) else 0))

    def _check_fields(self, fields: NDArray[np.intp]) -> None:
        if self._fields is None:
            self._fields = int(fields[0])
        wrong = fields != self._fields
        if wrong.any():
            place = int(np.argmax(wrong))
            count = int(fields[place])
            self._refuse(self.records + place, f"has {count} field{'s' * (count != 1)}, the header has {self._fields}")

    def _refuse(self, record: int, fault: str) -> None:
        where = "the header" if record == 0 else f"row {record}"
        raise DataError(f"{shown_path(self._path)}: {where} {fault}")
