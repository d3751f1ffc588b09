"""Tests of the parts of an error, over clients and over rounds."""

import math
from dataclasses import replace

import pytest

from quietbits.design.contracts.error import Error
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism

ERROR = Error(variance=60.0, bias=0.5, wrap_probability=0.1, shared=2.0)


def test_clients_lower_what_is_their_own_and_rounds_what_is_unbiased() -> None:
    assert ERROR.of_mean(1) == 60 + 2 + 0.25
    assert ERROR.of_mean(10) == 6 + 2 + 0.25
    assert ERROR.of_mean(10, rounds=4) == 8 / 4 + 0.25
    # Variance common to the clients of a round does not fall with more clients; bias does not fall with more rounds either.
    assert ERROR.of_mean(10**12) == pytest.approx(2.25, rel=1e-9)
    assert ERROR.of_mean(10, rounds=10**12) == pytest.approx(0.25, rel=1e-9)
    unbiased = replace(ERROR, bias=0.0)
    assert unbiased.of_mean(10, rounds=100) == pytest.approx(unbiased.of_mean(10) / 100, rel=1e-15)


def test_a_mechanism_without_public_randomness_has_nothing_in_common_and_nothing_to_renew() -> None:
    mechanism = PrivUnitGMechanism(2.0, NormBall(3, 2.0))
    vectors = [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    assert mechanism.renewed(5) is mechanism
    assert mechanism.worst_shared_variance == mechanism.error().shared == mechanism.error(vectors).shared == 0.0
    assert mechanism.error().of_mean(7) == pytest.approx(mechanism.variance_bound / 7 + mechanism.bias_bound**2, rel=1e-15)
    assert math.isfinite(mechanism.error(vectors).of_mean(2))
