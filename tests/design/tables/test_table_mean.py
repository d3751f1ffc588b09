"""Means by a table.

Points under test: the largest variance by a fine search, and histograms with the law of the table.
"""

from fractions import Fraction

import numpy as np
import pytest

from quietbits.design.tables.certificate import certified_table
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.provenance import record_provenance
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism

TABLES = [
    generalised_randomised_response(1.0, 1, interval=(-2.0, 5.0)),
    generalised_randomised_response(6.0, 2, interval=(-2.0, 5.0)),
    bitwise_randomised_response(9.0, 2),
    design_mvu(6.0, 2, 2, interval=(0.0, 0.1)),
    # Letters are farthest apart, and dithering costs most, between the last two inputs.
    certified_table(
        mechanism="mvu",
        epsilon=5.0,
        metric=None,
        alphabet=(Fraction(0), Fraction(1, 10), Fraction(1, 5), Fraction(1)),
        total=64,
        weights=np.ones((4, 4), dtype=np.int64) + 60 * np.eye(4, dtype=np.int64),
        provenance=record_provenance("by hand", 0, 0.0),
        interval=(-2.0, 5.0),
    ),
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.mechanism}-{table.bits_in}-{table.total}")
def test_the_variance_bound_is_the_largest_between_grid_points_too(table: LookupTable) -> None:
    mechanism = TableMeanMechanism(table)
    variances = mechanism.variance(np.linspace(*table.interval, 100_001))
    assert variances.max() <= mechanism.variance_bound * (1 + 1e-12)
    assert mechanism.variance_bound == pytest.approx(variances.max(), rel=1e-8)
    # With little noise, dithering adds to the variance half-way between two inputs.
    if table.bits_in == 2 and table.epsilon == 9.0:
        assert mechanism.variance_bound > mechanism.variance(np.linspace(*table.interval, 4)).max() * 1.01


def test_letters_beyond_the_table_are_refused() -> None:
    mechanism = TableMeanMechanism(TABLES[1])
    assert mechanism.aggregate(np.array([0, 3, 3])).tolist() == [1, 0, 0, 2]
    with pytest.raises(ValueError, match="messages must be from 0 to 3, got 4"):
        mechanism.aggregate(np.array([0, 4]))
    with pytest.raises(ValueError, match="clients must be the number of letters in the histogram, 3, got 4"):
        mechanism.decode(np.array([1, 0, 0, 2]), 4)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.mechanism}-{table.bits_in}-{table.total}")
def test_scores_compare_dithered_inputs(table: LookupTable) -> None:
    low, high = table.interval
    steps, rows = len(table.weights) - 1, table.probabilities
    letters = np.arange(rows.shape[1])
    # The inputs are a quarter of a step above the lowest input, and the highest input.
    inner = low + (high - low) / (4 * steps)
    score = TableMeanMechanism(table).message_score(np.float64(inner), np.float64(high))
    assert score(letters) == pytest.approx(np.log((3 * rows[0] + rows[1]) / 4) - np.log(rows[-1]), rel=1e-9)


def test_the_guarantee_is_the_realised_epsilon_or_the_declared_metric_guarantee() -> None:
    plain, metric = design_mvu(2.0, 2, 2), design_mvu(2.0, 2, 2, metric="l1")
    guarantee = TableMeanMechanism(plain).guarantee
    assert guarantee.epsilon == TableMeanMechanism(plain).privacy().epsilon(0.0)
    assert (guarantee.adjacency, guarantee.delta) == ("replace-one", 0.0)
    assert TableMeanMechanism(metric).guarantee == metric.guarantee != plain.guarantee
