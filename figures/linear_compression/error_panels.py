"""Panels of predicted errors as lines and measured errors as points.

The references are the zero estimate and a trusted server.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from ..drawing.marks import ANSWER_ZERO, TRUSTED_SERVER, Mark, series_marks
from ..drawing.style import WIDTH

ZERO_LOOK: Mapping[str, Any] = ANSWER_ZERO.rule
CENTRAL_LOOK: Mapping[str, Any] = TRUSTED_SERVER.rule


def marks_of(values: Sequence[Any]) -> dict[Any, Mark]:
    """Return a mark for each of several settings, in their order."""
    return dict(zip(values, series_marks(len(values)), strict=True))


def panels(count: int, height: float, *, shared: bool = True) -> tuple[Figure, list[Axes]]:
    """Return a figure of the page's width with panels side by side.

    Comparable panels share their axes.
    """
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, list(figure.subplots(1, count, sharex=shared, sharey=shared, squeeze=False)[0])


def draw_series(axes: Axes, series: pd.DataFrame, column: str, mark: Mark) -> None:
    """Draw predicted errors as a line and measured errors as points, against a column."""
    axes.plot(series[column], series["predicted_squared_error"], color=mark.colour, linestyle=mark.line)
    axes.errorbar(
        series[column],
        series["squared_error"],
        yerr=series["standard_error"],
        color=mark.colour,
        marker=mark.marker,
        linestyle="",
        capsize=2,
    )


def finish(axes: Axes, values: pd.Series, label: str, title: str = "") -> None:
    """Make both axes logarithmic, with a grid, and a tick at each value of the first."""
    axes.set(xscale="log", yscale="log", xlabel=label, title=title)
    ticks = sorted(values.unique())
    axes.set_xticks(ticks, [f"{value:,g}" for value in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True)


def add_legend(figure: Figure, named: Mapping[str, Mark], *, zero: bool = True, central: bool = False, columns: int = 5) -> None:
    """Put the legend of the series, and of the drawn references, above a figure."""
    handles = [Line2D([], [], label=label, **mark.look) for label, mark in named.items()]
    handles += [Line2D([], [], label="answer zero", **ZERO_LOOK)] if zero else []
    handles += [Line2D([], [], label="trusted server, no sketch", **CENTRAL_LOOK)] if central else []
    figure.legend(handles=handles, loc="outside upper center", ncols=min(columns, len(handles)), handlelength=3.0, columnspacing=1.5)
