"""Tests of the search tree for a given number of letters.

Points under test: the bound agrees with brute force over letters, with closed forms, and with the bound for any number of letters; it holds
when time runs out; and the search returns better tables.
"""

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from table_variances import KINDS, least_variance, spread_letters, variance_of

from quietbits.errors import ConvergenceError, InfeasibleError
from quietbits.solvers.bounds import letter_search_tree
from quietbits.solvers.bounds.hitting_set import replay
from quietbits.solvers.bounds.letter_clauses import TableVariance
from quietbits.solvers.bounds.letter_search_tree import LetterBound, bound_letters
from quietbits.solvers.bounds.staircase import solve_staircase, staircase_bound
from quietbits.solvers.bounds.two_letters import two_letter_bound
from quietbits.solvers.numerics.highs_program import LinearOptimum, run_highs


def objective(count: int, epsilon: float) -> TableVariance:
    return variance_of("average", count, epsilon)


def proven(variance: TableVariance, bound: LetterBound) -> bool:
    return replay(bound.vectors, bound.splits, variance, len(bound.alphabet), bound.lower_bound).proven


def brute_force(variance: TableVariance, letters: int) -> tuple[float, float]:
    """Return the least variance over a grid of letters, and after a descent from the best letters of the grid."""

    def value(alphabet: np.ndarray) -> float:
        return least_variance(variance, np.sort(alphabet))

    reach = variance.unit - 1
    outer = reach * np.array([1 + 1e-7, 1.05, 1.2, 1.6])
    inner = np.linspace(-reach, 1 + reach, 9)
    alphabets = [np.array([-low, *middle, 1 + high]) for low in outer for high in outer for middle in combinations(inner, letters - 2)]
    values = [value(alphabet) for alphabet in alphabets]
    best = min(values)
    # Two letters are best at the least reach, which is in the grid.
    for start in np.array(alphabets)[np.argsort(values)[:2]] if letters > 2 else []:
        # A kink may stop a descent: it starts anew from where it stopped.
        for size in (0.05, 0.02, 0.005):
            simplex = start + np.concatenate([np.zeros((1, letters)), size * np.eye(letters) * np.where(np.arange(letters) > 0, 1, -1)])
            descended = minimize(value, start, method="Nelder-Mead", options={"initial_simplex": simplex, "maxfev": 100})
            start, best = descended.x, min(best, descended.fun)
    return min(values), best


CELLS = [
    *((kind, count, letters, epsilon) for kind in KINDS for count, letters, epsilon in ((3, 2, 1.0), (4, 2, 0.5), (4, 3, 1.0))),
    *((kind, 3, 3, 3.0) for kind in ("average", "largest", "metric")),
]


@pytest.mark.parametrize(("kind", "count", "letters", "epsilon"), CELLS)
def test_the_bound_agrees_with_brute_force_over_letters(kind: str, count: int, letters: int, epsilon: float) -> None:
    """The search starts from poor letters and must find a table within its tolerance of the best of brute force."""
    variance, tolerance = variance_of(kind, count, epsilon), 5e-3
    bound = bound_letters(variance, spread_letters(variance, letters), tolerance=tolerance, seconds=200)
    on_grid, descended = brute_force(variance, letters)
    assert bound.gap <= tolerance * (1 + 1e-9)
    assert bound.lower_bound <= descended * (1 + 1e-9)
    assert bound.lower_bound >= (1 - 2 * tolerance) * descended
    assert on_grid >= descended
    assert bound.value == pytest.approx(least_variance(variance, bound.alphabet), rel=1e-6)
    assert proven(variance, bound)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_two_letters_are_proven_to_be_the_closed_form(kind: str, epsilon: float) -> None:
    variance = variance_of(kind, 8, epsilon)
    bound = bound_letters(variance, spread_letters(variance, 2), tolerance=1e-6, seconds=200)
    closed = two_letter_bound(8, variance.constraint, variance.input_weights)
    assert closed * (1 - 2e-6) <= bound.lower_bound <= closed * (1 + 1e-9)
    assert bound.value >= closed * (1 - 1e-9)
    assert proven(variance, bound)


