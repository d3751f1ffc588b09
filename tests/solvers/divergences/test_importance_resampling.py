"""The proven divergences of a resampling, in fifty digits.

The divergences are upper bounds, also close to zero.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import expit

from quietbits.solvers.divergences import importance_resampling
from quietbits.solvers.divergences.importance_resampling import (
    proven_divergences,
    resampled_moments,
    resampling_mixture_divergences,
    resampling_renyi_divergences,
)


@pytest.mark.parametrize("samples", [1, 2, 3, 128, 2**20])
@pytest.mark.parametrize("shift", [0.0, 1e-9, 1e-5, 0.1, 1.0, 1.25, 3.0])
def test_bounds_are_rounded_upward(shift: float, samples: int) -> None:
    orders = [2, 3, 8, 64]
    divergences = proven_divergences(shift, samples, orders)
    with mpmath.workdps(50):
        for position, order in enumerate(orders):
            m, share = mpmath.mpf(shift), mpmath.mpf(1) / samples
            added = order**2 * m**2 * (1 - share) / 2 / (order - 1)
            removed = mpmath.log(share + (1 - share) * mpmath.exp(((order - 1) * m) ** 2)) / (order - 1)
            for exact, bound in ((added, divergences.added[position]), (removed, divergences.removed[position])):
                assert exact <= float(bound) <= exact * (1 + mpmath.mpf(3) / 10**12) + mpmath.mpf(10) ** -15 * (samples == 1)


@pytest.mark.parametrize("exponent", [1, 2, 3, 6, 7, 12])
def test_powers_of_series_are_those_of_polynomials(exponent: int) -> None:
    coefficients = np.array([0.3, 1.2, 0.05, 2.0])
    expected = np.array([1.0])
    for _ in range(exponent):
        expected = np.convolve(expected, coefficients)[:4]
    computed = importance_resampling._series_power(np.log(coefficients)[:, None], exponent)
    np.testing.assert_allclose(np.exp(computed[:, 0])[: len(expected)], expected, rtol=1e-12)


@pytest.mark.parametrize(("target", "reference"), [(0.5, 0.0), (3.0, 1.0), (1.0, 2.5), (-0.2, 3.0)])
def test_mirrored_targets_are_as_far_apart(target: float, reference: float) -> None:
    orders = [2, 5, 16]
    there, back = (resampling_renyi_divergences(sign * target, sign * reference, 16, orders) for sign in (1, -1))
    np.testing.assert_allclose(there, back, rtol=1e-10, atol=1e-12)


def drawn_of_two(target: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return quadrature points, pair weights, and the probability of the first point."""
    points, weights = np.polynomial.hermite_e.hermegauss(150)
    weights /= math.sqrt(2 * math.pi)
    return points, np.outer(weights, weights), expit(target * (points[:, None] - points[None, :]))


@pytest.mark.parametrize(("target", "reference"), [(0.8, -0.3), (1.5, 0.0), (-1.0, 1.0)])
def test_two_samples_by_quadrature(target: float, reference: float) -> None:
    _, pairs, taken = drawn_of_two(target)
    _, _, instead = drawn_of_two(reference)
    orders = [2, 3, 6]
    expected = [math.log(2 * float((pairs * taken**order * instead ** (1.0 - order)).sum())) / (order - 1) for order in orders]
    np.testing.assert_allclose(resampling_renyi_divergences(target, reference, samples=2, orders=orders), expected, rtol=1e-6)


@pytest.mark.parametrize("shift", [0.3, 1.5])
def test_the_moments_of_one_of_two_samples_by_quadrature(shift: float) -> None:
    points, pairs, taken = drawn_of_two(shift)
    density = 2 * (pairs * taken).sum(axis=1)
    moments = resampled_moments(shift, 2)
    assert moments.mean == pytest.approx(float(density @ points), rel=1e-7)
    assert moments.squared_error == pytest.approx(float(density @ (points - shift) ** 2), rel=1e-7)


@pytest.mark.parametrize(("shift", "share"), [(0.5, 0.1), (1.5, 0.6)])
def test_a_mixture_of_two_samples_by_quadrature(shift: float, share: float) -> None:
    _, pairs, taken = drawn_of_two(shift)
    orders = [2, 3, 8]
    moments = [float((pairs * ((1 - share) + 2 * share * taken) ** (1.0 - order)).sum()) for order in orders]
    expected = np.log(moments) / (np.array(orders) - 1)
    np.testing.assert_allclose(resampling_mixture_divergences(shift, 2, share, orders), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("shift", "reference", "samples"), [(1.0, 0.0, 2**14), (2.0, -1.0, 64), (0.13, 0.83, 8)])
def test_wider_and_finer_grids_change_nothing(monkeypatch: pytest.MonkeyPatch, shift: float, reference: float, samples: int) -> None:
    def computed() -> np.ndarray:
        moments = resampled_moments(abs(shift), samples)
        mixture = resampling_mixture_divergences(abs(shift), samples, 0.1, [2, 16])
        return np.array([*resampling_renyi_divergences(shift, reference, samples, [2, 16]), *mixture, moments.mean, moments.squared_error])

    usual = computed()
    monkeypatch.setattr(importance_resampling, "_NORMAL_REACH", 24.0)
    monkeypatch.setattr(importance_resampling, "_POINT_STEP", 0.15)
    monkeypatch.setattr(importance_resampling, "_EXPONENTIAL_REACH", 100.0)
    np.testing.assert_allclose(usual, computed(), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("order", [2, 16])
def test_a_finer_step_changes_no_order(monkeypatch: pytest.MonkeyPatch, order: int) -> None:
    usual = resampling_mixture_divergences(1e-3, 64, 0.999, [order])
    monkeypatch.setattr(importance_resampling, "_LOG_T_STEP", 0.1)
    np.testing.assert_allclose(usual, resampling_mixture_divergences(1e-3, 64, 0.999, [order]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("shift", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("t", [0.01, 1.0, 30.0])
def test_expectations_by_the_trapezoidal_rule(shift: float, t: float) -> None:
    points, log_density = importance_resampling._normal_grid(-12.0, 12.0, shift)
    exact = mpmath.quad(lambda x: mpmath.npdf(x) * mpmath.exp(-t * mpmath.exp(shift * x)), mpmath.linspace(-12, 12, 25))
    assert float(np.exp(log_density - t * np.exp(shift * points)).sum()) == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("shift", [0.0, 0.5, 3.0])
def test_one_sample_is_always_taken(shift: float) -> None:
    moments = resampled_moments(shift, 1)
    assert (moments.mean, moments.squared_error) == pytest.approx((0.0, 1 + shift**2), abs=1e-9)
