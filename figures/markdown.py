"""Tables beside figures as pages of Markdown for readers, which begin with the findings and stay short."""

from typing import Any

import pandas as pd

from .findings import range_in_words

DIGITS = 6
# Largest size of a page. A longer table is summarised; the CSV file beside the page holds all rows.
MOST_BYTES = 4000
# Largest number of groups of a summary.
MOST_GROUPS = 12


def markdown_document(title: str, frame: pd.DataFrame) -> str:
    """Return a table as a page of Markdown, of at most 4 kB.

    Columns with the same value in all rows become a sentence above the table. Numbers are rounded to the nearest of six digits; only the
    CSV file keeps the direction of bounds. A table that is too long is summarised by the ranges of its columns in each series.

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
    varied = frame.drop(columns=common)
    # Omit columns that apply to no row.
    shared = "; ".join(f"{name}: {_cell(frame[name].iloc[0])}" for name in common if _cell(frame[name].iloc[0]))
    page = _page(title, shared, _table(varied))
    if len(page.encode()) <= MOST_BYTES:
        return page
    note = f"The ranges of {len(frame):,} rows, rounded outward; the CSV file beside this page holds the rows."
    summary = summarised(varied)
    while len(page.encode()) > MOST_BYTES and len(summary.columns) > 1:
        page = _page(title, shared, note, _table(summary))
        # Settings have fewer different values than results, and go first.
        summary = summary.drop(columns=min(summary.columns[:0:-1], key=lambda name: varied[name].nunique()))
    return page


def _page(*parts: str) -> str:
    title, *others = parts
    return "\n\n".join(part for part in (f"# {title}", *others) if part) + "\n"


def _table(frame: pd.DataFrame) -> str:
    ruler = "|".join("---:" if pd.api.types.is_numeric_dtype(frame[name]) else "---" for name in frame)
    rows = zip(*(frame[name].tolist() for name in frame), strict=True)
    return "\n".join([_line([str(name) for name in frame]), f"|{ruler}|", *(_line([_cell(value) for value in row]) for row in rows)])


def summarised(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each series of a table, with the ranges of its numbers.

    A series is a value of the column of texts with the most values, at most twelve; without such a column, the whole table is a series.
    """
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    counts = {name: frame[name].nunique() for name in texts if 1 < frame[name].nunique() <= MOST_GROUPS}
    series = max(counts, key=lambda name: counts[name], default=None)
    numbers = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(frame[name])]
    groups: Any = [("all rows", frame)] if series is None else frame.groupby(str(series), sort=False)
    rows = [{"rows" if series is None else series: name} | {number: _range(group[number]) for number in numbers} for name, group in groups]
    return pd.DataFrame(rows)


def _range(numbers: "pd.Series[float]") -> str:
    values = numbers.dropna().astype(float)
    return range_in_words(values.min(), values.max()) if len(values) else ""


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if pd.isna(value):
        return ""
    text = f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
