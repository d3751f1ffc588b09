"""A plot of compared rows: a quantity against the setting that varies most, or against bits."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from ...analysis.study.mean_estimation import Z95
from ...shown import in_figures, listed, with_powers
from ..drawing.marks import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, Mark, mechanism_mark, variant
from ..drawing.style import GREY as GREY_LINE
from .report_figures import drawable, report_style, svg_text

MARKS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
MOST_PANELS, PANELS_IN_A_ROW = 6, 3
# Largest number of points of a plot, as browsers take seconds for more points.
MOST_POINTS = 5000
# Ratio of largest and least value from which an axis is logarithmic.
LOGARITHMIC = 5.0
# Largest number of values of a setting that are all written at its axis.
MOST_TICKS = 8
# Least distance of written values, as a share of the axis.
LEAST_STEP = 0.08
# Widest line of a legend with several columns, and of a panel's title, in characters.
WIDE, TITLE_CHARACTERS = 44, 42
REMS_OF_INCH = 6.5
BITS = "bits_per_client"


@dataclass(frozen=True)
class Ruler:
    """A column drawn in grey as a reference for the rows, with its words and line style."""

    name: str
    words: str
    line: Any


@dataclass(frozen=True, kw_only=True)
class ComparisonPlot:
    """The columns that a plot of compared rows shows.

    Attributes
    ----------
    value, words : str
        Column of the vertical axis, and its words.
    error : str or None
        Column of its standard error.
    axis : str
        Column of the horizontal axis.
    lines, panels : tuple of str
        Columns whose combinations are lines, and panels.
    rulers : tuple of Ruler
        Columns that are drawn in grey.
    names : mapping
        Words of columns.
    """

    value: str
    words: str
    error: str | None = None
    axis: str
    lines: tuple[str, ...]
    panels: tuple[str, ...]
    rulers: tuple[Ruler, ...] = ()
    names: Mapping[str, str]


def varied_columns(rows: pd.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that hold several values; missing counts as a value."""
    return tuple(name for name in names if name in rows and rows[name].nunique(dropna=False) > 1)


def chosen_axis(rows: pd.DataFrame, candidates: Sequence[str], otherwise: str) -> str:
    """Return the column of the horizontal axis.

    The column is the first candidate with the most different numbers. It is bits per client if no candidate varies, and `otherwise` if
    these do not vary either.
    """
    numeric = [name for name in candidates if name in rows and pd.api.types.is_numeric_dtype(rows[name]) and np.isfinite(rows[name]).all()]
    counts = {name: rows[name].nunique() for name in numeric}
    most = max(counts.values(), default=1)
    if most > 1:
        return next(name for name in numeric if counts[name] == most)
    return BITS if BITS in rows and rows[BITS].nunique() > 1 else otherwise


@dataclass(frozen=True)
class DrawnPlot:
    """A plot as an ``<svg>`` element, and sentences on omitted rows."""

    svg: str
    left_out: tuple[str, ...]


def draw_comparison(rows: pd.DataFrame, plot: ComparisonPlot, name: str) -> DrawnPlot:
    """Draw a plot for a page; `name` distinguishes its identifiers from those of other plots."""
    first = rows.iloc[:MOST_POINTS]
    frame = first.assign(line=_in_words(first, plot.lines, plot).replace("", plot.words), panel=_in_words(first, plot.panels, plot))
    shown = frame[np.isfinite(frame[plot.value]) & (frame[plot.value] > 0)]
    left_out = [f"{len(frame) - len(shown)} rows whose value is zero or missing"] if len(shown) < len(frame) else []
    if len(rows) > MOST_POINTS:
        left_out.append(f"{len(rows) - MOST_POINTS:,} rows after the first {MOST_POINTS:,}")
    panels = list(dict.fromkeys(shown["panel"]))
    ranks = shown.groupby(["panel", plot.axis], sort=False, dropna=False)[plot.value].rank()
    lines = list(dict.fromkeys(shown["line"]))
    if len(lines) > len(MARKS):
        kept = ranks.groupby(shown["line"]).median().nsmallest(len(MARKS)).index
        left_out.append(f"the {len(lines) - len(MARKS)} lines of the largest values")
        lines = [line for line in lines if line in kept]
    if len(panels) > MOST_PANELS:
        left_out.append(
            f"{len(panels) - MOST_PANELS} of {len(panels)} combinations of {', '.join(plot.names[column] for column in plot.panels)}"
        )
    shown = shown[shown["line"].isin(lines)]
    with report_style():
        figure = _figure(shown, plot, lines, panels[:MOST_PANELS])
        return DrawnPlot(page_figure(figure, name), tuple(left_out))


