"""An offline HTML page on a grid of trainings: curves, results, guarantees, provenance.

The page is self-contained.
"""

import math
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from ...analysis.training.summary import VARIED, short_value, summarise_training, with_totals
from ..drawing.marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from ..report.pages import fill_template, write_page
from ..report.report_figures import report_style, svg_text

MARKS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
# Widest line of a legend with several columns, in characters.
WIDE = 44
AXES = (
    ("round", "round", False),
    ("epsilon", "proven ε of all rounds so far", True),
    ("megabytes_up", "megabytes up, all clients so far", True),
)
TEMPLATE = "training.html.jinja"
# Columns of epsilon: with secret sampling for mechanisms whose own epsilon is not amplified, and without it for other mechanisms.
BOTH_WAYS = ("epsilon_amplified", "epsilon_unamplified")
WIDTH, HEIGHT, LINE_HEIGHT = 11.0, 4.2, 0.22


def labelled(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `series`: the mechanism, and the settings that differ among its runs."""
    runs = results.groupby("run", sort=False).head(1)
    names = []
    for row in runs.to_dict("records"):
        same = runs[runs["label"] == row["label"]]
        differing = [name for name in VARIED if name in runs and same[name].nunique(dropna=False) > 1]
        shown = [f"{name.replace('_', ' ')} {short_value(row[name])}" for name in differing]
        names.append(", ".join([row["label"], *shown]))
    return results.assign(series=results["run"].map(dict(zip(runs["run"], names, strict=True))))


def draw_curves(results: pd.DataFrame, width: float, height: float) -> Figure:
    """Draw accuracy against rounds, epsilon and bytes up, from the rows of `run_training`.

    A run without privacy has no epsilon: a horizontal line shows its last accuracy.
    """
    frame = labelled(with_totals(results))
    frame = frame[frame["accuracy"].notna()]
    # The guarantees may differ in adjacency and trust model; the page's table names both.
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(1, len(AXES), sharey=True)
    for (_, series), mark in zip(frame.groupby("series", sort=False), cycle(MARKS), strict=False):
        by_round = series.groupby("round")
        accuracy = by_round["accuracy"].agg(["mean", "min", "max"])
        for axes, (name, _, _) in zip(panels, AXES, strict=True):
            places = by_round[name].mean() if name != "round" else pd.Series(accuracy.index, index=accuracy.index)
            if not np.isfinite(places).all():
                axes.axhline(accuracy["mean"].iloc[-1], color=mark.colour, linestyle=mark.line, linewidth=1.0, alpha=0.7)
                continue
            every = max(1, math.ceil(len(accuracy) / 6))
            axes.plot(
                places,
                accuracy["mean"],
                color=mark.colour,
                linestyle=mark.line,
                marker=mark.marker,
                markevery=every,
                label=series["series"].iloc[0],
            )
            axes.fill_between(places, accuracy["min"], accuracy["max"], color=mark.colour, alpha=0.15, linewidth=0)
    for axes, (name, words, logarithmic) in zip(panels, AXES, strict=True):
        _finish(axes, frame[name], words, logarithmic=logarithmic)
    panels[0].set_ylabel("accuracy")
    handles, names = panels[0].get_legend_handles_labels()
    columns = 1 if max(map(len, names), default=0) > WIDE else 2
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _finish(axes: Axes, values: pd.Series, words: str, *, logarithmic: bool) -> None:
    finite = values[np.isfinite(values) & (values > 0)]
    if logarithmic and len(finite) and finite.max() > 5 * finite.min():
        axes.set_xscale("log")
        # Report figures do not read mathematics, so use plain text.
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(words)
    axes.grid(visible=True)


def series_rows(results: pd.DataFrame) -> int:
    """Return the number of lines of the curves."""
    return int(labelled(results)["series"].nunique())


def write_training_page(results: pd.DataFrame, path: Path, *, command: str | None = None) -> None:
    """Write the page of `run_training`'s results: an HTML file that loads nothing else.

    An existing file is replaced.
    """
    write_page(path, training_page_html(results, command=command))


def training_page_html(results: pd.DataFrame, *, command: str | None = None) -> str:
    """Return the page as HTML."""
    with report_style():
        # The figure is made here, from names that matplotlib escapes: nothing else on the page is marked as safe.
        figure = Markup(svg_text(draw_curves(results, WIDTH, HEIGHT + LINE_HEIGHT * series_rows(results)), "training"))  # noqa: S704
    summary = summarise_training(results)
    # Omit columns that apply to no setting, and state values that all settings share in a sentence.
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
