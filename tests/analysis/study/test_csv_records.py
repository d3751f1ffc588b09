"""The reader of csv files counts the records right in a single pass, or refuses the file."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.analysis.study import column_file as csv_records
from quietbits.analysis.study.column_file import csv_batches, csv_column
from quietbits.analysis.study.column_file import csv_records as records_of
from quietbits.errors import DataError

FAULTS = {
    "text after a quotation mark": (b'x\n1\n"a"b\n', "row 2 has text after a closing quotation mark"),
    "a quotation mark inside": (b'x\n5" pipe\n', "row 1 has a quotation mark inside a field that does not begin with one"),
    "an open quotation mark": (b'x\n1\n"2\n3\n4\n', "row 2 has a quotation mark that is never closed"),
    "old line ends": (b"x\r1\r2\r", "the header has a carriage return without a line feed"),
    "a last old line end": (b"x\n1\r", "row 1 has a carriage return without a line feed"),
    "NUL": (b"x\n1\x002\n", "row 1 holds a NUL byte"),
    "too many fields": (b"x,y\n1,2\n1,2,\n", "row 2 has 3 fields, the header has 2"),
    "too few fields at the end": (b"x,y\n1,2\n1", "row 2 has 1 field, the header has 2"),
    "an empty line": (b"x,y\n1,2\n\n1,2\n", "row 2 has 1 field, the header has 2"),
    "UTF-16": ("x\n1\n".encode("utf-16"), "the file is UTF-16 or UTF-32"),
    "UTF-16 without a mark": ("x\n1\n".encode("utf-16-le"), "the header holds a NUL byte"),
    "a header in latin-1": (b"caf\xe9\n1\n", "the header is not UTF-8 text"),
    "nothing": (b"", "the file is empty"),
    "only a mark": (b"\xef\xbb\xbf", "the file is empty"),
}


@pytest.mark.parametrize("piece", [5, 6, 7, 2**20])
@pytest.mark.parametrize(("content", "message"), FAULTS.values(), ids=FAULTS)
def test_what_has_two_readings_is_refused(
    tmp_path: Path, content: bytes, message: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_records, "PIECE", piece)
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        records_of(path)


def test_a_header_longer_than_a_piece_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "PIECE", 4)
    path = tmp_path / "data.csv"
    path.write_bytes(b"abc,def\n1,2\n")
    with pytest.raises(DataError, match="the header is longer than 4 bytes"):
        records_of(path)


FIELDS = st.text(st.one_of(st.sampled_from(list('",\r\n \t#;NA-')), st.characters(codec="utf-8", exclude_characters="\x00")), max_size=6)


@given(
    st.integers(1, 3).flatmap(lambda columns: st.lists(st.lists(FIELDS, min_size=columns, max_size=columns), min_size=1, max_size=8)),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 7, 2**20]),
)
def test_rows_in_any_legal_quoting_are_that_many_clients(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], quoting: int, ends: str, marked: bool, cut: bool, piece: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    text = io.StringIO(newline="")
    names = [f"column {number}" for number in range(len(rows[0]))]
    csv.writer(text, quoting=quoting, lineterminator=ends).writerows([names, *rows])
    content = (b"\xef\xbb\xbf" if marked else b"") + text.getvalue().removesuffix(ends if cut else "").encode()
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "PIECE", max(piece, len("column 0,column 1,column 2") + 20))
        for place, name in enumerate(names):
            column = csv_column(path, name, 10**6)
            assert column.rows == len(rows)
            assert [value for batch in csv_batches(column) for value in batch.to_pylist()] == [row[place] for row in rows]


@given(st.binary(max_size=40).map(lambda content: b"x\n" + content))
def test_bytes_are_read_as_pythons_strict_reader_reads_them_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    path.write_bytes(content)
    try:
        column = csv_column(path, "x", 10**6)
        values = [value for batch in csv_batches(column) for value in batch.to_pylist()]
    except DataError:
        return
    # Python's csv reader returns an empty line as a row without fields.
    expected = [row[0] if row else "" for row in csv.reader(io.StringIO(content.decode(), newline=""), strict=True)]
    assert values == expected[1:]
