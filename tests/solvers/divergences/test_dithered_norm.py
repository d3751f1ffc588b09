"""Norms after rounding, for other norms than the first two: the sums that they are made of, in fifty digits."""

import mpmath
import numpy as np
import pytest

from quietbits.solvers.divergences.dithered_norm import rounded_norm_bound, rounded_norm_quantile


@pytest.mark.parametrize("norm", [1.5, 3.0, 7.5])
@pytest.mark.parametrize("radius", [2.0, 37.0, 2.0**15])
def test_one_coordinate_by_hand(norm: float, radius: float) -> None:
    # One coordinate at the radius, which is whole, has no fractional part: systematic rounding adds the last w, independent rounding
    # that times the deviation.
    failure = 1e-4
    with mpmath.workdps(60):
        power, last = mpmath.mpf(radius) ** norm, mpmath.mpf(radius) ** norm - (mpmath.mpf(radius) - 1) ** norm
        deviation = last * mpmath.sqrt(-mpmath.log(mpmath.mpf(failure)) / 2)
        certain, likely = mpmath.mpf(radius), (power + deviation) ** (1 / mpmath.mpf(norm))
    assert certain <= rounded_norm_bound(1, norm, radius) <= certain * (1 + mpmath.mpf(1) / 10**9)
    assert likely <= rounded_norm_quantile(1, norm, radius, failure) <= likely * (1 + mpmath.mpf(1) / 10**7)


@pytest.mark.parametrize("norm", [3.0, 4.0])
def test_many_coordinates_by_enumeration(norm: float) -> None:
    # Every vector of whole numbers in the ball stays as it is.
    dimension, radius = 3, 4.0
    axes = np.arange(5)
    powers = sum(axis**norm for axis in np.meshgrid(*[axes] * dimension))
    longest = float(powers[powers <= radius**norm].max()) ** (1 / norm)
    assert longest <= rounded_norm_bound(dimension, norm, radius)