def not_drawn(plot: DrawnPlot) -> str:
    """Return a caption's sentence on the omitted rows of a plot, empty without omissions."""
    return f" Not drawn: {listed(plot.left_out)}." if plot.left_out else ""


def page_figure(figure: Figure, name: str) -> str:
    """Return a figure as an ``<svg>`` element with letters about as large as the page's text."""
    width = f'<svg style="max-width: {REMS_OF_INCH * figure.get_figwidth():.0f}rem" '
    return svg_text(figure, name).replace("<svg ", width, 1)


def _in_words(rows: pd.DataFrame, names: Sequence[str], plot: ComparisonPlot) -> pd.Series:
    """Return the combination of values of some columns, in words, for each row."""
    if not names:
        return pd.Series("", index=rows.index)
    groups = rows.groupby(list(names), sort=False, dropna=False).ngroup()
    # Groups are numbered as they appear.
    firsts = rows.loc[~groups.duplicated(), list(names)].to_dict("records")
    return groups.map(dict(enumerate(", ".join(words_of(row, names, plot.names)) for row in firsts)))


def words_of(row: Mapping[Any, Any], names: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """Return the values of a row in some columns, in words, without missing values.

    Texts stand alone; other values stand beside the column's words.
    """
    return [_value_in_words(row[name], words[name]) for name in names if row[name] is not None and row[name] == row[name]]


def _value_in_words(value: Any, words: str) -> str:
    if isinstance(value, str):
        return value
    return f"{words} {('no', 'yes')[int(value)] if isinstance(value, bool | np.bool_) else with_powers(in_figures(value))}"


def _figure(shown: pd.DataFrame, plot: ComparisonPlot, lines: list[str], panels: list[str]) -> Figure:
    named = not pd.api.types.is_numeric_dtype(shown[plot.axis])
    columns = min(len(panels), 1 if named else PANELS_IN_A_ROW) or 1
    height = 1.0 + 0.3 * shown[plot.axis].nunique() if named else 3.9 if len(panels) <= 1 else 3.1
    count = math.ceil(len(panels) / columns) or 1
    figure = Figure(figsize=(8.6 if columns == 1 else 11.0, count * height + 0.22 * len(lines) * (not named)), layout="constrained")
    axes = np.atleast_1d(figure.subplots(count, columns, squeeze=False)).ravel()
    looks = _looks(shown, plot, lines)
    for place, (panel, panel_axes) in enumerate(zip(panels, axes, strict=False)):
        rows = shown[shown["panel"] == panel]
        (_draw_named if named else _draw_panel)(panel_axes, rows, plot, looks)
        panel_axes.set_title("\n".join(textwrap.wrap(drawable(panel), TITLE_CHARACTERS)), fontsize=10)
        panel_axes.set_xlabel(plot.words if named else plot.names[plot.axis])
        if not named and place % columns == 0:
            panel_axes.set_ylabel(plot.words)
    for panel_axes in axes[len(panels) :]:
        panel_axes.remove()
    labels: dict[str, Any] = {}
    for panel_axes in axes[: len(panels)]:
        labels |= dict(zip(*reversed(panel_axes.get_legend_handles_labels()), strict=True))
    widest = max(map(len, labels), default=0)
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=1 if widest > WIDE else 2, frameon=False)
    return figure


