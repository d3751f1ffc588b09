"""Exact privacy, bias and variance of every local frequency oracle.

The tests enumerate the laws of messages on small domains.
"""

import math

import numpy as np
import pytest
from frequency_laws import Law, law
from scipy.stats import chisquare

from quietbits.design.frequencies.hadamard_response import HadamardResponse, RecursiveHadamardResponse
from quietbits.design.frequencies.projective_geometry_response import ProjectiveGeometryResponse
from quietbits.design.frequencies.subset_selection import SubsetSelection
from quietbits.design.frequencies.support import SupportMechanism
from quietbits.design.frequencies.unary_encoding import UnaryEncoding

MECHANISMS: list[SupportMechanism] = [
    HadamardResponse(1.0, 5, 1),
    HadamardResponse(1.5, 7, 2),
    HadamardResponse(2.0, 6, 4),
    HadamardResponse(0.3, 3, 4),
    RecursiveHadamardResponse(1.0, 5, 1),
    RecursiveHadamardResponse(2.0, 7, 2),
    RecursiveHadamardResponse(2.0, 6, 4),
    RecursiveHadamardResponse(3.0, 5, 8),
    ProjectiveGeometryResponse(0.7, 7, 2, 3),
    ProjectiveGeometryResponse(1.2, 10, 3, 3),
    ProjectiveGeometryResponse(1.2, 11, 3, 3, 2),
    ProjectiveGeometryResponse(2.0, 10, 2, 3, 4),
    ProjectiveGeometryResponse(3.0, 5, 5, 2),
    UnaryEncoding(1.0, 4),
    UnaryEncoding(3.0, 9),
    SubsetSelection(1.0, 5, 2),
    SubsetSelection(0.5, 6, 3),
    SubsetSelection(0.5, 9, 7),
    SubsetSelection(3.0, 6, 1),
]


def estimates(mechanism: SupportMechanism, exact: Law) -> np.ndarray:
    """Return the estimate from each message alone, shape (messages, items)."""
    return np.array([mechanism.decode(mechanism.aggregate(exact.messages[index : index + 1]), 1) for index in range(len(exact.messages))])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_privacy_is_pure_and_no_better(mechanism: SupportMechanism) -> None:
    probabilities = law(mechanism).probabilities
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-13)
    ratios = probabilities.max(axis=0) / probabilities.min(axis=0)
    assert ratios.max() == pytest.approx(math.exp(mechanism.epsilon), rel=1e-12)
    assert mechanism.guarantee.epsilon == mechanism.epsilon


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_support_tells_what_a_message_says(mechanism: SupportMechanism) -> None:
    exact = law(mechanism)
    supports = np.array([mechanism.supports(exact.messages, item) for item in range(mechanism.categories)])
    logs = np.log(exact.probabilities)
    for item in range(mechanism.categories):
        differences = supports.astype(int) - supports[item]
        np.testing.assert_allclose(logs - logs[item], mechanism.epsilon * differences, atol=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_estimates_are_unbiased_and_variances_exact(mechanism: SupportMechanism) -> None:
    exact = law(mechanism)
    decoded = estimates(mechanism, exact)
    means = exact.probabilities @ decoded
    np.testing.assert_allclose(means, np.eye(mechanism.categories), atol=1e-11)
    variances = np.array([probabilities @ (decoded - mean) ** 2 for probabilities, mean in zip(exact.probabilities, means, strict=True)])
    items = np.arange(mechanism.categories)
    np.testing.assert_allclose(mechanism.variance(items), variances.sum(axis=1), rtol=1e-10)
    assert mechanism.variance_bound == pytest.approx(variances.sum(axis=1).max(), rel=1e-10)
    np.testing.assert_allclose(variances.diagonal(), mechanism.holder_variance, rtol=1e-10)
    assert variances[~np.eye(mechanism.categories, dtype=bool)].max() == pytest.approx(mechanism.other_variance, rel=1e-10)
    # The standard errors hold for each item's own estimate, also where clients hold several items.
    for item in items:
        np.testing.assert_allclose(mechanism.standard_errors(np.eye(mechanism.categories)[item], 1) ** 2, variances[item], rtol=1e-10)
    shares = np.arange(1, mechanism.categories + 1) / (mechanism.categories * (mechanism.categories + 1) / 2)
    np.testing.assert_allclose(mechanism.standard_errors(shares, 10), np.sqrt(shares @ variances / 10), rtol=1e-10)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_messages_follow_the_law(mechanism: SupportMechanism) -> None:
    exact = law(mechanism)
    count = 40 * len(exact.messages) + 4_000
    for item in (0, mechanism.categories - 1):
        drawn = mechanism.encode(np.full(count, item), np.random.default_rng(item))
        # Each drawn message is one of the enumerated messages.
        kinds, places = np.unique(np.concatenate([exact.messages, drawn]), axis=0, return_inverse=True)
        assert len(kinds) == len(exact.messages)
        own, result = places.ravel()[: len(kinds)], places.ravel()[len(kinds) :]
        counts = np.bincount(result, minlength=len(kinds))[own]
        expected = count * exact.probabilities[item]
        # Rare messages are pooled, since the chi-square test needs counts that are not small.
        cells = np.where(expected < 5, 0, np.arange(1, len(expected) + 1))
        pooled = [np.bincount(cells, weights=weights)[np.unique(cells)] for weights in (counts, expected)]
        assert chisquare(*pooled).pvalue > 1e-6
