"""Tests of the privacy of missing shares of discrete Laplace noise.

Points under test: losses against probabilities in sixty digits and by enumeration, and the worst division of a change among coordinates.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from quietbits.solvers.divergences.polya_divergence import polya_epsilon, polya_losses


def exact_loss(shape: float, scale: float, change: int) -> mpmath.mpf:
    """Return ln f(0) / f(change) in sixty digits: f is a hypergeometric series in the squared ratio."""
    with mpmath.workdps(60):
        ratio, exponent = mpmath.exp(-1 / mpmath.mpf(scale)), mpmath.mpf(shape)

        def mass(x: int) -> mpmath.mpf:
            first = ratio**x * mpmath.rf(exponent, x) / mpmath.factorial(x)
            return first * mpmath.hyp2f1(exponent, exponent + x, x + 1, ratio**2)

        return mpmath.log(mass(0) / mass(change))


@pytest.mark.parametrize("shape", [1e-6, 0.01, 0.3, 0.5, 0.8, 0.999999, 1 - 1e-9])
@pytest.mark.parametrize("scale", [0.05, 2.0, 1e3, 1e9])
def test_losses_are_those_of_sixty_digits_rounded_up(shape: float, scale: float) -> None:
    for change in (1, 2, 100):
        exact = exact_loss(shape, scale, change)
        excess = float(polya_losses(shape, scale, [change])[0] / exact - 1)
        assert 0 <= excess < 3e-12


@pytest.mark.parametrize(("shape", "scale"), [(0.8, 2.0), (0.3, 1.0), (0.05, 4.0)])
def test_no_division_of_a_change_has_a_larger_loss(shape: float, scale: float) -> None:
    # The sum's law is enumerated, and with it the largest ratio of two coordinates' probabilities for every pair of changes.
    counts = np.arange(600)
    part = stats.nbinom.pmf(counts, shape, -math.expm1(-1 / scale))
    law = np.convolve(part, part[::-1])
    middle = len(law) // 2
    points = np.arange(-60, 61)
    largest = {}
    for change in range(7):
        losses = np.log(law[middle + points] / law[middle + points + change])
        largest[change] = losses.max()
        assert losses.max() == losses[60]
    for steps in range(1, 7):
        divisions = [division for division in itertools.product(range(steps + 1), repeat=3) if sum(division) <= steps]
        for dimension in (1, 2, 3):
            worst = max(sum(largest[change] for change in division[:dimension]) for division in divisions)
            assert polya_epsilon(shape, scale, steps, dimension) == pytest.approx(worst, rel=1e-9)


def test_a_spread_change_is_the_worst_that_a_prototype_saw() -> None:
    # Epsilon 1 with all shares, four fifths of which are there: 1,000 steps, and a histogram's two counts.
    assert polya_epsilon(0.8, 1000.0, 1000, 1) == pytest.approx(1.44, abs=0.005)
    assert polya_epsilon(0.8, 1000.0, 1000, 1000) == pytest.approx(11.6, abs=0.05)
    assert polya_epsilon(0.8, 2.0, 2, 2) == pytest.approx(1.376, abs=5e-4)
    assert polya_epsilon(0.8, 2.0, 2, 1) == pytest.approx(1.281, abs=5e-4)


def test_all_shares_and_more_are_discrete_laplace_noise() -> None:
    for shape in (1.0, 1.25, 40.0):
        assert polya_epsilon(shape, 8.0, 4, 3) == pytest.approx(0.5, rel=1e-14)
    nearly = polya_epsilon(1 - 1e-12, 8.0, 4, 3)
    assert nearly == pytest.approx(0.5, rel=1e-9)
    assert nearly > 0.5


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="shape must be a number from"):
        polya_losses(1.0, 2.0, [1])
    with pytest.raises(ValueError, match="scale must be a number from"):
        polya_losses(0.5, 0.0, [1])
    with pytest.raises(ValueError, match="changes must be a whole number from 0"):
        polya_losses(0.5, 1.0, [-1])
    with pytest.raises(ValueError, match="steps must be a whole number from 1"):
        polya_epsilon(1.0, 1.0, 0, 1)
