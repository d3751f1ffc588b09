"""How much better tables can be: of as many bits, and of any size.

The gap to the best table of as many bits is what a better search can gain; the rest of the gap to any size is what more bits can gain. No
paper has this picture.
"""

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from ..drawing.marks import Mark, mechanism_mark, variant
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..mvu.table_entries import DesignPoint, certificates

MVU = mechanism_mark("mvu")
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
BITS_IN, BITS_OUT = 3, (1, 2, 3)
QUICK_EPSILONS, QUICK_BITS_IN = (1.0, 3.0, 5.0), 2
# Gap at which the search for a proof stops.
TOLERANCE = 4e-3
# Least drawn excess of a variance over its bound, as a share of the bound; smaller ones are drawn here.
LEAST_SHOWN = 1e-6
TICKS: Mapping[float, str] = MappingProxyType(
    {1e-6: "0.0001 %", 1e-4: "0.01 %", 1e-2: "1 %", 1e-1: "10 %", 1.0: "2 times", 9.0: "10 times", 99.0: "100 times"}
)
# Both series are about MVU tables; the bound decides the line.
SERIES = {
    "letters_gap": ("over the bound for tables of as many bits", variant(MVU, 1)),
    "optimality_gap": ("over the bound for tables of any size", MVU),
}


def draw_gaps(table: pd.DataFrame) -> Figure:
    """Draw both gaps against epsilon, a panel per number of bits out."""
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    panels = [panel.sort_values("epsilon") for _, panel in table.groupby("bits_out")]
    grid = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        for column, (name, mark) in SERIES.items():
            _draw_series(axes, panel, column, name, mark)
        bits = panel["bits_out"].iloc[0]
        axes.set_title(f"{bits} bit{'s' if bits > 1 else ''} out")
        axes.set_xlabel("ε")
        axes.grid(visible=True)
    grid[0].set_yscale("log")
    grid[0].set_ylim(LEAST_SHOWN / 2, max(TICKS))
    grid[0].yaxis.set_major_locator(FixedLocator(list(TICKS)))
    grid[0].yaxis.set_major_formatter(lambda value, _: TICKS[value])
    grid[0].yaxis.set_minor_locator(NullLocator())
    grid[0].set_ylabel("mean variance over its proven bound")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, handlelength=3.0)
    first = table.iloc[0]
    add_caption(
        figure,
        "Mean variance of the designed table over proven lower bounds on that of every other unbiased table: by how much in per cent, or "
        f"how many times it is larger; excesses below {TICKS[LEAST_SHOWN]} are drawn there. {first['bits_in']} bits in. Guarantee: ε on "
        f"the axis, {first['adjacency']} adjacency, {first['trust_model']} trust model.",
    )
    return figure


def _draw_series(axes: Axes, panel: pd.DataFrame, column: str, name: str, mark: Mark) -> None:
    axes.plot(panel["epsilon"], (over_bound(panel[column]) - 1).clip(lower=LEAST_SHOWN), label=name, **mark.look)


def over_bound(gaps: "pd.Series[float]") -> "pd.Series[float]":
    """Return variances over their lower bounds, from their gaps."""
    return 1 / (1 - gaps)


def gap_tasks(seed: int, quick: bool) -> list[DesignPoint]:
    """Return the designs, the longest searches first."""
    epsilons, bits_in = (QUICK_EPSILONS, QUICK_BITS_IN) if quick else (EPSILONS, BITS_IN)
    return [
        DesignPoint(seed=seed, epsilon=epsilon, bits_in=bits_in, bits_out=bits_out, tolerance=TOLERANCE)
        for bits_out in sorted(BITS_OUT, reverse=True)
        for epsilon in epsilons
    ]


FIGURE = FigureEntry(
    name="letters-gap",
    paper="beyond the papers",
    experiment="gaps of tables",
    tasks=gap_tasks,
    table=certificates,
    draw=draw_gaps,
    findings=(
        Finding("Variance over the bound for unlimited bits", lambda table: over_bound(table["optimality_gap"])),
        Finding("for as many bits", lambda table: over_bound(table["letters_gap"])),
    ),
)
