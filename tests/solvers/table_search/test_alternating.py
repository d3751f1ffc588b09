"""The alternating solver.

Each step is optimal for table or letters, the penalty ends in unbiasedness, and the solvers agree.
"""

from itertools import pairwise, product

import numpy as np
import pytest

from quietbits.errors import ConvergenceError
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint, ratio_constraint
from quietbits.solvers.table_search import alternating
from quietbits.solvers.table_search.alternating import LetterStep, TableStep, penalised_objective, solve_alternating
from quietbits.solvers.table_search.multistart import starting_alphabets
from quietbits.solvers.table_search.table_program import TableProgram
from quietbits.solvers.table_search.trust_region import solve_trust_region

OBJECTIVES = ["mean", "prior", "worst"]
INPUTS = np.linspace(0, 1, 4)


def weights_of(objective: str) -> np.ndarray | None:
    return {"mean": np.full(4, 0.25), "prior": np.array([0.1, 0.2, 0.3, 0.4]), "worst": None}[objective]


def private_table(rng: np.random.Generator, letters: int) -> np.ndarray:
    table = rng.uniform(1, 2, size=(4, letters))
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("metric", [None, "l1"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_step_makes_the_penalised_objective_worse(objective: str, metric: str | None) -> None:
    constraint, weights = ratio_constraint(1.5, 2, metric), weights_of(objective)
    table_step, letter_step = TableStep(INPUTS, 4, constraint, weights, 0.5), LetterStep(INPUTS, 4, weights, 0.5)
    for alphabet in starting_alphabets(4, 4, constraint, 2, np.random.default_rng(0)):
        letters, values = alphabet, []
        for _ in range(6):
            table = table_step.solve(letters, 3.0)
            values.append(penalised_objective(table, letters, INPUTS, weights, 3.0))
            letters = letter_step.solve(table, letters, 3.0)
            values.append(penalised_objective(table, letters, INPUTS, weights, 3.0))
        assert np.all(np.diff(values) <= 1e-6 * values[0])
        assert values[-1] < values[0]


@pytest.mark.parametrize("metric", [None, "l1"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_table_is_private_and_under_a_large_penalty_that_of_the_linear_program(objective: str, metric: str | None) -> None:
    constraint, weights = ratio_constraint(1.5, 2, metric), weights_of(objective)
    alphabet = starting_alphabets(4, 4, constraint, 2, np.random.default_rng(0))[1]
    table = TableStep(INPUTS, 4, constraint, weights, 0.5).solve(alphabet, 1e5)
    assert table.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-7)
    pairs = pairwise(table) if metric else product(table, table)
    for row, neighbour in pairs:
        assert np.all(row <= np.exp(constraint.log_ratio) * neighbour + 1e-6)
        assert np.all(neighbour <= np.exp(constraint.log_ratio) * row + 1e-6)
    errors = (table * (INPUTS[:, None] - alphabet) ** 2).sum(axis=1)
    value = errors.max() if weights is None else weights @ errors
    assert value == pytest.approx(TableProgram(INPUTS, 4, constraint, weights).solve(alphabet).value, rel=1e-3)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_letters_are_optimal_for_their_table(objective: str) -> None:
    weights, rng = weights_of(objective), np.random.default_rng(4)
    step = LetterStep(INPUTS, 5, weights, 0.5)
    for penalty in (0.5, 50.0):
        table = private_table(rng, 5)
        letters = step.solve(table, np.linspace(-1, 2, 5), penalty)
        value = penalised_objective(table, letters, INPUTS, weights, penalty)
        for size in (1e-3, 1e-1):
            for _ in range(20):
                assert penalised_objective(table, letters + size * rng.normal(size=5), INPUTS, weights, penalty) >= value * (1 - 1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_letter_that_no_row_uses_stays(objective: str) -> None:
    table = np.insert(private_table(np.random.default_rng(5), 3), 1, 0.0, axis=1)
    letters = LetterStep(INPUTS, 4, weights_of(objective), 0.5).solve(table, np.array([-1.0, 0.2, 0.6, 2.0]), 3.0)
    assert letters[1] == pytest.approx(0.2, abs=1e-6)
    assert np.abs(letters - [-1.0, 0.2, 0.6, 2.0]).max() > 0.1


@pytest.mark.parametrize(("objective", "metric"), [("mean", None), ("prior", "l1"), ("worst", "l1")])
def test_the_two_solvers_of_the_paper_agree(objective: str, metric: str | None) -> None:
    constraint, weights = ratio_constraint(3, 2, metric), weights_of(objective)
    alternated = solve_alternating(INPUTS, 4, constraint, weights, starts=1, rng=np.random.default_rng(0))
    joint = solve_trust_region(INPUTS, 4, constraint, weights, starts=1, rng=np.random.default_rng(0))
    assert alternated.value == pytest.approx(joint.value, rel=0.02)
    assert alternated.probabilities @ alternated.alphabet == pytest.approx(INPUTS, abs=1e-8)
    assert alternated.probabilities.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-8)


def test_the_search_itself_reaches_a_good_table() -> None:
    """The search runs from one start, and ends near the optimum of unlimited letters."""
    constraint, weights = RatioConstraint(3.0, False), np.full(8, 0.125)
    design = solve_alternating(np.linspace(0, 1, 8), 8, constraint, weights, starts=1, rng=np.random.default_rng(0))
    start = starting_alphabets(8, 8, constraint, 1, np.random.default_rng(0))[0]
    assert 0.0675434 <= design.value <= 0.0690
    assert design.value < 0.98 * TableProgram(np.linspace(0, 1, 8), 8, constraint, weights).solve(start).value


def test_a_bias_that_remains_is_a_failure_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternating, "MAX_STAGES", 2)
    with pytest.raises(
        ConvergenceError, match=r"all 2 starts failed: start 1: the alternation still has a bias of \d.* at a penalty of 1.3"
    ):
        solve_alternating(INPUTS, 4, ratio_constraint(1, 2, None), weights_of("mean"), starts=2, rng=np.random.default_rng(0))


def test_a_step_without_a_solution_is_a_failure() -> None:
    step = TableStep(INPUTS, 4, ratio_constraint(1, 2, None), weights_of("mean"), 0.5)
    with pytest.raises(ConvergenceError, match="a step of the alternation"):
        step.solve(np.full(4, 1e120), 1.0)
