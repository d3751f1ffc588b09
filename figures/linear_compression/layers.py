"""Errors of sketches of whole gradients or of layers, with all or only large coordinates.

Figures 9 and 10 of Chen, Choquette-Choo, Kairouz, Suresh 2022 sketch a network's embedding and the rest separately, and report accuracies;
this figure shows the error of the mean of gradients of networks of the digits. It has no privacy, as noise would add the same error to all
sketches. Omitting small coordinates of clients' vectors, before they are sketched and without a memory, is not in that paper: its appendix
A.2 thresholds the noisy sum (`analysis/training/thresholded_sketch.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ...analysis.random_streams import named_stream
from ...analysis.simulation.digit_gradients import digit_gradients, gradient_unit, train_digit_model
from ...arrays import FloatArray
from ...design.contracts.norm_ball import NormBall
from ...design.transforms.count_sketch import CountMeanSketch
from ...design.transforms.layered_sketch import LayeredSketch
from ...design.transforms.linear_sketch import LinearSketch
from ...design.transforms.thresholding import keep_largest
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from ..point import Point
from .error_panels import ZERO_LOOK, add_legend, draw_series, finish, marks_of, panels

ARRANGEMENTS = ("one sketch", "a sketch per layer", "a sketch per layer, by norm")
ROWS = 5


@dataclass(frozen=True, kw_only=True)
class LayerPoint(Point):
    """The mean of gradients, through sketches of one size in all.

    Attributes
    ----------
    arrangement : str
        Name in `ARRANGEMENTS`. Layers get coordinates in proportion to their size, or to the root of their size times the norm of their
        part of the mean. The second choice is the best for a given mean, but in practice the norms would have to be public.
    rate : float
        Dimension over the coordinates of all sketches.
    kept : float
        Share of each client's coordinates, the largest of each layer, that are kept before sketching; 1 keeps all.
    hidden : tuple of int
        Widths of the network's hidden layers.
    clients, repetition
        Number of clients with one image each; number of the repetition, from 0.
    """

    arrangement: str
    rate: float
    kept: float
    hidden: tuple[int, ...]
    clients: int
    repetition: int = 0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return one row: predicted and measured error of the mean, and thresholding's error."""
        model = train_digit_model(self.hidden)
        sizes = model.layers.sizes
        rng = named_stream(self.seed, f"gradients {self.hidden}, clients {self.clients}, repetition {self.repetition}")
        scale = 1 / gradient_unit(model)
        ball = NormBall(model.dimension, 2.0)
        mean, left = np.zeros(model.dimension), np.zeros(model.dimension)
        bound = 0.0
        for chunk in digit_gradients(model, self.clients, rng, scale=scale):
            clipped = ball.clip(chunk)
            thresholded = keep_largest(clipped, sizes, self.kept)
            mean += clipped.sum(axis=0) / self.clients
            left += thresholded.vectors.sum(axis=0) / self.clients
            bound += thresholded.mean_error_bound * len(chunk) / self.clients
        sketch = self._sketch(sizes, left, int(named_stream(self.seed, f"sketch: {self.name}").integers(2**62)))
        estimate = sketch.decode(sketch.encode(left))
        return [
            {
                "arrangement": self.arrangement,
                "rate": self.rate,
                "kept": self.kept,
                "dimension": model.dimension,
                "layers": len(sizes),
                "clients": self.clients,
                "repetition": self.repetition,
                "sketch_dimension": sketch.sketch_dimension,
                "squared_error": float(np.sum((estimate - mean) ** 2)),
                # The sketch is independent of the thresholded coordinates.
                "predicted_squared_error": sketch.compression_error(left) + float(np.sum((left - mean) ** 2)),
                "thresholding_squared_error": float(np.sum((left - mean) ** 2)),
                "thresholding_bound": bound**2,
                "zero": float(np.sum(mean**2)),
            }
        ]

    def _sketch(self, sizes: Sequence[int], mean: FloatArray, seed: int) -> LinearSketch:
        dimension = sum(sizes)
        if self.arrangement == ARRANGEMENTS[0]:
            return CountMeanSketch(dimension, ROWS, max(1, round(dimension / self.rate / ROWS)), seed)
        norms = [float(np.linalg.norm(mean[start:stop])) for start, stop in pairwise(np.cumsum([0, *sizes]).tolist())]
        weights = (
            sizes if self.arrangement == ARRANGEMENTS[1] else [math.sqrt(size) * norm for size, norm in zip(sizes, norms, strict=True)]
        )
        parts = zip(sizes, weights, strict=True)
        widths = [min(size, max(ROWS, dimension / self.rate * weight / sum(weights))) // ROWS for size, weight in parts]
        shaped = enumerate(zip(sizes, widths, strict=True))
        return LayeredSketch(tuple(CountMeanSketch(size, ROWS, int(width), seed + layer) for layer, (size, width) in shaped))


def layer_points(
    seed: int, *, hidden: tuple[int, ...], clients: int, rates: Sequence[float], kept: Sequence[float], repetitions: int
) -> list[LayerPoint]:
    """Return a task for each arrangement, rate, share of kept coordinates, and repetition."""
    return [
        LayerPoint(seed=seed, arrangement=arrangement, rate=rate, kept=share, hidden=hidden, clients=clients, repetition=repetition)
        for arrangement in ARRANGEMENTS
        for share in kept
        for rate in rates
        for repetition in range(repetitions)
    ]


def draw_layers(frame: pd.DataFrame) -> Figure:
    """Draw a panel for each share of kept coordinates, and a line for each arrangement."""
    figure, grid = panels(frame["kept"].nunique(), 4.3)
    marks = marks_of(ARRANGEMENTS)
    for axes, (kept, panel) in zip(grid, frame.groupby("kept", sort=False), strict=True):
        for arrangement, series in panel.groupby("arrangement", sort=False):
            draw_series(axes, series, "rate", marks[arrangement])
        axes.axhline(panel["zero"].mean(), **ZERO_LOOK)
        share = float(str(kept))
        finish(axes, panel["rate"], "compression rate d/m", "all coordinates" if share == 1 else f"each client's largest {100 * share:g} %")
    grid[0].set_ylabel("squared L2 error of the mean (c²)")
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
    """Return errors of an arrangement over those of a whole gradient's sketch."""
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
