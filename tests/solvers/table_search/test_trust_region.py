"""Tests of the interior-point solver.

Points under test: derivatives that agree with their functions, known optima, and reported failures.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.sparse import csr_array

from quietbits.errors import ConvergenceError
from quietbits.solvers.bounds.privacy_constraint import ratio_constraint
from quietbits.solvers.table_search import trust_region
from quietbits.solvers.table_search.multistart import randomised_response_alphabet
from quietbits.solvers.table_search.table_program import TableProgram
from quietbits.solvers.table_search.trust_region import NonlinearTableProgram, solve_trust_region

OBJECTIVES = ["mean", "prior", "worst"]


def weights_of(objective: str, count: int) -> np.ndarray | None:
    return {"mean": np.full(count, 1 / count), "prior": np.arange(1, count + 1) / (count * (count + 1) / 2), "worst": None}[objective]


def jacobian(function: Callable[[np.ndarray], np.ndarray], point: np.ndarray) -> np.ndarray:
    """Return central differences, exact up to rounding for quadratics and close for cubics."""
    step = 1e-5
    return np.stack([(function(point + step * unit) - function(point - step * unit)) / (2 * step) for unit in np.eye(len(point))], axis=-1)


def dense(function: Callable[[np.ndarray], csr_array]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda point: function(point).toarray()


@pytest.mark.parametrize("metric", [None, "l1"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_derivative_agrees_with_finite_differences(objective: str, metric: str | None) -> None:
    constraint = ratio_constraint(0.7, 2, metric)
    program = NonlinearTableProgram(np.linspace(0, 1, 4), 3, constraint, weights_of(objective, 4), 0.3)
    rng = np.random.default_rng(2)
    for _ in range(2):
        point = rng.normal(size=program.variables)
        weights = rng.normal(size=4)
        assert program.objective_gradient(point) == pytest.approx(jacobian(program.objective, point), rel=1e-6, abs=1e-8)
        assert program.objective_hessian(point).toarray() == pytest.approx(jacobian(program.objective_gradient, point), abs=1e-7)
        assert program.variances_jacobian(point).toarray() == pytest.approx(jacobian(program.variances, point), abs=1e-7)
        assert program.biases_jacobian(point).toarray() == pytest.approx(jacobian(program.biases, point), abs=1e-7)
        for derivatives, hessian in (
            (program.variances_jacobian, program.variances_hessian),
            (program.biases_jacobian, program.biases_hessian),
        ):
            curvature = np.tensordot(weights, jacobian(dense(derivatives), point), 1)
            assert hessian(point, weights).toarray() == pytest.approx(curvature, abs=1e-7)


def test_the_objective_is_the_weighted_variance_in_units_of_the_scale() -> None:
    inputs, weights, rng = np.linspace(0, 1, 4), weights_of("prior", 4), np.random.default_rng(3)
    program = NonlinearTableProgram(inputs, 3, ratio_constraint(1, 2, None), weights, 0.3)
    table, alphabet = rng.dirichlet(np.ones(3), size=4), np.array([-0.7, 0.4, 1.9])
    point = np.concatenate([table.ravel(), (alphabet - 0.5) / program.unit, np.zeros(3)])
    errors = (table * (inputs[:, None] - alphabet) ** 2).sum(axis=1)
    assert program.objective(point) == pytest.approx(weights @ errors / 0.3)
    assert program.variances(point) == pytest.approx(errors / 0.3)
    assert program.biases(point) == pytest.approx((table @ alphabet - inputs) / program.unit)


@pytest.mark.parametrize(("metric", "epsilon"), [(None, 0.5), (None, 4), ("l1", 1), ("l1", 6), ("l2", 2)])
def test_two_letters_end_where_the_one_bit_mechanism_has_them(metric: str | None, epsilon: float) -> None:
    """The optimal letters are known, and the search starts away from them."""
    inputs, constraint, weights = np.linspace(0, 1, 4), ratio_constraint(epsilon, 2, metric), weights_of("mean", 4)
    best = randomised_response_alphabet(4, 2, constraint)
    start = 1.7 * best - 0.3
    solution = TableProgram(inputs, 2, constraint, weights).solve(start)
    program = NonlinearTableProgram(inputs, 2, constraint, weights, solution.value)
    letters = np.sort(program.minimise(0.5 * solution.probabilities + 0.25, start))
    assert letters == pytest.approx(best, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("metric", [None, "l1"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_letters_nearby_are_better(objective: str, metric: str | None) -> None:
    inputs, constraint, weights = np.linspace(0, 1, 4), ratio_constraint(2, 2, metric), weights_of(objective, 4)
    design = solve_trust_region(inputs, 4, constraint, weights, starts=1, rng=np.random.default_rng(0))
    assert np.all(np.diff(design.alphabet) >= 0)
    program = TableProgram(inputs, 4, constraint, weights)
    assert program.solve(design.alphabet).value == pytest.approx(design.value, rel=1e-9)
    rng = np.random.default_rng(1)
    outward = np.array([-1.0, 1.0, 1.0, 1.0])
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(10):
            move = size * rng.normal(size=4)
            move[[0, -1]] = np.abs(move[[0, -1]])
            assert program.solve(design.alphabet + outward * move).value >= design.value * (1 - 1e-5)


# Optimal values with unlimited letters, which no table with eight letters can beat, and values reached before with eight.
@pytest.mark.parametrize(
    ("metric", "epsilon", "bound", "reached"),
    [
        (None, 0.5, 3.99787627, 4.0033),
        (None, 5, 0.01177537, 0.0119447),
        ("l1", 1, 1.3126240, 1.3149),
        ("l1", 5, 0.0641186, 0.0641192),
    ],
)
def test_three_bits_come_near_the_best_that_any_alphabet_allows(metric: str | None, epsilon: float, bound: float, reached: float) -> None:
    constraint = ratio_constraint(epsilon, 3, metric)
    design = solve_trust_region(np.linspace(0, 1, 8), 8, constraint, np.full(8, 0.125), starts=1, rng=np.random.default_rng(0))
    assert bound * (1 - 1e-7) <= design.value <= reached
    assert design.failures == ()


def test_want_of_iterations_is_a_failure_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_region, "MAX_ITERATIONS", 3)
    with pytest.raises(
        ConvergenceError, match=r"all 2 starts failed: start 1: the trust-region method stopped after 3 iterations with constraints"
    ):
        solve_trust_region(np.linspace(0, 1, 4), 4, ratio_constraint(1, 2, None), None, starts=2, rng=np.random.default_rng(0))
