"""A table as Markdown, for people."""

from typing import Any

import pandas as pd

DIGITS = 6


def markdown_document(title: str, frame: pd.DataFrame) -> str:
    """Return a table as a page of Markdown: first what all rows have in common, then the columns in which they differ.

    Numbers are rounded to six digits, to the nearest: bounds have their direction in the CSV file alone.

    Examples
    --------
    >>> print(markdown_document("Two runs", pd.DataFrame({"clients": [10, 10], "error": [0.25, None]})))
    # Two runs
    <BLANKLINE>
    clients: 10
    <BLANKLINE>
    | error |
    |---:|
    | 0.25 |
    |  |
    <BLANKLINE>
    """
    common = [name for name in frame if len(frame) > 1 and frame[name].nunique(dropna=False) == 1]
    columns = [name for name in frame if name not in common]
    # What applies to no row is not worth a line.
    shared = [f"{name}: {_cell(frame[name].iloc[0])}" for name in common if _cell(frame[name].iloc[0])]
    ruler = "|".join("---:" if pd.api.types.is_numeric_dtype(frame[name]) else "---" for name in columns)
    lines = [_line([str(name) for name in columns]), f"|{ruler}|", *(_line([_cell(one) for one in row]) for row in _rows(frame, columns))]
    parts = [f"# {title}", "; ".join(shared), "\n".join(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rows(frame: pd.DataFrame, columns: list[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*(frame[name].tolist() for name in columns), strict=True))


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if pd.isna(value):
        return ""
    text = f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
