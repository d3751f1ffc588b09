"""The price of compression.

Points under test: every mechanism is a point, even if its default options are refused.
"""

import pytest

from quietbits.figures.linear_compression.needed_bits import PricePoint


@pytest.mark.parametrize("mechanism", ["sketched-discrete-gaussian", "central-sketch"])
def test_a_sketch_that_keeps_no_slack_has_the_least_error_that_it_can(mechanism: str) -> None:
    (row,) = PricePoint(seed=0, mechanism=mechanism, clients=1000, dimension=300, epsilon=1.0).run()
    # With little noise, a sketch of 120 coordinates, the least for 15 rows, has an error of 299/120 of the squared norm.
    assert row["compressed_error"] == pytest.approx(299 / 120 + 1.21 * row["central_squared_error"], rel=1e-3)
    assert not row["within_slack"]
    assert row["bits_per_client"] < 300 * 64


def test_a_mechanism_that_cannot_serve_says_why() -> None:
    (row,) = PricePoint(seed=0, mechanism="sparse-discrete-gaussian", clients=1000, dimension=64, epsilon=1.0).run()
    assert "sparsity must be smaller" in row["reason"]
