"""Tests of the Lasso.

Points under test: optimality conditions, agreement of two solvers, valid certificates, paths, and bad input.

Points under test of the penalty from the noise: its formula, and the share of noise that exceeds it.

Points under test of least squares on a support: normal equations, operators and matrices, and impossible fits.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.stats import binom, norm

from quietbits import ConvergenceError, LassoSolution, solve_lasso
from quietbits.design.noise.discrete_gaussian import sample_discrete_gaussian
from quietbits.solvers.decoders.lasso import accelerated_proximal, critical_penalty, lasso_path, noise_penalty, refit_support
from quietbits.solvers.decoders.lasso_problem import pose_problem

RNG = np.random.default_rng(0)
REFIT_MATRIX = RNG.standard_normal((30, 80))
VECTOR = np.zeros(80)
VECTOR[[3, 40, 77]] = [5.0, -4.0, 3.0]
REFIT_OBSERVATIONS = REFIT_MATRIX @ VECTOR + 0.1 * RNG.standard_normal(30)

DIMENSION, MEASUREMENTS = 300, 50

Array = NDArray[np.float64]
SHAPES = [(20, 60), (60, 20), (30, 30), (1, 5), (5, 1)]


def draw(measurements: int, dimension: int, seed: int = 0) -> tuple[Array, Array]:
    """Return a Gaussian matrix and noisy observations of a vector with three entries."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((measurements, dimension))
    vector = np.zeros(dimension)
    vector[:3] = 2.0, -1.0, 1.5
    return matrix, matrix @ vector + 0.3 * rng.standard_normal(measurements)


def objective(matrix: Array, observations: Array, penalty: float, vector: Array) -> float:
    return float(np.sum((observations - matrix @ vector) ** 2) / (2 * len(observations)) + penalty * np.abs(vector).sum())


def check_conditions(matrix: Array, observations: Array, result: LassoSolution) -> None:
    """Check |S^T r / m| <= penalty, with equality where the gap implies it."""
    correlations = matrix.T @ (observations - matrix @ result.solution) / len(observations)
    # The objective is at least the optimum plus |S (x - x*)|^2 / (2 m), so that |S^T (r - r*)| / m <= |column| sqrt(2 gap / m).
    slack = np.linalg.norm(matrix, axis=0) * np.sqrt(2 * result.duality_gap / len(observations)) + 1e-12
    assert (np.abs(correlations) <= result.penalty + slack).all()
    # By convexity, the suboptimality is at least sum_i (penalty |x_i| - c*_i x_i), with the optimum's correlations.
    missing = result.penalty * np.abs(result.solution) - correlations * result.solution
    assert (missing <= result.duality_gap + 2 * slack * np.abs(result.solution)).all()


@pytest.mark.parametrize("solver", ["coordinate-descent", "fista"])
@pytest.mark.parametrize("share", [0.8, 0.02])
@pytest.mark.parametrize("shape", SHAPES)
def test_optimality_conditions_hold(shape: tuple[int, int], share: float, solver: str) -> None:
    matrix, observations = draw(*shape) if shape[1] >= 3 else (np.arange(1.0, 6.0)[:, None], np.array([1.0, 1.0, 4.0, 3.0, 6.0]))
    penalty = share * critical_penalty(matrix, observations)
    lasso = solve_lasso(matrix, observations, penalty, solver=solver, tolerance=1e-10)
    assert lasso.solver == solver
    assert lasso.penalty == penalty
    assert lasso.objective == pytest.approx(objective(matrix, observations, penalty, lasso.solution), rel=1e-12)
    assert lasso.relative_gap == pytest.approx(lasso.duality_gap / objective(matrix, observations, penalty, np.zeros(shape[1])))
    assert 0 <= lasso.relative_gap <= 1e-10
    assert lasso.support.tolist() == np.flatnonzero(lasso.solution).tolist() != []
    check_conditions(matrix, observations, lasso)


