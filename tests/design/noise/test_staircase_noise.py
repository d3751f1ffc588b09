"""Tests of staircase noise.

Points under test: exact laws, privacy by enumeration, variances, and the best width.
"""

import math

import numpy as np
import pytest
from scipy import stats

from quietbits.arrays import FloatArray
from quietbits.design.noise.staircase_noise import best_width, sample_staircase, staircase_variance


def law(epsilon: float, steps: int, width: int) -> tuple[np.ndarray, FloatArray]:
    """Return whole numbers and their probabilities, without a mass below e**-40."""
    reach = steps * math.ceil(40 / epsilon + 2)
    points = np.arange(-reach, reach + 1)
    masses = np.exp(-epsilon * ((np.abs(points) + steps - width) // steps))
    return points, masses / math.fsum(masses)


@pytest.mark.parametrize(("epsilon", "steps", "width"), [(1.0, 4, 2), (3.0, 5, 1), (0.3, 3, 3), (6.0, 8, 1)])
def test_a_shift_by_the_sensitivity_changes_probabilities_by_epsilon(epsilon: float, steps: int, width: int) -> None:
    _, masses = law(epsilon, steps, width)
    for shift in range(1, steps + 1):
        ratios = masses[shift:] / masses[:-shift]
        assert max(ratios.max(), (1 / ratios).max()) == pytest.approx(math.exp(epsilon), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "steps", "width"), [(1.0, 4, 2), (3.0, 5, 2), (0.3, 3, 1)])
def test_draws_have_the_exact_law(epsilon: float, steps: int, width: int) -> None:
    rng, draws = np.random.default_rng(11), 20_000
    drawn = np.array([sample_staircase(epsilon, steps, width, rng) for _ in range(draws)])
    points, masses = law(epsilon, steps, width)
    likely = masses * draws > 5
    observed = np.array([np.count_nonzero(drawn == point) for point in points[likely]])
    expected = masses[likely] * draws
    assert stats.chisquare([*observed, draws - observed.sum() + 1e-9], [*expected, draws - expected.sum() + 1e-9]).pvalue > 1e-6


@pytest.mark.parametrize(("epsilon", "steps"), [(0.1, 20), (1.0, 8), (3.0, 20), (8.0, 50), (20.0, 90)])
def test_variances_and_the_best_width_by_enumeration(epsilon: float, steps: int) -> None:
    variances = []
    for width in range(1, steps + 1):
        points, masses = law(epsilon, steps, width)
        exact = math.fsum(masses * points.astype(float) ** 2)
        variances.append(exact)
        assert exact * (1 - 1e-9) <= staircase_variance(epsilon, steps, width) <= exact * (1 + 1e-9)
    best = best_width(epsilon, steps)
    assert variances[best - 1] <= min(variances) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0, 10.0])
def test_fine_steps_have_the_published_optimum(epsilon: float) -> None:
    # Geng and Viswanath's optimal variance for real numbers, in squared sensitivities.
    b = math.exp(-epsilon)
    published = (2 ** (-2 / 3) * b ** (2 / 3) * (1 + b) ** (2 / 3) + b) / (1 - b) ** 2
    steps = 2**20
    assert staircase_variance(epsilon, steps, best_width(epsilon, steps)) / steps**2 == pytest.approx(published, rel=1e-5)


def test_bad_arguments_are_refused() -> None:
    for arguments, reason in (
        ((0.0, 4, 2), "epsilon must be"),
        ((1.0, 0, 1), "steps must be"),
        ((1.0, 4, 5), "width must be a whole number from 1 to 4"),
    ):
        with pytest.raises(ValueError, match=reason):
            staircase_variance(*arguments)
        with pytest.raises(ValueError, match=reason):
            sample_staircase(*arguments, np.random.default_rng(0))
