"""The number of rows of a sketch: what it does to the error, and to the sketches that are clipped."""

import pandas as pd
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ...analysis.comparisons.linear_compression.sketched_sums import SketchPoint, arrange_sketches
from ..drawing.style import add_caption
from ..entry import FigureEntry
from .error_panels import add_legend, look, marks_of, panels

ROWS = (1, 2, 5, 10, 15, 20, 25)
RATES = (4.0, 10.0, 40.0)


def draw_rows(frame: pd.DataFrame) -> Figure:
    """Draw the compression error over its prediction (left), and the share of clipped sketches (right)."""
    figure, (left, right) = panels(2, 3.6, shared=False)
    marks = marks_of(sorted(frame["rate"].unique()))
    for rate, series in frame.groupby("rate"):
        series = series.sort_values("rows")
        left.plot(series["rows"], series["compression"] / series["predicted_compression"], **look(marks[rate]))
        right.plot(series["rows"], 100 * series["clipped_sketches"], **look(marks[rate]))
    left.set(xlabel="rows t of the sketch", ylabel="compression error over (d \N{MINUS SIGN} 1)/m ‖mean‖²", ylim=(0, None))
    right.set(xlabel="rows t of the sketch", ylabel="sketches longer than 1.1 c (%)", ylim=(0, None))
    for axes in (left, right):
        axes.set_xticks(ROWS)
        axes.grid(visible=True)
    add_legend(figure, {f"rate {rate:g}": mark for rate, mark in marks.items()}, zero=False)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"Sketches of {first['clients']:,.0f} vectors of dimension {first['dimension']:,.0f} and norm c, {first['repetitions']:.0f} "
        "rounds. The same number m of coordinates is arranged in more or fewer rows: the error that compression has on average does not "
        "depend on the rows, and neither does the variance of a sketch's length, 2/m at most; vectors that are spread over many "
        f"coordinates need one row. The paper's ablation has 10 to 25 rows, and its experiments 15. Guarantee: {first['adjacency']} "
        f"adjacency, {first['trust_model']} trust model, ε = {first['realised_epsilon']:.3g}, δ = {first['delta']:g}.",
    )
    return figure


def row_tasks(seed: int, quick: bool) -> list[SketchPoint]:
    """Return a task for each rate, number of rows and repetition."""
    dimension, clients, repetitions = (2**12, 100, 4) if quick else (2**16, 200, 10)
    return [
        SketchPoint(seed=seed, dimension=dimension, clients=clients, rate=rate, rows=rows, noise_multiplier=0.5, repetition=repetition)
        for rate in RATES
        for rows in ROWS
        for repetition in range(repetitions)
    ]


FIGURE = FigureEntry(
    name="price-rows",
    title="The number of rows of a sketch, at one size",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}, the ablation of the sketch's length",
    duration="about two minutes",
    experiment="sketched sums against rows",
    tasks=row_tasks,
    table=arrange_sketches,
    draw=draw_rows,
)