@pytest.mark.parametrize("share", [0.8, 0.2, 0.02])
@pytest.mark.parametrize("shape", SHAPES[:3])
def test_both_solvers_agree(shape: tuple[int, int], share: float) -> None:
    matrix, observations = draw(*shape)
    penalty = share * critical_penalty(matrix, observations)
    dense = solve_lasso(matrix, observations, penalty, tolerance=1e-11)
    free = solve_lasso(aslinearoperator(matrix), observations, penalty, tolerance=1e-11)
    sparse = solve_lasso(scipy.sparse.csr_array(matrix), observations, penalty, tolerance=1e-11)
    assert (dense.solver, free.solver, sparse.solver) == ("coordinate-descent", "fista", "fista")
    # With Gaussian columns, the solution is unique and its support is separated.
    assert free.support.tolist() == dense.support.tolist() == sparse.support.tolist()
    assert free.solution == pytest.approx(dense.solution, abs=1e-5)
    assert abs(free.objective - dense.objective) <= free.duality_gap + dense.duality_gap


@settings(max_examples=40)
@given(
    st.integers(1, 8),
    st.integers(1, 12),
    st.integers(0, 10**6),
    st.sampled_from([1e-6, 1e-3, 1.0, 1e5]),
    st.sampled_from([0.9, 0.3, 0.05]),
    st.sampled_from([1e-2, 1e-5, 1e-9]),
)
def test_the_gap_is_never_below_the_suboptimality(rows: int, columns: int, seed: int, scale: float, share: float, tolerance: float) -> None:
    rng = np.random.default_rng(seed)
    # With small whole numbers, equal, opposite and zero columns are common.
    matrix = scale * rng.integers(-2, 3, size=(rows, columns)).astype(float)
    observations = rng.standard_normal(rows)
    penalty = share * critical_penalty(matrix, observations)
    if penalty == 0:
        penalty = 1.0
    rough = [
        solve_lasso(matrix, observations, penalty, solver=solver, tolerance=tolerance, max_iterations=10**5)
        for solver in ("coordinate-descent", "fista")
    ]
    precise = solve_lasso(matrix, observations, penalty, tolerance=1e-11, max_iterations=10**6)
    rounding = 1e-14 * objective(matrix, observations, penalty, np.zeros(columns))
    for result in rough:
        assert result.relative_gap <= tolerance
        assert result.duality_gap >= result.objective - precise.objective - rounding
        check_conditions(matrix, observations, result)


# In these units every float is a whole number, and so is a sixteenth of it.
UNITS = 2**1078


