import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.tables.table_facts import realised_epsilon, rounded_up, row_moments

tables = st.tuples(st.sampled_from([2, 4, 8]), st.sampled_from([2, 4])).flatmap(
    lambda shape: st.lists(st.lists(st.integers(1, 2**62), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0])
)


@given(tables, st.sampled_from([None, "l1", "l1.5", "l2"]))
def test_realised_epsilon_is_the_supremum_over_all_pairs_rounded_up(rows: list[list[int]], metric: str | None) -> None:
    realised = realised_epsilon(np.array(rows), metric)
    with mpmath.workdps(60):
        power = 0 if metric is None else mpmath.mpf(metric[1:])
        steps = len(rows) - 1
        exact = max(
            abs(mpmath.log(mpmath.mpf(first) / other)) / (mpmath.mpf(abs(i - k)) / steps) ** power
            for i, row in enumerate(rows)
            for k, other_row in enumerate(rows)
            if i != k
            for first, other in zip(row, other_row, strict=True)
        )
        assert exact <= realised
        assert realised <= exact * (1 + mpmath.mpf(2) ** -51)


@pytest.mark.parametrize(("metric", "factor"), [("l1", 3), ("l1.5", 27**0.5), ("l2", 9)])
def test_neighbours_count_by_a_power_of_the_number_of_steps(metric: str, factor: float) -> None:
    # Neighbours have ratios of at most 2, at a distance of a third.
    realised = realised_epsilon(np.array([[8, 8], [4, 12], [2, 14], [1, 15]]), metric)
    assert realised == pytest.approx(factor * math.log(2), rel=1e-15)
    assert realised_epsilon(np.array([[3, 1], [1, 3]]), metric) == pytest.approx(math.log(3), rel=1e-15)


def test_equal_rows_realise_zero_and_zeros_beside_nonzeros_infinity() -> None:
    assert realised_epsilon(np.array([[3, 5, 0, 8], [3, 5, 0, 8]]), None) == 0.0
    assert realised_epsilon(np.array([[3, 5, 0, 8], [3, 4, 1, 8]]), None) == math.inf
    assert realised_epsilon(np.array([[3, 5, 0, 8], [3, 4, 1, 8]]), "l1") == math.inf


def test_a_ratio_just_above_the_budget_is_seen() -> None:
    # One unit in 2**60 is far below a float's resolution of the ratio, but determines the comparison.
    low = 2**60
    with mpmath.workdps(50):
        largest = int(mpmath.floor(low * mpmath.e))
    assert realised_epsilon(np.array([[largest, low], [low, largest]]), None) == 1.0
    assert realised_epsilon(np.array([[largest + 1, low], [low, largest]]), None) > 1.0


@given(st.fractions())
def test_rounding_up(number: Fraction) -> None:
    above = rounded_up(number)
    assert above >= number
    assert math.nextafter(above, -math.inf) < number


def test_moments_by_hand() -> None:
    moments = row_moments(np.array([[3, 1], [1, 3]]), (Fraction(-1, 2), Fraction(3, 2)), 4)
    assert moments.means == (Fraction(0), Fraction(1))
    assert moments.variances == (Fraction(3, 4), Fraction(3, 4))
    assert (moments.max_bias, moments.mean_variance, moments.worst_variance) == (0, Fraction(3, 4), Fraction(3, 4))
    shifted = row_moments(np.array([[4, 0], [1, 3]]), (Fraction(-1, 2), Fraction(3, 2)), 4)
    assert shifted.max_bias == Fraction(1, 2)
    assert shifted.variances == (0, Fraction(3, 4))
