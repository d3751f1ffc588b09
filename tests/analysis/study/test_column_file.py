"""Columns of files: the loaded values are exactly the rows of the file."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from quietbits.analysis.study import column_file
from quietbits.analysis.study.column_data import read_column
from quietbits.analysis.study.column_file import chosen_column, csv_batches, csv_column, parquet_batches, parquet_column, text_lines
from quietbits.errors import DataError


def test_a_parser_that_loses_or_makes_up_rows_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x\n1\n\n3\n")
    honest = column_file.pyarrow.csv.ParseOptions
    monkeypatch.setattr(column_file.pyarrow.csv, "ParseOptions", lambda **_: honest(ignore_empty_lines=True))
    with pytest.raises(DataError, match="column 'x': the file has 3 rows, its parser read 2"):
        list(csv_batches(csv_column(path, "x", 10**6)))
    path = tmp_path / "data.parquet"
    pd.DataFrame({"x": np.arange(10.0)}).to_parquet(path)
    column = parquet_column(path, "x", 10**6)
    pd.DataFrame({"x": np.arange(9.0)}).to_parquet(path)
    with pytest.raises(DataError, match="column 'x': the file has 10 rows, its parser read 9"):
        list(parquet_batches(column))
    path = tmp_path / "data.txt"
    path.write_text("a\nb\n")
    monkeypatch.setattr(column_file, "_count_lines", lambda _: 3)
    with pytest.raises(DataError, match="the file has 3 rows, its parser read 2"):
        list(text_lines(path, 10**6))


def test_many_row_groups_and_batches_keep_all_rows_in_order(tmp_path: Path) -> None:
    path, values = tmp_path / "data.parquet", np.arange(200_000.0)
    pa.parquet.write_table(pa.table({"x": values, "y": -values}), path, row_group_size=7_001, compression="zstd")
    np.testing.assert_array_equal(read_column(path, "y"), -values)
    path = tmp_path / "data.csv"
    pd.DataFrame({"x": values}).to_csv(path, index=False)
    np.testing.assert_array_equal(read_column(path, "x"), values)


def test_a_column_is_never_one_inside_another(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pa.parquet.write_table(pa.table({"a": [{"b": 1.0}, {"b": 2.0}], "c": [3.0, 4.0]}), path)
    for name, message in (("a.b", "there is no column 'a.b'; the columns are: a, c"), ("a", "is not numeric: it holds struct")):
        with pytest.raises(DataError, match=message):
            read_column(path, name)
    pa.parquet.write_table(pa.table({"a": [{"b": 1.0}, {"b": 2.0}], "a.b": [3.0, 4.0]}), path)
    with pytest.raises(DataError, match=r"column 'a\.b' holds other columns"):
        read_column(path, "a.b")


def test_the_names_of_a_thousand_columns_are_not_all_listed() -> None:
    with pytest.raises(DataError, match=r"the columns are: 0, 1, .*, 19, \.\.\. \(1000 in all\)$"):
        chosen_column(Path("data.csv"), "x", [str(number) for number in range(1000)])
