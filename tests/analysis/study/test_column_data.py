import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from quietbits.analysis.study import column_data
from quietbits.analysis.study.column_data import body_mass_index, load_column, read_column
from quietbits.errors import DataError


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_each_format_gives_the_same_values(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"people.{suffix}"
    frame = pd.DataFrame({"age": [31, 62, 18], "height": [1.75, -1e-3, 2e2]})
    if suffix == "csv":
        frame.to_csv(path, index=False)
    elif suffix == "parquet":
        frame.to_parquet(path)
    else:
        np.save(path, frame.to_records(index=False))
    np.testing.assert_array_equal(read_column(path, "height"), [1.75, -1e-3, 200.0])
    ages = read_column(path, "age")
    np.testing.assert_array_equal(ages, [31.0, 62.0, 18.0])
    assert ages.dtype == np.float64


def test_npy_arrays_with_one_and_two_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "values.npy"
    np.save(path, np.arange(4, dtype=np.uint8))
    np.testing.assert_array_equal(read_column(path, None), [0.0, 1.0, 2.0, 3.0])
    np.save(path, np.arange(6).reshape(3, 2))
    np.testing.assert_array_equal(read_column(path, "1"), [1.0, 3.0, 5.0])


def test_csv_with_a_byte_order_mark_quotes_and_spaces(tmp_path: Path) -> None:
    path = tmp_path / "spreadsheet.CSV"
    path.write_bytes('\ufeff"x, y",z\r\n" 1.5",a\r\n2e1,b\r\n'.encode())
    np.testing.assert_array_equal(read_column(path, "x, y"), [1.5, 20.0])


CSV_FAULTS = {
    "missing cell": ("x,y\n1,2\n,3\n,4\n", "column 'x': 2 of 3 values are missing or NaN, first in row 2"),
    "NaN": ("x\n1\n2\nNaN\n", "column 'x': 1 of 3 values is missing or NaN, first in row 3"),
    "empty line": ("x\n1\n\n2\n", "column 'x': 1 of 3 values is missing or NaN, first in row 2"),
    "infinite": ("x\n-inf\n2\ninf\n", "column 'x': 2 of 3 values are infinite, first in row 1"),
    "beyond double precision": ("x\n1\n1e999\n", "column 'x': 1 of 2 values is infinite, first in row 2"),
    "text": ("x\n1\ntwo\n", "column 'x': 1 of 2 values is not numeric, first in row 2 ('two')"),
    "thousands separator": ('x\n"1,000"\n', "column 'x': 1 of 1 values is not numeric, first in row 1 ('1,000')"),
    "truth value": ("x\n1\nTrue\n", "column 'x': 1 of 2 values is not numeric, first in row 2 ('True')"),
    "no rows": ("x,y\n", "column 'x': there are no rows"),
    "no bytes": ("", "the file is empty"),
    "ragged": ("x,y\n1,2\n3\n", "row 2 has 1 field, the header has 2"),
    "no such column": ("age,height\n1,2\n", "there is no column 'x'; the columns are: age, height"),
    "underscores": ("x\n1_000\n", "column 'x': 1 of 1 values is not numeric, first in row 1 ('1_000')"),
    "digits of another script": ("x\n\u0661\n", "column 'x': 1 of 1 values is not numeric, first in row 1 ('\u0661')"),
    "decimal comma": ("x;y\n1,5;2\n", "row 1 has 2 fields, the header has 1"),
    "other marks of missing values": ("x\n1\n-\n?\n#N/A\n\\N\n", "column 'x': 4 of 5 values are missing or NaN, first in row 2"),
    "no header": ("31,1\n62,2\n", "there is no column 'x'; the columns are: 31, 1"),
    "the name twice": ("x,x\n1,2\n", "there are 2 columns 'x'; the columns are: x, x"),
}


@pytest.mark.parametrize(("text", "message"), CSV_FAULTS.values(), ids=CSV_FAULTS)
def test_bad_csv_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(f"{path}: {message}")) as caught:
        read_column(path, "x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "value"), [("+5", 5), ("-.5", -0.5), ("007", 7), (" 1.e3\t", 1000), ("1" + "0" * 25, 1e25), ("-0", 0)])
def test_every_spelling_of_a_number_is_that_number(tmp_path: Path, text: str, value: float) -> None:
    path = tmp_path / "data.csv"
    path.write_text(f"x\n{text}\n")
    np.testing.assert_array_equal(read_column(path, "x"), [value])


def test_a_first_line_of_numbers_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("31\n62\n18\n")
    with pytest.raises(DataError, match="every field of the header is a number"):
        read_column(path, "31")


def test_a_csv_column_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("age,height\n1,2\n")
    with pytest.raises(DataError, match="name a column; the columns are: age, height"):
        read_column(path, None)


def test_csv_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"x,y\n\xff\xfe,1\n")
    with pytest.raises(DataError, match="column 'x': row 1 is not UTF-8 text"):
        read_column(path, "x")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b"], "column 'x' is not numeric: it holds"),
        ([True, False], "column 'x' is not numeric: it holds bool"),
        ([1.0, None], "1 of 2 values is missing or NaN, first in row 2"),
        ([1.0, np.inf], "1 of 2 values is infinite, first in row 2"),
    ],
)
def test_bad_parquet_is_refused(tmp_path: Path, values: list[object], message: str) -> None:
    path = tmp_path / "data.parquet"
    pd.DataFrame({"x": values}).to_parquet(path)
    with pytest.raises(DataError, match=re.escape(message)):
        read_column(path, "x")


