"""Descents on functions with known minima: smooth, kinked, and undefined beyond a boundary."""

import numpy as np
import pytest

from quietbits.solvers.numerics.nonsmooth_bfgs import minimise_nonsmooth


def test_a_quadratic_is_minimised() -> None:
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(6, 6))
    matrix, centre = factor @ factor.T + np.eye(6), rng.normal(size=6)

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        offset = point - centre
        return 1 + float(offset @ matrix @ offset), 2 * matrix @ offset

    minimum = minimise_nonsmooth(objective, np.zeros(6), tolerance=1e-14)
    assert minimum.point == pytest.approx(centre, abs=1e-6)
    assert minimum.value == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("tangents", [False, True])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_kinks_do_not_stop_the_descent(scale: float, tangents: bool) -> None:
    """Kinks along every axis meet at the minimum, where the gradient never vanishes."""
    centre, slopes = np.array([0.3, -0.7, 0.5]), np.array([1.0, scale, 3.0])

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        return 1 + float(slopes @ np.abs(point - centre)), slopes * np.sign(point - centre)

    minimum = minimise_nonsmooth(objective, np.array([1.0, 1.1, -0.9]), tolerance=1e-12, tangents=tangents)
    assert minimum.value == pytest.approx(1, abs=1e-5)
    assert minimum.point == pytest.approx(centre, abs=1e-5)


def test_a_curved_valley_with_a_kink_along_it_is_followed() -> None:
    """The kinked function 8 |x**2 - y| + (1 - x)**2 has its minimum at (1, 1)."""

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        side = np.sign(point[0] ** 2 - point[1])
        value = 8 * abs(point[0] ** 2 - point[1]) + (1 - point[0]) ** 2
        return 1 + float(value), np.array([16 * side * point[0] - 2 * (1 - point[0]), -8 * side])

    minimum = minimise_nonsmooth(objective, np.array([-0.8, 0.9]), tolerance=1e-12)
    assert minimum.point == pytest.approx(np.ones(2), abs=1e-2)
    assert minimum.value == pytest.approx(1, abs=1e-4)


def test_points_outside_the_domain_turn_the_descent_back() -> None:
    outside = []

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        if np.any(point <= 0):
            outside.append(point)
            return np.inf, np.zeros_like(point)
        return float((point - 0.01 * np.log(point)).sum()), 1 - 0.01 / point

    minimum = minimise_nonsmooth(objective, np.array([3.0, 0.2]), tolerance=1e-13)
    assert minimum.point == pytest.approx(np.full(2, 0.01), abs=1e-4)
    assert outside


def test_a_start_outside_the_domain_stays_there() -> None:
    minimum = minimise_nonsmooth(lambda point: (np.inf, np.zeros_like(point)), np.array([1.0, 2.0]))
    assert (minimum.value, minimum.evaluations, minimum.point.tolist()) == (np.inf, 1, [1.0, 2.0])


def test_the_best_point_and_the_number_of_evaluations_are_true() -> None:
    seen: list[float] = []

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        seen.append(float(np.abs(point).sum() + (point**2).sum()))
        return seen[-1], np.sign(point) + 2 * point

    minimum = minimise_nonsmooth(objective, np.array([0.9, -0.4, 0.2]), tolerance=0.0, max_evaluations=10)
    assert minimum.evaluations == len(seen)
    # The search completes its current line search, with at most forty more evaluations.
    assert len(seen) < 10 + 40
    assert minimum.value <= seen[0]
    assert minimum.value == float(np.abs(minimum.point).sum() + (minimum.point**2).sum())


def test_a_descent_far_from_its_goal_ends_and_one_that_reaches_it_does_not() -> None:
    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        side = np.sign(point[0] ** 2 - point[1])
        value = 8 * abs(point[0] ** 2 - point[1]) + (1 - point[0]) ** 2
        return value, np.array([16 * side * point[0] - 2 * (1 - point[0]), -8 * side])

    start = np.array([-1.2, 0.3])
    alone = minimise_nonsmooth(objective, start, tolerance=1e-10)
    reached = minimise_nonsmooth(objective, start, tolerance=1e-10, goal=5.0)
    hopeless = minimise_nonsmooth(objective, start, tolerance=1e-10, goal=-1e3)
    assert (reached.value, reached.evaluations) == (alone.value, alone.evaluations)
    assert hopeless.evaluations < alone.evaluations / 2


def test_tangents_and_a_short_first_step_take_fewer_evaluations() -> None:
    """The first step of length 0.1 goes far beyond the valley, whose width is a thousandth."""

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        scaled = 1000 * point
        return 1 + float(np.abs(scaled).sum() + (scaled**2).sum()), 1000 * (np.sign(scaled) + 2 * scaled)

    start = np.array([0.001, -0.0013])
    halving = minimise_nonsmooth(objective, start, tolerance=1e-6)
    quick = minimise_nonsmooth(objective, start, tolerance=1e-6, tangents=True, first_decrease=0.1)
    assert max(halving.value, quick.value) <= 1 + 1e-4
    assert quick.evaluations < 0.8 * halving.evaluations
