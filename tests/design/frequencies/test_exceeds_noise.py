"""Items that exceed the noise.

Points under test: an item without holders exceeds the noise as rarely as stated, and a frequent item exceeds it.
"""

import math

import numpy as np
import pytest

from quietbits.analysis.catalogue.registry import REGISTRY, build_mechanism
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.mechanism import FrequencyEstimate, FrequencyMechanism
from quietbits.design.contracts.task import Task

CATEGORIES, CLIENTS, ROUNDS = 50, 4000, 400
LOCAL = [name for name, entry in REGISTRY.items() if Categories in entry.domains and entry.trust_model == "local"]


def built(name: str, epsilon: float = 2.0, delta: float = 0.0) -> FrequencyMechanism:
    mechanism = build_mechanism(name, Task(Categories(CATEGORIES), CLIENTS, epsilon, delta, "replace-one"))
    assert isinstance(mechanism, FrequencyMechanism)
    return mechanism


def estimated(mechanism: FrequencyMechanism, items: np.ndarray, seed: int) -> FrequencyEstimate:
    return mechanism.estimate(mechanism.aggregate(mechanism.encode(items, np.random.default_rng(seed))), len(items))


@pytest.mark.parametrize("name", LOCAL)
def test_false_positives_are_as_rare_as_stated(name: str) -> None:
    mechanism, items = built(name), np.repeat([0, CATEGORIES - 1], CLIENTS // 2)
    counts = [estimated(mechanism, items, seed).exceeds_noise(0.5)[1:-1].sum() for seed in range(ROUNDS)]
    rate = np.sum(counts) / (ROUNDS * CATEGORIES)
    deviation = 5 * math.sqrt(0.01 / (ROUNDS * CATEGORIES))
    # Clients of an item's own block support it less often, so this variance is below the bound for blocks.
    least = 0.008 if getattr(mechanism, "blocks", 1) == 1 else 0.0
    assert least - deviation <= rate <= 0.0105 + deviation


@pytest.mark.parametrize(("name", "delta"), [("projective-geometry-response", 0.0), ("sketched-discrete-gaussian-frequencies", 1e-5)])
def test_frequent_items_stand_out(name: str, delta: float) -> None:
    mechanism = built(name, 4.0, delta)
    items = np.repeat([3, 7, 8], [CLIENTS // 2, CLIENTS // 4, CLIENTS // 4])
    assert np.flatnonzero(estimated(mechanism, items, 0).exceeds_noise()).tolist() == [3, 7, 8]


def test_an_exact_estimate_exceeds_no_noise_where_it_is_zero() -> None:
    estimate = FrequencyEstimate(np.array([0.0, 1.0]), np.zeros(2), np.array([0.0, 1.0]))
    assert estimate.exceeds_noise().tolist() == [False, True]


def test_a_rate_out_of_range_is_refused() -> None:
    estimate = FrequencyEstimate(np.zeros(2), np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match=r"rate must be a number from 1e-15 to 0\.5, got 0\.6"):
        estimate.exceeds_noise(0.6)
