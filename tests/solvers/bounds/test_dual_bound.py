"""Tests of the lower bound.

Requirements: the bound is below every table, attained at known optima, and rounded to the safe side.
"""

from itertools import product

import mpmath
import numpy as np
import pytest

from quietbits.errors import ConvergenceError
from quietbits.solvers.bounds.dual_bound import dual_lower_bound, feasible_duals
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint, ratio_constraint
from quietbits.solvers.bounds.ray_pricing import DualValues
from quietbits.solvers.bounds.staircase import staircase_bound
from quietbits.solvers.table_search.multistart import starting_alphabets
from quietbits.solvers.table_search.table_program import TableProgram


def ray_exponents(count: int, constraint: RatioConstraint) -> np.ndarray:
    """Return the logarithms of all extreme rays, by enumeration."""
    if not constraint.neighbours_only:
        return np.array(list(product([0, 1], repeat=count)))
    walks = np.array(list(product([-1, 1], repeat=count - 1)))
    return np.concatenate([np.zeros((len(walks), 1), dtype=int), np.cumsum(walks, axis=1)], axis=1)


def random_duals(count: int, rng: np.random.Generator) -> DualValues:
    weights = rng.uniform(size=count)
    return DualValues(rng.normal(size=count), rng.normal(size=count), weights / weights.sum())


METRICS = pytest.mark.parametrize("metric", [None, "l1", "l2"])


@METRICS
@pytest.mark.parametrize("objective", ["mean", "prior", "worst"])
def test_no_table_is_below_the_bound(objective: str, metric: str | None) -> None:
    constraint, rng = ratio_constraint(1.5, 3, metric), np.random.default_rng(2)
    inputs = np.linspace(0, 1, 8)
    weights = {"mean": np.full(8, 1 / 8), "prior": np.arange(1, 9) / 36, "worst": None}[objective]
    program = TableProgram(inputs, 6, constraint, weights)
    best = min(program.solve(alphabet).value for alphabet in starting_alphabets(8, 6, constraint, 6, rng))
    bound = staircase_bound(3, constraint, weights)
    assert dual_lower_bound(bound.duals, inputs, constraint) <= best
    # The comparison is meaningful, as the bound is near.
    assert bound.lower_bound > 0.5 * best
    for _ in range(10):
        duals = random_duals(8, rng)
        if weights is not None:
            duals = DualValues(duals.normalisation, duals.unbiasedness, weights)
        assert dual_lower_bound(duals, inputs, constraint) <= best


@pytest.mark.parametrize("neighbours_only", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5, 15])
def test_for_two_inputs_randomised_response_attains_the_bound(epsilon: float, neighbours_only: bool) -> None:
    """Binary randomised response has variance E/(E-1)**2 at both inputs, and is optimal."""
    constraint, ratio = RatioConstraint(epsilon, neighbours_only), np.exp(epsilon)
    price = 2 * ratio / (ratio - 1) ** 2
    # For these prices the derivative of v . w(a) is zero at both letters, up to a shift by normalisation prices.
    duals = DualValues(np.zeros(2), np.array([-price, price]), np.full(2, 0.5))
    bound = dual_lower_bound(duals, np.array([0.0, 1.0]), constraint)
    best = staircase_bound(1, constraint, np.full(2, 0.5)).lower_bound
    optimum = ratio / (ratio - 1) ** 2
    assert best <= optimum
    assert best == pytest.approx(optimum, rel=1e-5)
    assert bound == pytest.approx(optimum, rel=1e-9)
    assert bound <= optimum


@pytest.mark.parametrize("constraint", [RatioConstraint(1.0, False), RatioConstraint(0.1, False), RatioConstraint(0.2, True)])
@pytest.mark.parametrize("worst", [False, True])
def test_the_proof_holds_in_high_precision(worst: bool, constraint: RatioConstraint) -> None:
    """No ray violates the shifted dual values in 50 digits, and their sum is at least the bound."""
    bound = staircase_bound(3, constraint, None if worst else np.full(8, 1 / 8))
    inputs = np.linspace(0, 1, 8)
    feasible = feasible_duals(bound.duals, inputs, constraint)
    value, shifted = feasible.bound, feasible.duals
    exponents = ray_exponents(8, constraint)
    with mpmath.workdps(50):
        ratio = mpmath.exp(mpmath.mpf(constraint.log_ratio))
        powers = {int(k): ratio ** int(k) for k in np.unique(exponents)}
        rows = [
            [mpmath.mpf(float(part[i])) for part in (shifted.normalisation, shifted.unbiasedness, shifted.input_weights, inputs)]
            for i in range(8)
        ]
        quadratics = [(n - u * x - w * x * x, u + 2 * w * x, w) for n, u, w, x in rows]
        largest = -mpmath.inf
        for exponent in exponents:
            ray = [powers[int(k)] for k in exponent]
            constant, linear, square = (mpmath.fsum(v * q[k] for v, q in zip(ray, quadratics, strict=True)) for k in range(3))
            largest = max(largest, constant + linear**2 / (4 * square))
        assert largest <= 0
        total = mpmath.fsum(row[0] for row in rows)
        # The floating-point sum of eight prices is right to within a few units in the last place.
        assert mpmath.mpf(value) <= total + mpmath.mpf(abs(value)) * mpmath.mpf(2) ** -50


def test_shifting_normalisation_prices_does_not_change_the_bound() -> None:
    inputs, constraint = np.linspace(0, 1, 5), RatioConstraint(0.7, False)
    duals = random_duals(5, np.random.default_rng(7))
    moved = DualValues(duals.normalisation + 3.7, duals.unbiasedness, duals.input_weights)
    assert dual_lower_bound(moved, inputs, constraint) == pytest.approx(dual_lower_bound(duals, inputs, constraint), rel=1e-10)


def test_an_iteration_that_is_cut_short_gives_no_bound() -> None:
    duals = random_duals(5, np.random.default_rng(7))
    with pytest.raises(ConvergenceError, match="did not end within 1 steps"):
        feasible_duals(duals, np.linspace(0, 1, 5), RatioConstraint(0.7, False), max_iterations=1)