def _looks(shown: pd.DataFrame, plot: ComparisonPlot, lines: list[str]) -> dict[str, Mark]:
    """Return the marks of lines: those of mechanisms, with variants for several designs of one, or else distinct ones."""
    if "mechanism" not in plot.lines:
        return dict(zip(lines, MARKS, strict=False))
    names = shown.drop_duplicates("line").set_index("line")["mechanism"].astype(str).to_dict()
    mechanisms = [names[line] for line in lines]
    numbers = [mechanisms[:place].count(name) for place, name in enumerate(mechanisms)]
    return {line: variant(mechanism_mark(name), number) for line, name, number in zip(lines, mechanisms, numbers, strict=True)}


def _draw_panel(axes: Axes, rows: pd.DataFrame, plot: ComparisonPlot, looks: Mapping[str, Mark]) -> None:
    for ruler in plot.rulers:
        grey: dict[str, Any] = {"color": GREY_LINE, "linestyle": ruler.line, "linewidth": 1.2, "label": ruler.words, "zorder": 1}
        for curve in _rulers(rows, plot.axis, ruler.name):
            if curve.nunique() == 1:
                axes.axhline(curve.iloc[0], **grey)
            else:
                axes.plot(curve.index, curve, **grey)
    for line, series in rows.groupby("line", sort=False):
        ordered = series.sort_values(plot.axis)
        axes.errorbar(
            ordered[plot.axis],
            ordered[plot.value],
            yerr=_arms(ordered, plot),
            capsize=2,
            label=drawable(str(line)),
            **looks[str(line)].look,
        )
    values = np.unique(rows[plot.axis])
    if values[0] > 0 and values[-1] > LOGARITHMIC * values[0]:
        axes.set_xscale("log")
    steps = np.diff(np.log(values) if axes.get_xscale() == "log" else values)
    if len(values) <= MOST_TICKS and (not len(steps) or steps.min() > LEAST_STEP * steps.sum()):
        axes.xaxis.set_major_locator(FixedLocator(values.tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(_tick))
    axes.xaxis.set_minor_formatter(NullFormatter())
    _logarithmic(axes, rows[plot.value], "y")


def _arms(rows: pd.DataFrame, plot: ComparisonPlot) -> Any:
    """Return the arms of error bars, without lower arms that would reach zero."""
    if plot.error is None:
        return None
    margins = Z95 * rows[plot.error].fillna(0.0)
    return np.array([margins.where(margins < rows[plot.value], 0.0), margins])


def _draw_named(axes: Axes, rows: pd.DataFrame, plot: ComparisonPlot, looks: Mapping[str, Mark]) -> None:
    """Draw rows that do not differ in any number, each at its own height."""
    names = list(dict.fromkeys(rows[plot.axis]))
    for ruler in plot.rulers:
        values = rows[ruler.name].dropna().unique()
        if len(values) == 1:
            axes.axvline(values[0], color=GREY_LINE, linestyle=ruler.line, linewidth=1.2, label=ruler.words, zorder=1)
    first = next(iter(looks.values()))
    heights = [names.index(name) for name in rows[plot.axis]]
    axes.errorbar(rows[plot.value], heights, xerr=_arms(rows, plot), color=first.colour, marker=first.marker, linestyle="", capsize=3)
    axes.set_yticks(range(len(names)), [drawable(str(name)) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    _logarithmic(axes, rows[plot.value], "x")


def _logarithmic(axes: Axes, values: pd.Series, which: str) -> None:
    axis = axes.yaxis if which == "y" else axes.xaxis
    if values.max() > LOGARITHMIC * values.min():
        (axes.set_yscale if which == "y" else axes.set_xscale)("log")
    else:
        axis.set_major_formatter(FuncFormatter(_tick))


def _tick(value: float, _: int | None = None) -> str:
    return with_powers(in_figures(value))


def _rulers(rows: pd.DataFrame, axis: str, name: str) -> list[pd.Series]:
    """Return a ruler's different curves; lines often share a curve."""
    curves: dict[tuple[float, ...], pd.Series] = {}
    for _, series in rows[rows[name].notna() & (rows[name] > 0)].groupby("line", sort=False):
        curve = series.groupby(axis)[name].mean()
        curves.setdefault(tuple(float(f"{value:.4g}") for value in curve), curve)
    return list(curves.values())
