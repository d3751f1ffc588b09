"""Sketches of few items, decoded by pursuit.

Points under test: least-squares errors, bounds for more items, and agreement with dense code.
"""

import math

import numpy as np
import pytest

from quietbits.design.frequencies.item_sketch import ItemSketch
from quietbits.design.frequencies.sparse_frequencies import SparseFrequencies, pursuit_buckets

CATEGORIES, CLIENTS, DISTINCT = 5_000, 10_000, 30


def made(distinct: int = DISTINCT, *, signed: bool = False, direct: bool = False) -> SparseFrequencies:
    width = math.ceil(pursuit_buckets(CATEGORIES, DISTINCT) / 7)
    sketch = ItemSketch(CATEGORIES, 1, CATEGORIES, signed=False) if direct else ItemSketch(CATEGORIES, 7, width, seed=4, signed=signed)
    return SparseFrequencies(sketch, CLIENTS, steps=4, local_sigma=1.0, delta=1e-5, distinct_items=distinct)


def counts_of(distinct: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    counts = np.zeros(CATEGORIES, dtype=np.int64)
    counts[rng.choice(CATEGORIES, distinct, replace=False)] = rng.multinomial(CLIENTS, np.full(distinct, 1 / distinct))
    return counts


def decoded(mechanism: SparseFrequencies, counts: np.ndarray, seed: int) -> np.ndarray:
    total = np.mod(mechanism.simulated_sum(counts, np.random.default_rng(seed)), mechanism.modulus)
    return mechanism.decode(total, CLIENTS)


@pytest.mark.parametrize("kind", [{}, {"signed": True}, {"direct": True}], ids=str)
def test_items_that_stand_out_have_the_predicted_error(kind: dict[str, bool]) -> None:
    mechanism = made(**kind)
    # The test uses two sketches with different items: finding the furthest of all pairs of items takes long.
    sketched = mechanism, mechanism.renewed(1)
    errors = []
    for seed in range(10):
        counts = counts_of(DISTINCT, seed)
        estimate = decoded(sketched[seed % 2], counts, seed)
        assert set(np.flatnonzero(estimate)) == set(np.flatnonzero(counts))
        errors.append(np.sum((estimate - counts / CLIENTS) ** 2))
    predicted = mechanism.error(np.repeat(np.arange(CATEGORIES), counts)).variance / CLIENTS
    assert predicted == pytest.approx(mechanism.variance_bound / CLIENTS, rel=1e-6)
    # The known sum removes one degree of freedom of 30 if the estimate exceeds the known sum, half of the time.
    assert 0.9 * predicted - 5 * np.std(errors) / math.sqrt(10) < np.mean(errors) < predicted + 5 * np.std(errors) / math.sqrt(10)
    assert estimate.sum() <= 1 + 1e-12


def test_what_noise_hides_and_projection_lowers_is_predicted() -> None:
    sketch = ItemSketch(CATEGORIES, 1, CATEGORIES, signed=False)
    mechanism = SparseFrequencies(sketch, CLIENTS, steps=4, local_sigma=1.0, delta=1e-5, distinct_items=CATEGORIES)
    weights = 1 / np.arange(1, CATEGORIES + 1)
    items = np.random.default_rng(0).choice(CATEGORIES, CLIENTS, p=weights / weights.sum())
    true = np.bincount(items, minlength=CATEGORIES) / CLIENTS
    aggregates = [
        np.mod(mechanism.simulated_sum(np.bincount(items, minlength=CATEGORIES), np.random.default_rng(seed)), mechanism.modulus)
        for seed in range(10)
    ]
    errors = [np.sum((mechanism.decode(aggregate, CLIENTS) - true) ** 2) for aggregate in aggregates]
    predicted = mechanism.predicted_error(true, mechanism.variance_bound)
    assert np.mean(errors) == pytest.approx(predicted.of_mean(CLIENTS), rel=0.03)
    # Most of the noise is on items with few or no holders, and the projection removes it.
    assert predicted.of_mean(CLIENTS) < 0.4 * mechanism.variance_bound / CLIENTS
    # The projection lowers the largest items, unlike the estimate of single items.
    estimates = [mechanism.estimate(aggregate, CLIENTS) for aggregate in aggregates]
    scores = [((estimate.frequencies - true) / estimate.standard_errors)[:20].mean() for estimate in estimates]
    lowered = [((estimate.decoded - true) / estimate.standard_errors)[:20].mean() for estimate in estimates]
    assert abs(np.mean(scores)) < 4 / math.sqrt(200)
    assert np.mean(lowered) < -0.3


def test_the_prediction_for_more_items_than_expected_has_those_that_are_missed() -> None:
    mechanism = made(distinct=10)
    counts = counts_of(100, 0)
    measured = np.mean([np.sum((decoded(mechanism, counts, seed) - counts / CLIENTS) ** 2) for seed in range(5)])
    predicted = mechanism.predicted_error(counts / CLIENTS, mechanism.variance_bound).of_mean(CLIENTS)
    assert predicted > 100 * mechanism.variance_bound / CLIENTS
    assert measured == pytest.approx(predicted, rel=0.2)


def test_more_items_than_expected_are_within_the_bound() -> None:
    mechanism = made(distinct=10)
    for distinct in (100, 3000):
        counts = counts_of(distinct, 0)
        estimate = decoded(mechanism, counts, 0)
        assert np.count_nonzero(estimate) <= 10
        assert (estimate >= 0).all()
        assert np.linalg.norm(estimate - counts / CLIENTS) <= mechanism.bias_bound == math.sqrt(2)


def test_messages_and_guarantee_are_those_of_the_dense_mechanism() -> None:
    mechanism = made()
    items = np.arange(50)
    sent = [item.encode(items, np.random.default_rng(1)) for item in (mechanism, mechanism.dense)]
    assert np.array_equal(*sent)
    assert mechanism.guarantee == mechanism.dense.guarantee
    assert mechanism.bits_per_client == mechanism.dense.bits_per_client


def test_nothing_but_noise_is_nothing() -> None:
    # With as many items as categories the threshold is 0; with few items, it is above the noise.
    assert made(distinct=1).threshold > made(distinct=100).threshold > 0
    direct = ItemSketch(4, 1, 4, signed=False)
    assert SparseFrequencies(direct, 10, steps=1, local_sigma=1.0, delta=1e-5, distinct_items=4).threshold == 0


@pytest.mark.parametrize("distinct", [0, CATEGORIES + 1])
def test_a_number_of_items_that_cannot_be_is_refused(distinct: int) -> None:
    with pytest.raises(ValueError, match="distinct_items must be a whole number from 1 to"):
        made(distinct)


def test_standard_errors_are_those_of_least_squares_where_few_items_are_held_and_larger_where_more_are() -> None:
    mechanism = made()
    least_squares = math.sqrt(mechanism.item_variance / CLIENTS)
    errors = []
    for distinct in (DISTINCT, 10 * DISTINCT):
        total = np.mod(mechanism.simulated_sum(counts_of(distinct, 0), np.random.default_rng(0)), mechanism.modulus)
        estimate = mechanism.estimate(total, CLIENTS)
        # All items have the same standard error, selected or not.
        assert np.unique(estimate.standard_errors).size == 1
        errors.append(estimate.standard_errors[0])
    assert errors[0] == pytest.approx(least_squares, rel=0.1)
    assert errors[1] > 5 * least_squares


def test_rows_on_which_pursuit_fails_hardly_count() -> None:
    # Six rows of 23 buckets are too few for some of the sketches, seven rows suffice.
    distinct, width, categories = 10, 23, 10_000
    ratios = []
    for seed in range(5):
        sketch = ItemSketch(categories, 7, width, seed=seed, signed=False)
        mechanism = SparseFrequencies(sketch, CLIENTS, steps=4, local_sigma=1.0, delta=1e-5, distinct_items=distinct)
        counts = np.where(np.arange(categories) < distinct, CLIENTS // distinct, 0)
        total = np.mod(mechanism.simulated_sum(counts, np.random.default_rng(seed)), mechanism.modulus)
        ratios.append(mechanism.estimate(total, CLIENTS).standard_errors[0] / math.sqrt(mechanism.item_variance / CLIENTS))
    assert np.median(ratios) < 3
