"""The proven divergences of a resampling, in fifty digits: they err upward, however close to nothing they are."""

import mpmath
import numpy as np
import pytest

from quietbits.solvers.divergences import importance_resampling
from quietbits.solvers.divergences.importance_resampling import proven_divergences, resampling_renyi_divergences


@pytest.mark.parametrize("samples", [1, 2, 3, 128, 2**20])
@pytest.mark.parametrize("shift", [0.0, 1e-9, 1e-5, 0.1, 1.0, 3.0])
def test_bounds_are_rounded_upward(shift: float, samples: int) -> None:
    orders = [2, 3, 8, 64]
    found = proven_divergences(shift, samples, orders)
    with mpmath.workdps(50):
        for position, order in enumerate(orders):
            m, share = mpmath.mpf(shift), mpmath.mpf(1) / samples
            added = order**2 * m**2 * (1 - share) / 2 / (order - 1)
            removed = mpmath.log(share + (1 - share) * mpmath.exp(((order - 1) * m) ** 2)) / (order - 1)
            for exact, bound in ((added, found.added[position]), (removed, found.removed[position])):
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
