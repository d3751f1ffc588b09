"""The interior point method on programs with known solutions, and on one without any."""

import numpy as np
import pytest

from quietbits.errors import ConvergenceError
from quietbits.solvers.numerics.smooth_interior_point import Curved, minimise_convex

NO_ROWS = np.zeros((0, 2))


def reciprocals(point: np.ndarray) -> Curved:
    """1/x + 1/y <= 1."""
    return Curved(np.array([(1 / point).sum() - 1]), -(1 / point**2)[None, :], lambda weights: np.diag(2 * weights[0] / point**3))


def test_a_smooth_constraint() -> None:
    # x = y = 2 by symmetry; the multiplier solves 1 = lambda / x**2.
    found = minimise_convex(np.ones(2), np.zeros((0, 2)), np.zeros(0), NO_ROWS, reciprocals, np.array([1.0, 9.0]))
    assert found.point == pytest.approx([2, 2], rel=1e-6)
    assert found.curved_duals == pytest.approx([4], rel=1e-6)


def test_an_equation_beside_it() -> None:
    # x = 2 y: 1.5 / y <= 1. Stationarity of x: 1 + nu - lambda / 9 = 0, of y: 1 - 2 nu - lambda / 2.25 = 0, so that lambda = 4.5.
    found = minimise_convex(np.ones(2), np.array([[1.0, -2.0]]), np.zeros(1), NO_ROWS, reciprocals, np.ones(2))
    assert found.point == pytest.approx([3, 1.5], rel=1e-6)
    assert found.curved_duals == pytest.approx([4.5], rel=1e-5)
    assert found.equation_duals == pytest.approx([-0.5], rel=1e-5)


def test_linear_inequalities_beside_it() -> None:
    # 3 y <= x: 4 / (3 y) <= 1.
    found = minimise_convex(np.ones(2), np.zeros((0, 2)), np.zeros(0), np.array([[-1.0, 3.0]]), reciprocals, np.ones(2))
    assert found.point == pytest.approx([4, 4 / 3], rel=1e-6)
    assert found.row_duals == pytest.approx([2 / 3], rel=1e-5)


def test_what_has_no_solution_is_refused() -> None:
    with pytest.raises(ConvergenceError, match="the convex program was not solved to 1e-08"):
        minimise_convex(np.ones(2), np.array([[1.0, 0.0]]), np.array([0.5]), NO_ROWS, reciprocals, np.ones(2))
