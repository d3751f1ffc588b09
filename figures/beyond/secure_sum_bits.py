"""What bits buy in a secure sum: error against bits per coordinate, for several mechanisms with one promise. No paper has this picture."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from ...analysis.comparisons.secure_sum import SumPoint, select_sums, sum_points
from ..drawing.marks import BLUE, GREEN, ORANGE, PURPLE, VERMILION, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding

QUICK: Mapping[str, Any] = MappingProxyType(
    {"clients": (1000,), "dimension": 128, "bits": (*range(8, 17), 18, 20, 22), "simulated_bits": (13, 16, 20), "repetitions": 2}
)
MARKS: Mapping[str, Mark] = MappingProxyType(
    {
        "discrete Gaussian": BLUE,
        "Skellam": PURPLE,
        "cpSGD": GREEN,
        "cpSGD, as published": VERMILION,
        "Poisson-binomial": ORANGE,
    }
)
CENTRAL_LOOK: Mapping[str, Any] = MappingProxyType({"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 1.2, "marker": ""})
# Each panel shows errors from this many times the trusted server's to that many.
SHOWN = (0.7, 1000.0)
CIRCLE: Mapping[str, Any] = MappingProxyType({"marker": "o", "markersize": 9, "fillstyle": "none", "linestyle": ""})


def draw_bits(frame: pd.DataFrame) -> Figure:
    """Draw predicted errors as lines and measured ones as points, one panel for each number of clients."""
    panels = [panel for _, panel in frame.groupby("clients")]
    figure = Figure(figsize=(WIDTH, 4.9), layout="constrained")
    grid = figure.subplots(1, len(panels), sharex=True, squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        _draw_panel(axes, panel)
    grid[0].set_ylabel("squared L2 error of the mean (squared clip norms)")
    names = [name for name in MARKS if name in set(frame["series"])]
    handles = [Line2D([], [], label=name, **MARKS[name].look) for name in names]
    handles.append(Line2D([], [], label="trusted server, Gaussian", **CENTRAL_LOOK))
    handles.append(Line2D([], [], label="fewest bits", color=GREY, **CIRCLE))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, handlelength=3.0, columnspacing=1.5)
    add_caption(figure, _caption(frame))
    return figure


def _draw_panel(axes: Axes, panel: pd.DataFrame) -> None:
    central = panel["central_squared_error"].iloc[0]
    for name, series in panel.groupby("series", sort=False):
        mark = MARKS[str(name)]
        bits, predicted = series["bits_per_coordinate"], series["worst_mean_variance"]
        axes.plot(bits, predicted, color=mark.colour, linestyle=mark.line)
        measured = series[series["rounds"] > 0]
        axes.errorbar(
            measured["bits_per_coordinate"],
            measured["measured_squared_error"],
            yerr=measured["standard_error"],
            color=mark.colour,
            marker=mark.marker,
            linestyle="",
            capsize=2,
        )
        fewest = series[series["fewest_bits"]]
        axes.plot(fewest["bits_per_coordinate"], fewest["worst_mean_variance"], color=mark.colour, **CIRCLE)
    axes.axhline(central, **CENTRAL_LOOK)
    axes.set_yscale("log")
    axes.set_ylim(SHOWN[0] * central, SHOWN[1] * central)
    axes.xaxis.set_major_locator(MultipleLocator(4))
    axes.set_xlabel("bits per coordinate")
    axes.set_title(f"{panel['clients'].iloc[0]:,} clients")
    axes.grid(visible=True)


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    rounds = frame["rounds"].max()
    return (
        f"Mean of n vectors of dimension {first['dimension']} and norm at most 1. Lines: the largest variance; points: measured errors, "
        f"{rounds} rounds with standard errors; circles: no such mechanism with a bit less. As published: ε by Theorem 1, which is not "
        f"proven. ε = {first['epsilon']:g}, δ = {first['delta']:g} for {first['adjacency']} adjacency, {first['trust_model']} trust "
        "model; trusted server: central."
    )


def sum_tasks(seed: int, quick: bool) -> list[SumPoint]:
    """Return one task for each series, number of clients and number of bits."""
    return sum_points(seed, **QUICK) if quick else sum_points(seed)


def _with_most_bits(frame: pd.DataFrame, names: Sequence[str]) -> "pd.Series[float]":
    """Return the largest variances of some series with their most bits over a trusted server's error, for each number of clients."""
    own = frame[frame["series"].isin(names)].dropna(subset=["worst_mean_variance"])
    most = own.loc[own.groupby(["series", "clients"])["bits_per_coordinate"].idxmax()]
    ratio: pd.Series[float] = most["worst_mean_variance"] / most["central_squared_error"]
    return ratio


FIGURE = FigureEntry(
    name="secure-sum-bits",
    paper="beyond the papers",
    experiment="secure sums against bits",
    tasks=sum_tasks,
    table=select_sums,
    draw=draw_bits,
    findings=(
        Finding(
            "Variance over a trusted server's with the most bits, discrete Gaussian and Skellam",
            lambda frame: _with_most_bits(frame, ("discrete Gaussian", "Skellam")),
        ),
        Finding("cpSGD", lambda frame: _with_most_bits(frame, ("cpSGD",))),
    ),
)
