"""Figure 3 of Chaudhuri, Guo, Rabbat 2022: vector mean estimation, against epsilon; beyond it, the same against bits."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.vector_mean import (
    BITS_EPSILON,
    COMPARISONS,
    DELTA,
    SeriesTask,
    arrange_vector_means,
    vector_mean_tasks,
    with_small_tables,
)
from ..drawing.marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Mark
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios

MARKS: Mapping[str, Mark] = MappingProxyType(
    {
        "MVU, L1 metric": BLUE,
        "MVU, L2 metric": GREEN,
        "MVU, Rényi": Mark("#7F3C00", "X", (0, (10, 2))),
        "CLDP": VERMILION,
        "CLDP, d draws": Mark(VERMILION.colour, "P", (0, (6, 1, 1, 1))),
        "Skellam": PURPLE,
        "Laplace, or Gaussian": BLACK,
        "PrivUnitG": ORANGE,
        "SQKR": SKY,
        "PrivUnit": Mark("#882255", ">", "-"),
        "FastProjUnit": Mark("#332288", "<", (0, (3, 1))),
        "ProjUnit": Mark("#999933", "p", (0, (1, 2))),
        "rotating simplex": Mark("#117733", "*", (0, (8, 1.5))),
        "random coding": Mark("#AA4499", "d", (0, (4, 1, 1, 1))),
        "plain random coding": Mark("#661100", "h", (0, (2, 2))),
        "Poisson representation": Mark("#44AA99", "8", (0, (1, 1, 3, 1))),
    }
)
CENTRAL_LOOK: Mapping[str, Any] = MappingProxyType({"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 1.2, "marker": ""})
BOUND_LOOK: Mapping[str, Any] = MappingProxyType({"color": BLUE.colour, "linestyle": "-", "linewidth": 0.7, "marker": ""})
PAPER_LOOK: Mapping[str, Any] = MappingProxyType({"linestyle": (0, (0.5, 1.5)), "linewidth": 0.9, "marker": ""})
# Of what is drawn for tables of either kind.
BOUND_LOOKS = {"MVU, L1 metric": BOUND_LOOK, "MVU, Rényi": MappingProxyType({**BOUND_LOOK, "color": "#7F3C00"})}
QUICK: Mapping[str, Any] = MappingProxyType(
    {
        "comparisons": tuple(with_small_tables(one, bits_in=3, most_bits_out=2) for one in COMPARISONS),
        "epsilons": (0.5, BITS_EPSILON),
        "clients": 1000,
        "dimension": 32,
        "repetitions": 2,
    }
)
TITLES = {"L1": "L1 ball", "L2": "L2 ball"}


def draw_comparison(frame: pd.DataFrame) -> Figure:
    """Draw mean squared errors against epsilon (above) and against bits (below), for the L1 ball (left) and the L2 ball (right)."""
    figure = Figure(figsize=(WIDTH, 9.6), layout="constrained")
    grid = figure.subplots(2, 2, sharey="col")
    for column, comparison in enumerate(TITLES):
        own = frame[frame["comparison"] == comparison]
        _draw_epsilons(grid[0, column], own[own["panel"] == "epsilon"])
        _draw_bits(grid[1, column], own[own["panel"] == "bits"])
        grid[0, column].set_title(TITLES[comparison])
    for axes in grid.ravel():
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True)
    for row in grid:
        row[0].set_ylabel("squared L2 error of the mean")
    handles = [Line2D([], [], label=name, **mark.look) for name, mark in MARKS.items()]
    handles.append(Line2D([], [], label="certified optimum", **BOUND_LOOK))
    handles.append(Line2D([], [], label="Cramér-Rao limit", **BOUND_LOOKS["MVU, Rényi"]))
    handles.append(Line2D([], [], label="trusted server", **CENTRAL_LOOK))
    handles.append(Line2D([], [], label="at the paper's ε", color=GREY, **PAPER_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.5)
    add_caption(figure, _caption(frame))
    return figure


def _draw_epsilons(axes: Axes, frame: pd.DataFrame) -> None:
    for name, series in frame.groupby("series", sort=False):
        mark = MARKS[str(name)]
        axes.plot(series["epsilon"], series["predicted_squared_error"], color=mark.colour, linestyle=mark.line)
        axes.errorbar(
            series["epsilon"],
            series["mean_squared_error"],
            yerr=series["standard_error"],
            color=mark.colour,
            marker=mark.marker,
            linestyle="",
            capsize=2,
        )
        if not np.allclose(series["paper_epsilon"], series["epsilon"], rtol=1e-6):
            axes.plot(series["paper_epsilon"], series["predicted_squared_error"], color=mark.colour, **PAPER_LOOK)
    for name, look in BOUND_LOOKS.items():
        tables = frame[frame["series"] == name]
        axes.plot(tables["epsilon"], tables["certified_error"], **look)
    central = frame.drop_duplicates("epsilon")
    axes.plot(central["epsilon"], central["central_error"], **CENTRAL_LOOK)
    axes.set_xlabel("ε of the whole vector, replace-one adjacency")


def _draw_bits(axes: Axes, frame: pd.DataFrame) -> None:
    for name, series in frame.groupby("series", sort=False):
        mark = MARKS[str(name)]
        ordered = series.sort_values("bits_per_client")
        axes.errorbar(
            ordered["bits_per_client"],
            ordered["mean_squared_error"],
            yerr=ordered["standard_error"],
            color=mark.colour,
            marker=mark.marker,
            linestyle=mark.line,
            capsize=2,
        )
    for name, look in BOUND_LOOKS.items():
        tables = frame[frame["series"] == name].sort_values("bits_per_client")
        axes.plot(tables["bits_per_client"], tables["certified_error"], **look)
    axes.axhline(frame["central_error"].iloc[0], **CENTRAL_LOOK)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=16))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.tick_params(axis="x", labelrotation=45)
    axes.set_xlabel(f"bits per client, at ε = {BITS_EPSILON:g}")


def _caption(frame: pd.DataFrame) -> str:
    first = frame.iloc[0]
    return (
        f"Mean of n = {first['clients']:,} vectors, d = {first['dimension']}; standard errors of {first['repetitions']} repetitions; lines "
        "above: predicted. ε is that of the whole vector, replace-one adjacency, local trust model; δ = 0 or "
        f"{DELTA:g}. Dotted: at the ε the paper would state, for metric privacy at half the distance, and δ = 1/(n + 1)."
    )


def vector_tasks(seed: int, quick: bool) -> list[SeriesTask]:
    """Return the runs."""
    return vector_mean_tasks(seed, **QUICK) if quick else vector_mean_tasks(seed)


def tables_over_laplace(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return predicted errors of tables over those of Laplace noise, on the L1 ball against epsilon."""
    own = frame[(frame["comparison"] == "L1") & (frame["panel"] == "epsilon")]
    table, laplace = (own[own["series"] == name] for name in ("MVU, L1 metric", "Laplace, or Gaussian"))
    return ratios(table, laplace, ("epsilon",), "predicted_squared_error")


def tables_over_others(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the least predicted error of tables over that of all other mechanisms, at each epsilon on the L2 ball."""
    own = frame[(frame["comparison"] == "L2") & (frame["panel"] == "epsilon")]
    tables = own["series"].str.startswith("MVU")
    least, other = (part.groupby("epsilon")["predicted_squared_error"].min() for part in (own[tables], own[~tables]))
    return least / other


FIGURE = FigureEntry(
    name="mvu-fig3",
    paper=f"{entry_named('mvu').paper}, figure 3; bits are beyond the paper",
    experiment="vector mean",
    tasks=vector_tasks,
    table=arrange_vector_means,
    draw=draw_comparison,
    findings=(
        Finding("Error over Laplace noise's, MVU, L1 metric", tables_over_laplace),
        Finding("best tables over the best others, L2 ball", tables_over_others),
    ),
)
