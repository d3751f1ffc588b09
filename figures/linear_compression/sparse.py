"""Sparse recovery: error against sparsity by decoder, and regions where zero is best.

The figure compares decoders of Chen, Choquette-Choo, Kairouz, Suresh 2022, sections 5 and 6, on a vector of norm 1 with equal entries. The
decoders are the ordinary decoder, S^T y / m, the Lasso, least squares on the Lasso's support, least squares by an oracle that has the true
support, and the zero vector. S is the subsampled randomised Hadamard transform, with columns of norm sqrt(m), so that a measurement without
noise has the mean square 1: noise of standard deviation 1 is as large as the signal.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ...analysis.catalogue.registry import entry_named
from ...analysis.random_streams import named_stream
from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...design.transforms.hadamard_sketch import HadamardSketch
from ...design.transforms.linear_sketch import LinearSketch
from ...solvers.decoders.lasso import noise_penalty, refit_support, solve_lasso
from ..drawing.marks import BLUE, GREEN, ORANGE, VERMILION, Mark
from ..drawing.style import WIDTH, add_caption
from ..entry import FigureEntry
from ..findings import Finding, ratios
from ..point import Point
from .error_panels import ZERO_LOOK, add_legend

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

DECODERS = ("ordinary", "lasso", "lasso-refit", "oracle", "zero")
DIMENSION, MEASUREMENTS, REPETITIONS = 2**16, 2**12, 3
SPARSITIES = tuple(2**power for power in range(12))
NOISE_DEVIATIONS = tuple(2.0**power for power in range(-4, 5))
LARGEST_NOISE = 1e6
# Tolerance of the solver, small compared with the effect of a spurious entry of the Lasso on a refit.
TOLERANCE = 1e-8
MARKS: dict[str, Mark] = {"ordinary": ORANGE, "lasso": GREEN, "lasso-refit": BLUE, "oracle": VERMILION}
LABELS = {"ordinary": "ordinary decoder", "lasso": "Lasso", "lasso-refit": "Lasso, refitted", "oracle": "oracle, knows the places"}
LEAST_RATIO = 1e-4


@dataclass(frozen=True, kw_only=True)
class RecoveryPoint(Point):
    """A sparse vector, observed and decoded.

    All levels of noise share the vector, the matrix and the noise, except for its scale.

    Attributes
    ----------
    sparsity : int
        Number of entries that are not 0, at most the number of measurements.
    noise_deviation : float
        Standard deviation of the noise of one measurement, above 0.
    dimension, measurements : int
        Dimension d, and number m of measurements, at most d.
    failure_probability : float
        Failure probability of the Lasso's penalty, `noise_penalty`.
    repetition : int
        Number of the repetition, from 0.
    """

    sparsity: int
    noise_deviation: float
    dimension: int = DIMENSION
    measurements: int = MEASUREMENTS
    failure_probability: float = 0.05
    repetition: int = 0

    def run(self, _: None = None) -> list[dict[str, Any]]:
        """Return a row for each of `DECODERS`.

        ``squared_error`` is the squared distance from the vector, whose norm is 1; ``coordinate_noise`` the deviation of a coordinate of
        S^T noise / m. ``predicted_squared_error`` is exact for ``"ordinary"`` and ``"zero"``, s noise^2 / m for ``"oracle"``, which is too
        small by a factor of about 1 - s / m, and missing otherwise. ``entries`` counts nonzero entries, ``false_entries`` those outside the
        vector's support, and ``missed_entries`` entries of the support that are 0. A refit of more entries than measurements has the error
        NaN.

        Raises
        ------
        ValueError
            If a field is out of range.
        """
        measurements = check_integer("measurements", self.measurements, low=1, high=self.dimension)
        sparsity = check_integer("sparsity", self.sparsity, low=1, high=measurements)
        noise = check_real("noise_deviation", self.noise_deviation, low=1 / LARGEST_NOISE, high=LARGEST_NOISE)
        rng = named_stream(self.seed, f"sparse recovery: {sparsity} of {self.dimension}, {measurements}, repetition {self.repetition}")
        sketch = HadamardSketch(self.dimension, measurements, seed=int(rng.integers(2**63)))
        operator = measuring_operator(sketch)
        support = rng.choice(self.dimension, sparsity, replace=False)
        vector = np.zeros(self.dimension)
        vector[support] = 1 / math.sqrt(sparsity)
        observations = operator.matvec(vector) + noise * rng.standard_normal(measurements)
        penalty = noise_penalty(self.dimension, noise, math.sqrt(measurements), measurements, self.failure_probability)
        lasso = solve_lasso(operator, observations, penalty, tolerance=TOLERANCE)
        few = len(lasso.support) <= measurements
        estimates = {
            "ordinary": operator.rmatvec(observations) / measurements,
            "lasso": lasso.solution,
            "lasso-refit": refit_support(operator, observations, lasso.support).solution if few else np.full(self.dimension, np.nan),
            "oracle": refit_support(operator, observations, support).solution,
            "zero": np.zeros(self.dimension),
        }
        predicted = {
            "ordinary": sketch.distortion + sketch.noise_gain * noise**2,
            "oracle": sparsity * noise**2 / measurements,
            "zero": 1.0,
        }
        common = {
            "dimension": self.dimension,
            "measurements": measurements,
            "sparsity": sparsity,
            "noise_deviation": noise,
            "coordinate_noise": noise / math.sqrt(measurements),
            "repetition": self.repetition,
            "penalty": penalty,
            "relative_gap": lasso.relative_gap,
            "iterations": lasso.iterations,
        }
        return [
            common
            | {"decoder": decoder, "predicted_squared_error": predicted.get(decoder, math.nan)}
            | _compared(estimates[decoder], vector)
            for decoder in DECODERS
        ]


def measuring_operator(sketch: LinearSketch) -> "LinearOperator":
    """Return a sketch whose columns have the average norm sqrt(m), as in the paper, for solvers."""
    return math.sqrt(sketch.sketch_dimension) * sketch.operator()


def recovery_tasks(
    seed: int,
    *,
    sparsities: tuple[int, ...] = SPARSITIES,
    noise_deviations: tuple[float, ...] = NOISE_DEVIATIONS,
    dimension: int = DIMENSION,
    measurements: int = MEASUREMENTS,
    repetitions: int = REPETITIONS,
) -> list[RecoveryPoint]:
    """Return a task for each number of entries, level of noise and repetition."""
    return [
        RecoveryPoint(
            seed=seed,
            sparsity=sparsity,
            noise_deviation=noise,
            dimension=dimension,
            measurements=measurements,
            repetition=repetition,
        )
        for sparsity in sparsities
        for noise in noise_deviations
        for repetition in range(repetitions)
    ]


def arrange_recovery(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per setting and decoder: means of errors and entries over repetitions.

    Errors have standard errors.
    """
    setting = ["dimension", "measurements", "sparsity", "noise_deviation", "coordinate_noise", "decoder"]
    order = rows.assign(decoder=pd.Categorical(rows["decoder"], DECODERS))
    return (
        order.groupby(setting, observed=True)
        .agg(
            repetitions=("squared_error", "size"),
            # The standard error of a single repetition is NaN.
            mean_squared_error=("squared_error", lambda errors: errors.mean(skipna=False)),
            standard_error=("squared_error", lambda errors: errors.std(skipna=False) / math.sqrt(len(errors))),
            predicted_squared_error=("predicted_squared_error", "first"),
            penalty=("penalty", "first"),
            entries=("entries", "mean"),
            false_entries=("false_entries", "mean"),
            missed_entries=("missed_entries", "mean"),
        )
        .reset_index()
        .astype({"decoder": str})
    )


