"""Exact frequencies: under masks and with clients who drop out, for both codes; nothing is claimed to be private; refusals."""

import math
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.task import Task
from quietbits.design.frequencies.exact_histogram import ExactHistogramMechanism
from quietbits.design.frequencies.histogram_codes import BernoulliCode, IdentityCode
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.errors import InfeasibleError

CLIENTS, CATEGORIES = 12, 200
MECHANISMS = [
    ExactHistogramMechanism(BernoulliCode.of_rigorous_size(CATEGORIES, CLIENTS, seed=5)),
    ExactHistogramMechanism(IdentityCode(CATEGORIES, CLIENTS)),
]


def built(clients: int = CLIENTS, categories: int = CATEGORIES, epsilon: float = 1.0, **options: Any) -> ExactHistogramMechanism:
    mechanism = build_mechanism("exact-histogram", Task(Categories(categories), clients, epsilon, 0.0, "replace-one"), options)
    assert isinstance(mechanism, ExactHistogramMechanism)
    return mechanism


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism.code).__name__)
# Of 12 clients with eleven neighbours each, up to 5 may be missing where more than half of the neighbours must help; 6 need a lower
# threshold.
@pytest.mark.parametrize(("missing", "threshold"), [(0, None), (1, None), (5, None), (6, 5)])
def test_half_of_the_clients_may_drop_out_under_pairwise_masks(
    mechanism: ExactHistogramMechanism, missing: int, threshold: int | None
) -> None:
    rng = np.random.default_rng(missing)
    items = np.minimum(rng.integers(0, CATEGORIES, CLIENTS), rng.integers(0, CATEGORIES, CLIENTS))
    dropped = rng.permutation(CLIENTS)[:missing].tolist()
    masked = SecureSum(CLIENTS, mechanism.padded_dimension, mechanism.modulus, threshold=threshold)
    total = masked.total([mechanism.encode(items, rng)], rng, dropped=dropped)
    staying = np.delete(items, dropped)
    estimate = mechanism.decode(total, len(staying))
    assert estimate.tolist() == (np.bincount(staying, minlength=CATEGORIES) / len(staying)).tolist()
    assert not mechanism.standard_errors(estimate, len(staying)).any()


def test_the_sum_of_columns_is_that_of_messages() -> None:
    items = np.random.default_rng(1).integers(0, CATEGORIES, CLIENTS)
    for mechanism in MECHANISMS:
        steps = mechanism.noisy_steps(items, np.random.default_rng(0)).sum(axis=0)
        assert mechanism.summed_steps(items, np.random.default_rng(0)).tolist() == steps.tolist()


def test_no_epsilon_is_claimed_whatever_is_asked_for() -> None:
    for epsilon in (0.1, 100.0):
        mechanism = built(epsilon=epsilon)
        assert mechanism == built()
        assert mechanism.guarantee.epsilon == math.inf
        assert mechanism.privacy().epsilon(0.5, rounds=10) == math.inf


def test_the_shorter_code_is_taken_where_it_is_decoded_fast() -> None:
    assert built(30, 1000).code == BernoulliCode(1000, 30, 120)
    assert built(30, 1000, failure=1e-6, code_seed=3).code == BernoulliCode(1000, 30, 124, 3)
    assert built(30, 20).code == IdentityCode(20, 30)
    assert built(30, 1001).code == IdentityCode(1001, 30)
    assert built(31, 1000).code == IdentityCode(1000, 31)
    assert built(31, 1000, code="bernoulli").code == BernoulliCode.of_rigorous_size(1000, 31)
    assert built(5000, 100_000, measurements=300).code == BernoulliCode(100_000, 5000, 300)
    assert built(50_000, 100_000).padded_dimension == 100_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"clients": 2**20 + 1}, "clients must be at most 1048576 for exact-histogram, got 1048577"),
        ({"clients": 2001, "code": "bernoulli"}, "measurements must be given for more than 2000 clients, got 2001 clients"),
        (
            {"categories": 2**24, "code": "bernoulli"},
            "categories must be at most .* for a code of .* measurements to be decoded, got 16777216",
        ),
    ],
)
def test_what_cannot_be_decoded_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InfeasibleError, match=message):
        built(**arguments)


def test_sums_of_too_many_clients_and_bad_time_limits_are_refused() -> None:
    mechanism = MECHANISMS[0]
    total = mechanism.aggregate(mechanism.encode(np.zeros(CLIENTS, dtype=int), np.random.default_rng(0)))
    with pytest.raises(ValueError, match="clients must be a whole number from 1 to 12, got 13"):
        mechanism.decode(total, CLIENTS + 1)
    with pytest.raises(ValueError, match="time_limit must be a number from 0 to 1e"):
        ExactHistogramMechanism(mechanism.code, -1.0)
