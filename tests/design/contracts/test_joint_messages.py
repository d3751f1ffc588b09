"""Tests of mechanisms whose messages the server sees only together.

Point under test: further messages never weaken a guarantee, by enumeration of the laws of sums.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from quietbits.arrays import FloatArray
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.cpsgd import CpsgdMechanism
from quietbits.design.secure_sum.distributed_skellam import DistributedSkellamMechanism

BALL = NormBall(1, 2.0, 1.0)


def exact_epsilon(first: FloatArray, second: FloatArray, delta: float) -> float:
    """Return the least epsilon of two laws at a delta, by bisection, in both directions."""

    def exceeds(epsilon: float) -> bool:
        factor = math.exp(epsilon)
        return max(np.maximum(first - factor * second, 0).sum(), np.maximum(second - factor * first, 0).sum()) > delta

    low, high = 0.0, 60.0
    for _ in range(60):
        low, high = ((low + high) / 2, high) if exceeds((low + high) / 2) else (low, (low + high) / 2)
    return high


def test_sums_of_levels_and_trials_by_enumeration() -> None:
    # Levels of a client at either end are certain; every other client is at one of the ends.
    mechanism = CpsgdMechanism(BALL, clients=6, levels=2, trials=20, delta=1e-3, survivors=3)
    noise = np.array([math.comb(20, k) for k in range(21)], dtype=float) / 2.0**20
    for others in (0, 1):
        exact = list[float]()
        law = noise
        for clients in range(1, 7):
            if clients > 1:
                law = np.convolve(np.convolve(law, noise), [1 - others, others])
            if clients < mechanism.fewest_clients:
                continue
            epsilon = exact_epsilon(np.append(law, 0.0), np.append(0.0, law), 1e-3)
            assert epsilon <= mechanism.guarantee.epsilon
            assert epsilon <= mechanism.privacy_of(clients).epsilon(1e-3)
            exact.append(epsilon)
        assert len(exact) == 4
        assert exact == sorted(exact, reverse=True)
        assert mechanism.privacy_of(2).epsilon(1e-3) > mechanism.guarantee.epsilon


def test_the_guarantee_is_that_of_the_survivors() -> None:
    whole = DistributedSkellamMechanism(BALL, clients=100, bits=20, granularity=0.01, local_variance=0.04, delta=1e-5)
    planned = replace(whole, survivors=60)
    assert (whole.fewest_clients, planned.fewest_clients, planned.joint_clients) == (100, 60, 100)
    assert planned.guarantee == whole.for_clients(60).guarantee
    assert planned.guarantee.epsilon > whole.guarantee.epsilon
    assert planned.for_clients(40).guarantee == whole.for_clients(40).guarantee
    assert planned.privacy_of(100).epsilon(1e-5) == whole.guarantee.epsilon
    assert planned.check_arrived(60) == 60
    for clients in (59, 101, 60.0, True):
        with pytest.raises(ValueError, match="clients must be from 60 to 100, for whose noise the guarantee is stated"):
            planned.check_arrived(clients)


def test_the_estimate_is_divided_by_the_clients_that_remain() -> None:
    mechanism = DistributedSkellamMechanism(BALL, clients=1000, bits=20, granularity=0.001, local_variance=1e-4, delta=1e-5, survivors=500)
    vectors = np.full((500, 1), 0.75)
    estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, np.random.default_rng(0))), 500)
    assert abs(estimate[0] - 0.75) < 6 * math.sqrt(mechanism.variance_bound / 500)