def map_zero_wins(arranged: pd.DataFrame) -> pd.DataFrame:
    """Return a row per setting of `arrange_recovery`: each decoder's error, and the best.

    Columns of mean squared errors have the decoders' names. ``best`` is the decoder with the least error, without the oracle; ``zero_wins``
    and ``zero_beats_oracle`` state whether the zero estimate is at least as good as every decoder, and as the oracle.
    """
    setting = ["dimension", "measurements", "sparsity", "noise_deviation", "coordinate_noise"]
    wide = arranged.set_index([*setting, "decoder"])["mean_squared_error"].unstack("decoder")[list(DECODERS)]
    wide.columns.name = None
    # In this order, zero wins if the Lasso selects no entry.
    best = wide[["zero", "lasso-refit", "lasso", "ordinary"]].idxmin(axis=1)
    return wide.assign(best=best, zero_wins=best == "zero", zero_beats_oracle=wide["zero"] <= wide["oracle"]).reset_index()


def _compared(estimate: FloatArray, vector: FloatArray) -> dict[str, Any]:
    estimated, present = estimate != 0, vector != 0
    return {
        "squared_error": float(np.sum((estimate - vector) ** 2)),
        "entries": int(estimated.sum()),
        "false_entries": int((estimated & ~present).sum()),
        "missed_entries": int((present & ~estimated).sum()),
    }


