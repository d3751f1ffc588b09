"""Tables as Markdown have common values above, and a well-formed table below."""

import math

import pandas as pd

from quietbits.figures.markdown import MOST_BYTES, markdown_document


def test_what_rows_share_stands_above() -> None:
    frame = pd.DataFrame(
        {"clients": [10, 10], "metric": [None, None], "error": [1 / 3, math.inf], "bits": [math.nan, 2.0], "name": ["a|b", "c\nd"]}
    )
    lines = markdown_document("Title", frame).split("\n")
    assert lines[0] == "# Title"
    assert lines[2] == "clients: 10"
    assert lines[4:8] == ["| error | bits | name |", "|---:|---:|---|", "| 0.333333 |  | a\\|b |", "| inf | 2 | c d |"]
    assert lines[8:] == [""]


def test_a_single_row_is_a_table() -> None:
    text = markdown_document("One", pd.DataFrame({"bits": pd.array([None], dtype="Int64"), "error": [2.0]}))
    assert text == "# One\n\n| bits | error |\n|---:|---:|\n|  | 2 |\n"


def test_a_long_table_is_summarised_by_the_ranges_of_each_series() -> None:
    rows = [
        {"mechanism": name, "clients": 10, "bits": bits, **{f"error_{column}": factor / (bits + column + 1) for column in range(30)}}
        for name, factor in (("mvu", 1.0), ("laplace", 3.0))
        for bits in range(100)
    ]
    page = markdown_document("Many rows. Error: 0.01 to 3", pd.DataFrame(rows))
    assert len(page.encode()) <= MOST_BYTES <= 4096
    assert page.startswith("# Many rows. Error: 0.01 to 3\n\nclients: 10\n\nThe ranges of 200 rows, rounded outward; the CSV file")
    lines = {line.split(" |")[0]: line for line in page.splitlines()}
    columns = lines["| mechanism"].strip("| ").split(" | ")
    # The floating-point number closest to 3 / 100 is below it.
    cells = lines["| laplace"].strip("| ").split(" | ")
    assert dict(zip(columns, cells, strict=True))["error_0"] == "0.0299 to 3"


def test_a_long_table_without_series_is_one_range() -> None:
    page = markdown_document("Points", pd.DataFrame({"trials": range(1, 2001)}))
    assert page.splitlines()[-1] == "| all rows | 1 to 2,000 |"
