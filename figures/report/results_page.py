"""The page of a table of results.

The page has a sentence, guarantees, a plot and a sortable table, and lies beside the data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from ...analysis.sweeps.run import TaskFailure
from ...files import write_atomically
from ...shown import in_figures, with_powers
from .pages import fill_template, write_page

TEMPLATE = "results.html.jinja"
# Names of the files of the page, and of the rows of its table, beside the results.
PAGE_NAME, SUMMARY_NAME = "report.html", "summary.csv"
# Number of rows that a page shows at first; a switch shows all rows.
FIRST_ROWS = 25
# Largest number of rows of a page, as browsers take seconds for more rows.
MOST_ROWS = 10_000


@dataclass(frozen=True)
class Column:
    """A column of a page's table.

    Attributes
    ----------
    name, heading : str
        Column of the rows, and its heading.
    digits : int
        Number of significant digits of numbers that are not whole.
    error : str or None
        Column of a standard error that stands behind the value.
    unit : str
        Unit behind a number.
    least : float
        Number below which the page states only that a value is smaller.
    links : tuple of (str, str)
        Columns with files' names, each with the words of its link; the cell has these links and no value.
    """

    name: str
    heading: str
    digits: int = 3
    error: str | None = None
    unit: str = ""
    least: float = 0.0
    links: tuple[tuple[str, str], ...] = ()

    def text(self, row: dict[Any, Any]) -> str:
        """Return a row's cell as text; empty where the row has no value."""
        value = row[self.name]
        if _missing(value):
            return ""
        if isinstance(value, str):
            return value
        if value < self.least:
            return f"below {in_figures(self.least)}{self.unit}"
        margin = "" if self.error is None or _missing(row[self.error]) else f" ± {in_figures(row[self.error], 2)}"
        return with_powers(in_figures(value, self.digits) + margin) + self.unit


@dataclass(frozen=True)
class Cell:
    """A cell with its text, its sort key, and its links as pairs of a file and words."""

    text: str
    order: Any
    links: tuple[tuple[str, str], ...]
    is_text: bool


@dataclass(frozen=True)
class Row:
    """A row of a page's table.

    The flags state whether the row is the best of its setting, and whether it is only a reference.
    """

    cells: tuple[Cell, ...]
    is_best: bool
    is_reference: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class ResultsPage:
    """A page of results; all texts are plain.

    Attributes
    ----------
    title, statement : str
        Heading, and the sentence that states the result.
    setting : tuple of str
        Settings that all rows share.
    guarantee : str
        The guarantees in a sentence.
    warnings : tuple of str
        Warnings for readers who compare rows.
    figure : str
        The plot, an ``<svg>`` element made by matplotlib; empty without rows.
    caption : str
        Caption of the plot.
    columns : tuple of Column
        Columns of the table; the page omits columns without a value.
    rows : DataFrame
        The first rows, or all rows, with `is_reference` and `is_best`.
    total : int
        Number of all rows, if it exceeds the number of first rows.
    notes : tuple of str
        Sentences below the table.
    failures : tuple of TaskFailure
        Tasks without a result.
    data : tuple of (str, str)
        Files beside the page, each with its contents in words.
    provenance : tuple of (str, str)
        Pairs of a name and a text on the software and the data.
    """

    title: str
    statement: str
    setting: tuple[str, ...] = ()
    guarantee: str = ""
    warnings: tuple[str, ...]
    figure: str = ""
    caption: str = ""
    columns: tuple[Column, ...] = ()
    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    total: int = 0
    notes: tuple[str, ...] = ()
    failures: Sequence[TaskFailure]
    data: tuple[tuple[str, str], ...]
    provenance: tuple[tuple[str, str], ...]


def results_page_html(page: ResultsPage) -> str:
    """Return a page as self-contained HTML."""
    records = page.rows.iloc[:MOST_ROWS].to_dict("records")
    columns = [column for column in page.columns if column.links or any(map(column.text, records))]
    shown = [_row(row, columns) for row in records]
    failures = list(dict.fromkeys((failure.task.setting, failure.message) for failure in page.failures))
    return fill_template(
        TEMPLATE,
        {"powers": with_powers},
        page=page,
        # Only the figures are marked as safe, because matplotlib escapes the names in them.
        figure=Markup(page.figure),  # noqa: S704 -- see above
        columns=columns,
        words={column.name for column in columns if any(isinstance(row[column.name], str) for row in records)},
        rows=[row for row in shown if not row.is_reference],
        references=[row for row in shown if row.is_reference],
        total=max(page.total, len(page.rows)),
        first_rows=FIRST_ROWS,
        failures=failures[:MOST_ROWS],
        failed=len(failures),
    )


def write_results_page(folder: Path, html: str, summary: pd.DataFrame) -> Path:
    """Write a page and its summary into a folder, and return the page's path.

    They replace earlier files.
    """
    write_atomically(folder / SUMMARY_NAME, summary.to_csv(index=False).encode())
    write_page(folder / PAGE_NAME, html)
    return folder / PAGE_NAME


def remove_results_page(folder: Path) -> None:
    """Remove the page and the summary of earlier results from a folder."""
    for name in (PAGE_NAME, SUMMARY_NAME):
        (folder / name).unlink(missing_ok=True)


def _row(row: dict[Any, Any], columns: Sequence[Column]) -> Row:
    cells = []
    for column in columns:
        value = row[column.name]
        links = tuple((row[name], words) for name, words in column.links)
        cells.append(Cell("" if links else column.text(row), _order(value), links, isinstance(value, str)))
    return Row(tuple(cells), bool(row["is_best"]), bool(row["is_reference"]))


def _order(value: Any) -> Any:
    return "" if _missing(value) else "Infinity" if value == math.inf else value


def versions_of(results: pd.DataFrame) -> str:
    """Return the versions of the software that made some rows, in a list."""
    names = [name for name in map(str, results) if name.startswith("version_")]
    versions = ((name.removeprefix("version_"), list(results[name].dropna().unique())) for name in names)
    return ", ".join(f"{name} {' and '.join(map(str, values))}" for name, values in versions if values)


def _missing(value: Any) -> bool:
    return value is None or value != value or value == ""
