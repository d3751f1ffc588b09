"""The longest posterior mean under pure privacy, against caps, closed forms and quadrature."""

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaln

from quietbits.arrays import FloatArray
from quietbits.errors import ConvergenceError
from quietbits.solvers.limits import private_posterior
from quietbits.solvers.limits.private_posterior import ROUNDING, _log_mean_excess, posterior_odds, private_information


def best_cap(dimension: int, epsilon: float) -> float:
    """Return the longest posterior mean over caps."""
    half = (dimension - 1) / 2

    def mean(log_odds: FloatArray) -> FloatArray:
        rest = 1 / (1 + np.exp(log_odds))
        inside = 0.5 * betainc(half, 0.5, rest)
        first = np.exp(half * np.log(rest) - math.log(2 * half) - betaln(half, 0.5))
        return np.asarray(math.expm1(epsilon) * first / (1 + math.expm1(epsilon) * inside))

    grid = np.linspace(-40, 40, 2001)
    best = grid[np.argmax(mean(grid))]
    return -float(minimize_scalar(lambda at: -float(mean(at)), bounds=(best - 0.1, best + 0.1), method="bounded").fun)


@pytest.mark.parametrize("dimension", [2, 3, 4, 17, 500, 10**5])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 20.0])
def test_no_cap_has_a_longer_mean(dimension: int, epsilon: float) -> None:
    odds = float(posterior_odds(dimension, epsilon))
    mean = math.sqrt(odds / (1 + odds))
    assert best_cap(dimension, epsilon) * (1 - 1e-9) <= mean <= best_cap(dimension, epsilon) * (1 + 1e-8)


@pytest.mark.parametrize("epsilon", [1e-4, 0.3, 2.0, 30.0, 500.0])
def test_closed_forms(epsilon: float) -> None:
    assert float(posterior_odds(1, epsilon)) == pytest.approx(math.sinh(epsilon / 2) ** 2, rel=1e-8)
    # A coordinate of a point on the sphere in three dimensions is uniform: (e^epsilon - 1) (1 - t)**2 / 4 = t.
    half = 2 / math.expm1(epsilon)
    root = math.sqrt(half * (half + 2))
    mean, rest = 1 / (1 + half + root), 2 * half / (half + root)
    assert float(posterior_odds(3, epsilon)) == pytest.approx(mean**2 / (rest * (2 - rest)), rel=1e-8)
    assert float(posterior_odds(3, epsilon)) >= mean**2 / (rest * (2 - rest))


@pytest.mark.parametrize("dimension", [5, 100, 10**6])
def test_the_information_bound_is_above_it(dimension: int) -> None:
    # A message with I nats leaves at least exp(-2 I / (dimension - 2)) of the variance.
    for epsilon in (0.01, 1.0, 10.0, 1e3, 1e5):
        exponent = 2 * private_information(epsilon) / (dimension - 2)
        assert exponent > 700 or float(posterior_odds(dimension, epsilon)) <= math.expm1(exponent)


def test_odds_rise_with_epsilon_and_fall_with_dimension() -> None:
    for dimension in (1, 2, 3, 10, 10**4, 10**8):
        odds = posterior_odds(dimension, np.geomspace(1e-6, 1e5, 400))
        assert np.all(np.diff(odds[np.isfinite(odds)]) > 0)
        assert np.all(np.isinf(odds[np.argmax(np.isinf(odds)) :])) or np.all(np.isfinite(odds))
        assert odds[0] == pytest.approx(1e-12 / 4 if dimension == 1 else odds[0], rel=1e-6)
    falling = [float(posterior_odds(dimension, 3.0)) for dimension in range(1, 60)]
    assert falling == sorted(falling, reverse=True)


@pytest.mark.parametrize("epsilon", [1e-2, 0.0203, 1.0, 8.0, 300.0])
def test_information_of_a_private_message(epsilon: float) -> None:
    # The divergence is that of a two-level density from the uniform one, for the best share of the higher level.
    shares = np.linspace(0, 1, 200_001)[1:-1] if epsilon < 8 else np.geomspace(1e-300, 0.5, 200_001)
    total = 1 + np.expm1(min(epsilon, 300)) * shares
    divergence = epsilon * np.exp(epsilon) * shares / total - np.log(total)
    best = float(divergence.max())
    assert best <= private_information(epsilon) <= best * (1 + 1e-3)
    assert private_information(epsilon / 1e4) == pytest.approx((epsilon / 1e4) ** 2 / 8, rel=2e-2)


def test_steps_that_do_not_end_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_posterior, "MOST_STEPS", 1)
    with pytest.raises(ConvergenceError, match="posterior mean in 500 dimensions was not found in 1 steps"):
        posterior_odds(500, 5.0)


def test_mean_of_the_cap_by_quadrature() -> None:
    # The test integrates the density of a coordinate numerically: E (X - m)^+ (e^epsilon - 1) = m.
    dimension, epsilon = 9, 2.5
    odds = float(posterior_odds(dimension, epsilon))
    mean = math.sqrt(odds / (1 + odds))
    weight = quad(lambda x: (1 - x * x) ** ((dimension - 3) / 2), -1, 1)[0]
    excess = quad(lambda x: (x - mean) * (1 - x * x) ** ((dimension - 3) / 2), mean, 1)[0] / weight
    assert excess * math.expm1(epsilon) == pytest.approx(mean, rel=1e-7)


@pytest.mark.parametrize(
    ("dimension", "log_odds"),
    [*((dimension, log_odds) for dimension in (2, 3, 10, 1000) for log_odds in (-20.0, -5.8, 1.0, 8.0)), (10**6, -13.0), (10**9, -16.0)],
)
def test_quadrature_agrees_with_40_digits(dimension: int, log_odds: float) -> None:
    with mpmath.workdps(40):
        odds = mpmath.exp(mpmath.mpf(log_odds))
        squared, half = odds / (1 + odds), mpmath.mpf(dimension - 1) / 2
        log_mean = half * mpmath.log(1 - squared) - mpmath.log(2 * half * mpmath.beta(half, 0.5))
        beyond = mpmath.betainc(half, 0.5, 0, 1 - squared, regularized=True) / 2
        log_excess = float(mpmath.log(mpmath.exp(log_mean) - mpmath.sqrt(squared) * beyond))
    excess, mean = _log_mean_excess(dimension, np.array([log_odds]))
    assert excess[0] - ROUNDING == pytest.approx(log_excess, rel=0, abs=2e-11)
    assert excess[0] >= log_excess
    assert mean[0] == pytest.approx(float(log_mean), rel=1e-12, abs=1e-12)
