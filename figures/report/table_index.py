"""The index of a grid of tables as a self-contained, offline HTML page."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from ...analysis.sweeps.run import TaskFailure
from .pages import fill_template, write_page

TEMPLATE = "table_index.html.jinja"
PAGE_NAME = "index.html"
# Browsers take seconds for more rows.
MOST_ROWS = 10_000


def write_table_index(index: Path, failures: Sequence[TaskFailure] = ()) -> Path:
    """Write the page of an index that `design_tables` has written, and return its path.

    Failures are listed below the tables.
    """
    page = index.with_name(PAGE_NAME)
    write_page(page, table_index_html(index, failures))
    return page


def table_index_html(index: Path, failures: Sequence[TaskFailure] = ()) -> str:
    """Return an index as HTML, with at most `MOST_ROWS` tables and as many failures."""
    rows = pq.read_table(index)
    filters = {"short": lambda value: "none" if value is None else f"{value:.6g}", "percent": _percent, "bytes": _bytes}
    versions = {
        name.removeprefix("version_"): rows[name][0].as_py() for name in rows.column_names if name.startswith("version_") and len(rows)
    }
    gaps = [] if not len(rows) else [gap for gap in rows["optimality_gap"].to_pylist() if gap is not None]
    return fill_template(
        TEMPLATE,
        filters,
        tables=rows.slice(0, MOST_ROWS).to_pylist(),
        total=len(rows),
        size=sum(rows["size"].to_pylist()) if len(rows) else 0,
        largest_gap=max(gaps, default=None),
        failures=failures[:MOST_ROWS],
        failed=len(failures),
        versions=versions,
    )


def _percent(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{100 * value:.2f} %" if value >= 1e-4 else "below 0.01 %"


def _bytes(value: int) -> str:
    return f"{value:,} bytes" if value < 10_000 else f"{value / 1000:,.0f} kB" if value < 10_000_000 else f"{value / 1e6:,.0f} MB"