def in_units(values: Array) -> NDArray[np.object_]:
    """Return the floats exactly, in whole numbers of units."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    return np.array([numerator * (UNITS // denominator) for numerator, denominator in ratios], dtype=object)


def exact_objective(matrix: NDArray[np.object_], observations: NDArray[np.object_], penalty: int, vector: NDArray[np.object_]) -> Fraction:
    """Return the exact objective of a whole-number matrix, with all other values in units."""
    measurements = len(observations)
    squares = ((observations - matrix @ vector) ** 2).sum()
    return Fraction(squares + 2 * measurements * penalty * np.abs(vector).sum(), 2 * measurements * UNITS**2)


@pytest.mark.parametrize("solver", ["coordinate-descent", "fista"])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-11])
@pytest.mark.parametrize("columns", [1, 16])
def test_the_gap_covers_rounding_too(columns: int, tolerance: float, solver: str) -> None:
    """With one column, rounding alone makes the residual look optimal."""
    matrix, penalty = hadamard(16)[:, :columns].astype(float), 0.1
    whole, shift = hadamard(16)[:, :columns].astype(object), int(in_units(np.array([penalty]))[0])
    for seed in range(20):
        observations = np.random.default_rng(seed).standard_normal(16)
        lasso = solve_lasso(matrix, observations, penalty, solver=solver, tolerance=tolerance)
        seen = in_units(observations)
        means = whole.T @ seen // 16
        best = np.where(means > 0, 1, -1) * np.maximum(np.abs(means) - shift, 0)
        suboptimality = exact_objective(whole, seen, shift, in_units(lasso.solution)) - exact_objective(whole, seen, shift, best)
        assert Fraction(lasso.duality_gap) >= suboptimality >= 0


def test_a_gap_at_any_point_is_a_bound_and_vanishes_only_at_the_optimum() -> None:
    matrix, observations = draw(20, 60)
    penalty = 0.2 * critical_penalty(matrix, observations)
    best = solve_lasso(matrix, observations, penalty, tolerance=1e-11)
    problem = pose_problem(matrix, observations)
    rng = np.random.default_rng(3)
    for size in (1e-3, 1e-1, 1.0, 100.0):
        place = problem.certify(best.solution + size * rng.standard_normal(60), penalty)
        assert place.gap >= place.objective - best.objective > 0
    assert problem.certify(-best.solution, penalty).gap > best.objective


@pytest.mark.parametrize("solver", ["coordinate-descent", "fista"])
def test_from_the_critical_penalty_on_the_solution_is_exactly_zero(solver: str) -> None:
    matrix, observations = draw(20, 60)
    critical = critical_penalty(matrix, observations)
    assert critical == np.abs(matrix.T @ observations).max() / 20
    for penalty in (critical, 1.5 * critical, 1e200):
        lasso = solve_lasso(matrix, observations, penalty, solver=solver, start=np.ones(60))
        assert not lasso.solution.any()
        assert lasso.relative_gap < 1e-12
        assert lasso.iterations == 0
    below = solve_lasso(matrix, observations, 0.99 * critical, solver=solver, tolerance=1e-9)
    assert len(below.support) == 1


def test_a_sparse_vector_is_recovered() -> None:
    rng = np.random.default_rng(5)
    matrix = rng.standard_normal((120, 1000))
    vector = np.zeros(1000)
    vector[rng.choice(1000, 6, replace=False)] = [3.0, -2.0, 2.5, 4.0, -3.0, 2.0]
    lasso = solve_lasso(aslinearoperator(matrix), matrix @ vector, 0.01)
    assert set(np.flatnonzero(vector)) == set(np.flatnonzero(np.abs(lasso.solution) > 0.1))
    assert lasso.solution == pytest.approx(vector, abs=0.05)


def test_a_path_falls_and_starts_from_the_larger_penalty() -> None:
    matrix, observations = draw(100, 400)
    critical = critical_penalty(matrix, observations)
    penalties = critical * np.geomspace(1, 0.02, 12)
    operator = aslinearoperator(matrix)
    path = lasso_path(operator, observations, np.random.default_rng(0).permutation(penalties), tolerance=1e-9)
    assert path.penalties == pytest.approx(penalties, rel=0)
    assert [len(solution.support) for solution in path.solutions[:1]] == [0]
    alone = [solve_lasso(operator, observations, penalty, tolerance=1e-9) for penalty in penalties]
    for solution, other in zip(path.solutions, alone, strict=True):
        assert solution.relative_gap <= 1e-9
        assert abs(solution.objective - other.objective) <= solution.duality_gap + other.duality_gap
    # A path starts near the solution; starting from the same problem's solution needs no iterations.
    assert sum(solution.iterations for solution in path.solutions) < sum(solution.iterations for solution in alone)
    first, again = lasso_path(operator, observations, [penalties[5]] * 2).solutions
    assert first.iterations > again.iterations == 0
    dense = lasso_path(matrix, observations, penalties, tolerance=1e-9)
    assert {solution.solver for solution in dense.solutions} == {"coordinate-descent"}
    assert dense.solutions[-1].solution == pytest.approx(path.solutions[-1].solution, abs=1e-4)


@pytest.mark.parametrize("solver", ["coordinate-descent", "fista"])
def test_a_good_start_is_used_and_a_bad_one_is_not(solver: str) -> None:
    matrix, observations = draw(100, 400)
    penalty = 0.05 * critical_penalty(matrix, observations)
    cold = solve_lasso(matrix, observations, penalty, solver=solver, tolerance=1e-8)
    warm = solve_lasso(matrix, observations, penalty, solver=solver, tolerance=1e-8, start=cold.solution)
    assert warm.iterations <= 1 < cold.iterations
    bad = solve_lasso(matrix, observations, penalty, solver=solver, tolerance=1e-8, start=np.full(400, 1e6))
    assert bad.iterations == cold.iterations


def test_a_step_that_is_too_long_is_shortened() -> None:
    """The power iteration underestimates the norm by a factor of a thousand."""
    matrix, observations = draw(20, 60)
    penalty = 0.1 * critical_penalty(matrix, observations)
    problem = pose_problem(matrix, observations)
    true = problem.spectral_norm
    assert 0.95 * np.linalg.norm(matrix, 2) <= true <= np.linalg.norm(matrix, 2) * (1 + 1e-12)
    problem.__dict__["spectral_norm"] = true / 1000
    approximation = accelerated_proximal(problem, penalty, problem.certify(np.zeros(60), penalty), 1e-8, 5000)
    assert approximation.vector == pytest.approx(solve_lasso(matrix, observations, penalty, tolerance=1e-11).solution, abs=1e-3)


def test_restarts_make_progress_steady_where_columns_differ_in_size() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((60, 20)) * np.geomspace(1, 30, 20)
    observations = matrix @ np.ones(20) + rng.standard_normal(60)
    penalty = 0.001 * critical_penalty(matrix, observations)
    few = solve_lasso(matrix, observations, penalty, solver="fista", tolerance=1e-5)
    many = solve_lasso(matrix, observations, penalty, solver="fista", tolerance=1e-11)
    # The iterations are 829 and 10 113 without restarts, and 4432 and 19 313 without momentum.
    assert few.iterations < 500
    assert many.iterations < 4 * few.iterations


@pytest.mark.parametrize("solver", ["coordinate-descent", "fista"])
def test_degenerate_problems(solver: str) -> None:
    matrix, observations = draw(20, 60)
    # Zero columns stay zero, and equal columns share the coefficient of a single column.
    padded = np.hstack([np.zeros((20, 2)), matrix, matrix[:, :1]])
    penalty = 0.2 * critical_penalty(matrix, observations)
    lasso = solve_lasso(padded, observations, penalty, solver=solver, tolerance=1e-10)
    plain = solve_lasso(matrix, observations, penalty, solver=solver, tolerance=1e-10)
    assert lasso.solution[:2].tolist() == [0.0, 0.0]
    merged = lasso.solution[2:62] + np.concatenate([lasso.solution[62:], np.zeros(59)])
    assert merged == pytest.approx(plain.solution, abs=1e-4)
    nothing = solve_lasso(matrix, np.zeros(20), 1e-3, solver=solver)
    assert (nothing.objective, nothing.duality_gap, nothing.relative_gap, nothing.solution.any()) == (0.0, 0.0, 0.0, False)
    empty = solve_lasso(np.zeros((4, 3)), np.ones(4), 1e-3, solver=solver)
    assert not empty.solution.any()
    assert empty.relative_gap < 1e-12
    # Observations in other units give the same solution in those units.
    small = solve_lasso(matrix, observations * 1e-100, penalty * 1e-100, solver=solver, tolerance=1e-10)
    assert small.solution * 1e100 == pytest.approx(plain.solution, abs=1e-4)


def test_precision_of_the_numbers_is_accounted_for() -> None:
    matrix, observations = draw(20, 60)
    single = matrix.astype(np.float32)
    penalty = 0.2 * critical_penalty(single, observations)
    # A single-precision matrix is multiplied in double precision.
    for numbers in (single, aslinearoperator(single)):
        lasso = solve_lasso(numbers, observations, penalty, tolerance=1e-10)
        check_conditions(single.astype(float), observations, lasso)
    # The gap of an operator that returns single precision includes its low precision.
    operator = LinearOperator(
        (20, 60),
        matvec=lambda vector: single @ vector.astype(np.float32),
        rmatvec=lambda values: single.T @ values.astype(np.float32),
        dtype=np.float32,
    )
    lasso = solve_lasso(operator, observations, penalty, tolerance=0.01)
    assert 1e-5 < lasso.relative_gap < 0.01
    with pytest.raises(ConvergenceError, match="above the tolerance 1e-06"):
        solve_lasso(operator, observations, penalty, max_iterations=500)
    # The solver refuses an operator that hides single precision in doubles, as its certificate would be wrong.
    hiding = LinearOperator(
        (20, 60),
        matvec=lambda vector: (single @ vector.astype(np.float32)).astype(float),
        rmatvec=lambda values: (single.T @ values.astype(np.float32)).astype(float),
        dtype=float,
    )
    with pytest.raises(ValueError, match="rmatvec that multiplies by the transpose of matvec, in the precision"):
        solve_lasso(hiding, observations, penalty)


@pytest.mark.parametrize("solver", ["coordinate-descent", "fista"])
def test_nothing_half_solved_is_returned(solver: str) -> None:
    matrix, observations = draw(20, 60)
    with pytest.raises(ConvergenceError, match=r"duality gap is .* above the tolerance 1e-10, after 2 iterations"):
        solve_lasso(matrix, observations, 1e-3, solver=solver, tolerance=1e-10, max_iterations=2)


MATRIX, OBSERVATIONS = np.eye(3), np.ones(3)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.ones(3), OBSERVATIONS, 1.0), {}, r"matrix_or_operator must be a matrix .*shape \(3,\)"),
        (([["a"]], OBSERVATIONS, 1.0), {}, "matrix_or_operator must be a matrix .*got a list"),
        (([[1.0], [1.0, 2.0]], OBSERVATIONS, 1.0), {}, "matrix_or_operator must be a matrix .*got a list"),
        ((np.zeros((0, 3)), [], 1.0), {}, "matrix_or_operator must be a matrix .* not empty"),
        ((1j * MATRIX, OBSERVATIONS, 1.0), {}, "matrix_or_operator must be a matrix of real numbers .*complex128"),
        ((MATRIX * np.nan, OBSERVATIONS, 1.0), {}, "matrix_or_operator must hold numbers from .*, got nan"),
        (
            (aslinearoperator(1j * MATRIX), OBSERVATIONS, 1.0),
            {},
            "matrix_or_operator must be of real numbers, got an operator of complex128",
        ),
        ((aslinearoperator(np.zeros((0, 3))), [], 1.0), {}, r"matrix_or_operator must have rows and columns, got the shape \(0, 3\)"),
        (
            (aslinearoperator(np.full((3, 3), np.inf)), OBSERVATIONS, 1.0),
            {},
            "matrix_or_operator must have products of absolute value up to 1e",
        ),
        (
            (scipy.sparse.csr_array(MATRIX * 1e200), 1e120 * OBSERVATIONS, 1.0),
            {},
            "matrix_or_operator must have products of absolute value up to 1e",
        ),
        ((LinearOperator((3, 3), matvec=lambda x: x), OBSERVATIONS, 1.0), {}, "matrix_or_operator must be a LinearOperator with rmatvec"),
        (
            (LinearOperator((3, 3), matvec=lambda x: np.roll(x, 1), rmatvec=lambda x: np.roll(x, 1)), OBSERVATIONS, 1.0),
            {},
            "matrix_or_operator must have an rmatvec that multiplies by the transpose",
        ),
        ((MATRIX, np.ones(4), 1.0), {}, "observations must have 3 numbers, .* got 4"),
        ((MATRIX, np.ones((3, 1)), 1.0), {}, r"observations must be a vector .*shape \(3, 1\)"),
        ((MATRIX, [1.0, np.nan, 0.0], 1.0), {}, "observations must hold numbers from .*, got nan"),
        ((MATRIX, 1e200 * OBSERVATIONS, 1.0), {}, "observations must hold numbers from .*, got 1e\\+200"),
        ((MATRIX, 1e-200 * OBSERVATIONS, 1.0), {}, "observations must be 0, or one of them at least 1e-140, got 1e-200"),
        ((MATRIX, OBSERVATIONS, 0.0), {}, "penalty must be a number from 1e-300 to 1e\\+300, got 0"),
        ((MATRIX, OBSERVATIONS, -1.0), {}, "penalty must be a number .* got -1"),
        ((MATRIX, OBSERVATIONS, np.nan), {}, "penalty must be a number .* got nan"),
        ((MATRIX, OBSERVATIONS, 1.0), {"solver": "lars"}, "solver must be one of auto, coordinate-descent, fista, got 'lars'"),
        ((aslinearoperator(MATRIX), OBSERVATIONS, 1.0), {"solver": "coordinate-descent"}, "solver must be 'fista' or 'auto' for"),
        ((MATRIX, OBSERVATIONS, 1.0), {"start": [1.0]}, "start must have 3 numbers, .* got 1"),
        ((MATRIX, OBSERVATIONS, 1.0), {"start": [1.0, np.inf, 0.0]}, "start must hold numbers from .*, got inf"),
        ((MATRIX, OBSERVATIONS, 1.0), {"tolerance": 1e-12}, "tolerance must be a number from 1e-11 to 1, got 1e-12"),
        ((MATRIX, OBSERVATIONS, 1.0), {"max_iterations": 0}, "max_iterations must be a whole number .*, got 0"),
    ],
)
def test_bad_arguments(arguments: tuple, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve_lasso(*arguments, **options)


def test_a_path_needs_penalties() -> None:
    with pytest.raises(ValueError, match="penalties must have at least one number, got none"):
        lasso_path(MATRIX, OBSERVATIONS, [])
    with pytest.raises(ValueError, match=r"penalties must be a number .*, got -1\.0"):
        lasso_path(MATRIX, OBSERVATIONS, [1.0, -1.0])


@pytest.mark.parametrize("kind", ["Gaussian", "discrete Gaussian", "signs"])
def test_noise_is_seldom_above_the_penalty(kind: str) -> None:
    """Three sub-Gaussian noises exceed the penalty too often with probability below 1e-6."""
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((MEASUREMENTS, DIMENSION))
    matrix *= 7 / np.linalg.norm(matrix, axis=0)
    runs, probability = 2000, 0.2
    noise = {
        "Gaussian": lambda: 1.5 * rng.standard_normal((runs, MEASUREMENTS)),
        "discrete Gaussian": lambda: sample_discrete_gaussian(1.5, (runs, MEASUREMENTS), rng),
        "signs": lambda: 1.5 * rng.choice([-1.0, 1.0], (runs, MEASUREMENTS)),
    }[kind]()
    largest = np.abs(noise @ matrix).max(axis=1) / MEASUREMENTS
    penalty = noise_penalty(DIMENSION, 1.5, 7.0, MEASUREMENTS, probability)
    assert np.sum(largest > penalty) <= binom.isf(1e-6, runs, probability)
    # The penalty is not much too large, as three quarters of it would fail.
    assert np.mean(largest > 0.75 * penalty) > probability


def test_it_is_the_union_bound() -> None:
    penalty = noise_penalty(1000, 0.7, 14.0, 200, 0.05)
    assert penalty == pytest.approx(math.sqrt(2 * math.log(2 * 1000 / 0.05)) * 0.7 * 14.0 / 200, rel=1e-15)
    # The Gaussian tail is slightly below Chernoff's bound.
    tail = 2 * 1000 * norm.sf(penalty * 200 / (0.7 * 14.0))
    assert 0.05 / 20 < tail < 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimension": 0}, "dimension must be a whole number .*, got 0"),
        ({"noise_deviation": 0.0}, r"noise_deviation must be a number .*, got 0\.0"),
        ({"largest_column_norm": -1.0}, r"largest_column_norm must be a number .*, got -1\.0"),
        ({"measurements": 1.5}, r"measurements must be a whole number .*, got 1\.5"),
        ({"failure_probability": 1.0}, r"failure_probability must be a number above 0 and below 1, got 1\.0"),
    ],
)
def test_bad_arguments_of_noise_penalty(change: dict, message: str) -> None:
    good = {"dimension": 10, "noise_deviation": 1.0, "largest_column_norm": 1.0, "measurements": 5, "failure_probability": 0.1}
    with pytest.raises(ValueError, match=message):
        noise_penalty(**(good | change))


@pytest.mark.parametrize("given", [REFIT_MATRIX, aslinearoperator(REFIT_MATRIX)], ids=["matrix", "operator"])
@pytest.mark.parametrize("support", [[40], [77, 3, 40], list(range(20)), list(range(30))])
def test_the_residual_is_orthogonal_to_the_columns_of_the_support(given: object, support: list[int]) -> None:
    result = refit_support(given, REFIT_OBSERVATIONS, support)
    residual = REFIT_OBSERVATIONS - REFIT_MATRIX @ result.solution
    assert result.support.tolist() == sorted(support)
    assert not np.delete(result.solution, support).any()
    assert REFIT_MATRIX[:, support].T @ residual == pytest.approx(np.zeros(len(support)), abs=1e-5)
    assert result.residual_norm == pytest.approx(np.linalg.norm(residual), rel=1e-12, abs=1e-12)
    expected = np.linalg.lstsq(REFIT_MATRIX[:, support], REFIT_OBSERVATIONS)[0]
    assert result.solution[support] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_refit_takes_back_what_the_lasso_has_shrunk() -> None:
    lasso = solve_lasso(REFIT_MATRIX, REFIT_OBSERVATIONS, 1.0)
    assert lasso.support.tolist() == [3, 40, 77]
    assert (np.abs(lasso.solution[lasso.support]) < np.abs(VECTOR[lasso.support]) - 0.5).all()
    refit = refit_support(REFIT_MATRIX, REFIT_OBSERVATIONS, lasso.support)
    assert refit.solution == pytest.approx(VECTOR, abs=0.1)
    assert np.sum((refit.solution - VECTOR) ** 2) < 0.02 * np.sum((lasso.solution - VECTOR) ** 2)


@pytest.mark.parametrize("given", [REFIT_MATRIX, aslinearoperator(REFIT_MATRIX)], ids=["matrix", "operator"])
def test_an_empty_support_is_the_zero_vector(given: object) -> None:
    support = refit_support(given, REFIT_OBSERVATIONS, [])
    assert not support.solution.any()
    assert support.residual_norm == pytest.approx(np.linalg.norm(REFIT_OBSERVATIONS))
    assert support.iterations == 0


@pytest.mark.parametrize("wrap", [np.asarray, aslinearoperator], ids=["matrix", "operator"])
def test_of_several_least_squares_it_is_the_smallest(wrap) -> None:
    matrix = np.hstack([np.zeros((30, 1)), REFIT_MATRIX[:, :1], REFIT_MATRIX[:, :1]])
    support = refit_support(wrap(matrix), REFIT_OBSERVATIONS, [0, 1, 2])
    alone = REFIT_MATRIX[:, 0] @ REFIT_OBSERVATIONS / (REFIT_MATRIX[:, 0] @ REFIT_MATRIX[:, 0])
    assert support.solution == pytest.approx([0.0, alone / 2, alone / 2], abs=1e-8)


def test_no_half_solved_refit_is_returned() -> None:
    with pytest.raises(ConvergenceError, match="least squares on 20 columns did not reach the tolerance 1e-10 in 2 iterations"):
        refit_support(aslinearoperator(REFIT_MATRIX), REFIT_OBSERVATIONS, range(20), max_iterations=2)


@pytest.mark.parametrize(
    ("support", "message"),
    [
        (range(31), "support must have at most 30 indices, one for each observation, got 31"),
        ([3, 3], "support must have different indices, got 1 of them more than once"),
        ([80], "support must have indices from 0 to 79, got 80"),
        ([-1, 5], "support must have indices from 0 to 79, got -1"),
        ([1.5], "support must be a list of indices, got an array of float64"),
        (VECTOR != 0, "support must be a list of indices, got an array of bool"),
        ([[1]], r"support must be a list of indices, got an array of .* shape \(1, 1\)"),
    ],
)
def test_bad_supports(support: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        refit_support(REFIT_MATRIX, REFIT_OBSERVATIONS, support)


def test_bad_efforts() -> None:
    with pytest.raises(ValueError, match=r"tolerance must be a number .*, got 0"):
        refit_support(REFIT_MATRIX, REFIT_OBSERVATIONS, [1], tolerance=0.0)
    with pytest.raises(ValueError, match=r"max_iterations must be a whole number .*, got 0"):
        refit_support(REFIT_MATRIX, REFIT_OBSERVATIONS, [1], max_iterations=0)
    with pytest.raises(ValueError, match="observations must have 30 numbers"):
        refit_support(REFIT_MATRIX, REFIT_OBSERVATIONS[:5], [1])
