"""Tests of the global optimum.

Points under test: known values, proofs recomputed from raw arrays, and tiny problems over a grid of letters.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from quietbits.errors import ConvergenceError
from quietbits.solvers.bounds import staircase
from quietbits.solvers.bounds.privacy_constraint import RatioConstraint, ratio_constraint
from quietbits.solvers.bounds.ray_pricing import DualValues
from quietbits.solvers.bounds.staircase import LEAST_SPREAD, StaircaseTable, dual_space, solve_staircase, staircase_bound
from quietbits.solvers.table_search.table_strategy import one_bit_table

# Optimal mean variances by (bits_in, metric, epsilon), from an independent prototype, exact to a unit in the seventh decimal.
KNOWN = {
    (3, None, 0.5): 3.99787627,
    (3, None, 1): 0.98257622,
    (3, None, 3): 0.06754341,
    (3, None, 5): 0.01177537,
    (5, None, 0.5): 4.0005642,
    (5, None, 1): 0.9749188,
    (5, None, 3): 0.0659414,
    (5, None, 5): 0.0118908,
    (3, "l1", 0.5): 4.7281951,
    (3, "l1", 1): 1.3126240,
    (3, "l1", 3): 0.1728686,
    (3, "l1", 5): 0.0641186,
    (5, "l1", 1): 1.3558678,
    (5, "l1", 3): 0.1843980,
    (5, "l1", 5): 0.0708312,
}
OBJECTIVES = ["mean", "prior", "worst"]


def weights_of(objective: str, count: int) -> np.ndarray | None:
    return {"mean": np.full(count, 1 / count), "prior": np.arange(1, count + 1) / (count * (count + 1) / 2), "worst": None}[objective]


@cache
def solved_on_eight(epsilon: float, objective: str, metric: str | None) -> StaircaseTable:
    return solve_staircase(3, ratio_constraint(epsilon, 3, metric), weights_of(objective, 8))


def rays_written_out(count: int, constraint: RatioConstraint) -> np.ndarray:
    if not constraint.neighbours_only:
        return np.exp(-constraint.log_ratio * np.array(list(product([0, 1], repeat=count))))
    walks = np.array(list(product([-1, 1], repeat=count - 1)))
    return np.exp(constraint.log_ratio * np.concatenate([np.zeros((len(walks), 1)), np.cumsum(walks, axis=1)], axis=1))


def worst_violation(duals: DualValues, constraint: RatioConstraint, letters: np.ndarray) -> float:
    """Return the largest v . w(a) over letters and rays, by an independent recursion."""
    offsets = letters[:, None] - np.linspace(0, 1, len(duals.normalisation))
    gains = duals.normalisation + duals.unbiasedness * offsets - duals.input_weights * offsets**2
    ratio = np.exp(constraint.log_ratio)
    if not constraint.neighbours_only:
        return float(np.maximum(gains, gains / ratio).sum(axis=1).max())
    best = gains[:, -1]
    for column in gains[:, -2::-1].T:
        best = column + np.maximum(ratio * best, best / ratio)
    return float(best.max())


def check_proof(table: StaircaseTable, bits_in: int, constraint: RatioConstraint, objective: str) -> None:
    """Check primal and dual feasibility and the gap, from the arrays alone."""
    inputs, weights = np.linspace(0, 1, 2**bits_in), weights_of(objective, 2**bits_in)
    probabilities, alphabet, duals = table.probabilities, table.alphabet, table.duals
    assert np.all(probabilities >= 0)
    assert np.all(np.diff(alphabet) > 0)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(inputs)), abs=1e-8)
    assert probabilities @ alphabet == pytest.approx(inputs, abs=1e-8 * np.abs(alphabet).max())
    columns = np.log(probabilities)
    spread = np.abs(np.diff(columns, axis=0)) if constraint.neighbours_only else np.ptp(columns, axis=0)
    assert spread.max() <= constraint.log_ratio + 1e-9
    variances = (probabilities * (inputs[:, None] - alphabet) ** 2).sum(axis=1)
    value = variances.max() if weights is None else weights @ variances
    assert table.value == pytest.approx(value, rel=1e-6)
    assert np.all(duals.input_weights >= 0)
    assert duals.input_weights.sum() == pytest.approx(1, abs=1e-12)
    if weights is not None:
        assert duals.input_weights == pytest.approx(weights, abs=1e-15)
    assert duals.normalisation.sum() == pytest.approx(table.lower_bound, rel=1e-12)
    reach = 3 * np.abs(alphabet - 0.5).max()
    assert worst_violation(duals, constraint, np.linspace(0.5 - reach, 0.5 + reach, 20001)) <= 1e-14 * np.abs(duals.normalisation).max()
    assert 0 <= table.value - table.lower_bound <= 1e-8 * table.value


@pytest.mark.parametrize(("bits_in", "metric", "epsilon"), KNOWN)
def test_known_optima_with_their_proofs(bits_in: int, metric: str | None, epsilon: float) -> None:
    constraint = ratio_constraint(epsilon, bits_in, metric)
    table = solve_staircase(bits_in, constraint, weights_of("mean", 2**bits_in))
    assert table.value == pytest.approx(KNOWN[bits_in, metric, epsilon], rel=0, abs=1e-7)
    check_proof(table, bits_in, constraint, "mean")
    assert len(table.alphabet) <= 2 * 2**bits_in


# Between neighbours, metrics differ only by the size of a step.
@pytest.mark.parametrize(("epsilon", "metric"), [*product([0.3, 2, 8], [None, "l1"]), (0.3, "l2")])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_comes_with_its_proof(epsilon: float, objective: str, metric: str | None) -> None:
    check_proof(solved_on_eight(epsilon, objective, metric), 3, ratio_constraint(epsilon, 3, metric), objective)


@pytest.mark.parametrize("metric", [None, "l1"])
@pytest.mark.parametrize("objective", ["mean", "worst"])
def test_symmetric_objectives_give_mirrored_tables(objective: str, metric: str | None) -> None:
    table = solved_on_eight(2, objective, metric)
    assert table.alphabet == pytest.approx(1 - table.alphabet[::-1], abs=1e-12)
    assert table.probabilities == pytest.approx(table.probabilities[::-1, ::-1], abs=1e-12)


@pytest.mark.parametrize("metric", [None, "l1"])
@pytest.mark.parametrize("epsilon", [2, 8])
def test_objectives_are_ordered_as_they_must_be(epsilon: float, metric: str | None) -> None:
    mean, worst = (solved_on_eight(epsilon, objective, metric) for objective in ("mean", "worst"))
    assert mean.lower_bound <= worst.value
    variances = (mean.probabilities * (np.linspace(0, 1, 8)[:, None] - mean.alphabet) ** 2).sum(axis=1)
    assert worst.lower_bound <= variances.max()
    # The weights that prove the largest variance are the worst prior, for which no table has less mean variance.
    against = solve_staircase(3, ratio_constraint(epsilon, 3, metric), worst.duals.input_weights)
    assert against.value == pytest.approx(worst.value, rel=1e-6)


@pytest.mark.parametrize("neighbours_only", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("bits_in", [1, 2])
def test_tiny_problems_agree_with_a_program_over_a_grid_of_letters(bits_in: int, objective: str, neighbours_only: bool) -> None:
    """Splitting a letter adds at most a quarter of the squared step to each variance."""
    count, constraint, steps = 2**bits_in, RatioConstraint(1.3, neighbours_only), 120
    inputs, weights = np.linspace(0, 1, count), weights_of(objective, count)
    optimum = solve_staircase(bits_in, constraint, weights)
    grid = np.linspace(optimum.alphabet[0] - 0.05, optimum.alphabet[-1] + 0.05, steps + 1)
    rays = rays_written_out(count, constraint)
    columns, letters = np.repeat(rays, len(grid), axis=0).T, np.tile(grid, len(rays))
    squares = columns * (inputs[:, None] - letters) ** 2
    equalities, right = np.vstack([columns, columns * letters]), np.concatenate([np.ones(count), inputs])
    if weights is None:
        on_grid = linprog(
            np.append(np.zeros(len(letters)), 1.0),
            A_ub=np.hstack([squares, -np.ones((count, 1))]),
            b_ub=np.zeros(count),
            A_eq=np.hstack([equalities, np.zeros((2 * count, 1))]),
            b_eq=right,
        ).fun
    else:
        on_grid = linprog(weights @ squares, A_eq=equalities, b_eq=right).fun
    step = grid[1] - grid[0]
    assert optimum.lower_bound <= on_grid + 1e-8
    assert on_grid <= optimum.value + step**2 / 4 + 1e-8


@pytest.mark.parametrize("epsilon", [0.1, 1, 6])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_two_inputs_need_no_more_than_randomised_response(objective: str, epsilon: float) -> None:
    ratio = np.exp(epsilon)
    table = solve_staircase(1, RatioConstraint(epsilon, False), weights_of(objective, 2))
    assert table.value == pytest.approx(ratio / (ratio - 1) ** 2, rel=1e-8)


@pytest.mark.parametrize("metric", [None, "l1", "l2"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_fast_bound_is_a_bound_and_near(objective: str, metric: str | None) -> None:
    value, bound = solved_on_eight(2, objective, metric).value, staircase_bound(3, ratio_constraint(2, 3, metric), weights_of(objective, 8))
    assert value * (1 - 1e-5) <= bound.lower_bound <= value
    assert bound.masses.sum() == pytest.approx(8, rel=1e-6)
    assert np.all(np.diff(bound.letters) > 0)


@pytest.mark.parametrize(("bits_in", "metric", "epsilon"), [(7, None, 2), (7, "l1", 4)])
def test_on_fine_grids_knots_cost_little(bits_in: int, metric: str | None, epsilon: float) -> None:
    constraint, weights = ratio_constraint(epsilon, bits_in, metric), weights_of("mean", 2**bits_in)
    value, bound = solve_staircase(bits_in, constraint, weights).value, staircase_bound(bits_in, constraint, weights)
    assert value * (1 - 1e-4) <= bound.lower_bound <= value


def test_prices_of_small_spreads_have_orthogonal_coordinates() -> None:
    space = dual_space(64, symmetric=True, knots=None, spread=0.01)
    np.testing.assert_allclose(space.even.sum(axis=0)[:-1], 0, atol=1e-6)
    np.testing.assert_array_equal(space.even[:, -1], 1)
    prices = np.random.default_rng(0).normal(size=32)
    duals = DualValues(np.concatenate([prices, prices[::-1]]), np.concatenate([prices, -prices[::-1]]), np.full(64, 1 / 64))
    projected = space.project(duals)
    np.testing.assert_allclose(projected.normalisation, duals.normalisation, atol=1e-9)
    np.testing.assert_allclose(projected.unbiasedness, duals.unbiasedness, atol=1e-9)


def test_strong_local_privacy_has_a_bound_near_the_optimum() -> None:
    # A start within 1e-4 of the coarse optimum once ended at 9999.989.
    constraint = ratio_constraint(0.01, 9, None)
    assert staircase_bound(9, constraint, weights_of("mean", 512)).lower_bound >= 9999.995


@pytest.mark.parametrize("epsilon", [1, 8])
def test_bounds_of_the_largest_variance_are_near_on_fine_grids(epsilon: float) -> None:
    # Dual values without an atom in the weights at each end give 0.9964 for 0.99765 at epsilon 1, and no bound at epsilon 8.
    constraint = ratio_constraint(epsilon, 6, None)
    value, bound = solve_staircase(6, constraint, None, tolerance=1e-6).value, staircase_bound(6, constraint, None)
    assert value * (1 - 1e-5) <= bound.lower_bound <= value


@pytest.mark.parametrize(
    ("epsilon", "objective", "reached"),
    # The bounds stop within 1e-6 of the optimum.
    [(0.03, "mean", 1127.5795), (0.1, "mean", 104.8279), (0.1, "worst", 104.8677), (0.8, "mean", 2.048516)],
)
def test_master_programs_on_the_finest_grids_are_solved(epsilon: float, objective: str, reached: float) -> None:
    # Treating the prices at the ends like other coordinates once gave no solution at epsilon 0.1, and took ten times as long at 0.8. With
    # starts within 1e-4 of the coarse grids' optima, the bound at epsilon 0.03 once stopped at 1127.5794, after ten times as long.
    assert staircase_bound(9, ratio_constraint(epsilon, 9, "l1"), weights_of(objective, 512)).lower_bound >= reached


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_strong_metric_privacy_is_bounded_by_way_of_local_privacy(objective: str) -> None:
    constraint, weights = ratio_constraint(0.05, 4, "l3"), weights_of(objective, 16)
    spread = 15 * constraint.log_ratio
    assert spread < LEAST_SPREAD
    bound = staircase_bound(4, constraint, weights)
    table = one_bit_table(16, constraint)
    probabilities, alphabet = table.probabilities, table.alphabet
    variances = (probabilities * (np.linspace(0, 1, 16)[:, None] - alphabet) ** 2).sum(axis=1)
    value = variances.max() if weights is None else weights @ variances
    assert value * (1 - spread) <= bound.lower_bound <= value
    assert worst_violation(bound.duals, constraint, np.linspace(2 * alphabet[0], 2 * alphabet[1], 20001)) <= 1e-12 * value


def test_a_gap_that_cannot_be_closed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staircase, "TABLE_ROUNDS", (60, 60))
    with pytest.raises(ConvergenceError, match=r"farther apart than the relative tolerance 1e-20"):
        solve_staircase(3, ratio_constraint(3, 3, None), weights_of("mean", 8), tolerance=1e-20)
