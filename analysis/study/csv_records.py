"""The records of a csv file, counted from its bytes alone: independently of the parser, and only where quotes have one reading."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...files import check_encoding_mark, shown_path

NUL, NEWLINE, RETURN, QUOTE, COMMA = b'\x00\n\r",'
# Bytes that are looked at together; a header is not longer.
PIECE = 2**20


@dataclass(frozen=True)
class CsvRecords:
    """The shape of a csv file.

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

    The file follows RFC 4180: fields are separated by commas; a field with a comma, a line end or a quotation mark stands in quotation
    marks, which are doubled inside; lines end in LF or CRLF. What other programs might read in another way is refused.

    Raises
    ------
    DataError
        If the file is empty or UTF-16, holds a NUL byte or a carriage return without line feed, has a quotation mark inside a field
        without quotes, text after a closing one or a quotation mark that is never closed, or records with another number of fields than
        the header has. The message names the first row at fault.
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
        # An empty line is a header of one field without a name.
        names = tuple(next(csv.reader(text, strict=True))) or ("",)
        "".join(names).encode("utf-8")
    except csv.Error as error:
        raise DataError(f"{shown_path(path)}: the header cannot be read: {error}") from None
    except UnicodeEncodeError:
        raise DataError(f"{shown_path(path)}: the header is not UTF-8 text: save the file in UTF-8") from None
    return names


class _Scan:
    """The state between two pieces of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records = 0
        self._quoted = False
        self._opened_in = 0
        self._before = NEWLINE
        self._commas = 0
        self._fields: int | None = None

    def read(self, data: NDArray[np.uint8]) -> None:
        """Count the records that end in a piece, and refuse what has two readings."""
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
        """Compare the number of fields of every record that ends in a piece; `commas` are running counts of separators."""
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
