"""Larger cohorts at one epsilon: error against the number of clients, with and without compression, and where zero is better."""

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.linear_compression.sketched_sums import SketchPoint, arrange_sketches
from ..drawing.style import add_caption
from ..entry import FigureEntry
from .error_panels import CENTRAL_LOOK, ZERO_LOOK, add_legend, draw_series, finish, marks_of, panels

RATES = (1.0, 4.0, 11.5, 40.0)
MANY_ROUNDS = 100


def draw_cohorts(frame: pd.DataFrame) -> Figure:
    """Draw errors of one round (left), and what they fall to over 100 rounds (right), beside zero, which stays."""
    figure, grid = panels(2, 4.2)
    marks = marks_of(sorted(frame["rate"].unique()))
    for axes, rounds in zip(grid, (1, MANY_ROUNDS), strict=True):
        shown = frame.copy()
        shown[["predicted_squared_error", "squared_error", "standard_error", "central_squared_error"]] /= rounds
        for rate, series in shown.groupby("rate"):
            if rounds == 1:
                draw_series(axes, series, "clients", marks[rate])
            else:
                axes.plot(series["clients"], series["predicted_squared_error"], color=marks[rate].colour, linestyle=marks[rate].line)
        plain = shown[shown["rate"] == 1]
        axes.plot(plain["clients"], plain["central_squared_error"], **CENTRAL_LOOK)
        axes.plot(plain["clients"], plain["zero"], **ZERO_LOOK)
        finish(axes, frame["clients"], "clients n", "one round" if rounds == 1 else f"average of {rounds} rounds, each with this ε")
    grid[0].set_ylabel("squared L2 error of the mean (c²)")
    add_legend(figure, {f"rate {rate:g}" if rate > 1 else "no sketch": mark for rate, mark in marks.items()}, central=True, columns=3)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Mean of n vectors of dimension {first['dimension']:,.0f} and norm c, whose mean has norm {first['mean_norm']:g} c, by sketches "
        f"of {first['rows']:.0f} rows in a secure sum with discrete Gaussian noise, {first['bits']:.0f} bits a coordinate, at ε = "
        f"{first['epsilon']:g}, δ = {first['delta']:g} in each round. Lines: predicted, points: measured, {first['repetitions']:.0f} "
        "rounds. Where noise is large, a sketch of a tenth of the coordinates costs little beside it; there a single round is worse than "
        "the answer zero, whose error does not fall over the rounds. Right: predicted only, for one and the same mean in all rounds. "
        f"Guarantee: {first['adjacency']} adjacency, {first['trust_model']} trust model; for the trusted server, central trust model.",
    )
    return figure


def cohort_tasks(seed: int, quick: bool) -> list[SketchPoint]:
    """Return a task for each number of clients, rate and repetition."""
    dimension, clients, repetitions = (2**12, (30, 100, 300), 2) if quick else (2**20, (100, 200, 500, 1000), 2)
    return [
        SketchPoint(seed=seed, dimension=dimension, clients=count, rate=rate, epsilon=1.0, repetition=repetition)
        for rate in RATES
        for count in clients
        for repetition in range(repetitions)
    ]


FIGURE = FigureEntry(
    name="price-cohort",
    title="Larger cohorts at one epsilon: error against the number of clients, with and without a sketch",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}, the mean estimation in Figures 7 and 8",
    duration="about eight minutes",
    experiment="sketched sums against clients",
    tasks=cohort_tasks,
    table=arrange_sketches,
    draw=draw_cohorts,
)
