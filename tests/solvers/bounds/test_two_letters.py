"""Tests of the best table with two letters.

No pair of letters is better, and the bound is rounded down.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from quietbits.errors import InfeasibleError
from quietbits.solvers.bounds.privacy_constraint import ratio_constraint
from quietbits.solvers.bounds.two_letters import least_reach, two_letter_bound
from quietbits.solvers.table_search.table_program import TableProgram

WEIGHTS = {"mean": np.full(8, 1 / 8), "prior": np.arange(1, 9) / 36, "worst": None}


@pytest.mark.parametrize("metric", [None, "l1", "l2"])
@pytest.mark.parametrize("objective", ["mean", "prior", "worst"])
def test_no_pair_of_letters_is_better(objective: str, metric: str | None) -> None:
    """Every pair on a grid of letters either permits no table, or a table that is no better."""
    constraint = ratio_constraint(1.5, 3, metric)
    weights = WEIGHTS[objective]
    program = TableProgram(np.linspace(0, 1, 8), 2, constraint, weights)
    bound, reach = two_letter_bound(8, constraint, weights), least_reach(8, constraint)
    values = []
    for below in reach * np.array([0.5, 0.9, 0.999, 1 + 1e-7, 1.01, 1.2, 2]):
        for above in reach * np.array([0.7, 0.999, 1 + 1e-7, 1.05, 1.5]):
            try:
                values.append(program.solve(np.array([-below, 1 + above])).value)
            except InfeasibleError:
                assert min(below, above) < reach
    assert len(values) >= 12
    assert min(values) == pytest.approx(bound, rel=1e-5)
    assert min(values) >= bound * (1 - 1e-9)


@pytest.mark.parametrize("metric", [None, "l1", "l2"])
@pytest.mark.parametrize("epsilon", [0.001, 0.5, 3, 20])
@pytest.mark.parametrize("bits_in", [1, 3, 9])
def test_the_bound_is_below_the_exact_value_and_near(bits_in: int, epsilon: float, metric: str | None) -> None:
    count, constraint = 2**bits_in, ratio_constraint(epsilon, bits_in, metric)
    with mpmath.workdps(60):
        reach = (Fraction(1, count - 1) if metric else Fraction(1)) * 1
        exact_reach = mpmath.mpf(reach.numerator) / reach.denominator / mpmath.expm1(mpmath.mpf(constraint.log_ratio))
        variances = [(mpmath.mpf(i) / (count - 1) + exact_reach) * (1 - mpmath.mpf(i) / (count - 1) + exact_reach) for i in range(count)]
        for weights, exact in ((np.full(count, 1 / count), sum(variances) / count), (None, max(variances))):
            bound = two_letter_bound(count, constraint, weights)
            assert bound <= exact
            assert bound >= exact * (1 - mpmath.mpf(1e-12))


@pytest.mark.parametrize("metric", [None, "l1", "l2"])
@pytest.mark.parametrize("epsilon", [0.2, 1, 5])
@pytest.mark.parametrize("end", ["low", "high"])
def test_the_least_reach_is_where_tables_begin_to_exist(epsilon: float, metric: str | None, end: str) -> None:
    constraint = ratio_constraint(epsilon, 2, metric)
    reach = least_reach(4, constraint)
    enough = np.array([-reach * (1 + 1e-6), 0.3, 1 + reach * (1 + 1e-6)])
    program = TableProgram(np.linspace(0, 1, 4), 3, constraint, np.full(4, 0.25))
    assert program.solve(enough).value > 0
    short = np.array([-reach * (0.99 if end == "low" else 3), 0.3, 1 + reach * (0.99 if end == "high" else 3)])
    with pytest.raises(InfeasibleError, match="reach farther out"):
        program.solve(short)
