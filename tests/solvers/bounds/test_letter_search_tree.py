"""Tests of the search tree for a given number of letters.

Points under test: the bound agrees with brute force over letters, with closed forms, and with the bound for any number of letters; it holds
when time runs out; and the search returns better tables.
"""

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from quietbits.errors import ConvergenceError, InfeasibleError
from quietbits.solvers.bounds import letter_search_tree
from quietbits.solvers.bounds.hitting_set import replay
from quietbits.solvers.bounds.letter_clauses import LocalVariance
from quietbits.solvers.bounds.letter_search_tree import LetterBound, bound_letters
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint
from quietbits.solvers.bounds.staircase import solve_staircase, staircase_bound
from quietbits.solvers.bounds.two_letters import two_letter_bound
from quietbits.solvers.numerics.highs_program import LinearOptimum, run_highs
from quietbits.solvers.table_search.table_program import TableProgram


def objective(count: int, epsilon: float, weights: np.ndarray | None = None) -> LocalVariance:
    return LocalVariance(np.arange(count) / (count - 1), np.full(count, 1 / count) if weights is None else weights, epsilon)


def table_program(variance: LocalVariance, letters: int) -> TableProgram:
    return TableProgram(variance.inputs, letters, RatioConstraint(variance.log_ratio, neighbours_only=False), variance.input_weights)


def poor_letters(variance: LocalVariance, letters: int) -> np.ndarray:
    reach = 1.5 * (variance.unit - 1)
    return np.linspace(-reach, 1 + reach, letters)


def proven(variance: LocalVariance, bound: LetterBound) -> bool:
    return replay(bound.vectors, bound.splits, variance, len(bound.alphabet), bound.lower_bound).proven


def brute_force(variance: LocalVariance, letters: int) -> tuple[float, float]:
    """Return the least variance over a grid of letters, after a descent from its best letters."""
    program = table_program(variance, letters)

    def value(alphabet: np.ndarray) -> float:
        try:
            return program.solve(np.sort(alphabet)).value
        except InfeasibleError:
            return np.inf

    reach = variance.unit - 1
    outer = reach * np.array([1 + 1e-7, 1.03, 1.1, 1.2, 1.4, 1.8])
    inner = np.linspace(-reach, 1 + reach, 9)
    alphabets = [np.array([-low, *middle, 1 + high]) for low in outer for high in outer for middle in combinations(inner, letters - 2)]
    values = [value(alphabet) for alphabet in alphabets]
    start = alphabets[int(np.argmin(values))]
    simplex = start + np.concatenate([np.zeros((1, letters)), 0.05 * np.eye(letters) * np.where(np.arange(letters) > 0, 1, -1)])
    descended = minimize(value, start, method="Nelder-Mead", options={"initial_simplex": simplex, "maxfev": 200})
    return min(values), min(min(values), descended.fun)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("count", "letters"), [(3, 2), (4, 2), (3, 3), (4, 3)])
def test_the_bound_agrees_with_brute_force_over_letters(count: int, letters: int, epsilon: float) -> None:
    """The search starts from poor letters and must come within its tolerance of brute force."""
    variance, tolerance = objective(count, epsilon), 5e-3
    bound = bound_letters(variance, poor_letters(variance, letters), tolerance=tolerance, seconds=200)
    on_grid, descended = brute_force(variance, letters)
    assert bound.gap <= tolerance * (1 + 1e-9)
    assert bound.lower_bound <= descended * (1 + 1e-9)
    assert bound.lower_bound >= (1 - 2 * tolerance) * descended
    assert on_grid >= descended
    assert bound.value == pytest.approx(table_program(variance, letters).solve(bound.alphabet).value, rel=1e-9)
    assert proven(variance, bound)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_two_letters_are_proven_to_be_the_closed_form(epsilon: float) -> None:
    variance = objective(8, epsilon)
    bound = bound_letters(variance, poor_letters(variance, 2), tolerance=1e-6, seconds=200)
    closed = two_letter_bound(8, RatioConstraint(epsilon, neighbours_only=False), variance.input_weights)
    assert closed * (1 - 2e-6) <= bound.lower_bound <= closed * (1 + 1e-9)
    assert bound.value >= closed * (1 - 1e-9)
    assert proven(variance, bound)