def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    for suffix in ("parquet", "npy"):
        path = tmp_path / f"data.{suffix}"
        for content in (b"", b"certainly no numbers"):
            path.write_bytes(content)
            with pytest.raises(DataError, match=re.escape(str(path))) as caught:
                read_column(path, "x")
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("array", "column", "message"),
    [
        (np.array(["a"]), None, "the array is not numeric: it holds <U1"),
        (np.array([1 + 1j]), None, "the array is not numeric: it holds complex128"),
        (np.array([True]), None, "the array is not numeric: it holds bool"),
        (np.array([1.0, np.nan]), None, "1 of 2 values is missing or NaN, first in row 2"),
        (np.array([]), None, "there are no rows"),
        (np.zeros((2, 2, 2)), None, "the array must have one or two dimensions, it has 3"),
        (np.float64(1.0), None, "the array must have one or two dimensions, it has 0"),
        (np.zeros(3), "x", "there is no column 'x': the array has one dimension"),
        (np.zeros((3, 2)), "2", "there is no column '2'; the columns are numbered from 0 to 1"),
        (np.zeros((3, 2)), None, "name a column; the columns are numbered from 0 to 1"),
    ],
)
def test_bad_npy_is_refused(tmp_path: Path, array: np.ndarray, column: str | None, message: str) -> None:
    path = tmp_path / "data.npy"
    np.save(path, array)
    with pytest.raises(DataError, match=re.escape(message)):
        read_column(path, column)


def test_an_npy_file_with_a_second_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    with path.open("wb") as file:
        np.save(file, np.ones(3))
        np.save(file, np.ones(2))
    with pytest.raises(DataError, match=r"goes on for 144 bytes after its array of shape \(3,\)"):
        read_column(path, None)


def test_an_npy_field_of_arrays_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, np.zeros(3, dtype=[("x", "f8", (2,))]))
    with pytest.raises(DataError, match=r"column 'x': must hold one number in each row, it holds arrays of shape \(2,\)"):
        read_column(path, "x")


def test_an_npy_array_of_countless_columns_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, np.zeros((0, 10**15), dtype=np.uint8))
    with pytest.raises(DataError, match="there is no column 'x'; the columns are numbered from 0 to 999999999999999"):
        read_column(path, "x")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_too_many_rows_are_refused_before_they_are_read(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rows = tmp_path / f"data.{suffix}", 50_000
    zeros = np.zeros(rows, dtype=np.uint8)
    if suffix == "csv":
        path.write_text("x\n" + "0\n" * rows)
    elif suffix == "parquet":
        pd.DataFrame({"x": zeros}).to_parquet(path)
    else:
        np.save(path, zeros)
    assert path.stat().st_size < 200_000
    monkeypatch.setattr(column_data, "csv_batches", None)
    monkeypatch.setattr(column_data, "parquet_batches", None)
    monkeypatch.setattr(column_data.np, "empty", None)
    with pytest.raises(DataError, match=r"50000 rows take 0\.4 megabytes, 0\.2 are allowed"):
        read_column(path, "x" if suffix != "npy" else None, most_bytes=200_000)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_a_file_name_may_be_in_any_encoding(tmp_path: Path, suffix: str) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path / "caf") + b"\xe9." + suffix.encode()))
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    with path.open("wb") as file:
        if suffix == "csv":
            file.write(b"x\n1\n2\n")
        elif suffix == "parquet":
            frame.to_parquet(file)
        else:
            np.save(file, frame["x"].to_numpy())
    column = load_column(path, None if suffix == "npy" else "x", (0.0, 3.0))
    assert column.values.tolist() == [1.0, 2.0]
    assert column.source == f"caf\\xe9.{suffix}"
    path.write_bytes(b"x")
    with pytest.raises(DataError, match=r"caf\\xe9"):
        read_column(path, "x")


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, np.array([1, "x"], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not an npy array of numbers"):
        read_column(path, None)


def test_missing_files_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_column(tmp_path / "absent.csv", "x")
    with pytest.raises(DataError, match=r"must end in one of \.csv, \.parquet, \.npy"):
        read_column(tmp_path / "data.xlsx", "x")


def test_values_outside_the_interval_are_clipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x\n-5\n0\n2\n7\n")
    column = load_column(path, "x", (0.0, 2.0))
    np.testing.assert_array_equal(column.clipped, [0.0, 0.0, 2.0, 2.0])
    assert column.clipped_count == 2
    assert column.interval_is_public


def test_an_interval_taken_from_the_data_says_so(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x\n-5\n0\n7\n")
    column = load_column(path, "x", None)
    assert column.interval == (-5.0, 7.0)
    assert not column.interval_is_public
    path.write_text("x\n3\n3\n")
    with pytest.raises(DataError, match="all values are 3, which makes no interval"):
        load_column(path, "x", None)


def test_a_bad_interval_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="interval must be two finite numbers with low < high"):
        load_column(tmp_path / "data.csv", "x", (2.0, 1.0))


def test_the_demo_population_lies_within_its_public_interval() -> None:
    column = body_mass_index()
    assert column.interval_is_public
    assert column.clipped_count == 0
    assert len(column.values) == 442
