"""Whole gradients or layer by layer, all coordinates or each client's largest: what each costs on real gradients."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.linear_compression.layers import ARRANGEMENTS, LayerPoint, layer_points
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from .error_panels import ZERO_LOOK, add_legend, draw_series, finish, marks_of, panels


def draw_layers(frame: pd.DataFrame) -> Figure:
    """Draw a panel for each share of coordinates that is kept, and a line for each arrangement."""
    figure, grid = panels(frame["kept"].nunique(), 4.3)
    marks = marks_of(ARRANGEMENTS)
    for axes, (kept, panel) in zip(grid, frame.groupby("kept", sort=False), strict=True):
        for arrangement, series in panel.groupby("arrangement", sort=False):
            draw_series(axes, series, "rate", marks[arrangement])
        axes.axhline(panel["zero"].mean(), **ZERO_LOOK)
        share = float(str(kept))
        finish(axes, panel["rate"], "compression rate d/m", "all coordinates" if share == 1 else f"each client's largest {100 * share:g} %")
    grid[0].set_ylabel("squared L2 error of the mean (c²)")
    grid[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    grid[0].yaxis.set_major_formatter("{x:g}")
    grid[0].yaxis.set_minor_formatter(NullFormatter())
    add_legend(figure, marks)
    first = frame.iloc[0]
    taken = frame.groupby("kept", sort=False)["thresholding_squared_error"].mean()
    words = ", ".join(f"{value:.2g} where {100 * float(str(kept)):g} % are kept" for kept, value in taken.items() if float(str(kept)) < 1)
    add_caption(
        figure,
        f"Mean of clipped gradients of {first['clients']:,.0f} images at a network of {first['layers']:.0f} layers and "
        f"{first['dimension']:,.0f} parameters, in sketches; no noise. Lines: predicted; points: measured, {first['repetitions']:.0f} "
        f"repetitions with standard errors. By norm: by that of each layer, not known in practice. What clients zero before sketching adds "
        f"{words}.",
    )
    return figure


def arrange_layers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per arrangement, share and rate, averaged over repetitions."""
    groups = rows.drop(columns="repetition").groupby(["arrangement", "kept", "rate"], sort=False)
    averages = groups.mean(numeric_only=True)
    averages["repetitions"] = groups.size()
    averages["standard_error"] = groups["squared_error"].sem()
    return averages.reset_index()


def layer_tasks(seed: int, quick: bool) -> list[LayerPoint]:
    """Return a task for each arrangement, share, rate and repetition."""
    rates = (2.0, 5.0, 10.0, 20.0, 50.0)
    if quick:
        return layer_points(seed, hidden=(60, 60), clients=200, rates=rates, kept=(1.0, 0.1), repetitions=3)
    return layer_points(seed, hidden=(324, 324), clients=500, rates=rates, kept=(1.0, 0.1, 0.01), repetitions=5)


def _over_whole(frame: pd.DataFrame, arrangement: str) -> "pd.Series[float]":
    """Return measured errors of an arrangement over those of a sketch of the whole gradient, by rate and share."""
    own, whole = (frame[frame["arrangement"] == name] for name in (arrangement, ARRANGEMENTS[0]))
    return ratios(own, whole, ("kept", "rate"), "squared_error")


FIGURE = FigureEntry(
    name="price-layers",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}, Figures 9 and 10 as errors of a mean, on the digits",
    experiment="sketches of layers",
    tasks=layer_tasks,
    table=arrange_layers,
    draw=draw_layers,
    findings=(
        Finding("Measured error over that of a whole sketch, a sketch per layer", lambda frame: _over_whole(frame, ARRANGEMENTS[1])),
        Finding("by norm", lambda frame: _over_whole(frame, ARRANGEMENTS[2])),
    ),
)
