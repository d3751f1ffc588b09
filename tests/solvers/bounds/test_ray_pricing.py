"""Tests of exact pricing.

The tests run against every ray with its best letter in closed form, and against grids of letters.
"""

from itertools import product

import numpy as np
import pytest

from quietbits.solvers.bounds.privacy_constraint import RatioConstraint
from quietbits.solvers.bounds.ray_pricing import DualValues, best_staircases, best_walks, price_rays

LOCAL, METRIC = RatioConstraint(1.2, False), RatioConstraint(0.4, True)
CONSTRAINTS = pytest.mark.parametrize("constraint", [LOCAL, METRIC, RatioConstraint(0.05, True), RatioConstraint(8.0, False)])


def all_rays(count: int, constraint: RatioConstraint) -> np.ndarray:
    """Return every extreme ray: entries 1 or exp(-eps), or walks that start at 1."""
    if not constraint.neighbours_only:
        return np.exp(-constraint.log_ratio * np.array(list(product([0, 1], repeat=count))))
    walks = np.array(list(product([-1, 1], repeat=count - 1))).reshape(-1, count - 1)
    return np.exp(constraint.log_ratio * np.concatenate([np.zeros((len(walks), 1)), np.cumsum(walks, axis=1)], axis=1))


def random_duals(count: int, rng: np.random.Generator, *, zeros: int = 0) -> DualValues:
    weights = rng.uniform(size=count)
    weights[rng.permutation(count)[:zeros]] = 0
    return DualValues(rng.normal(size=count) * rng.choice([0.1, 1.0]), rng.normal(size=count), weights / weights.sum())


def gains(duals: DualValues, inputs: np.ndarray, letters: np.ndarray) -> np.ndarray:
    offsets = letters[:, None] - inputs
    return duals.normalisation + duals.unbiasedness * offsets - duals.input_weights * offsets**2


def largest_over_letters(rays: np.ndarray, duals: DualValues, inputs: np.ndarray) -> np.ndarray:
    """Return the maximum over letters of the concave quadratic v . w(a), in closed form."""
    square = rays @ duals.input_weights
    linear = rays @ (duals.unbiasedness + 2 * duals.input_weights * inputs)
    constant = rays @ (duals.normalisation - duals.unbiasedness * inputs - duals.input_weights * inputs**2)
    return constant + linear**2 / (4 * square)


@CONSTRAINTS
@pytest.mark.parametrize("zeros", [0, 1])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_the_maximum_is_that_over_every_ray_and_letter(count: int, zeros: int, constraint: RatioConstraint) -> None:
    inputs, rng = np.linspace(0, 1, count), np.random.default_rng(count)
    for _ in range(30):
        duals = random_duals(count, rng, zeros=zeros)
        priced = price_rays(duals, inputs, constraint)
        # Walks are scaled to a first entry of 1, as in the enumeration.
        violations = priced.violations / priced.rays[:, 0] if constraint.neighbours_only else priced.violations
        expected = largest_over_letters(all_rays(count, constraint), duals, inputs).max()
        assert violations.max() == pytest.approx(expected, rel=1e-11, abs=1e-12)


@CONSTRAINTS
def test_the_sign_of_the_maximum_does_not_depend_on_how_rays_are_scaled(constraint: RatioConstraint) -> None:
    inputs, rng = np.linspace(0, 1, 6), np.random.default_rng(8)
    rays, signs = all_rays(6, constraint), set()
    for _ in range(60):
        duals = random_duals(6, rng)
        duals = DualValues(duals.normalisation - rng.uniform(0, 10), duals.unbiasedness, duals.input_weights)
        violated = bool(price_rays(duals, inputs, constraint).violations.max() > 0)
        assert violated == bool(largest_over_letters(rays, duals, inputs).max() > 0)
        signs.add(violated)
    assert signs == {True, False}