def test_four_letters_are_bounded_above_any_number_of_letters() -> None:
    variance = objective(8, 3.0)
    bound = bound_letters(variance, poor_letters(variance, 4), tolerance=2e-2, seconds=200)
    unlimited = staircase_bound(3, RatioConstraint(3.0, neighbours_only=False), variance.input_weights).lower_bound
    assert bound.gap <= 2e-2
    assert unlimited * 1.02 < bound.lower_bound < bound.value
    assert proven(variance, bound)


def test_enough_letters_are_proven_optimal_at_once() -> None:
    """With twice as many letters as inputs the optimum with any number of letters is a table."""
    variance = objective(4, 1.0)
    table = solve_staircase(2, RatioConstraint(1.0, neighbours_only=False), variance.input_weights)
    bound = bound_letters(variance, table.alphabet, tolerance=1e-5, seconds=200)
    assert bound.gap <= 1e-5
    assert bound.lower_bound <= table.value
    assert bound.nodes <= 60


@pytest.mark.parametrize(("count", "letters", "epsilon"), [(4, 3, 0.01), (8, 4, 0.1), (8, 4, 20.0)])
def test_extreme_privacy_is_bounded_too(count: int, letters: int, epsilon: float) -> None:
    """For small epsilon, prices are high, and the artificial columns must cost more."""
    variance = objective(count, epsilon)
    bound = bound_letters(variance, poor_letters(variance, letters), tolerance=1e-3 if epsilon < 1 else 0.1, seconds=200)
    assert bound.gap <= (1e-3 if epsilon < 1 else 0.1)
    assert bound.nodes <= 400
    assert proven(variance, bound)


def test_failures_of_the_linear_program_cost_nodes_and_not_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def sometimes(*arguments: Any) -> LinearOptimum:
        nonlocal calls
        calls += 1
        if calls % 7 == 0:
            raise ConvergenceError("no optimum")
        return run_highs(*arguments)

    monkeypatch.setattr(letter_search_tree, "run_highs", sometimes)
    variance = objective(4, 1.0)
    bound = bound_letters(variance, poor_letters(variance, 3), tolerance=5e-3, seconds=200)
    assert calls > 20
    assert bound.gap <= 5e-3
    assert proven(variance, bound)


def test_weights_without_symmetry_have_bounds_without_mirrors() -> None:
    weights = np.array([4.0, 3.0, 2.0, 1.0]) / 10
    variance, tolerance = objective(4, 1.0, weights), 1e-2
    assert not variance.symmetric
    bound = bound_letters(variance, poor_letters(variance, 3), tolerance=tolerance, seconds=200)
    descended = brute_force(variance, 3)[1]
    assert bound.gap <= tolerance
    assert (1 - 2 * tolerance) * descended <= bound.lower_bound <= descended * (1 + 1e-9)
    assert proven(variance, bound)


def test_a_bound_holds_when_time_runs_out_and_every_step_is_reported() -> None:
    variance = objective(8, 1.0)
    reports: list[tuple[int, int, str]] = []
    bound = bound_letters(variance, poor_letters(variance, 4), tolerance=1e-6, seconds=1.0, on_step=lambda *step: reports.append(step))
    assert 0 < bound.lower_bound < bound.value
    assert bound.gap > 1e-6
    assert [done for done, _, _ in reports] == list(range(1, bound.nodes + 1))
    assert "open nodes" in reports[-1][2]
    assert proven(variance, bound)


@cache
def without_time() -> LetterBound:
    variance = objective(4, 1.0)
    return bound_letters(variance, poor_letters(variance, 3), seconds=0.0)


def test_no_time_proves_nothing_and_returns_the_given_letters() -> None:
    bound = without_time()
    assert (bound.lower_bound, bound.nodes, len(bound.vectors)) == (0.0, 0, 0)
    assert np.array_equal(bound.alphabet, poor_letters(objective(4, 1.0), 3))


def test_letters_without_a_table_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="must reach farther out"):
        bound_letters(objective(4, 1.0), np.array([0.0, 0.5, 1.0]))
