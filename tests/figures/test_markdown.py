"""Tables as Markdown have common values above, and a well-formed table below."""

import math

import pandas as pd

from quietbits.figures.registry import markdown_document


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
