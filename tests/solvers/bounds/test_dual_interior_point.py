"""The Newton equations of the interior point method."""

import numpy as np
import pytest

from quietbits.solvers.bounds.blahut_arimoto import ReducedProblem
from quietbits.solvers.bounds.dual_interior_point import _NewtonSystem, _Point


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
def test_a_direction_removes_the_residuals_to_first_order(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    distortion = rng.random(shape)
    distortion[0, 1] = np.inf
    problem = ReducedProblem(rng.dirichlet(np.ones(shape[0])), distortion, 0.3, 0.0)
    log_weights, output = rng.normal(size=shape[0]) * 0.1 - 0.5, rng.random(shape[1])
    point = _Point(problem, log_weights, 1.2, output, 0.05)
    goal = np.full(len(point.products), 0.01)
    direction = _NewtonSystem(point).solve(goal)

    def after(step: float) -> _Point:
        return _Point(
            problem,
            log_weights + step * direction.log_weights,
            1.2 + step * direction.slope,
            output + step * direction.output,
            0.05 + step * direction.unspent,
        )

    step = 1e-5
    ahead, behind = after(step), after(-step)
    np.testing.assert_allclose((ahead.residual - behind.residual) / (2 * step), -point.residual, atol=1e-7)
    assert (ahead.slope_residual - behind.slope_residual) / (2 * step) == pytest.approx(-point.slope_residual, abs=1e-7)
    np.testing.assert_allclose((ahead.products - behind.products) / (2 * step), goal - point.products, atol=1e-7)
    np.testing.assert_allclose((ahead.slacks - behind.slacks) / (2 * step), direction.slacks, atol=1e-7)