@pytest.mark.parametrize("kind", ["average", "largest", "metric", "metric, largest"])
def test_four_letters_are_bounded_above_any_number_of_letters(kind: str) -> None:
    variance = variance_of(kind, 8, 3.0)
    bound = bound_letters(variance, spread_letters(variance, 4), tolerance=2e-2, seconds=200)
    unlimited = staircase_bound(3, variance.constraint, variance.input_weights).lower_bound
    assert bound.gap <= 2e-2
    assert unlimited * 1.02 < bound.lower_bound < bound.value
    assert proven(variance, bound)


def test_enough_letters_are_proven_optimal_at_once() -> None:
    """With twice as many letters as inputs the optimum with any number of letters is a table."""
    variance = objective(4, 1.0)
    table = solve_staircase(2, variance.constraint, variance.input_weights)
    bound = bound_letters(variance, table.alphabet, tolerance=1e-5, seconds=200)
    assert bound.gap <= 1e-5
    assert bound.lower_bound <= table.value
    assert bound.nodes <= 60


@pytest.mark.parametrize("kind", ["average", "largest", "metric"])
@pytest.mark.parametrize(("count", "letters", "epsilon"), [(4, 3, 0.01), (8, 4, 0.1), (8, 4, 20.0)])
def test_extreme_privacy_is_bounded_too(kind: str, count: int, letters: int, epsilon: float) -> None:
    """For small epsilon prices are high, and the artificial columns must cost more."""
    variance = variance_of(kind, count, epsilon)
    bound = bound_letters(variance, spread_letters(variance, letters), tolerance=1e-3 if epsilon < 1 else 0.1, seconds=200)
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
    bound = bound_letters(variance, spread_letters(variance, 3), tolerance=5e-3, seconds=200)
    assert calls > 20
    assert bound.gap <= 5e-3
    assert proven(variance, bound)


def test_weights_without_symmetry_have_bounds_without_mirrors() -> None:
    weights = np.array([4.0, 3.0, 2.0, 1.0]) / 10
    variance, tolerance = replace(objective(4, 1.0), input_weights=weights), 1e-2
    assert not variance.symmetric
    bound = bound_letters(variance, spread_letters(variance, 3), tolerance=tolerance, seconds=200)
    descended = brute_force(variance, 3)[1]
    assert bound.gap <= tolerance
    assert (1 - 2 * tolerance) * descended <= bound.lower_bound <= descended * (1 + 1e-9)
    assert proven(variance, bound)


def test_a_bound_holds_when_time_runs_out_and_every_step_is_reported() -> None:
    variance = objective(8, 1.0)
    reports: list[tuple[int, int, str]] = []
    bound = bound_letters(variance, spread_letters(variance, 4), tolerance=1e-6, seconds=1.0, on_step=lambda *step: reports.append(step))
    assert 0 < bound.lower_bound < bound.value
    assert bound.gap > 1e-6
    assert [done for done, _, _ in reports] == list(range(1, bound.nodes + 1))
    assert "open nodes" in reports[-1][2]
    assert proven(variance, bound)


@cache
def without_time() -> LetterBound:
    variance = objective(4, 1.0)
    return bound_letters(variance, spread_letters(variance, 3), seconds=0.0)


def test_no_time_proves_nothing_and_returns_the_given_letters() -> None:
    bound = without_time()
    assert (bound.lower_bound, bound.nodes, len(bound.vectors)) == (0.0, 0, 0)
    assert np.array_equal(bound.alphabet, spread_letters(objective(4, 1.0), 3))


def test_letters_without_a_table_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="must reach farther out"):
        bound_letters(objective(4, 1.0), np.array([0.0, 0.5, 1.0]))
