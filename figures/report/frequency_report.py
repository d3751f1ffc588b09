"""Private frequencies as an offline HTML page, with top items, costs and limits."""

import math
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure

from ...analysis.study.frequency_study import FrequencyStudy
from ...analysis.study.mean_estimation import Z95
from ..drawing.marks import BLACK, mechanism_mark
from .pages import fill_template, write_page
from .report_figures import drawable, is_drawable, report_style, svg_text

TEMPLATE = "frequency_report.html.jinja"
MOST_DRAWN = 30


def write_frequency_report(study: FrequencyStudy, path: Path, *, command: str | None = None) -> None:
    """Write a study's report as a self-contained HTML file.

    An existing file is replaced.
    """
    write_page(path, frequency_report_html(study, command=command))


def frequency_report_html(study: FrequencyStudy, *, command: str | None = None) -> str:
    """Return a study's report as HTML."""
    filters = {"short": lambda value: f"{value:.4g}", "signed": lambda value: f"{value:+.4g}"}
    # Only the figure is marked as safe, because matplotlib escapes the names in it.
    figure = Markup(top_items_figure(study))  # noqa: S704 -- see above
    return fill_template(TEMPLATE, filters, study=study, figure=figure, numbered=is_numbered(study), command=command, infinity=math.inf)


def is_numbered(study: FrequencyStudy) -> bool:
    """Return whether the figure names items by their places in the table, because no font of this machine has their letters."""
    return not all(is_drawable(estimate.item) for estimate in study.items[:MOST_DRAWN])


def top_items_figure(study: FrequencyStudy) -> str:
    """Draw the items with the largest estimates, and true frequencies, as an ``<svg>`` element.

    Error bars reach 1.96 standard errors to either side.
    """
    shown = study.items[:MOST_DRAWN]
    rows, numbered = range(len(shown)), is_numbered(study)
    with report_style():
        figure = Figure(figsize=(8.6, 1.1 + 0.27 * len(shown)), layout="constrained")
        axes = figure.add_subplot()
        axes.errorbar(
            [estimate.frequency for estimate in shown],
            rows,
            xerr=[Z95 * estimate.standard_error for estimate in shown],
            capsize=3,
            label="estimate",
            **mechanism_mark(study.mechanism).points,
        )
        axes.plot(
            [estimate.true_frequency for estimate in shown],
            rows,
            color=BLACK.colour,
            marker="|",
            markersize=11,
            markeredgewidth=2,
            linestyle="",
            label="true (not private)",
        )
        axes.set_yticks(rows, [f"item {row + 1}" if numbered else _short(estimate.item) for row, estimate in enumerate(shown)])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("share of the clients")
        axes.legend(loc="lower right")
        return svg_text(figure, "frequencies")


def _short(item: str) -> str:
    drawn = drawable(item)
    return drawn if len(drawn) <= 32 else f"{drawn[:31]}\N{HORIZONTAL ELLIPSIS}"
