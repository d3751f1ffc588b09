"""Tests of Laplace noise.

Points under test: divergences in fifty digits, and bounds for every division of a distance among coordinates.
"""

import math

import mpmath
import numpy as np
import pytest

from quietbits.solvers.divergences.laplace_divergence import laplace_renyi_divergences, laplace_vector_divergences


@pytest.mark.parametrize("shift", [1e-9, 1e-3, 0.4, 1.0, 3.0, 40.0, 1e4])
def test_one_number_by_the_integral(shift: float) -> None:
    orders = [1 + 1e-6, 1.3, 2.0, 17.0, 1000.0]
    for order, computed in zip(orders, laplace_renyi_divergences(shift, orders).tolist(), strict=True):
        with mpmath.workdps(60):
            a, t = mpmath.mpf(order), mpmath.mpf(shift)
            # The integral of |x| and |x - t| has three parts: left of 0, between 0 and t, and right of t.
            left, right = mpmath.exp((a - 1) * t) / 2, mpmath.exp(-a * t) / 2
            between = (mpmath.exp((a - 1) * t) - mpmath.exp(-a * t)) / (2 * (2 * a - 1))
            exact = mpmath.log(left + between + right) / (a - 1)
        assert computed == pytest.approx(float(exact), rel=1e-9)
    assert laplace_renyi_divergences(shift, [math.inf]).tolist() == [shift]


def test_the_integral_is_that_of_the_densities() -> None:
    # Quadrature confirms the closed form above.
    points, order, shift = np.linspace(-40, 60, 2_000_001), 3.0, 1.5
    own, other = (np.exp(-np.abs(points - place)) / 2 for place in (0.0, shift))
    integral = np.trapezoid(own**order * other ** (1 - order), points)
    assert laplace_renyi_divergences(shift, [order])[0] == pytest.approx(math.log(integral) / 2, rel=1e-8)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 4.0, math.inf])
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
def test_vectors_are_no_further_apart_however_the_distance_is_divided(norm: float, epsilon: float) -> None:
    dimension, orders = 4, [1.1, 2.0, 30.0]
    bound = laplace_vector_divergences(epsilon, dimension, norm, orders)
    distance = epsilon / dimension ** (1 - 1 / norm)
    rng = np.random.default_rng(2)
    shares = [np.eye(dimension)[0], np.ones(dimension), *(rng.random((200, dimension)) ** rng.choice([0.2, 1.0, 8.0], (200, 1)))]
    largest = np.zeros(len(orders))
    for share in shares:
        shifts = share / np.linalg.norm(share, norm) * distance
        sums = np.sum([laplace_renyi_divergences(float(shift), orders) for shift in shifts], axis=0)
        assert (sums <= bound * (1 + 1e-12)).all()
        largest = np.maximum(largest, sums)
    # The bound is attained for p = 1, and for p >= 2.
    if norm != 1.5:
        assert largest == pytest.approx(bound, rel=1e-9)
    assert laplace_vector_divergences(epsilon, dimension, norm, [math.inf]).tolist() == [epsilon]
