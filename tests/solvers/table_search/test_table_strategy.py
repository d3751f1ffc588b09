"""Tables in closed form or from coarser grids.

Requirements: tables are unbiased, private, and of the stated variance.
"""

from functools import cache

import numpy as np
import pytest

from quietbits.solvers.bounds.privacy_constraint import RatioConstraint, ratio_constraint
from quietbits.solvers.bounds.staircase import solve_staircase, staircase_bound
from quietbits.solvers.table_search.table_strategy import dithered_randomised_response, dithered_staircase, dithering_matrix, one_bit_table


def largest_log_ratio(probabilities: np.ndarray, constraint: RatioConstraint) -> float:
    logs = np.log(probabilities)
    return float((np.abs(np.diff(logs, axis=0)) if constraint.neighbours_only else np.ptp(logs, axis=0)).max())


def check_table(probabilities: np.ndarray, alphabet: np.ndarray, constraint: RatioConstraint) -> None:
    inputs = np.linspace(0, 1, len(probabilities))
    assert np.all(probabilities >= 0)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(inputs)), abs=1e-8)
    assert probabilities @ alphabet == pytest.approx(inputs, abs=1e-8 * np.abs(alphabet).max())
    assert np.all(np.diff(alphabet) > 0)
    assert largest_log_ratio(probabilities, constraint) <= constraint.log_ratio * (1 + 1e-9)


def variances(probabilities: np.ndarray, alphabet: np.ndarray) -> np.ndarray:
    return (probabilities * (np.linspace(0, 1, len(probabilities))[:, None] - alphabet) ** 2).sum(axis=1)


@pytest.mark.parametrize(("fine", "coarse"), [(2, 2), (4, 2), (8, 8), (16, 4), (512, 64), (7, 3)])
def test_dithering_rounds_to_the_two_nearest_points_without_bias(fine: int, coarse: int) -> None:
    matrix = dithering_matrix(fine, coarse)
    inputs, points = np.linspace(0, 1, fine), np.linspace(0, 1, coarse)
    assert matrix.shape == (fine, coarse)
    assert np.all(matrix >= 0)
    assert matrix.sum(axis=1) == pytest.approx(np.ones(fine), abs=1e-14)
    assert matrix @ points == pytest.approx(inputs, abs=1e-14)
    step = 1 / (coarse - 1)
    assert np.all(np.abs(inputs[:, None] - points)[matrix > 0] <= step * (1 + 1e-12))
    assert np.all((matrix > 0).sum(axis=1) <= 2)


def test_dithering_to_the_same_grid_changes_nothing() -> None:
    assert dithering_matrix(16, 16) == pytest.approx(np.eye(16), abs=1e-15)


@cache
def lower_bound(epsilon: float, bits_in: int, metric: str | None) -> float:
    return staircase_bound(bits_in, ratio_constraint(epsilon, bits_in, metric), np.full(2**bits_in, 2.0**-bits_in)).lower_bound


@pytest.mark.parametrize(("bits_in", "bits_out"), [(3, 3), (3, 4), (4, 3), (4, 4), (4, 2)])
@pytest.mark.parametrize(("epsilon", "metric"), [(2, None), (2, "l1"), (10, None), (10, "l1"), (10, "l2")])
def test_dithered_optima_are_unbiased_and_private(epsilon: float, bits_in: int, bits_out: int, metric: str | None) -> None:
    constraint, weights = ratio_constraint(epsilon, bits_in, metric), np.full(2**bits_in, 2.0**-bits_in)
    table = dithered_staircase(bits_in, bits_out, constraint, weights)
    probabilities, alphabet = table.probabilities, table.alphabet
    assert probabilities.shape == (2**bits_in, len(alphabet))
    assert len(alphabet) <= 2**bits_out
    check_table(probabilities, alphabet, constraint)
    assert weights @ variances(probabilities, alphabet) >= lower_bound(epsilon, bits_in, metric)


@pytest.mark.parametrize("objective", ["prior", "worst"])
def test_dithering_adds_at_most_a_quarter_of_a_squared_step(objective: str) -> None:
    constraint = ratio_constraint(2, 5, None)
    weights = None if objective == "worst" else np.arange(1, 33) / 528
    table = dithered_staircase(5, 4, constraint, weights)
    probabilities, alphabet = table.probabilities, table.alphabet
    check_table(probabilities, alphabet, constraint)
    coarse = solve_staircase(3, constraint, None if weights is None else weights.reshape(8, 4).sum(axis=1))
    between = dithering_matrix(32, 8) @ variances(coarse.probabilities, coarse.alphabet)
    added = variances(probabilities, alphabet) - between
    assert np.all(added >= -1e-8)
    assert added.max() <= 1 / 7**2 / 4 + 1e-8


@pytest.mark.parametrize("epsilon", [0.5, 4, 12])
@pytest.mark.parametrize(("bits_in", "bits_out"), [(3, 3), (5, 3), (7, 4), (4, 1)])
def test_dithered_randomised_response_is_unbiased_and_private(bits_in: int, bits_out: int, epsilon: float) -> None:
    table = dithered_randomised_response(bits_in, bits_out, epsilon)
    probabilities, alphabet = table.probabilities, table.alphabet
    assert probabilities.shape == (2**bits_in, 2**bits_out)
    check_table(probabilities, alphabet, RatioConstraint(epsilon, False))
    # The ends are not dithered, so they use the allowed ratio fully.
    assert largest_log_ratio(probabilities, RatioConstraint(epsilon, False)) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("metric", [None, "l1", "l2"])
@pytest.mark.parametrize("bits_in", [1, 3, 6])
@pytest.mark.parametrize("epsilon", [0.1, 1, 8])
def test_one_bit_tables_use_up_their_privacy(epsilon: float, bits_in: int, metric: str | None) -> None:
    constraint = ratio_constraint(epsilon, bits_in, metric)
    table = one_bit_table(2**bits_in, constraint)
    probabilities, alphabet = table.probabilities, table.alphabet
    check_table(probabilities, alphabet, constraint)
    assert largest_log_ratio(probabilities, constraint) == pytest.approx(constraint.log_ratio, rel=1e-9)
    inputs = np.linspace(0, 1, 2**bits_in)
    assert variances(probabilities, alphabet) == pytest.approx((inputs - alphabet[0]) * (alphabet[1] - inputs), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1, 8])
def test_the_local_one_bit_table_is_the_scalar_mechanism_of_cldp(epsilon: float) -> None:
    """On [-1, 1] the variance at x is ((E + 1) / (E - 1))**2 - x**2 (Girgis et al.)."""
    table = one_bit_table(16, RatioConstraint(epsilon, False))
    probabilities, alphabet = table.probabilities, table.alphabet
    ratio, x = np.exp(epsilon), np.linspace(-1, 1, 16)
    assert 4 * variances(probabilities, alphabet) == pytest.approx(((ratio + 1) / (ratio - 1)) ** 2 - x**2, rel=1e-12)
