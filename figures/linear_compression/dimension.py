"""Errors of large and small models: noise grows with the dimension, compression adds less."""

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ..drawing.style import GREY, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from .error_panels import ZERO_LOOK, add_legend, draw_series, finish, marks_of, panels
from .sketched_sums import SketchPoint, arrange_sketches

RATES = (1.0, 2.0, 4.0, 10.0, 20.0, 40.0)
EPSILON = 1.0


def draw_dimensions(frame: pd.DataFrame) -> Figure:
    """Draw errors over errors without a sketch (left), and errors beside that of the zero estimate (right).

    Predictions are lines, measurements points.
    """
    figure, (axes, whole) = panels(2, 3.9, shared=False)
    marks = marks_of(sorted(frame["dimension"].unique()))
    for dimension, series in frame.groupby("dimension"):
        mark, plain = marks[dimension], series.loc[series["rate"] == 1].iloc[0]
        draw_series(whole, series, "rate", mark)
        axes.plot(
            series["rate"], series["predicted_squared_error"] / plain["predicted_squared_error"], color=mark.colour, linestyle=mark.line
        )
        axes.errorbar(
            series["rate"],
            series["squared_error"] / plain["squared_error"],
            yerr=series["standard_error"] / plain["squared_error"],
            **mark.look | {"linestyle": ""},
            capsize=2,
        )
    axes.axhline(2.0, color=GREY, linewidth=0.9)
    whole.axhline(frame["zero"].mean(), **ZERO_LOOK)
    for each in (axes, whole):
        finish(each, frame["rate"], "compression rate d/m")
    axes.set_ylabel("squared error over that without a sketch")
    whole.set_ylabel("squared L2 error of the mean (c²)")
    add_legend(figure, {f"d = {dimension:,}": mark for dimension, mark in marks.items()})
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Mean of {first['clients']:,.0f} vectors of norm c, whose mean has norm {first['mean_norm']:g} c. Lines: predicted; points: "
        f"measured, {first['repetitions']:.0f} rounds with standard errors. Grey line, left: twice the error without a sketch. ε = "
        f"{first['epsilon']:g}, δ = {first['delta']:g}, {first['adjacency']} adjacency, {first['trust_model']} trust model.",
    )
    return figure


def dimension_tasks(seed: int, quick: bool) -> list[SketchPoint]:
    """Return a task for each dimension, rate and repetition."""
    dimensions, clients, repetitions = ((2**10, 2**13), 100, 2) if quick else ((2**12, 2**15, 2**18), 300, 3)
    return [
        SketchPoint(seed=seed, dimension=dimension, clients=clients, rate=rate, epsilon=EPSILON, mean_norm=0.3, repetition=repetition)
        for dimension in dimensions
        for rate in RATES
        for repetition in range(repetitions)
    ]


def _at_highest_rate(frame: pd.DataFrame, end: str) -> "pd.Series[float]":
    """Return the highest rate's errors over errors without a sketch, for a dimension."""
    own = frame[frame["dimension"] == frame["dimension"].agg(end)]
    return ratios(own[own["rate"] == own["rate"].max()], own[own["rate"] == 1], ("dimension",), "squared_error")


FIGURE = FigureEntry(
    name="price-dimension",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}, the mean estimation in Figure 4",
    experiment="sketched sums against rates and dimensions",
    tasks=dimension_tasks,
    table=arrange_sketches,
    draw=draw_dimensions,
    findings=(
        Finding("Measured error at the highest rate over that at rate 1, least d", lambda frame: _at_highest_rate(frame, "min")),
        Finding("largest", lambda frame: _at_highest_rate(frame, "max")),
    ),
)
