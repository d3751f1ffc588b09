import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from quietbits.analysis.catalogue.registry import REGISTRY, build_mechanism
from quietbits.analysis.simulation.heavy_hitters import Threshold, heavy_hitters, reporting_threshold
from quietbits.analysis.simulation.populations import item_chunks
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.mechanism import FrequencyMechanism
from quietbits.design.contracts.task import Task

CATEGORIES, CLIENTS = 2000, 4000
LOCAL = [name for name, entry in REGISTRY.items() if Categories in entry.domains and entry.trust_model == "local"]


def built(name: str, epsilon: float = 2.0, categories: int = CATEGORIES) -> FrequencyMechanism:
    mechanism = build_mechanism(name, Task(Categories(categories), CLIENTS, epsilon, 0.0, "replace-one"))
    assert isinstance(mechanism, FrequencyMechanism)
    return mechanism


def estimated(mechanism: FrequencyMechanism, items: np.ndarray, seed: int) -> np.ndarray:
    return mechanism.decode(mechanism.aggregate(mechanism.encode(items, np.random.default_rng(seed))), len(items))


@pytest.mark.parametrize("name", LOCAL)
def test_false_positives_are_as_rare_as_stated(name: str) -> None:
    # Few items, so that the error is nearly normal where each lie names one of them.
    categories = 50 if name == "frequency-randomised-response" else CATEGORIES
    mechanism = built(name, categories=categories)
    threshold = reporting_threshold(mechanism, CLIENTS, 0.02, "item")
    assert (threshold.item_rate, threshold.any_rate) == (0.02, 1.0)
    # Nobody holds an item but the first and the last, which are of different blocks.
    items = np.repeat([0, categories - 1], CLIENTS // 2)
    frequencies = np.bincount(items, minlength=categories) / CLIENTS
    rounds = 20_000 // categories
    rates = [heavy_hitters(estimated(mechanism, items, seed), frequencies, threshold, 0.4).false_rate for seed in range(rounds)]
    deviation = 5 * math.sqrt(0.02 / 20_000)
    # Half of all clients hold an item of the same block: where there are blocks, the variance is less than the bound on it.
    least = 0.018 if getattr(mechanism, "blocks", 1) == 1 else 0.005
    assert least - deviation <= np.mean(rates) <= 0.022 + deviation


def test_the_rate_is_the_exact_one_up_to_the_normal_approximation() -> None:
    mechanism = built("unary-encoding")
    threshold = reporting_threshold(mechanism, CLIENTS, 0.05, "item")
    counts = np.arange(CLIENTS + 1)
    mechanism_counts = np.array([mechanism.decode(np.full(CATEGORIES, count), CLIENTS)[0] for count in counts])
    rate = binom.pmf(counts, CLIENTS, 1 / (math.exp(2) + 1))[mechanism_counts > threshold.frequency].sum()
    assert rate == pytest.approx(0.05, rel=0.05)


def test_the_rate_of_all_items_is_shared_out() -> None:
    mechanism = built("subset-selection")
    threshold = reporting_threshold(mechanism, CLIENTS, 0.1)
    assert threshold.any_rate == pytest.approx(0.1)
    assert threshold.item_rate == 0.1 / CATEGORIES
    assert threshold.frequency == pytest.approx(norm.isf(0.1 / CATEGORIES) * mechanism.standard_errors(np.zeros(1), CLIENTS)[0])


def test_frequent_items_are_found() -> None:
    mechanism = built("projective-geometry-response", 5.0)
    items = np.concatenate(list(item_chunks("geometric", CATEGORIES, CLIENTS, np.random.default_rng(3))))
    frequencies = np.bincount(items, minlength=CATEGORIES) / CLIENTS
    threshold = reporting_threshold(mechanism, CLIENTS, 0.05)
    level = 2 * threshold.frequency
    found = heavy_hitters(estimated(mechanism, items, 0), frequencies, threshold, level)
    true = set(np.flatnonzero(frequencies >= level))
    assert len(true) == found.true_count > 3
    # Twice the threshold is as far above it as the threshold is above 0.
    assert found.recall == 1.0
    assert true <= set(found.reported)
    assert found.precision == len(true) / len(found.reported)
    assert found.reported[0] == 0


def test_nothing_reported_and_nothing_frequent_have_no_share() -> None:
    threshold = Threshold(0.5, 0.1, 0.2)
    found = heavy_hitters([0.4, 0.6], [1.0, 0.0], threshold)
    assert (found.precision, found.recall, found.false_rate) == (0.0, 0.0, 1.0)
    assert math.isnan(heavy_hitters([0.4, 0.3], [1.0, 0.0], threshold).precision)
    found = heavy_hitters([0.4, 0.6], [0.4, 0.45], threshold)
    assert (found.precision, found.true_count) == (0.0, 0)
    assert math.isnan(found.recall)
    assert math.isnan(found.false_rate)


def test_bad_arguments_are_refused() -> None:
    mechanism = built("unary-encoding")
    with pytest.raises(ValueError, match=r"rate must be a number from 1e-15 to 0\.5, got 0\.6"):
        reporting_threshold(mechanism, CLIENTS, 0.6)
    with pytest.raises(ValueError, match="per must be one of item, any, got 'each'"):
        reporting_threshold(mechanism, CLIENTS, 0.1, "each")
    with pytest.raises(ValueError, match="clients must be "):
        reporting_threshold(mechanism, 0, 0.1)
    with pytest.raises(ValueError, match=r"estimates and frequencies must have one number for each item, got the shapes \(2,\) and \(3,\)"):
        heavy_hitters(np.zeros(2), np.zeros(3), Threshold(0.1, 0.1, 0.1))
    with pytest.raises(ValueError, match="level must be a number from 1e-15 to 1, got 0"):
        heavy_hitters(np.zeros(2), np.zeros(2), Threshold(0.1, 0.1, 0.1), 0.0)
