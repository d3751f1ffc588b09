"""Figure 2 of Chaudhuri, Guo, Rabbat 2022: scalar mean estimation, for every value on [-1, 1]."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MultipleLocator, NullFormatter

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.scalar_mean import MECHANISMS, ScalarPoint, grid_averages
from ..drawing.marks import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION
from ..drawing.style import GREY, WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios

EPSILONS = (1.0, 3.0, 5.0)
QUICK: Mapping[str, int] = MappingProxyType({"clients": 10_000, "batches": 100, "runs": 5})


LOOKS: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "bRR(3)": ORANGE.look,
        "gRR(3)": PURPLE.look,
        "Laplace": BLACK.look,
        # The same mechanism as MVU(1): a wide band and hollow points, within which MVU(1) runs.
        "CLDP": VERMILION.look
        | {"color": (VERMILION.colour, 0.35), "linestyle": "-", "linewidth": 5.0}
        | {"markersize": 7.0, "markerfacecolor": "none", "markeredgecolor": VERMILION.colour},
        "MVU(1)": GREEN.look,
        "MVU(3)": BLUE.look,
    }
)
BOUND_LOOK: Mapping[str, Any] = MappingProxyType({"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 1.0})


def draw_variances(variances: pd.DataFrame) -> Figure:
    """Draw exact variances as lines and simulated ones as points, one panel for each epsilon."""
    panels = [panel for _, panel in variances.groupby("epsilon")]
    figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
    grid = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        _draw_panel(axes, panel)
    grid[0].set_ylabel("variance of one client's message (units of x²)")
    handles = [Line2D([], [], label=mechanism, **look) for mechanism, look in LOOKS.items()]
    handles.append(Line2D([], [], label="certified lower bound on the average", **BOUND_LOOK))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, handlelength=4.0)
    first = variances.iloc[0]
    add_caption(
        figure,
        "Every client holds the same value x. Lines: exact variance of one decoded message; points: simulated. In brackets: bits of a "
        "message. CLDP (squares) and MVU(1) coincide. The bound is on averages over inputs: values may lie below. Guarantee of all: ε "
        f"as above each panel, {first['adjacency']} adjacency, {first['trust_model']} trust model.",
    )
    return figure


def _draw_panel(axes: Axes, panel: pd.DataFrame) -> None:
    for mechanism, look in LOOKS.items():
        series = panel[panel["mechanism"] == mechanism]
        axes.plot(series["value"], series["exact_variance"], **look | {"marker": ""})
        axes.plot(series["value"], series["simulated_variance"], **look | {"linestyle": ""})
    axes.axhline(panel["lower_bound"].max(), **BOUND_LOOK)
    axes.set_title(f"ε = {panel['epsilon'].iloc[0]:g}")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 4, 5, 7)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MultipleLocator(0.5))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("value x of every client")
    axes.grid(visible=True)


def scalar_tasks(seed: int, quick: bool) -> list[ScalarPoint]:
    """Return one task for each mechanism and epsilon."""
    size = QUICK if quick else {}
    return [ScalarPoint(seed=seed, mechanism=name, epsilon=epsilon, **size) for epsilon in EPSILONS for name in MECHANISMS]


def variances_over_laplace(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return exact variances of MVU(3) over those of Laplace noise, at the same value and epsilon."""
    table, laplace = (frame[frame["mechanism"] == name] for name in ("MVU(3)", "Laplace"))
    return ratios(table, laplace, ("epsilon", "value"), "exact_variance")


FIGURE = FigureEntry(
    name="mvu-fig2",
    paper=f"{entry_named('mvu').paper}, figure 2",
    experiment="scalar mean",
    tasks=scalar_tasks,
    draw=draw_variances,
    summary=grid_averages,
    findings=(Finding("Variance of MVU(3) over that of Laplace noise", variances_over_laplace),),
)
