"""Least squares on a support: normal equations, an operator beside a matrix, and what cannot be fitted."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from quietbits import ConvergenceError, solve_lasso
from quietbits.solvers.decoders.support_refit import refit_support

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((30, 80))
VECTOR = np.zeros(80)
VECTOR[[3, 40, 77]] = [5.0, -4.0, 3.0]
OBSERVATIONS = MATRIX @ VECTOR + 0.1 * RNG.standard_normal(30)


@pytest.mark.parametrize("given", [MATRIX, aslinearoperator(MATRIX)], ids=["matrix", "operator"])
@pytest.mark.parametrize("support", [[40], [77, 3, 40], list(range(20)), list(range(30))])
def test_the_residual_is_orthogonal_to_the_columns_of_the_support(given: object, support: list[int]) -> None:
    found = refit_support(given, OBSERVATIONS, support)
    residual = OBSERVATIONS - MATRIX @ found.solution
    assert found.support.tolist() == sorted(support)
    assert not np.delete(found.solution, support).any()
    assert MATRIX[:, support].T @ residual == pytest.approx(np.zeros(len(support)), abs=1e-5)
    assert found.residual_norm == pytest.approx(np.linalg.norm(residual), rel=1e-12, abs=1e-12)
    expected = np.linalg.lstsq(MATRIX[:, support], OBSERVATIONS)[0]
    assert found.solution[support] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_refit_takes_back_what_the_lasso_has_shrunk() -> None:
    found = solve_lasso(MATRIX, OBSERVATIONS, 1.0)
    assert found.support.tolist() == [3, 40, 77]
    assert (np.abs(found.solution[found.support]) < np.abs(VECTOR[found.support]) - 0.5).all()
    refit = refit_support(MATRIX, OBSERVATIONS, found.support)
    assert refit.solution == pytest.approx(VECTOR, abs=0.1)
    assert np.sum((refit.solution - VECTOR) ** 2) < 0.02 * np.sum((found.solution - VECTOR) ** 2)


@pytest.mark.parametrize("given", [MATRIX, aslinearoperator(MATRIX)], ids=["matrix", "operator"])
def test_an_empty_support_is_the_zero_vector(given: object) -> None:
    found = refit_support(given, OBSERVATIONS, [])
    assert not found.solution.any()
    assert found.residual_norm == pytest.approx(np.linalg.norm(OBSERVATIONS))
    assert found.iterations == 0


@pytest.mark.parametrize("wrap", [np.asarray, aslinearoperator], ids=["matrix", "operator"])
def test_of_several_least_squares_it_is_the_smallest(wrap) -> None:
    matrix = np.hstack([np.zeros((30, 1)), MATRIX[:, :1], MATRIX[:, :1]])
    found = refit_support(wrap(matrix), OBSERVATIONS, [0, 1, 2])
    alone = MATRIX[:, 0] @ OBSERVATIONS / (MATRIX[:, 0] @ MATRIX[:, 0])
    assert found.solution == pytest.approx([0.0, alone / 2, alone / 2], abs=1e-8)


def test_nothing_half_solved_is_returned() -> None:
    with pytest.raises(ConvergenceError, match="least squares on 20 columns did not reach the tolerance 1e-10 in 2 iterations"):
        refit_support(aslinearoperator(MATRIX), OBSERVATIONS, range(20), max_iterations=2)


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
        refit_support(MATRIX, OBSERVATIONS, support)


def test_bad_efforts() -> None:
    with pytest.raises(ValueError, match=r"tolerance must be a number .*, got 0"):
        refit_support(MATRIX, OBSERVATIONS, [1], tolerance=0.0)
    with pytest.raises(ValueError, match=r"max_iterations must be a whole number .*, got 0"):
        refit_support(MATRIX, OBSERVATIONS, [1], max_iterations=0)
    with pytest.raises(ValueError, match="observations must have 30 numbers"):
        refit_support(MATRIX, OBSERVATIONS[:5], [1])
