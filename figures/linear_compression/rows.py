"""The number of rows of a sketch: its effect on the compression error and the whole error."""

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ..drawing.directed_rounding import rounded_up
from ..drawing.style import GREY, add_caption
from ..entry import FigureEntry
from ..findings import Finding
from .error_panels import ZERO_LOOK, add_legend, draw_series, marks_of, panels
from .sketched_sums import SketchPoint, arrange_sketches

ROWS = (1, 2, 5, 10, 15, 20, 25)
RATES = (4.0, 10.0, 40.0)


def draw_rows(frame: pd.DataFrame) -> Figure:
    """Draw the compression error over its prediction (left), and the whole error (right).

    The right panel also shows the error of the zero estimate.
    """
    figure, (left, right) = panels(2, 3.7, shared=False)
    marks = marks_of(sorted(frame["rate"].unique()))
    for rate, series in frame.groupby("rate"):
        series = series.sort_values("rows")
        ratio, spread = (series[name] / series["predicted_compression"] for name in ("compression", "compression_standard_error"))
        left.errorbar(series["rows"], ratio, yerr=spread, capsize=2, **marks[rate].look)
        draw_series(right, series, "rows", marks[rate])
    left.axhline(1.0, color=GREY, linewidth=0.9)
    right.axhline(frame["zero"].mean(), **ZERO_LOOK)
    left.set(xlabel="rows t of the sketch", ylabel="compression error over its prediction")
    right.set(xlabel="rows t of the sketch", ylabel="squared L2 error of the mean (c²)", yscale="log")
    for axes in (left, right):
        ticks = sorted(frame["rows"].unique())
        axes.set_xticks(ticks, [f"{value}" for value in ticks])
        axes.grid(visible=True)
    add_legend(figure, {f"rate {rate:g}": mark for rate, mark in marks.items()})
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Mean of {first['clients']:,.0f} vectors, d = {first['dimension']:,.0f}; {first['repetitions']:.0f} rounds, standard errors. "
        "Left: compression alone, over (d \N{MINUS SIGN} 1)/m times the mean's squared norm. Right: with noise; lines: predicted, "
        f"points: measured. {_clipped(frame)} of the sketches were clipped. Guarantee: {first['adjacency']} adjacency, "
        f"{first['trust_model']} trust model, ε = {rounded_up(frame['realised_epsilon'].max(), 3)}, δ = {first['delta']:g}.",
    )
    return figure


def _clipped(frame: pd.DataFrame) -> str:
    share = float(frame["clipped_sketches"].mean())
    return "None" if share == 0 else f"{100 * share:.2g} %"


def row_tasks(seed: int, quick: bool) -> list[SketchPoint]:
    """Return a task for each rate, number of rows and repetition."""
    dimension, clients, repetitions = (2**12, 100, 4) if quick else (2**16, 200, 10)
    return [
        SketchPoint(seed=seed, dimension=dimension, clients=clients, rate=rate, rows=rows, noise_multiplier=0.5, repetition=repetition)
        for rate in RATES
        for rows in ROWS
        for repetition in range(repetitions)
    ]


def errors_over_least(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return measured errors over the least error of their rate."""
    errors: pd.Series[float] = frame["squared_error"]
    return errors / errors.groupby(frame["rate"]).transform("min")


FIGURE = FigureEntry(
    name="price-rows",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}, the ablation of the sketch's length",
    experiment="sketched sums against rows",
    tasks=row_tasks,
    table=arrange_sketches,
    draw=draw_rows,
    findings=(Finding("Measured error over the least of the same rate", errors_over_least),),
)
