"""Tests of needed bits.

Requirements: exact codes agree with the entropy, and mechanisms use at least the bits that their errors require.
"""

import math

import pandas as pd
import pytest

from quietbits.figures.frequencies.needed_bits import BERNOULLI, BOUNDS, IDENTITY, needed_points
from quietbits.solvers.limits.histogram_code_size import code_size


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.DataFrame([row for point in needed_points(0, ((60, 300),), {"epsilon": 2.0}) for row in point.run()])


def test_nothing_takes_fewer_bits_than_its_error_makes_necessary(rows: pd.DataFrame) -> None:
    schemes = rows[rows["mechanism"] != BOUNDS].dropna(subset=["bits_per_client"])
    assert len(schemes) >= 12
    assert (schemes["bits_per_client"] >= schemes["necessary_bits"]).all()


def test_no_private_mechanism_has_less_error_than_its_bound(rows: pd.DataFrame) -> None:
    schemes = rows[~rows["mechanism"].isin([BOUNDS, IDENTITY, BERNOULLI, "exact-histogram"])].dropna(subset=["worst_squared_error"])
    for trust, column in (("local", "local_error_bound"), ("secure-sum", "secure_sum_error_bound")):
        own = schemes[schemes["trust_model"] == trust]
        assert len(own) >= 6
        assert (own["worst_squared_error"] >= own[column]).all()


def test_exact_codes_take_the_entropy_at_least(rows: pd.DataFrame) -> None:
    codes = rows.set_index("mechanism").loc[[IDENTITY, BERNOULLI]]
    assert codes["bits_per_client"].tolist() == pytest.approx([300 * math.log2(61), code_size(60, 300, 0.05) * math.log2(61)])
    assert (codes["bits_per_client"] > codes["histogram_bits"]).all()
    assert codes["necessary_bits"].tolist() == pytest.approx(codes["histogram_bits"].tolist(), rel=1e-6)


def test_necessary_bits_fall_with_the_error(rows: pd.DataFrame) -> None:
    for _, curve in rows[rows["mechanism"] == BOUNDS].groupby("trust_model"):
        bits = curve.sort_values("worst_squared_error")["necessary_bits"]
        assert bits.is_monotonic_decreasing
        assert bits.iloc[0] > bits.iloc[-1] == 0
