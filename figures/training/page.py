"""One self-contained, offline HTML page on a grid of trainings: curves, where each setting ended, what is promised, and how it was run."""

from pathlib import Path

import pandas as pd
from markupsafe import Markup

from ...analysis.training.summary import VARIED, short_value, summarise_training
from ..report.pages import fill_template, write_page
from ..report.report_figures import report_style, svg_text
from .curves import draw_curves, series_rows

TEMPLATE = "training.html.jinja"
# Epsilon if sampling is secret, for mechanisms whose own is not amplified, and if it is not, for others.
BOTH_WAYS = ("epsilon_amplified", "epsilon_unamplified")
WIDTH, HEIGHT, LINE_HEIGHT = 11.0, 4.2, 0.22


def write_training_page(results: pd.DataFrame, path: Path, *, command: str | None = None) -> None:
    """Write the page of what `run_training` wrote: one HTML file that loads nothing from elsewhere; it is replaced if it exists."""
    write_page(path, training_page_html(results, command=command))


def training_page_html(results: pd.DataFrame, *, command: str | None = None) -> str:
    """Return the page as HTML."""
    with report_style():
        # Made here, from names that matplotlib escapes: nothing else on the page is marked as safe.
        figure = Markup(svg_text(draw_curves(results, WIDTH, HEIGHT + LINE_HEIGHT * series_rows(results)), "training"))  # noqa: S704
    summary = summarise_training(results)
    # What does not apply anywhere is left out, and what all settings share stands in a sentence.
    varied = [name for name in VARIED if summary[name].nunique(dropna=False) > 1]
    shared = {name: summary[name].iloc[0] for name in VARIED if name not in varied and summary[name].notna().all()}
    assumed = [name for name in map(str, summary) if name.startswith("epsilon_") and name not in BOTH_WAYS]
    return fill_template(
        TEMPLATE,
        {"short": short_value},
        folder=Path(__file__).parent,
        rows=summary.to_dict("records"),
        varied=varied,
        shared=shared,
        assumed=assumed,
        both_ways=[name for name in BOTH_WAYS if summary[name].notna().any()],
        figure=figure,
        command=command,
        versions={
            name.removeprefix("version_"): ", ".join(map(str, results[name].dropna().unique()))
            for name in map(str, results)
            if name.startswith("version_")
        },
        seeds=sorted(results["seed"].unique().tolist()),
    )
