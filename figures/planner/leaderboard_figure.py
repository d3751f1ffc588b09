"""Figures of a leaderboard: ratio to a bound or to a trusted server against bits, by task and by trust model."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ...analysis.plan_grid.leaderboard import PROVEN_BOUND, TRUSTED_SERVER
from ...design.contracts.guarantee import TRUST_MODELS
from ..drawing.marks import TRUST_MARKS, Mark, mechanism_mark
from ..drawing.style import GREY, SMALLEST_TYPE, WIDTH
from ..report.report_figures import drawable

COLUMNS = 4
# Heights in inches: a row of tasks, a name in a legend, the least of a trust model's panel, and what titles and labels take.
TASK_HEIGHT, NAME_HEIGHT, LEAST_HEIGHT, LABELS = 1.55, 0.155, 1.9, 0.55
# Share of the width that the names beside a trust model's panel take.
NAMES = 0.4
# Least length of an axis of bits in decades, and the margin at its ends as a share.
LEAST_DECADES, MARGIN = 1.0, 0.08
# Labels within a decade, by the length in decades below which an axis has them.
STEPS = ((1.25, (1, 2, 5)), (2.2, (1, 3)), (math.inf, (1,)))
# Largest numbers of labels at axes of bits: of a task, and of a trust model.
TASK_TICKS, TRUST_TICKS = 5, 8
RATIO = "error over reference"
# Looks of the recommended mechanisms, and of those that the answer without messages beats.
RING: Mapping[str, Any] = MappingProxyType({"linestyle": "", "marker": "o", "markersize": 10, "markerfacecolor": "none", "color": GREY})
CROSS: Mapping[str, Any] = MappingProxyType({"linestyle": "", "marker": "x", "markersize": 10, "color": GREY})


def draw_tasks(rows: pd.DataFrame) -> Figure:
    """Draw judged rows in a panel for each task with a reference: ratio against bits of a message, by trust model.

    Rings mark the recommended mechanisms, and crosses those that the answer without messages beats.
    """
    numbers = sorted(rows.loc[rows["ratio"].notna(), "number"].unique())
    lines = math.ceil(len(numbers) / COLUMNS)
    figure = Figure(figsize=(WIDTH, 0.7 + TASK_HEIGHT * lines), layout="constrained")
    panels = figure.subplots(lines, COLUMNS, sharey=True, squeeze=False)
    for axes in panels.flat[len(numbers) :]:
        axes.set_axis_off()
    for axes, number in zip(panels.flat, numbers, strict=False):
        task = rows[(rows["number"] == number) & rows["ratio"].notna()]
        for model in TRUST_MODELS:
            series = task[task["trust_model"] == model]
            _draw_points(axes, series, TRUST_MARKS[model], "bits_per_client")
            chosen = series[series["recommended"]]
            for look, ringed in ((RING, chosen), (CROSS, chosen[chosen["zero_wins"]])):
                axes.plot(ringed["bits_per_client"], ringed["ratio"], **look)
        _set_bits(axes, task["bits_per_client"], TASK_TICKS)
        _set_ratio(axes)
        axes.set_title(f"{number}: {_in_short(task.iloc[0])}", loc="left", fontsize=SMALLEST_TYPE)
    low, high = panels[0, 0].get_ylim()
    # Rings need room above the largest ratio.
    panels[0, 0].set_ylim(low / 2, high * 4)
    figure.supxlabel("bits of a message", fontsize="medium")
    figure.supylabel(RATIO, fontsize="medium")
    present = [model for model in TRUST_MODELS if model in set(rows["trust_model"])]
    marks = [Line2D([], [], label=model, **TRUST_MARKS[model].points) for model in present]
    rings = [Line2D([], [], label=label, **look) for label, look in (("recommended", RING), ("no message is better", CROSS))]
    figure.legend(handles=[*marks, *rings, *_references()], loc="outside upper center", ncols=4, columnspacing=1.2)
    return figure


def draw_trust_models(rows: pd.DataFrame) -> Figure:
    """Draw judged rows in a panel for each trust model: ratio against bits a coordinate, by mechanism; a point is a task."""
    shown = rows[rows["ratio"].notna()]
    models = [model for model in TRUST_MODELS if model in set(shown["trust_model"])]
    names = {model: _by_ratio(shown[shown["trust_model"] == model]) for model in models}
    heights = [max(LEAST_HEIGHT, LABELS + NAME_HEIGHT * len(names[model])) for model in models]
    figure = Figure(figsize=(WIDTH, sum(heights) + 0.3), layout="constrained")
    grid = figure.add_gridspec(len(models), 2, width_ratios=(1 - NAMES, NAMES), height_ratios=heights)
    for place, model in enumerate(models):
        axes, beside = figure.add_subplot(grid[place, 0]), figure.add_subplot(grid[place, 1])
        beside.set_axis_off()
        for name in names[model]:
            _draw_points(
                axes,
                shown[(shown["trust_model"] == model) & (shown["mechanism"] == name)],
                mechanism_mark(name),
                "bits_per_coordinate",
            )
        _set_bits(axes, shown["bits_per_coordinate"], TRUST_TICKS)
        _set_ratio(axes)
        axes.set_ylabel(RATIO)
        axes.set_title(model, loc="left")
        axes.set_xlabel("bits of a message over the number of coordinates" if place == len(models) - 1 else "")
        keys = [Line2D([], [], label=drawable(name), **mechanism_mark(name).points) for name in names[model]]
        beside.legend(handles=keys, loc="upper left", borderaxespad=0, labelspacing=0.25)
    figure.legend(handles=_references(), loc="outside upper center", ncols=2)
    return figure


def _in_short(row: pd.Series) -> str:
    """Return a task as the title of its panel: what clients hold, and epsilon."""
    if pd.notna(row["categories"]):
        held = f"{row['categories']:,.0f} items"
    elif pd.notna(row["dimension"]):
        held = f"{row['dimension']:,.0f} coord., L{row['norm']:g}"
    else:
        held = "numbers"
    return f"{held}, ε {row['task_epsilon']:g}"


def _by_ratio(rows: pd.DataFrame) -> list[str]:
    """Return the mechanisms of some rows, the least median ratio first."""
    return [str(name) for name in rows.groupby("mechanism")["ratio"].median().sort_values(kind="stable").index]


def _draw_points(axes: Axes, rows: pd.DataFrame, mark: Mark, bits: str) -> None:
    """Draw rows as points, hollow where the reference is a trusted server."""
    for reference, face in ((PROVEN_BOUND, mark.colour), (TRUSTED_SERVER, "none")):
        series = rows[rows["reference"] == reference]
        axes.plot(series[bits], series["ratio"], **mark.points, markerfacecolor=face, markeredgewidth=0.8)


def _references() -> list[Line2D]:
    look: dict[str, Any] = {"linestyle": "", "marker": "s", "color": GREY}
    return [
        Line2D([], [], label="filled: over the proven bound", **look),
        Line2D([], [], label="hollow: over a trusted server", markerfacecolor="none", **look),
    ]


def _set_bits(axes: Axes, bits: pd.Series, most_ticks: int) -> None:
    axes.set_xscale("log")
    low, high = math.log10(bits.min()), math.log10(bits.max())
    # A narrow range gets more than a decade around its middle, so that a power of ten is in it.
    around = max(0.0, LEAST_DECADES - (high - low)) / 2 + MARGIN * max(LEAST_DECADES, high - low)
    axes.set_xlim(10 ** (low - around), 10 ** (high + around))
    decades = math.log10(axes.get_xlim()[1] / axes.get_xlim()[0])
    axes.xaxis.set_major_locator(LogLocator(subs=next(steps for most, steps in STEPS if decades < most), numticks=most_ticks))
    axes.xaxis.set_minor_locator(LogLocator(subs="all", numticks=99))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))


def _short(value: float) -> str:
    """Return a number of an axis, with k for thousands and M for millions."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit * (1 - 1e-9):
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _set_ratio(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.axhline(1, color=GREY, linewidth=0.8)
    # Every second power of ten is labelled, 1 among them.
    axes.yaxis.set_major_locator(LogLocator(base=100, numticks=9))
    axes.yaxis.set_minor_locator(LogLocator(numticks=99))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axes.grid(visible=True)
