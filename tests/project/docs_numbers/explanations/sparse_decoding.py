"""Numbers of docs/explanations/sparse-decoding.md."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd

from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.figures.linear_compression.sparse import RecoveryPoint, arrange_recovery, map_zero_wins, measuring_operator, recovery_tasks
from quietbits.solvers.accounting.gaussian_privacy import gaussian_noise_multiplier
from quietbits.solvers.decoders.lasso import LassoSolution, noise_penalty, solve_lasso

DIMENSION, MEASUREMENTS, SPARSITY, DRAWS = 2**16, 2**12, 25, 20
NOISES = (1.0, 1.4, 1.6, 2.0, 4.0)


def penalty(noise: float) -> float:
    """Return the penalty for a deviation of the noise of one measurement."""
    return noise_penalty(DIMENSION, noise, math.sqrt(MEASUREMENTS), MEASUREMENTS, 0.05)


@cache
def solution(noise: float, tolerance: float) -> LassoSolution:
    """Return the Lasso's solution of one draw."""
    rng = np.random.default_rng(0)
    operator = measuring_operator(HadamardSketch(DIMENSION, MEASUREMENTS, seed=1))
    vector = np.zeros(DIMENSION)
    vector[rng.choice(DIMENSION, SPARSITY, replace=False)] = 1 / math.sqrt(SPARSITY)
    observations = operator.matvec(vector) + noise * rng.standard_normal(MEASUREMENTS)
    return solve_lasso(operator, observations, penalty(noise), tolerance=tolerance)


def iteration_rows() -> Iterator[list[str]]:
    """Return iterations by noise and tolerance, and the relative gap of the loosest solution."""
    for noise in (0.01, 0.1, 1.0):
        solutions = [solution(noise, tolerance) for tolerance in (1e-4, 1e-6, 1e-9)]
        gap = solutions[0].duality_gap / solutions[0].objective
        yield [f"{noise:g}", *(str(item.iterations) for item in solutions), f"{gap:.1e}".replace("e-0", "e-")]


@cache
def draws(noise: float) -> pd.DataFrame:
    """Return the errors of every decoder, with a row for each draw."""
    points = [
        RecoveryPoint(
            seed=0, sparsity=SPARSITY, noise_deviation=noise, dimension=DIMENSION, measurements=MEASUREMENTS, repetition=repetition
        )
        for repetition in range(DRAWS)
    ]
    return pd.DataFrame([row | {"repetition": point.repetition} for point in points for row in point.run()])


def border_rows() -> Iterator[list[str]]:
    """Return the errors of oracle, refit and Lasso, a ratio, and the missed and false entries."""
    for noise in NOISES:
        rows = draws(noise)
        errors = rows.pivot_table(index="repetition", columns="decoder", values="squared_error")
        ratios = errors["lasso-refit"] / errors["oracle"]
        means = [f"{errors[decoder].mean():.3g}" for decoder in ("oracle", "lasso-refit", "lasso")]
        entries = rows[rows.decoder == "lasso-refit"]
        counts = [f"{entries[name].mean():.2g}" for name in ("missed_entries", "false_entries")]
        yield [f"{noise:g}", *means, f"{ratios.mean():.2f}, {ratios.max():.2f}", *counts]


def multiplier() -> float:
    """Return the noise multiplier of Gaussian noise for epsilon = 1 and delta = 1e-5."""
    return gaussian_noise_multiplier(1.0, 1e-5)


def clients() -> str:
    """Return the number of clients with noise of deviation 1 per measurement."""
    return f"{1.1 * multiplier() * math.sqrt(MEASUREMENTS):.0f}"


@cache
def zero_map() -> pd.DataFrame:
    """Return the decoder with the least error for each number of entries and level of noise."""
    rows = [row for task in recovery_tasks(0) for row in task.run()]
    return map_zero_wins(arrange_recovery(pd.DataFrame(rows)))


def zero_rows() -> Iterator[list[str]]:
    """Return a letter for the best decoder, with a row for each number of entries."""
    letters = {"lasso-refit": "**R**", "lasso": "L", "ordinary": "S", "zero": "0"}
    for sparsity, row in zero_map().groupby("sparsity"):
        ordered = row.sort_values("noise_deviation")
        marks = zip(ordered.best, ordered.zero_beats_oracle, strict=True)
        yield [str(sparsity), *("o" if best == "zero" and beats else letters[best] for best, beats in marks)]


def largest_gain(of: pd.DataFrame) -> float:
    """Return the Lasso's largest gain over zero where it is the best decoder, in percent."""
    best = of[of.best == "lasso"]
    return 100 * float((1 - best.lasso / best.zero).max())


def gain_at(sparsity: int) -> float:
    """Return the Lasso's largest gain over zero for a number of entries, in percent."""
    return largest_gain(zero_map()[zero_map().sparsity == sparsity])


def gain_from(noise: float) -> float:
    """Return the Lasso's largest gain over zero from a level of noise on, in percent."""
    return largest_gain(zero_map()[zero_map().noise_deviation >= noise])