@CONSTRAINTS
@pytest.mark.parametrize("zeros", [0, 20])
def test_no_letter_of_a_fine_grid_is_better(zeros: int, constraint: RatioConstraint) -> None:
    count, rng = 32, np.random.default_rng(3)
    inputs = np.linspace(0, 1, count)
    for _ in range(5):
        duals = random_duals(count, rng, zeros=zeros)
        priced = price_rays(duals, inputs, constraint)
        violations = priced.violations / priced.rays[:, 0] if constraint.neighbours_only else priced.violations
        middle = priced.letters[violations.argmax()]
        letters = np.concatenate([np.linspace(middle - 2, middle + 2, 4001), np.linspace(middle - 2e-3, middle + 2e-3, 41)])
        values = gains(duals, inputs, letters)
        if constraint.neighbours_only:
            best = values[:, -1]
            for column in values[:, -2::-1].T:
                best = column + np.maximum(np.exp(constraint.log_ratio) * best, np.exp(-constraint.log_ratio) * best)
        else:
            best = np.maximum(values, np.exp(-constraint.log_ratio) * values).sum(axis=1)
        assert best.max() <= violations.max() * (1 + 1e-12)
        assert best.max() == pytest.approx(violations.max(), rel=1e-6)


@CONSTRAINTS
def test_rays_are_extreme_and_worth_what_is_said(constraint: RatioConstraint) -> None:
    inputs, rng = np.linspace(0, 1, 8), np.random.default_rng(4)
    for _ in range(10):
        duals = random_duals(8, rng)
        priced = price_rays(duals, inputs, constraint)
        values = (priced.rays * gains(duals, inputs, priced.letters)).sum(axis=1)
        assert priced.violations == pytest.approx(values, abs=1e-12 * priced.magnitudes.max())
        assert np.all(priced.magnitudes >= np.abs(priced.violations))
        logs = np.log(priced.rays) / constraint.log_ratio
        if constraint.neighbours_only:
            assert np.abs(np.diff(logs, axis=1)) == pytest.approx(np.ones((len(logs), 7)))
            assert priced.rays.max(axis=1) == pytest.approx(np.ones(len(logs)))
        else:
            assert np.minimum(np.abs(logs), np.abs(logs + 1)) == pytest.approx(np.zeros_like(logs), abs=1e-12)


def test_the_best_walk_for_a_letter_is_the_best_of_all_walks() -> None:
    inputs, rng = np.linspace(0, 1, 9), np.random.default_rng(5)
    rays, letters = all_rays(9, METRIC), np.linspace(-3, 4, 41)
    for _ in range(20):
        duals = random_duals(9, rng, zeros=2)
        chosen = best_walks(duals, inputs, letters, METRIC.log_ratio)
        values = gains(duals, inputs, letters)
        result = (chosen / chosen[:, :1] * values).sum(axis=1)
        assert result == pytest.approx((values @ rays.T).max(axis=1), rel=1e-12, abs=1e-12)


def test_the_best_staircase_for_a_letter_is_the_best_of_all_staircases() -> None:
    inputs, rng = np.linspace(0, 1, 9), np.random.default_rng(6)
    rays, letters = all_rays(9, LOCAL), np.linspace(-3, 4, 41)
    for _ in range(20):
        duals = random_duals(9, rng, zeros=2)
        values = gains(duals, inputs, letters)
        result = (best_staircases(duals, inputs, letters, LOCAL.log_ratio) * values).sum(axis=1)
        assert result == pytest.approx((values @ rays.T).max(axis=1), rel=1e-12, abs=1e-12)


def test_only_local_maxima_of_walks_are_priced() -> None:
    # The recursion has thousands of pieces on this grid.
    count, rng = 128, np.random.default_rng(5)
    inputs, constraint = np.linspace(0, 1, count), RatioConstraint(20 / 127, True)
    for _ in range(5):
        duals = random_duals(count, rng)
        priced = price_rays(duals, inputs, constraint)
        assert len(priced.letters) <= 4 * count
        letters = np.linspace(-3, 4, 20_001)
        rays = best_walks(duals, inputs, letters, constraint.log_ratio)
        violations = (rays * gains(duals, inputs, letters)).sum(axis=1) / rays[:, 0]
        assert violations.max() <= (priced.violations / priced.rays[:, 0]).max() * (1 + 1e-9)