def draw_sparse(frame: pd.DataFrame) -> Figure:
    """Draw errors at the middle noise (left), and the best error over zero's (right)."""
    figure = Figure(figsize=(WIDTH, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    levels = sorted(frame["noise_deviation"].unique())
    noise = levels[len(levels) // 2]
    panel = frame[frame["noise_deviation"] == noise]
    for decoder, mark in MARKS.items():
        series = panel[panel["decoder"] == decoder]
        left.errorbar(series["sparsity"], series["mean_squared_error"], yerr=series["standard_error"], capsize=2, **mark.look)
    left.axhline(1.0, **ZERO_LOOK)
    left.set(xscale="log", yscale="log", xlabel="sparsity s", ylabel="squared L2 error (‖x‖²)", title=f"noise of a measurement: {noise:g}")
    left.grid(visible=True)
    decoded = frame[frame["decoder"].isin(["lasso", "lasso-refit", "ordinary"])]
    table = decoded.groupby(["noise_deviation", "sparsity"])["mean_squared_error"].min().unstack("sparsity")
    image = right.imshow(table.clip(lower=LEAST_RATIO), cmap="Blues_r", norm=LogNorm(LEAST_RATIO, 1.0), aspect="auto", origin="lower")
    right.set_xticks(range(len(table.columns)), [f"{sparsity}" for sparsity in table.columns], rotation=90)
    right.set_yticks(range(len(table.index)), [f"{level:g}" for level in table.index])
    right.set(xlabel="sparsity s", ylabel="noise of a measurement", title="\N{MULTIPLICATION SIGN}: zero is as good as any")
    for _, point in map_zero_wins(frame).iterrows():
        place = (list(table.columns).index(point["sparsity"]), list(table.index).index(point["noise_deviation"]))
        if point["zero_wins"]:
            right.text(*place, "\N{MULTIPLICATION SIGN}", ha="center", va="center", color="black")
        if point["zero_beats_oracle"]:
            right.plot(*place, marker="o", markersize=8, markerfacecolor="none", markeredgecolor="black", markeredgewidth=0.8)
    figure.colorbar(image, ax=right, label="least squared error of the decoders (‖x‖²)", extend="both")
    add_legend(figure, {LABELS[name]: mark for name, mark in MARKS.items()}, columns=3)
    first = frame.iloc[0]
    add_caption(
        figure,
        f"A vector of norm 1 with s equal entries, d = {first['dimension']:,}, from {first['measurements']:,} noisy measurements; "
        f"{first['repetitions']:.0f} repetitions, standard errors. Refitted: least squares on the entries found. Right: crossed where "
        "the answer zero beats all decoders but the oracle, circled where the oracle too. Nothing here is private.",
    )
    return figure


def sparse_tasks(seed: int, quick: bool) -> list[RecoveryPoint]:
    """Return a task for each sparsity, level of noise and repetition."""
    if not quick:
        return recovery_tasks(seed)
    noises = tuple(2.0**power for power in (-4, -2, 0, 2, 4))
    return recovery_tasks(seed, sparsities=(1, 4, 16, 64, 256), noise_deviations=noises, dimension=2**12, measurements=2**9, repetitions=2)


def refitted_over_oracle(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return errors of the refitted Lasso over the oracle's, at the same sparsity and noise."""
    refitted, oracle = (frame[frame["decoder"] == name] for name in ("lasso-refit", "oracle"))
    return ratios(refitted, oracle, ("noise_deviation", "sparsity"), "mean_squared_error")


FIGURE = FigureEntry(
    name="price-sparse",
    paper=f"{entry_named('sparse-discrete-gaussian').paper}, Algorithm 3; beyond the paper",
    experiment="sparse recovery",
    tasks=sparse_tasks,
    table=arrange_recovery,
    draw=draw_sparse,
    findings=(Finding("Squared error of the refitted Lasso over the oracle's", refitted_over_oracle),),
)
