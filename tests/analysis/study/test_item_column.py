"""Items are read exactly as written, one per row, or refused with the row and the reason."""

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.analysis.study.item_column import load_items
from quietbits.errors import DataError


def items_of(path: Path, column: str | None = None, domain: Path | None = None) -> list[str]:
    loaded = load_items(path, column, domain)
    return [loaded.names[item] for item in loaded.items.tolist()]


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_a_byte_order_mark_is_no_item(tmp_path: Path, ends: str, last: bool) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(b"\xef\xbb\xbf" + ends.join(["pear", "fig", "pear", "pear"]).encode() + (ends.encode() if last else b""))
    assert items_of(path) == ["pear", "fig", "pear", "pear"]
    listed = tmp_path / "list.txt"
    listed.write_bytes(b"\xef\xbb\xbfpear\nfig\n")
    assert items_of(path, None, listed) == ["pear", "fig", "pear", "pear"]


FAULTS = {
    "a mark in the middle": ("a\n\ufeffb\n", "row 2 holds '\\ufeffb', with characters that nobody sees"),
    "a space without width": ("a\na\u200b\n", "row 2 holds 'a\\u200b', with characters that nobody sees"),
    "a mark of direction": ("a\n\u202ea\n", "row 2 holds '\\u202ea', with characters that nobody sees"),
    "the end of a DOS file": ("a\nb\n\x1a", "row 3 holds '\\x1a', with characters that nobody sees"),
    "NUL": ("a\nb\0\n", "row 2 holds 'b\\x00', with characters that nobody sees"),
    "white space": ("a\na \n", "row 2 holds 'a ': remove the white space around it"),
    "blanks only": ("a\n \n", "row 2 has no item"),
    "an old line end": ("a\rb\n", "row 1 has a carriage return without a line feed"),
    "several faults": (
        "a\n?\nb\n\n?\n",
        "row 2 holds '?', a mark of a missing value: if it is an item, put it on a public list (3 of 5 rows",
    ),
}


@pytest.mark.parametrize(("text", "message"), FAULTS.values(), ids=FAULTS)
def test_faulty_lines_are_refused_with_their_row(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(text.encode())
    with pytest.raises(DataError) as caught:
        load_items(path, None)
    assert message in str(caught.value)


def test_a_line_ends_at_a_line_feed_only(tmp_path: Path) -> None:
    path, items = tmp_path / "data.txt", ["a\u2028b", "c\u2029d", "e"]
    path.write_bytes("\n".join(items).encode())
    assert items_of(path) == items


@pytest.mark.parametrize("mark", ["NA", "null", "None", "-", "?", "NaN", "#N/A", "<NA>", "\\N", "."])
def test_a_mark_of_a_missing_value_is_an_item_only_on_a_public_list(tmp_path: Path, mark: str) -> None:
    path, listed = tmp_path / "data.txt", tmp_path / "list.txt"
    path.write_text(f"a\n{mark}\na\n")
    for buckets in (None, 8):
        with pytest.raises(DataError, match=r"row 2 holds .*, a mark of a missing value"):
            load_items(path, None, None, buckets)
    listed.write_text("a\n")
    with pytest.raises(DataError, match=r"row 2 holds .*, a mark of a missing value"):
        load_items(path, None, listed)
    listed.write_text(f"{mark}\na\n")
    assert items_of(path, None, listed) == ["a", mark, "a"]


def test_text_of_another_encoding_is_refused(tmp_path: Path) -> None:
    for name, content in (("data.txt", b"a\ncaf\xe9\n"), ("data.csv", b"x\na\ncaf\xe9\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match="row 2 is not UTF-8 text"):
            load_items(tmp_path / name, "x" if name == "data.csv" else None)
        (tmp_path / name).write_text("x\na\n", encoding="utf-16")
        with pytest.raises(DataError, match="the file is UTF-16 or UTF-32"):
            load_items(tmp_path / name, "x" if name == "data.csv" else None)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([b"a", b"b"], pa.binary()),
        ([1.0, 2.0], pa.float64()),
        ([["a"], ["b"]], pa.list_(pa.string())),
        ([True, False], pa.bool_()),
        ([dt.datetime(2020, 1, 1), None], pa.timestamp("us")),
        ([{"a": 1}, {"a": 2}], pa.struct([("a", pa.int64())])),
        ([None, None], pa.null()),
    ],
)
def test_parquet_values_with_several_spellings_are_refused(tmp_path: Path, values: list[Any], kind: pa.DataType) -> None:
    path = tmp_path / "data.parquet"
    pa.parquet.write_table(pa.table({"x": pa.array(values, kind)}), path)
    with pytest.raises(DataError, match="column 'x' must hold texts, whole numbers or dates, which have one spelling; it holds"):
        load_items(path, "x")


@pytest.mark.parametrize(
    ("array", "items"),
    [
        (pa.array(["b", "a", "b"], pa.large_string()), ["b", "a", "b"]),
        (pa.array([3, -1, 3], pa.int8()), ["3", "-1", "3"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([dt.date(2020, 2, 29)], pa.date32()), ["2020-02-29"]),
        (pa.array([1, 2, 1]).dictionary_encode(), ["1", "2", "1"]),
        (pa.DictionaryArray.from_arrays([1, 2, 1], ["unused", "b", "a", "never"]), ["b", "a", "b"]),
    ],
)
def test_parquet_values_with_one_spelling_are_items(tmp_path: Path, array: pa.Array, items: list[str]) -> None:
    path = tmp_path / "data.parquet"
    pa.parquet.write_table(pa.table({"x": array}), path)
    assert items_of(path, "x") == items
    # A dictionary value that no row uses is no item.
    assert load_items(path, "x").categories == len(set(items))


@pytest.mark.parametrize("values", [pd.array(["a", None, "b"]), pd.Categorical(["a", None, "b"]), pd.array([1, pd.NA, 2], dtype="Int64")])
def test_nulls_are_refused(tmp_path: Path, values: Any) -> None:
    path = tmp_path / "data.parquet"
    pd.DataFrame({"x": values}).to_parquet(path)
    with pytest.raises(DataError, match="column 'x': row 2 has no item"):
        load_items(path, "x")


def test_long_texts_are_not_copied_for_every_row(tmp_path: Path) -> None:
    path, rows = tmp_path / "data.parquet", 100_000
    # The column would take 100 GB if every row had its own copy.
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["x" * 10**6])
    pa.parquet.write_table(pa.table({"x": column}), path)
    assert load_items(path, "x").items.tolist() == [0] * rows


def test_a_file_name_may_be_in_any_encoding(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path / "caf") + b"\xe9.txt"))
    path.write_text("a\nb\n")
    column = load_items(path, None)
    assert (column.name, column.source) == ("caf\\xe9", "caf\\xe9.txt")


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=4)


@given(st.lists(TEXTS, min_size=1, max_size=10))
def test_lines_are_as_many_clients_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "data.txt"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    try:
        items = items_of(path)
    except DataError:
        return
    assert items == [lines[0].removeprefix("\ufeff").removesuffix("\r"), *(line.removesuffix("\r") for line in lines[1:])]
