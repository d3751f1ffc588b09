"""Tests of discrete Laplace noise's losses.

Points under test: Rényi and hockey-stick divergences by enumeration, of one shift and of every division of it among coordinates.
"""

import functools
import itertools
import math

import numpy as np
import pytest

from quietbits.arrays import FloatArray
from quietbits.solvers.divergences.discrete_laplace_divergence import discrete_laplace_divergences, discrete_laplace_loss


def laws(scale: float, shifts: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Return the laws of noise and of shifted noise on coordinates, as flat arrays."""
    reach = math.ceil(40 * scale) + 20
    points = np.arange(-reach, reach + 1)
    ratio = math.exp(-1 / scale)
    pairs = [tuple((1 - ratio) / (1 + ratio) * ratio ** np.abs(points - place) for place in (0, shift)) for shift in shifts]
    first, second = (functools.reduce(np.multiply.outer, [pair[side] for pair in pairs]).ravel() for side in (0, 1))
    return first, second


@pytest.mark.parametrize(("epsilon", "steps"), [(1.0, 1), (1.0, 2), (3.0, 7), (0.2, 5), (5.0, 3)])
def test_one_shift_by_enumeration(epsilon: float, steps: int) -> None:
    first, second = laws(steps / epsilon, (steps,))
    orders = [1.5, 2.0, 5.0]
    for order, computed in zip(orders, discrete_laplace_divergences(epsilon, steps, orders).tolist(), strict=True):
        exact = math.log(math.fsum(np.exp(order * np.log(first) + (1 - order) * np.log(second)))) / (order - 1)
        assert 0 <= computed - exact < 1e-9
    loss = discrete_laplace_loss(epsilon, steps)
    for place in np.linspace(0, epsilon, 13)[:-1]:
        exact = math.fsum(np.maximum(first - math.exp(place) * second, 0))
        assert loss.get_delta_for_epsilon(float(place)) == pytest.approx(exact, rel=1e-9)
        assert loss.get_epsilon_for_delta(exact) == pytest.approx(float(place), abs=1e-9)
    assert discrete_laplace_divergences(epsilon, steps, [math.inf]).tolist() == [epsilon]


def test_a_shift_of_several_coordinates_is_dominated() -> None:
    epsilon, steps = 2.0, 4
    loss = discrete_laplace_loss(epsilon, steps)
    for shifts in itertools.product(range(steps + 1), repeat=2):
        if sum(shifts) == steps:
            first, second = laws(steps / epsilon, shifts)
            for place in np.linspace(0, epsilon, 9)[:-1]:
                exact = math.fsum(np.maximum(first - math.exp(place) * second, 0))
                assert exact <= loss.get_delta_for_epsilon(float(place)) * (1 + 1e-12) + 1e-15


def test_many_steps_have_a_short_grid_that_errs_upward() -> None:
    loss = discrete_laplace_loss(1.0, 4_000_000)
    assert len(loss.deltas) == 501
    # Fine steps are continuous Laplace noise, whose divergence is 1 - exp((e - 1) / 2).
    for place in np.linspace(0, 0.99, 34):
        exact = -math.expm1((place - 1) / 2)
        assert exact * (1 - 1e-6) <= loss.get_delta_for_epsilon(float(place)) <= exact + 1e-5


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="epsilon must be a number from"):
        discrete_laplace_loss(0.0, 1)
    with pytest.raises(ValueError, match="steps must be a whole number from 1"):
        discrete_laplace_divergences(1.0, 0, [2.0])
