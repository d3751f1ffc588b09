"""A private count of different items.

Points under test: its law, guarantee by enumeration, unbiased estimates, and confidence bounds.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from quietbits.arrays import FloatArray
from quietbits.design.frequencies.distinct_count import DistinctCount
from quietbits.design.secure_sum.aggregation import SecureSum


def bit_probabilities(count: DistinctCount, items: list[int], *, clients: int | None = None) -> FloatArray:
    """Return the probability that each bucket's sum modulo 2 is 1, from the messages' laws."""
    rare = count.rare_words / 2.0**64
    # The sign (-1)^bit of a sum is the product of the clients' signs, each of expectation 1 - 2 p, or 0 in the client's own bucket.
    expected = np.full(count.buckets, (1 - 2 * rare) ** (count.clients if clients is None else clients))
    expected[count._hash().buckets(np.array(items, dtype=np.int64))[:, 0]] = 0.0
    return (1 - expected) / 2


def likelihoods(ones: FloatArray) -> FloatArray:
    """Return the probability of every vector of bits."""
    bits = np.array(list(itertools.product((0, 1), repeat=len(ones))))
    return np.prod(np.where(bits == 1, ones, 1 - ones), axis=1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("clients", [1, 3])
def test_the_guarantee_is_that_of_all_pairs_of_neighbours(epsilon: float, clients: int) -> None:
    for adjacency in ("replace-one", "add-or-remove-one"):
        count = DistinctCount(categories=5, clients=clients, buckets=4, epsilon=epsilon, seed=2, adjacency=adjacency)
        worst = 0.0
        for items in itertools.product(range(5), repeat=clients):
            neighbours = [[*items[1:]]] if adjacency == "add-or-remove-one" else [[item, *items[1:]] for item in range(5)]
            for other in neighbours:
                first, second = (likelihoods(bit_probabilities(count, [*held])) for held in (items, other))
                worst = max(worst, float(np.abs(np.log(first / second)).max()))
        assert worst <= epsilon
        # The guarantee is tight.
        assert worst == pytest.approx(epsilon, rel=1e-9)
        assert count.privacy().epsilon(0.0, adjacency) == epsilon


def test_messages_have_the_law_that_is_accounted_for() -> None:
    count = DistinctCount(categories=50, clients=4, buckets=8, epsilon=1.5, seed=3)
    items, rounds = [7, 7, 30, 41], 4_000
    rng = np.random.default_rng(0)
    messages = count.encode(np.tile(items, rounds), rng).reshape(rounds, 4, 8)
    sums = np.array([count.aggregate(message) for message in messages]).mean(axis=0)
    drawn = np.mean([count.simulated_sum(np.bincount(items, minlength=50), rng) for _ in range(rounds)], axis=0)
    expected = bit_probabilities(count, items)
    for shares in (sums, drawn):
        # The margin is six standard errors.
        assert np.abs(shares - expected).max() < 6 * 0.5 / math.sqrt(rounds)
    # Masks do not change the sum.
    masked = SecureSum(4, 8, 2).total([messages[0]], rng)
    assert masked.tolist() == count.aggregate(messages[0]).tolist()


def test_the_number_of_empty_buckets_is_estimated_without_bias() -> None:
    # The expectation is exact, over all sums of a few buckets.
    count = DistinctCount(categories=100, clients=5, buckets=6, epsilon=0.8, seed=1)
    items = [3, 50, 51, 3, 99]
    empty = 6 - len(np.unique(count._hash().buckets(np.array(items))))
    probabilities = likelihoods(bit_probabilities(count, items))
    estimates = [count.estimate(np.array(bits)).empty_buckets for bits in itertools.product((0, 1), repeat=6)]
    assert float(probabilities @ estimates) == pytest.approx(empty, abs=1e-9)


@pytest.mark.parametrize(("distinct", "buckets"), [(5, 64), (60, 64), (500, 256), (0, 64), (40, 1000)])
def test_the_bound_fails_as_rarely_as_it_says(distinct: int, buckets: int) -> None:
    failure, rounds = 0.2, 250
    rng = np.random.default_rng(distinct)
    failures = 0
    estimates = []
    for seed in range(rounds):
        count = DistinctCount(categories=1000, clients=800, buckets=buckets, epsilon=2.0, seed=seed)
        counts = np.zeros(1000, dtype=np.int64)
        counts[rng.choice(1000, distinct, replace=False)] = 1
        estimate = count.estimate(count.simulated_sum(counts, rng), failure)
        failures += estimate.upper < distinct
        estimates.append(estimate.distinct_items)
        assert 0 <= estimate.upper <= 800
    # If each round fails with probability 0.2, more failures than these have a probability below 1e-6.
    assert failures <= binom.isf(1e-6, rounds, failure)
    if distinct == 40:
        # Each item has its own bucket.
        assert np.mean(estimates) == pytest.approx(40, abs=6 * np.std(estimates) / math.sqrt(rounds) + 8)


def test_more_privacy_than_noise_can_be_told_from() -> None:
    tiny = DistinctCount(categories=100, clients=10**7, buckets=16, epsilon=1e-4)
    assert 0 < tiny.contrast <= math.tanh(5e-5)
    # Half of the bits are 1, so the count contains no information on the number of items.
    assert tiny.estimate(np.arange(16) % 2).upper == 100
    assert DistinctCount(categories=100, clients=1, buckets=16, epsilon=20.0).contrast == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"categories": 1}, "categories must be a whole number from 2"),
        ({"clients": 0}, "clients must be a whole number from 1"),
        ({"buckets": 1}, "buckets must be a whole number from 2"),
        ({"epsilon": 0.0}, "epsilon must be a number from 0.0001 to 20"),
        ({"adjacency": "swap"}, "adjacency must be one of"),
    ],
)
def test_bad_fields_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DistinctCount(**({"categories": 10, "clients": 5, "buckets": 4, "epsilon": 1.0} | change))


def test_unknown_items_and_bad_failures_are_refused() -> None:
    count = DistinctCount(categories=10, clients=5, buckets=4, epsilon=1.0)
    with pytest.raises(ValueError, match="items must be whole numbers from 0 to 9, got 10"):
        count.encode([10], np.random.default_rng(0))
    with pytest.raises(ValueError, match="failure must be"):
        count.estimate(np.zeros(4, dtype=int), failure=1.0)
    with pytest.raises(ValueError, match=r"aggregate must have the shape \(4,\)"):
        count.estimate(np.zeros(5, dtype=int))
