"""The linear program for given letters.

Points under test: rows, privacy, objective, gradient, and tiny cases by enumeration.
"""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from quietbits.errors import InfeasibleError
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint, ratio_constraint
from quietbits.solvers.table_search.multistart import randomised_response_alphabet, starting_alphabets
from quietbits.solvers.table_search.table_program import TableProgram

PRIORS = {"mean": lambda count: np.full(count, 1 / count), "prior": lambda count: np.arange(1, count + 1) / (count * (count + 1) / 2)}
OBJECTIVES = ["mean", "prior", "worst"]
METRICS = [None, "l1", "l2"]


def weights_of(objective: str, count: int) -> np.ndarray | None:
    return None if objective == "worst" else PRIORS[objective](count)


def variances(table: np.ndarray, alphabet: np.ndarray) -> np.ndarray:
    return (table * (np.linspace(0, 1, len(table))[:, None] - alphabet) ** 2).sum(axis=1)


def allowed_log_ratios(count: int, constraint: RatioConstraint) -> np.ndarray:
    distances = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    return constraint.log_ratio * (distances if constraint.neighbours_only else distances > 0)


def staircase_rays(count: int, constraint: RatioConstraint) -> np.ndarray:
    """Return all extreme rays of private columns by brute force."""
    if not constraint.neighbours_only:
        return np.exp(constraint.log_ratio * np.array(list(product([0, 1], repeat=count))))
    walks = np.array(list(product([-1, 1], repeat=count - 1)))
    return np.exp(constraint.log_ratio * np.concatenate([np.zeros((len(walks), 1)), np.cumsum(walks, axis=1)], axis=1))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("epsilon", [0.3, 2, 8])
def test_tables_are_unbiased_private_and_worth_what_is_said(epsilon: float, objective: str, metric: str | None) -> None:
    inputs, constraint = np.linspace(0, 1, 8), ratio_constraint(epsilon, 3, metric)
    weights = weights_of(objective, 8)
    program = TableProgram(inputs, 5, constraint, weights)
    for alphabet in starting_alphabets(8, 5, constraint, 3, np.random.default_rng(1)):
        solution = program.solve(alphabet)
        table = solution.probabilities
        assert table.sum(axis=1) == pytest.approx(np.ones(8), abs=1e-8)
        assert table @ alphabet == pytest.approx(inputs, abs=1e-8 * np.abs(alphabet).max())
        used = table[:, table.max(axis=0) > 1e-6]
        ratios = np.log(used[:, None] / used[None, :]).max(axis=2)
        assert np.all(ratios <= allowed_log_ratios(8, constraint) + 1e-3)
        row_variances = variances(table, alphabet)
        expected = row_variances.max() if weights is None else weights @ row_variances
        assert solution.value == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_the_gradient_agrees_with_finite_differences(epsilon: float, objective: str, metric: str | None) -> None:
    inputs, constraint = np.linspace(0, 1, 4), ratio_constraint(epsilon, 2, metric)
    program = TableProgram(inputs, 5, constraint, weights_of(objective, 4))
    rng = np.random.default_rng(11)
    for _ in range(3):
        alphabet = np.sort(randomised_response_alphabet(4, 5, constraint) * 1.2 - 0.1 + rng.normal(0, 0.03, 5))
        gradient = program.solve(alphabet).alphabet_gradient
        step = 1e-6 * np.abs(alphabet).max()
        for letter, unit in enumerate(np.eye(5)):
            difference = (program.solve(alphabet + step * unit).value - program.solve(alphabet - step * unit).value) / (2 * step)
            assert gradient[letter] == pytest.approx(difference, rel=1e-3, abs=1e-4 * np.abs(gradient).max())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("count", [2, 3])
def test_tiny_tables_agree_with_a_program_over_enumerated_rays(count: int, objective: str, metric: str | None) -> None:
    """The alternative program has a mass for every pair of extreme ray and letter."""
    power = {None: None, "l1": 1, "l2": 2}[metric]
    constraint = RatioConstraint(1.3, False) if power is None else RatioConstraint(1.3 / (count - 1) ** power, True)
    inputs, weights = np.linspace(0, 1, count), weights_of(objective, count)
    alphabet = randomised_response_alphabet(count, 4, constraint) * 1.1 - 0.03
    rays = staircase_rays(count, constraint)
    columns = np.repeat(rays, 4, axis=0).T
    letters = np.tile(alphabet, len(rays))
    squares = columns * (inputs[:, None] - letters) ** 2
    equalities = np.vstack([columns, columns * letters])
    right = np.concatenate([np.ones(count), inputs])
    if weights is None:
        reference = linprog(
            np.append(np.zeros(len(letters)), 1.0),
            A_ub=np.hstack([squares, -np.ones((count, 1))]),
            b_ub=np.zeros(count),
            A_eq=np.hstack([equalities, np.zeros((2 * count, 1))]),
            b_eq=right,
        )
    else:
        reference = linprog(weights @ squares, A_eq=equalities, b_eq=right)
    assert TableProgram(inputs, 4, constraint, weights).solve(alphabet).value == pytest.approx(reference.fun, rel=1e-7)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_two_inputs_and_three_letters_agree_with_a_search_over_a_fine_grid(objective: str) -> None:
    """Each unbiased row of three letters has one free number, which a grid covers."""
    ratio, alphabet, weights = np.exp(1.0), np.array([-1.0, 0.6, 1.8]), weights_of(objective, 2)
    middle = np.linspace(0, 1, 1001)
    rows = []
    for target in (0.0, 1.0):
        high = (target - alphabet[0] - middle * (alphabet[1] - alphabet[0])) / (alphabet[2] - alphabet[0])
        row = np.stack([1 - middle - high, middle, high], axis=1)
        rows.append(row[(row >= 0).all(axis=1)])
    first, second = rows[0][:, None, :], rows[1][None, :, :]
    private = ((first <= ratio * second) & (second <= ratio * first)).all(axis=2)
    errors = np.stack(np.broadcast_arrays((first * alphabet**2).sum(axis=2), (second * (alphabet - 1) ** 2).sum(axis=2)))
    values = errors.max(axis=0) if weights is None else np.tensordot(weights, errors, 1)
    best = values[private].min()
    value = TableProgram(np.array([0.0, 1.0]), 3, RatioConstraint(1.0, False), weights).solve(alphabet).value
    assert value <= best + 1e-9
    assert value == pytest.approx(best, rel=1e-2)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("bits_in", [1, 3])
