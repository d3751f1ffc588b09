"""Stretched tables are unbiased, more private with more shrinkage, and exact after rounding."""

import math

import numpy as np
import pytest

from quietbits.design.tables.provenance import record_provenance
from quietbits.design.tables.renyi_table import RenyiTable
from quietbits.design.tables.verification import verify_table
from quietbits.errors import ConvergenceError
from quietbits.solvers.accounting.renyi_divergence import renyi_matrix
from quietbits.solvers.table_search.renyi_budget import RenyiBudget
from quietbits.solvers.table_search.renyi_search import RenyiDesign, RenyiProgram

MADE = record_provenance("renyi", 0, 0.0)
GRID = np.linspace(0, 1, 8)


@pytest.fixture(scope="module")
def floats() -> RenyiTable:
    budget = RenyiBudget(8, 20, 2.0, 1.1, 3.0, 1e-5)
    program = RenyiProgram(8, 4, 8.0, budget.reach, np.zeros(4), 1.0)
    reaches = np.array([5.0, 18.0])
    return RenyiTable.of(RenyiDesign(8.0, 0.9, reaches, program.solve(reaches, budget.limits(8.0, 0.9))))


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.0, 1.01])
def test_stretched_tables_are_unbiased(floats: RenyiTable, factor: float) -> None:
    table = floats.stretched(factor)
    assert np.all(np.diff(table.alphabet) > 0)
    assert table.probabilities.sum(axis=1) == pytest.approx(np.ones(8), abs=1e-8)
    assert table.probabilities @ table.alphabet == pytest.approx(GRID, abs=1e-6)


def test_the_smaller_the_factor_the_more_private(floats: RenyiTable) -> None:
    largest = [renyi_matrix(floats.stretched(factor).exact("l1", MADE).weights, 8.0).max() for factor in (0.6, 0.8, 1.0, 1.01)]
    assert largest == sorted(largest)


@pytest.mark.parametrize("metric", [None, "l1", "l2"])
def test_exact_tables_verify_and_are_those_of_floating_point(floats: RenyiTable, metric: str | None) -> None:
    exact = floats.stretched(0.99).exact(metric, MADE)
    assert verify_table(exact).max_bias == 0
    assert exact.epsilon == exact.certificate.realised_epsilon < math.inf
    assert (exact.weights == exact.weights[::-1, ::-1]).all()
    np.testing.assert_allclose(exact.probabilities, floats.stretched(0.99).probabilities, atol=1e-6)


def test_tables_stretched_too_far_are_refused(floats: RenyiTable) -> None:
    with pytest.raises(ConvergenceError, match="the stretched table has entries that are not positive, down to -"):
        floats.stretched(8.0).exact("l1", MADE)
