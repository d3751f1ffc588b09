"""Error against the number of clients at one epsilon, by compression rate.

The figure also shows where the zero estimate is better.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from .error_panels import CENTRAL_LOOK, ZERO_LOOK, add_legend, draw_series, finish, marks_of, panels
from .sketched_sums import ALIGNED, SketchPoint, arrange_sketches

RATES = (1.0, 4.0, 11.5, 40.0)
MANY_ROUNDS = 100
# Gradients are measured at the largest cohort, without a sketch and with the rate of ten times less communication.
GRADIENTS, GRADIENT_RATES = "digits-gradients", (1.0, 11.5)
GRADIENT_LOOK: Mapping[str, Any] = {"linestyle": "", "marker": "*", "markersize": 12, "markerfacecolor": "none", "markeredgewidth": 1.2}


def draw_cohorts(frame: pd.DataFrame) -> Figure:
    """Draw errors of one round and of 100 rounds, and the rounds after which zero is worse."""
    figure, (single, many, border) = panels(3, 4.2, shared=False)
    many.sharey(single)
    marks = marks_of(sorted(frame["rate"].unique()))
    aligned, gradients = frame[frame["population"] == ALIGNED], frame[frame["population"] != ALIGNED]
    for rate, series in aligned.groupby("rate"):
        draw_series(single, series, "clients", marks[rate])
        many.plot(series["clients"], series["predicted_squared_error"] / MANY_ROUNDS, color=marks[rate].colour, linestyle=marks[rate].line)
        border.plot(series["clients"], series["predicted_squared_error"] / series["zero"], **marks[rate].look)
    for rate, series in gradients.groupby("rate"):
        look = {**GRADIENT_LOOK, "color": marks[rate].colour}
        single.errorbar(series["clients"], series["squared_error"], yerr=series["standard_error"], **look, capsize=2)
        border.plot(series["clients"], series["predicted_squared_error"] / series["zero"], **look)
    plain = aligned[aligned["rate"] == 1]
    for axes, rounds in ((single, 1), (many, MANY_ROUNDS)):
        axes.plot(plain["clients"], plain["central_squared_error"] / rounds, **CENTRAL_LOOK)
        axes.plot(plain["clients"], plain["zero"], **ZERO_LOOK)
        finish(axes, frame["clients"], "clients n", "one round" if rounds == 1 else f"average of {rounds} rounds")
    finish(border, frame["clients"], "clients n", "rounds until zero loses")
    single.set_ylabel("squared L2 error of the mean (c²)")
    border.set_ylabel("rounds R with zero\N{RIGHT SINGLE QUOTATION MARK}s error")
    add_legend(figure, {f"rate {rate:g}" if rate > 1 else "no sketch": mark for rate, mark in marks.items()}, central=True, columns=3)
    first = aligned.iloc[0]
    add_caption(
        figure,
        f"Means of norm {first['mean_norm']:g} c, d = {first['dimension']:,.0f}. Lines: predicted; points: measured, with standard errors. "
        f"{_gradients_in_words(gradients)}Right: below, zero wins. ε = {first['epsilon']:g}, δ = {first['delta']:g} a round, "
        f"{first['adjacency']} adjacency, {first['trust_model']} trust model; trusted server: central trust model.",
    )
    return figure


def _gradients_in_words(gradients: pd.DataFrame) -> str:
    """Return the norm of the gradients' mean, and the sketch's relative error, in words."""
    if gradients.empty:
        return ""
    errors, last = gradients.set_index("rate")["squared_error"], gradients.iloc[-1]
    ratios = ", ".join(f"{errors[rate] / errors[1.0]:.3g} at rate {rate:g}" for rate in errors.index if rate != 1)
    return f"Stars: gradients (norm {last['zero'] ** 0.5:.2g} c); errors over that without a sketch: {ratios}. "


def cohort_tasks(seed: int, quick: bool) -> list[SketchPoint]:
    """Return a task for each number of clients, rate and repetition."""
    dimension, clients, repetitions = (2**12, (30, 100, 300), 2) if quick else (2**20, (100, 200, 500, 1000), 2)
    point = partial(SketchPoint, seed=seed, dimension=dimension, epsilon=1.0)
    aligned = [
        point(clients=count, rate=rate, repetition=repetition) for rate in RATES for count in clients for repetition in range(repetitions)
    ]
    gradients = [
        point(clients=clients[-1], rate=rate, population=GRADIENTS, mean_norm=0.0, repetition=repetition)
        for rate in GRADIENT_RATES
        for repetition in range(repetitions)
    ]
    return aligned + gradients


def errors_over_unsketched(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return measured errors at the rate of the gradients over errors without a sketch.

    The rows are those of each population and number of clients.
    """
    sketched, plain = (frame[frame["rate"] == rate] for rate in (GRADIENT_RATES[-1], 1.0))
    return ratios(sketched, plain, ("population", "clients"), "squared_error")


FIGURE = FigureEntry(
    name="price-cohort",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}, the mean estimation in Figures 7 and 8",
    experiment="sketched sums against clients",
    tasks=cohort_tasks,
    table=arrange_sketches,
    draw=draw_cohorts,
    findings=(Finding(f"Measured error at rate {GRADIENT_RATES[-1]:g} over that without a sketch", errors_over_unsketched),),
)
