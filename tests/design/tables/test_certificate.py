import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.tables.certificate import certify, objective_value, with_lower_bound
from quietbits.design.tables.lookup_table import DualCertificate
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.design.tables.table_facts import RowMoments, realised_epsilon, rounded_up, row_moments

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
            abs(mpmath.log(mpmath.mpf(one) / other)) / (mpmath.mpf(abs(i - k)) / steps) ** power
            for i, row in enumerate(rows)
            for k, other_row in enumerate(rows)
            if i != k
            for one, other in zip(row, other_row, strict=True)
        )
        assert exact <= realised
        assert realised <= exact * (1 + mpmath.mpf(2) ** -51)


def test_equal_rows_realise_zero_and_zeros_beside_nonzeros_infinity() -> None:
    assert realised_epsilon(np.array([[3, 5, 0, 8], [3, 5, 0, 8]]), None) == 0.0
    assert realised_epsilon(np.array([[3, 5, 0, 8], [3, 4, 1, 8]]), None) == math.inf
    assert realised_epsilon(np.array([[3, 5, 0, 8], [3, 4, 1, 8]]), "l1") == math.inf


def test_a_ratio_just_above_the_budget_is_seen() -> None:
    # One unit in 2**60 is far below a float's resolution of the ratio, yet it decides.
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


def test_binary_randomised_response_is_certified_optimal() -> None:
    table = generalised_randomised_response(1.0, 1)
    # The letter E/(E-1) of the ray (1, E) is where the prices (-p, p) leave no slope: p = 2 E / (E-1)**2.
    price = 2 * math.e / (math.e - 1) ** 2
    certified = with_lower_bound(table, DualCertificate((0.0, 0.0), (-price, price), (0.5, 0.5))).certificate
    assert certified.lower_bound == pytest.approx(math.e / (math.e - 1) ** 2, rel=1e-12)
    assert certified.optimality_gap == pytest.approx(0.0, abs=1e-12)
    loose = with_lower_bound(table, DualCertificate((0.0, 0.0), (0.0, 0.0), (0.5, 0.5))).certificate
    assert loose.lower_bound is not None
    assert loose.lower_bound < certified.lower_bound
    assert loose.optimality_gap == pytest.approx(1 - loose.lower_bound / certified.mean_variance)


WEIGHTS, ALPHABET = np.array([[3, 1], [1, 3]]), (Fraction(-1, 2), Fraction(3, 2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "median"}, "objective must be one of mean, worst, prior, got 'median'"),
        ({"objective": "prior"}, "prior must be given for the objective 'prior'"),
        ({"prior": (0.5, 0.5)}, "prior must be given for the objective 'prior' and for no other"),
        ({"objective": "prior", "prior": (0.5, 0.6)}, "prior must be 2 non-negative numbers that sum to one"),
        ({"objective": "prior", "prior": (1.0, 0.0, 0.0)}, "prior must be 2 non-negative numbers that sum to one"),
        ({"dual": DualCertificate((0.0,), (0.0,), (1.0,))}, "dual must hold 2 values of each kind, got 1 and 1"),
        ({"dual": DualCertificate((0.0, 0.0), (0.0, 0.0), (0.6, 0.6))}, "dual.input_weights must be 2 non-negative numbers"),
        ({"dual": DualCertificate((0.0, 0.0), (0.0, 0.0), (0.4, 0.6))}, "dual.input_weights must be those of the objective 'mean'"),
    ],
)
def test_certificates_refuse_what_does_not_belong_together(changes: dict[str, object], message: str) -> None:
    arguments = {"epsilon": 1.2, "metric": None, "objective": "mean", "prior": None, "dual": None, **changes}
    with pytest.raises(ValueError, match=message):
        certify(WEIGHTS, ALPHABET, 4, **arguments)


def test_a_biased_table_has_no_lower_bound() -> None:
    dual = DualCertificate((0.0, 0.0), (0.0, 0.0), (0.5, 0.5))
    with pytest.raises(ValueError, match="dual must be None for a table with bias"):
        certify(WEIGHTS, (Fraction(0), Fraction(1)), 4, epsilon=1.2, metric=None, objective="mean", prior=None, dual=dual)


def test_each_objective_is_its_figure_of_the_variances() -> None:
    moments = RowMoments((Fraction(0), Fraction(1)), (Fraction(3), Fraction(5)))
    assert objective_value(moments, "mean", None) == 4.0
    assert objective_value(moments, "worst", None) == 5.0
    assert objective_value(moments, "prior", (0.75, 0.25)) == 3.5


def test_the_worst_case_bound_takes_any_input_weights() -> None:
    table = generalised_randomised_response(1.0, 1)
    dual = DualCertificate((0.2, 0.2), (-0.4, 0.6), (0.4, 0.6))
    worst = certify(table.weights, table.alphabet, table.total, epsilon=1.0, metric=None, objective="worst", prior=None, dual=dual)
    assert worst.lower_bound is not None
    assert worst.lower_bound <= worst.worst_variance
