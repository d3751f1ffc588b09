"""DP-REC's error of a mean (Triastcyn, Reisser, Louizos 2021, section D.2): against bits, the clip ratio, and epsilon."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.dp_rec_mean import EQUAL, GROUPED, MMRC, PRIVUNIT, SQKR, ZERO, MeanPoint, mean_points, summarise_means
from ..drawing.marks import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios

QUICK: Mapping[str, Any] = MappingProxyType(
    {
        "clients": 1000,
        "repetitions": 3,
        "sqkr_repetitions": 2,
        "bits": (1, 3, 7),
        "grouped_bits": (1, 3, 7),
        "coded_bits": (1,),
        "clip_ratios": (0.5, 0.7, 2.0),
        "epsilons": (1.0, 4.0),
        "sqkr_epsilons": (4.0,),
        "mmrc_epsilons": (1.0, 4.0),
    }
)
MARKS: Mapping[str, Mark] = MappingProxyType({ZERO: BLUE, EQUAL: GREEN, GROUPED: PURPLE, SQKR: VERMILION, PRIVUNIT: ORANGE, MMRC: SKY})
CENTRAL_LOOK: Mapping[str, Any] = MappingProxyType({"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 1.2, "marker": ""})
PAPER_LOOK: Mapping[str, Any] = MappingProxyType({"color": GREY, "linestyle": "-", "linewidth": 0.7, "marker": ""})
CODED_LOOK: Mapping[str, Any] = MappingProxyType({"marker": "x", "markersize": 8, "linestyle": ""})
# What the paper reports, about: with a poor prior, SQKR with one bit, and with a better prior.
PAPER_CLIENTS = 10_000
PAPER_ERRORS: Mapping[str, float] = MappingProxyType({"poor prior": 0.3, "SQKR": 0.07, "better prior": 0.03})


def draw_errors(frame: pd.DataFrame) -> Figure:
    """Draw squared errors against bits (left), the clip ratio (middle), and epsilon (right)."""
    figure = Figure(figsize=(WIDTH, 5.9), layout="constrained")
    by_bits, by_ratio, by_epsilon = figure.subplots(1, 3)
    _draw_bits(by_bits, frame[frame["panel"] == "bits"])
    _draw_ratios(by_ratio, frame[frame["panel"] == "ratio"])
    _draw_epsilons(by_epsilon, frame[frame["panel"] == "epsilon"])
    for axes in (by_bits, by_ratio):
        for error in PAPER_ERRORS.values():
            axes.axhline(error, **PAPER_LOOK)
    for axes in (by_bits, by_ratio, by_epsilon):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True)
    for axes in (by_bits, by_ratio, by_epsilon):
        axes.xaxis.set_major_locator(LogLocator(base=2, numticks=16))
        axes.xaxis.set_major_formatter("{x:g}")
    by_bits.set(title="no privacy", xlabel="bits per client", ylabel="squared L2 error of the mean")
    by_ratio.set(title="no privacy, one bit", xlabel="clip ratio")
    by_epsilon.set(title="with privacy", xlabel="ε")
    handles = [Line2D([], [], label=name, **mark.look) for name, mark in MARKS.items()]
    handles.append(Line2D([], [], color=GREY, label="messages really coded", **CODED_LOOK))
    handles.append(Line2D([], [], label=f"the paper, {PAPER_CLIENTS:,} vectors", **PAPER_LOOK))
    handles.append(Line2D([], [], label="trusted server, Gaussian", **CENTRAL_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.5)
    add_caption(figure, _caption(frame))
    return figure


def _draw_series(axes: Axes, series: pd.DataFrame, by: str, mark: Mark, face: str | None = None) -> None:
    axes.plot(series[by], series["predicted_squared_error"], color=mark.colour, linestyle=mark.line)
    axes.errorbar(
        series[by],
        series["mean_squared_error"],
        yerr=series["standard_error"],
        color=mark.colour,
        marker=mark.marker,
        markerfacecolor=mark.colour if face is None else face,
        linestyle="",
        capsize=2,
    )


def _draw_bits(axes: Axes, frame: pd.DataFrame) -> None:
    # Where nothing is averaged, there is no standard error.
    coded = frame["standard_error"].isna()
    for name, series in frame[~coded].groupby("series", sort=False):
        _draw_series(axes, series, "index_bits", MARKS[str(name)])
    for name, series in frame[coded].groupby("series", sort=False):
        axes.plot(series["index_bits"], series["mean_squared_error"], color=MARKS[str(name)].colour, **CODED_LOOK)


def _draw_ratios(axes: Axes, frame: pd.DataFrame) -> None:
    for name, series in frame.groupby("series", sort=False):
        _draw_series(axes, series, "clip_ratio", MARKS[str(name)])
    for name, error in PAPER_ERRORS.items():
        place = (frame["clip_ratio"].max(), error)
        axes.annotate(name, place, xytext=(0, 2), textcoords="offset points", color=GREY, horizontalalignment="right")


def _draw_epsilons(axes: Axes, frame: pd.DataFrame) -> None:
    for (name, variant), series in frame.groupby(["series", "variant"], sort=False):
        _draw_series(axes, series, "target_epsilon", MARKS[str(name)], "white" if variant == "conservative" else None)
    central = frame.drop_duplicates("target_epsilon")
    axes.plot(central["target_epsilon"], central["central_squared_error"], **CENTRAL_LOOK)


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    private = frame[frame["variant"] != ""].iloc[0]
    return (
        f"Mean of {first['clients']:,} unit vectors, d = {first['dimension']}. Points: measured, with standard errors; lines: "
        f"predicted. Full: DP-REC's theorem, not proven; hollow: its conservative variant, with an assumption; {private['adjacency']} "
        f"adjacency, {private['trust_model']} trust model, as the trusted server. Others: replace-one adjacency, local trust model, δ = "
        "0."
    )


def mean_tasks(seed: int, quick: bool) -> list[MeanPoint]:
    """Return the runs."""
    return mean_points(seed, **QUICK) if quick else mean_points(seed)


def _over_sqkr(frame: pd.DataFrame, name: str) -> "pd.Series[float]":
    """Return measured errors of a series with the fewest bits, without privacy, over SQKR's with as many."""
    own = frame[(frame["panel"] == "bits") & frame["standard_error"].notna()]
    own = own[own["index_bits"] == own["index_bits"].min()]
    return ratios(own[own["series"] == name], own[own["series"] == SQKR], ("index_bits",), "mean_squared_error")


FIGURE = FigureEntry(
    name="dprec-mean",
    paper=f"{entry_named('dp-rec').paper}, section D.2",
    experiment="DP-REC's mean of vectors",
    tasks=mean_tasks,
    table=summarise_means,
    draw=draw_errors,
    findings=(
        Finding("Error over SQKR's with the fewest bits, prior at zero", lambda frame: _over_sqkr(frame, ZERO)),
        Finding("prior at 1/√d", lambda frame: _over_sqkr(frame, EQUAL)),
    ),
)
