"""Tests of noise as thresholds: the exact law, its distance, and the limit of the standard deviation."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy

from quietbits.design.noise.discrete_gaussian import GaussianCurve
from quietbits.design.noise.skellam_noise import SkellamCurve
from quietbits.design.noise.threshold_table import THRESHOLD_BITS, ThresholdTable, threshold_table
from quietbits.errors import InfeasibleError


def exact_gaussian(sigma: Fraction, points: int) -> list[mpmath.mpf]:
    heights = [
        mpmath.exp(-mpmath.mpf(point * point) / (2 * mpmath.mpf(sigma.numerator) ** 2 / sigma.denominator**2))
        for point in range(2 * points)
    ]
    total = heights[0] + 2 * sum(heights[1:])
    return [(1 if point == 0 else 2) * height / total for point, height in enumerate(heights)]


def exact_skellam(variance: Fraction, points: int) -> list[mpmath.mpf]:
    rate = mpmath.mpf(variance.numerator) / variance.denominator
    return [(1 if point == 0 else 2) * mpmath.exp(-rate) * mpmath.besseli(point, rate) for point in range(2 * points)]


@pytest.mark.parametrize("parameter", [Fraction(1, 4), Fraction(1), Fraction(7, 2), Fraction(40)])
@pytest.mark.parametrize("kind", ["gaussian", "skellam"])
def test_the_distance_bounds_the_true_distance_and_is_tiny(kind: str, parameter: Fraction) -> None:
    table = threshold_table(GaussianCurve(parameter) if kind == "gaussian" else SkellamCurve(parameter))
    with mpmath.workdps(80):
        exact = (exact_gaussian if kind == "gaussian" else exact_skellam)(parameter, len(table.thresholds) + 10)
        law = [
            mpmath.mpf(weight) / 2**THRESHOLD_BITS for weight in np.diff(np.array([0, *table.thresholds, 2**THRESHOLD_BITS], dtype=object))
        ]
        law += [mpmath.mpf(0)] * (len(exact) - len(law))
        distance = sum(abs(first - second) for first, second in zip(law, exact, strict=True)) / 2
    assert distance <= table.distance
    assert 0 < float(table.distance) < 1e-34


def test_thresholds_rise_and_stay_below_one() -> None:
    table = threshold_table(GaussianCurve(Fraction(5)))
    assert list(table.thresholds) == sorted(table.thresholds)
    assert table.thresholds[-1] < 2**THRESHOLD_BITS
    assert len(table.thresholds) == pytest.approx(5 * math.sqrt(2 * 140 * math.log(2)), rel=0.05)


def test_too_much_noise_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="standard deviation of at most 512 steps"):
        threshold_table(GaussianCurve(Fraction(2000)))


def magnitudes(table: ThresholdTable, count: int) -> np.ndarray:
    numbers = [int.from_bytes(np.random.default_rng(seed).bytes(16), "big") >> 1 for seed in range(count)]
    return np.array([sum(threshold <= number for threshold in table.thresholds) for number in numbers])


def test_magnitudes_have_the_curve_s_law() -> None:
    """The chi-square test fails with probability 1e-6 by chance; the seeds are fixed."""
    table = threshold_table(GaussianCurve(Fraction(2)))
    counts = np.bincount(magnitudes(table, 4000), minlength=20)[:9]
    law = np.diff([0, *[threshold / 2**THRESHOLD_BITS for threshold in table.thresholds]])[:9]
    statistic = float(((counts - 4000 * law) ** 2 / (4000 * law)).sum())
    assert statistic < scipy.stats.chi2.isf(1e-6, 9)