def test_two_letters_leave_no_choice(bits_in: int, metric: str | None) -> None:
    """Unbiasedness alone determines the table, and the variance at x is (high - x) (x - low)."""
    count, constraint = 2**bits_in, ratio_constraint(1, bits_in, metric)
    inputs, program = np.linspace(0, 1, count), TableProgram(np.linspace(0, 1, count), 2, constraint, np.full(count, 1 / count))
    for stretch in (1.0, 1.5):
        low, high = stretch * (randomised_response_alphabet(count, 2, constraint) - 0.5) + 0.5
        assert program.solve(np.array([low, high])).value == pytest.approx(((high - inputs) * (inputs - low)).mean(), rel=1e-7)


def test_the_order_of_the_letters_does_not_matter() -> None:
    inputs, constraint, weights = np.linspace(0, 1, 4), ratio_constraint(1, 2, None), np.full(4, 0.25)
    alphabet, order = np.array([-0.9, 0.2, 0.7, 1.9]), np.array([2, 0, 3, 1])
    sorted_solution = TableProgram(inputs, 4, constraint, weights).solve(alphabet)
    shuffled_solution = TableProgram(inputs, 4, constraint, weights).solve(alphabet[order])
    assert shuffled_solution.value == pytest.approx(sorted_solution.value, rel=1e-9)


def test_a_later_solve_does_not_depend_on_earlier_ones() -> None:
    inputs, constraint, weights = np.linspace(0, 1, 8), ratio_constraint(1, 3, None), np.full(8, 0.125)
    alphabets = starting_alphabets(8, 8, constraint, 4, np.random.default_rng(5))
    program = TableProgram(inputs, 8, constraint, weights)
    in_turn = [program.solve(alphabet).value for alphabet in alphabets]
    afresh = [TableProgram(inputs, 8, constraint, weights).solve(alphabet).value for alphabet in alphabets]
    assert in_turn == pytest.approx(afresh, rel=1e-8)


def test_letters_that_cannot_make_a_table_are_refused_and_the_next_ones_solved() -> None:
    program = TableProgram(np.linspace(0, 1, 4), 3, ratio_constraint(1, 2, None), None)
    with pytest.raises(InfeasibleError, match="letters must reach farther out"):
        program.solve(np.array([0.0, 0.5, 1.0]))
    assert program.solve(np.array([-1.0, 0.5, 2.0])).value > 0


@pytest.mark.parametrize("metric", [None, "l1"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_basis_of_a_coarser_grid_leads_to_the_same_optimum_in_fewer_steps(objective: str, metric: str | None) -> None:
    alphabet = np.array([-1.7, -0.6, 0.1, 0.4, 0.9, 2.6])
    spread = ratio_constraint(2.0, 3, metric)
    programs = []
    for bits in (3, 5):
        count = 2**bits
        constraint = RatioConstraint(spread.log_ratio * 7 / (count - 1), True) if spread.neighbours_only else spread
        programs.append(TableProgram(np.linspace(0, 1, count), 6, constraint, weights_of(objective, count)))
    coarse, fine = programs
    twin, other = fine.on_its_own(), fine.on_its_own()
    coarse.solve(alphabet)
    cold, steps_cold = fine.solve(alphabet), fine._highs.getInfo().simplex_iteration_count
    twin.start_from(coarse)
    warm, steps = twin.solve(alphabet), twin._highs.getInfo().simplex_iteration_count
    assert warm.value == pytest.approx(cold.value, rel=1e-8)
    assert steps < 0.8 * steps_cold
    other.start_from(fine)
    assert other.solve(alphabet).value == pytest.approx(cold.value, rel=1e-12)
    assert other._highs.getInfo().simplex_iteration_count == 0


def test_the_basis_of_a_program_with_other_letters_is_not_taken() -> None:
    inputs, constraint = np.linspace(0, 1, 4), RatioConstraint(1.0, False)
    fewer, program = (TableProgram(inputs, letters, constraint, np.full(4, 0.25)) for letters in (3, 4))
    fewer.solve(randomised_response_alphabet(4, 3, constraint))
    alone = program.on_its_own().solve(randomised_response_alphabet(4, 4, constraint))
    program.start_from(fewer)
    assert program.solve(randomised_response_alphabet(4, 4, constraint)).value == alone.value
