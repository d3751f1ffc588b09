"""Decoders of a sparse vector from few noisy observations: error by sparsity and noise, and where sending nothing is as good.

The decoders of Chen, Choquette-Choo, Kairouz, Suresh 2022, sections 5 and 6, on a vector of norm 1 with equal entries: the ordinary one,
S^T y / m; the Lasso, and least squares on what it found; least squares by an oracle that is told which entries are not 0; and the zero
vector. S is the subsampled randomised Hadamard transform, with columns of norm sqrt(m), so that a measurement without noise has the mean
square 1: noise of standard deviation 1 is as large as the signal.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ....arguments import check_integer, check_real
from ....arrays import FloatArray
from ....design.transforms.hadamard_sketch import HadamardSketch
from ....design.transforms.linear_sketch import LinearSketch
from ....solvers.decoders.lasso import noise_penalty, refit_support, solve_lasso
from ...random_streams import named_stream
from ..point import Point

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

DECODERS = ("ordinary", "lasso", "lasso-refit", "oracle", "zero")
DIMENSION, MEASUREMENTS, REPETITIONS = 2**16, 2**12, 3
SPARSITIES = tuple(2**power for power in range(12))
NOISE_DEVIATIONS = tuple(2.0**power for power in range(-4, 5))
LARGEST_NOISE = 1e6
# Small against what a spurious entry of the Lasso would do to a refit.
TOLERANCE = 1e-8


@dataclass(frozen=True, kw_only=True)
class RecoveryPoint(Point):
    """A sparse vector, observed and decoded; vector, matrix and noise are the same for every level of noise, except for its scale.

    Attributes
    ----------
    sparsity : int
        Number of entries that are not 0, at most the number of measurements.
    noise_deviation : float
        Standard deviation of the noise of one measurement, above 0.
    dimension, measurements : int
        d, and m, at most d.
    failure_probability : float
        That of the Lasso's penalty, `noise_penalty`.
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

        ``squared_error`` is the squared distance from the vector, whose own is 1; ``coordinate_noise`` the deviation of a coordinate of S^T
        noise / m. ``predicted_squared_error`` is exact for ``"ordinary"`` and ``"zero"``, s noise^2 / m for ``"oracle"``, which errs
        downward by a factor of about 1 - s / m, and missing otherwise. ``entries`` are those that are not 0, ``false_entries`` and
        ``missed_entries`` those that should or should not be. A refit of more entries than measurements has the error NaN.

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
        found = solve_lasso(operator, observations, penalty, tolerance=TOLERANCE)
        few = len(found.support) <= measurements
        estimates = {
            "ordinary": operator.rmatvec(observations) / measurements,
            "lasso": found.solution,
            "lasso-refit": refit_support(operator, observations, found.support).solution if few else np.full(self.dimension, np.nan),
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
            "relative_gap": found.relative_gap,
            "iterations": found.iterations,
        }
        return [
            common
            | {"decoder": decoder, "predicted_squared_error": predicted.get(decoder, math.nan)}
            | _compared(estimates[decoder], vector)
            for decoder in DECODERS
        ]


def measuring_operator(sketch: LinearSketch) -> "LinearOperator":
    """Return a sketch whose columns have the norm sqrt(m) on average, as in the paper, for solvers."""
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
    """Return one row per setting and decoder, averaged over repetitions: errors, their standard errors, and entries."""
    setting = ["dimension", "measurements", "sparsity", "noise_deviation", "coordinate_noise", "decoder"]
    order = rows.assign(decoder=pd.Categorical(rows["decoder"], DECODERS))
    return (
        order.groupby(setting, observed=True)
        .agg(
            repetitions=("squared_error", "size"),
            # NaN where a repetition has none.
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
    """Return one row per setting of `arrange_recovery`: each decoder's mean squared error under its name, and who has the least.

    ``best`` is the decoder with the least error, the oracle left out; ``zero_wins`` and ``zero_beats_oracle`` say where sending nothing is
    at least as good as every decoder, and as the oracle.
    """
    setting = ["dimension", "measurements", "sparsity", "noise_deviation", "coordinate_noise"]
    wide = arranged.set_index([*setting, "decoder"])["mean_squared_error"].unstack("decoder")[list(DECODERS)]
    wide.columns.name = None
    # In this order, so that zero wins where the Lasso has found nothing.
    best = wide[["zero", "lasso-refit", "lasso", "ordinary"]].idxmin(axis=1)
    return wide.assign(best=best, zero_wins=best == "zero", zero_beats_oracle=wide["zero"] <= wide["oracle"]).reset_index()


def _compared(estimate: FloatArray, vector: FloatArray) -> dict[str, Any]:
    found, there = estimate != 0, vector != 0
    return {
        "squared_error": float(np.sum((estimate - vector) ** 2)),
        "entries": int(found.sum()),
        "false_entries": int((found & ~there).sum()),
        "missed_entries": int((there & ~found).sum()),
    }
