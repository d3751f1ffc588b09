"""Rows of a sweep's table survive storage unchanged, in any number of pieces."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from quietbits.analysis.sweeps import rows as rows_module
from quietbits.analysis.sweeps.rows import combined_columns, encode_rows, write_rows

VALUES = [
    {"name": "a", "value": 0.1, "count": 3, "flag": True, "nothing": None},
    {"name": "a", "value": -0.0, "count": -(2**63), "flag": False},
    {"name": "é\n", "value": math.inf, "count": 2**63 - 1, "extra": 1e-320},
    {"name": None, "value": math.nan, "count": None},
]


def written(path: Path, *parts: list[dict[str, object]]) -> pd.DataFrame:
    encoded = [encode_rows(part) for part in parts]
    write_rows(path, combined_columns(item.layout for item in encoded), ((item.layout, item.values, {}) for item in encoded))
    return pq.read_table(path).to_pylist()


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    back = written(tmp_path / "rows.parquet", VALUES, VALUES[:1])
    names = ["name", "value", "count", "flag", "nothing", "extra"]
    expected = [{name: row.get(name) for name in names} for row in [*VALUES, VALUES[0]]]
    assert repr(back) == repr(expected)


def test_whole_numbers_and_others_share_a_column(tmp_path: Path) -> None:
    back = written(tmp_path / "rows.parquet", [{"a": 1, "b": True}], [{"a": 0.5}], [{"a": np.float64(2), "b": np.bool_(False)}])
    assert [row["a"] for row in back] == [1.0, 0.5, 2.0]
    assert [row["b"] for row in back] == [True, None, False]


def test_many_rows_are_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "GROUP_ROWS", 10)
    path = tmp_path / "rows.parquet"
    back = written(path, *([{"number": number}] * 3 for number in range(20)))
    assert [row["number"] for row in back] == [number for number in range(20) for _ in range(3)]
    assert pq.ParquetFile(path).metadata.num_row_groups == 5


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"a": 2**63}], "column a must hold whole numbers of at most 64 bits, got 9223372036854775808"),
        ([{"a": 1j}], "column a must hold numbers, texts, True or False, or None, got 1j"),
        ([{"a": 1}, {"a": "b"}], "column a must hold values of one kind in all tasks, got int and text"),
        ([{"a": True}, {"a": 1}], "column a must hold values of one kind in all tasks, got bool and int"),
    ],
)
def test_what_a_table_cannot_hold_is_named(rows: list[dict[str, object]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode_rows(rows)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    package = encode_rows([{"a": 1}])
    with pytest.raises(KeyError):
        write_rows(tmp_path / "rows.parquet", {"a": "colour"}, [(package.layout, package.values, {})])
    assert list(tmp_path.iterdir()) == []
