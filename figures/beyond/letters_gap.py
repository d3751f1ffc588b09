"""How much better tables can be: of as many bits, and of any size.

The gap to the best table of as many bits is what a better search can gain; the rest of the gap to any size is what more bits can gain. No
paper has this picture.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ..drawing.marks import BLUE, VERMILION, Mark
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..mvu.table_entries import DesignPoint, certificates

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
BITS_IN, BITS_OUT = 3, (1, 2, 3)
QUICK_EPSILONS, QUICK_BITS_IN = (1.0, 3.0, 5.0), 2
# Gap at which the search for a proof stops.
TOLERANCE = 4e-3
# Smaller gaps, in per cent, are drawn here.
LEAST_SHOWN = 1e-4
SERIES = {"letters_gap": ("tables of as many bits", VERMILION), "optimality_gap": ("tables of any size", BLUE)}


def draw_gaps(table: pd.DataFrame) -> Figure:
    """Draw both gaps against epsilon, a panel per number of bits out."""
    figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
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
    grid[0].set_ylim(LEAST_SHOWN / 2, 200)
    grid[0].yaxis.set_major_locator(LogLocator(numticks=8))
    grid[0].yaxis.set_major_formatter("{x:g}")
    grid[0].set_ylabel("at most this much better (%)")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, handlelength=3.0)
    first = table.iloc[0]
    add_caption(
        figure,
        "Proven upper bounds on the share by which another unbiased table can have a lower mean variance than the designed one; gaps below "
        f"{LEAST_SHOWN:g} % are drawn there. {first['bits_in']} bits in. Guarantee: ε on the axis, {first['adjacency']} adjacency, "
        f"{first['trust_model']} trust model.",
    )
    return figure


def _draw_series(axes: Axes, panel: pd.DataFrame, column: str, name: str, mark: Mark) -> None:
    axes.plot(panel["epsilon"], (100 * panel[column]).clip(lower=LEAST_SHOWN), label=name, **mark.look)


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
        Finding("Unlimited bits (%)", lambda table: 100 * table["optimality_gap"]),
        Finding("as many bits (%)", lambda table: 100 * table["letters_gap"]),
    ),
)
