"""Rounds after which the average of unbiased estimates is better than the zero estimate.

Zero is better than every single round if the noise is large.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ...analysis.random_streams import named_stream
from ..drawing.directed_rounding import rounded_up
from ..drawing.style import add_caption
from ..entry import FigureEntry
from ..findings import Finding
from ..point import Point
from .error_panels import ZERO_LOOK, add_legend, draw_series, finish, marks_of, panels
from .sketched_sums import ADJACENCY, DELTA, SketchPoint

CHECKED = (1, 2, 5, 10, 20, 50, 100, 200, 500)
RATES = (1.0, 4.0, 10.0, 40.0)
EPSILON, MEAN_NORM = 1.0, 0.5


@dataclass(frozen=True, kw_only=True)
class RoundsPoint(Point):
    """Rounds of a secure sum of sketches on the same vectors, each with fresh randomness.

    Each round has a new sketch and new noise.

    Attributes
    ----------
    dimension, clients, bits, rate, rows, epsilon, mean_norm, repetition
        Parameters of each round, as in `SketchPoint`; epsilon is that of one round.
    rounds : int
        Number of rounds.
    """

    dimension: int
    clients: int
    rounds: int
    rate: float
    epsilon: float
    bits: int = 16
    rows: int = 15
    mean_norm: float = 0.1
    repetition: int = 0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each selected number of rounds: error of the average so far.

        The row has the measured and the predicted error.
        """
        shared = {field.name: getattr(self, field.name) for field in fields(SketchPoint) if hasattr(self, field.name)}
        point = SketchPoint(**shared)
        mechanism, vectors = point.mechanism(), np.concatenate(list(point.chunks()))
        mean = mechanism.ball.clip(vectors).mean(axis=0)
        words = named_stream(self.seed, f"rounds: {self.name}")
        error, total, rows = mechanism.error(vectors), np.zeros(self.dimension), []
        for number in range(1, self.rounds + 1):
            renewed = mechanism.renewed(int(words.integers(2**63)))
            total += renewed.decode(renewed.aggregate(renewed.encode(vectors, words)), self.clients)
            if number not in CHECKED:
                continue
            rows.append(
                {
                    "dimension": self.dimension,
                    "clients": self.clients,
                    "rate": self.rate,
                    "epsilon": self.epsilon,
                    "mean_norm": self.mean_norm,
                    "repetition": self.repetition,
                    "rounds": number,
                    "squared_error": float(np.sum((total / number - mean) ** 2)),
                    "predicted_squared_error": (error.variance / self.clients + error.shared) / number,
                    "zero": float(np.sum(mean**2)),
                    "epsilon_of_all": mechanism.privacy().epsilon(DELTA, ADJACENCY, number),
                    "bits_per_coordinate": mechanism.bits_per_client / self.dimension,
                    "delta": DELTA,
                    "adjacency": ADJACENCY,
                    "trust_model": mechanism.guarantee.trust_model,
                }
            )
        return rows


def draw_rounds(frame: pd.DataFrame) -> Figure:
    """Draw the error of the average against the number of rounds."""
    figure, (axes,) = panels(1, 4.0)
    marks = marks_of(sorted(frame["rate"].unique()))
    for rate, series in frame.groupby("rate"):
        draw_series(axes, series, "rounds", marks[rate])
    axes.axhline(frame["zero"].mean(), **ZERO_LOOK)
    finish(axes, frame["rounds"], "rounds R")
    axes.set_ylabel("squared L2 error of the average (c²)")
    add_legend(figure, {f"rate {rate:g}" if rate > 1 else "no sketch": mark for rate, mark in marks.items()})
    first, last = frame.iloc[0], frame[frame["rounds"] == frame["rounds"].max()]
    of_all = rounded_up(last["epsilon_of_all"].max(), 3)
    add_caption(
        figure,
        f"Average over R rounds of estimates of one mean of {first['clients']:,.0f} vectors of dimension {first['dimension']:,.0f} and "
        f"norm c. Lines: predicted; points: measured, {first['repetitions']:.0f} repetitions with standard errors. One round has ε = "
        f"{first['epsilon']:g} at δ = {first['delta']:g}, all {last['rounds'].iloc[0]:.0f} together ε = {of_all}. "
        f"Guarantee: {first['adjacency']} adjacency, {first['trust_model']} trust model.",
    )
    return figure


def arrange_rounds(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per rate and number of rounds, averaged over repetitions."""
    groups = rows.drop(columns="repetition").groupby(["rate", "rounds"], sort=False)
    averages = groups.mean(numeric_only=True)
    errors = groups["squared_error"]
    averages["repetitions"] = errors.size()
    averages["standard_error"] = errors.sem()
    return averages.join(groups[["adjacency", "trust_model"]].first()).reset_index()


def round_tasks(seed: int, quick: bool) -> list[RoundsPoint]:
    """Return a task for each rate and repetition."""
    dimension, clients, rounds, repetitions = (2**9, 30, 100, 2) if quick else (2**14, 100, 500, 4)
    return [
        RoundsPoint(
            seed=seed,
            dimension=dimension,
            clients=clients,
            rounds=rounds,
            rate=rate,
            epsilon=EPSILON,
            mean_norm=MEAN_NORM,
            repetition=repetition,
        )
        for rate in RATES
        for repetition in range(repetitions)
    ]


def rounds_to_zero(frame: pd.DataFrame) -> "pd.Series[Any]":
    """Return the rounds after which the predicted error is at most that of zero, by rate.

    The number is infinite if no drawn number of rounds suffices.
    """
    rounds = frame["rounds"].astype(float).where(frame["predicted_squared_error"] <= frame["zero"], math.inf)
    return rounds.groupby(frame["rate"]).min()


FIGURE = FigureEntry(
    name="price-rounds",
    paper=f"{entry_named('sketched-discrete-gaussian').paper}, remark 5.5; beyond the paper",
    experiment="sketched sums over rounds",
    tasks=round_tasks,
    table=arrange_rounds,
    draw=draw_rounds,
    findings=(Finding("Rounds at which the predicted error falls to zero's, by rate", rounds_to_zero),),
)
