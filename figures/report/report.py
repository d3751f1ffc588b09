"""A study as an offline HTML page with results, certificates, tables and provenance."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from ...analysis.study.mean_estimation import Z95
from ...analysis.study.mean_study import MeanStudy
from ...design.tables.file import checksum, table_document
from ...design.tables.lookup_table import LookupTable
from ...design.tables.verification import verify_table
from ...shown import gap_up
from .pages import fill_template, write_page

TEMPLATE = "report.html.jinja"
# Largest number of inputs of a table whose rows are all printed; the exact weights below the rows are always complete.
MOST_ROWS = 64


@dataclass(frozen=True, eq=False)
class PrintedTable:
    """A verified lookup table for the page, with its file's checksum and printed rows."""

    name: str
    table: LookupTable
    sha256: str
    inputs: tuple[int, ...]


def write_report(study: MeanStudy, path: Path, *, command: str | None = None) -> None:
    """Write a study's report as a self-contained HTML file.

    Parameters
    ----------
    study : MeanStudy
        The study.
    path : Path
        The file; an existing file is replaced.
    command : str or None
        The command that made the study, for the report's provenance.

    Raises
    ------
    TableError
        If a table does not verify; nothing is written then.
    """
    write_page(path, report_html(study, command=command))


def report_html(study: MeanStudy, *, command: str | None = None) -> str:
    """Return a study's report as HTML; raise `TableError` if a table does not verify."""
    # The import is local, so that the headline alone does not load matplotlib.
    from .report_figures import BOUND_NAMES, estimates_figure, variance_figure

    decimals = _decimals(min(estimate.standard_error for estimate in study.comparison.estimates))
    filters = {
        "fixed": lambda value: f"{value:,.{decimals}f}",
        "signed": lambda value: f"{value:+,.{decimals}f}",
        "short": lambda value: f"{value:.4g}",
        "exact": repr,
        "shade": _shade,
        "gap_up": gap_up,
    }
    # Only the figures are marked as safe, because matplotlib escapes the names in them.
    return fill_template(
        TEMPLATE,
        filters,
        study=study,
        comparison=study.comparison,
        headline=headline(study),
        bound_name=None if study.comparison.bound is None else BOUND_NAMES[study.comparison.bound.objective],
        estimates_figure=Markup(estimates_figure(study)),  # noqa: S704 -- see above
        variance_figure=Markup(variance_figure(study)),  # noqa: S704 -- see above
        tables=[_printed(name, table) for name, table in study.tables.items()],
        command=command,
    )


def headline(study: MeanStudy) -> tuple[str, ...]:
    """Return a study's result in a few plain sentences.

    The sentences state the estimate, with an error that holds for all values; the shift of the mean by clipping, if there is a shift; the
    table's distance from the optimum, if it is certified; and the cost of the same error without compression.
    """
    mvu, laplace = study.estimate, study.comparison.estimates[-1]
    margin = Z95 * mvu.worst_standard_error
    decimals = _decimals(margin)
    bits = f"{study.bits_out} bit{'s' if study.bits_out > 1 else ''}"
    whose = "of the clipped values' mean" if study.comparison.clipped else "whatever the values are"
    sentences = [
        f"With {bits} from each of {study.comparison.clients:,} clients and epsilon = {study.epsilon:g}, the mean {study.data.name} is "
        f"estimated as {mvu.estimate:,.{decimals}f} ± {margin:,.{decimals}f} (1.96 standard errors, {whose}). "
        f"The true mean is {study.comparison.true_mean:,.{decimals}f}."
    ]
    if study.comparison.clipped:
        sentences.append(f"Warning: {study.comparison.clipping_warning}")
    if study.table.certificate.optimality_gap is not None:
        kind = {"mean": "the average variance", "worst": "the largest variance"}[study.table.certificate.objective]
        sentences.append(f"Certified, among unbiased tables with the same privacy, for {kind} over the input grid: {study.table.gaps}.")
    clients = (laplace.worst_standard_error / mvu.worst_standard_error) ** 2
    sentences.append(
        f"Uncompressed Laplace noise, at 64 bits per client, needs {clients:.2f} times as many clients for the same worst-case error."
    )
    return tuple(sentences)


def _decimals(error: float) -> int:
    """Return the number of decimals that show two digits of an error."""
    return max(0, 1 - math.floor(math.log10(error)))


def _shade(probability: float) -> str:
    """Return a table cell's style: a deeper blue for a larger probability, with legible text."""
    depth = math.sqrt(probability)
    red, green, blue = (round(255 - depth * (255 - end)) for end in (0, 114, 178))
    return f"background:rgb({red},{green},{blue});color:{'#fff' if depth > 0.9 else '#111'}"


def _printed(name: str, table: LookupTable) -> PrintedTable:
    verify_table(table)
    rows = len(table.weights)
    shown = np.unique(np.linspace(0, rows - 1, min(rows, MOST_ROWS)).round().astype(int))
    return PrintedTable(name, table, checksum(table_document(table)), tuple(int(row) for row in shown))
