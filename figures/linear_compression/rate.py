"""Cost of compression: error against compression rate, for several levels of noise."""

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ..drawing.directed_rounding import rounded_up
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..findings import Finding
from .error_panels import ZERO_LOOK, add_legend, draw_series, finish, marks_of, panels
from .sketched_sums import ALIGNED, SketchPoint, arrange_sketches

NOISE_MULTIPLIERS = (0.1, 0.3, 0.5, 0.7)
RATES = (1.0, 2.0, 4.0, 10.0, 20.0, 50.0)
# Norm of the common part of aligned vectors; the mean of gradients has another norm.
POPULATIONS = ((ALIGNED, 0.05), (ALIGNED, 0.3), ("digits-gradients", 0.0))


def draw_rates(frame: pd.DataFrame) -> Figure:
    """Draw a panel for each population, and a line for each level of noise."""
    groups = list(frame.groupby(["population", "mean_norm"], sort=False))
    figure, grid = panels(len(groups), 4.2)
    marks = marks_of(sorted(frame["noise_multiplier"].unique()))
    for axes, ((population, norm), panel) in zip(grid, groups, strict=True):
        for noise, series in panel.groupby("noise_multiplier"):
            draw_series(axes, series, "rate", marks[noise])
        axes.axhline(panel["zero"].mean(), **ZERO_LOOK)
        finish(axes, panel["rate"], "compression rate d/m", f"mean of norm {norm:g} c" if population == ALIGNED else "gradients of digits")
    grid[0].set_ylabel("squared L2 error of the mean (c²)")
    add_legend(figure, {f"z = {noise:g}": mark for noise, mark in marks.items()})
    first = frame.iloc[0]
    epsilons = frame.groupby("noise_multiplier")["realised_epsilon"].max()
    add_caption(
        figure,
        f"Mean of {first['clients']:,.0f} vectors of dimension {first['dimension']:,.0f}, norm c. z: deviation of the noise over the "
        f"norm that sketches are clipped to. Lines: predicted; points: measured, {first['repetitions']:.0f} rounds with standard "
        f"errors. One round's ε at δ = {first['delta']:g}: {', '.join(rounded_up(value, 3) for value in epsilons)} for the z, "
        f"{first['adjacency']} adjacency, {first['trust_model']} trust model.",
    )
    return figure


def rate_tasks(seed: int, quick: bool) -> list[SketchPoint]:
    """Return a task for each length of the mean, noise, rate and repetition."""
    dimension, clients, repetitions = (8170, 60, 2) if quick else (2**17, 500, 3)
    return [
        SketchPoint(
            seed=seed,
            dimension=dimension,
            clients=clients,
            rate=rate,
            noise_multiplier=noise,
            population=population,
            mean_norm=norm,
            repetition=repetition,
        )
        for population, norm in POPULATIONS
        for noise in NOISE_MULTIPLIERS
        for rate in RATES
        for repetition in range(repetitions)
    ]


def added_over_rule(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return the sketch's added predicted error, over the rate times the mean's squared norm."""
    sketched, plain = frame[frame["rate"] > 1], frame[frame["rate"] == 1]
    both = sketched.merge(plain, on=["population", "mean_norm", "noise_multiplier"], suffixes=("", "_plain"))
    rule: pd.Series[float] = both["rate"] * both["zero"]
    return (both["predicted_squared_error"] - both["predicted_squared_error_plain"]) / rule


FIGURE = FigureEntry(
    name="price-rate",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}, the mean estimation in Figure 2",
    experiment="sketched sums against rates",
    tasks=rate_tasks,
    table=arrange_sketches,
    draw=draw_rates,
    findings=(Finding("Predicted error that sketches add, in units of d/m ‖mean‖²", added_over_rule),),
)
