"""Two rounds: guarantees add up, and both errors beat a constant answer."""

import numpy as np
import pytest

from quietbits.analysis.simulation.two_round_frequencies import count_buckets, two_round_frequencies

CATEGORIES = 20_000
ITEMS = np.random.default_rng(0).choice(20, 20_000) * 700


@pytest.mark.parametrize("adjacency", ["replace-one", "add-or-remove-one"])
def test_both_rounds_together_keep_the_budget(adjacency: str) -> None:
    result = two_round_frequencies(ITEMS, CATEGORIES, 1.5, 1e-5, adjacency=adjacency, seed=1)
    first, second = result.count.privacy().epsilon(0.0, adjacency), result.mechanism.guarantee
    assert (result.count.adjacency, second.adjacency) == (adjacency, adjacency)
    assert result.guarantee.epsilon == first + second.epsilon
    assert 0 <= 1.5 - result.guarantee.epsilon <= 1e-5
    assert (result.guarantee.delta, result.guarantee.trust_model) == (1e-5, "secure-sum")
    assert result.bits_per_client == result.count.buckets + result.mechanism.bits_per_client


def test_the_sketch_is_for_the_number_that_the_count_allows_for() -> None:
    true = np.bincount(ITEMS, minlength=CATEGORIES) / len(ITEMS)
    reckoned = []
    for seed in range(8):
        result = two_round_frequencies(ITEMS, CATEGORIES, 2.0, 1e-5, seed=seed)
        reckoned.append(result.counted.upper)
        assert getattr(result.mechanism, "distinct_items", None) == result.distinct_items == max(1, result.counted.upper)
        assert np.sum((result.estimate.decoded - true) ** 2) < 1e-5
        # The sketch is shorter than a histogram of all items.
        assert result.bits_per_client < 0.7 * CATEGORIES * np.log2(result.mechanism.modulus)
    # Each estimated number is below the true number with probability at most 0.05.
    assert sum(number < 20 for number in reckoned) <= 3
    # The budget of the second round does not depend on the result of the first.
    assert len(set(reckoned)) > 3


def test_many_different_items_take_a_histogram() -> None:
    items = np.random.default_rng(1).integers(0, 500, 5000)
    result = two_round_frequencies(items, 500, 4.0, 1e-5)
    assert result.mechanism.sketch.direct
    true = np.bincount(items, minlength=500) / 5000
    assert np.sum((result.estimate.decoded - true) ** 2) < np.sum(true**2)


def test_buckets_are_a_power_of_two() -> None:
    assert [count_buckets(size, 10**6) for size in (2, 100, 10**4, 10**6)] == [2, 8, 512, 65536]


@pytest.mark.parametrize(("change", "message"), [({"count_share": 1.0}, "count_share must"), ({"failure": 0.0}, "failure must")])
def test_bad_arguments(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        two_round_frequencies(ITEMS, CATEGORIES, 1.0, 1e-5, **change)
