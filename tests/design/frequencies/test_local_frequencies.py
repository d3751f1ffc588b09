"""Tests of local frequency oracles.

Points under test: choices of parameters, agreement of formulas, large domains, and refusals.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from quietbits.design.frequencies.hadamard_response import (
    HadamardResponse,
    RecursiveHadamardResponse,
    hadamard_response,
    published_blocks,
    recursive_hadamard_response,
)
from quietbits.design.frequencies.projective_geometry_response import ProjectiveGeometryResponse, projective_geometry_response
from quietbits.design.frequencies.randomised_response import FrequencyRandomisedResponse
from quietbits.design.frequencies.subset_selection import SubsetSelection, subset_selection
from quietbits.design.frequencies.support import SupportMechanism
from quietbits.design.frequencies.unary_encoding import UnaryEncoding

EPSILONS = [0.1, 0.7, 1.0, 2.0, 4.0, 7.0, 12.0]
BUILDERS: list[Callable[[float, int], SupportMechanism]] = [
    hadamard_response,
    recursive_hadamard_response,
    projective_geometry_response,
    UnaryEncoding,
    subset_selection,
]


def ideal(epsilon: float) -> float:
    """Return the least variance of a frequency, to first order in 1/items (Ye, Barg 2018)."""
    return 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("blocks", [1, 2, 8, 64])
def test_both_hadamard_responses_have_the_variances_in_closed_form(epsilon: float, blocks: int) -> None:
    likelihood = math.exp(epsilon)
    length = 2 * blocks - 1 + likelihood
    for mechanism in (HadamardResponse(epsilon, 500, blocks), RecursiveHadamardResponse(epsilon, 500, blocks)):
        same = length * (likelihood + 1) / (likelihood - 1) ** 2
        assert mechanism.same_block_variance == pytest.approx(same, rel=1e-9)
        # The difference of the variance from 1 is rounded.
        assert mechanism.holder_variance == pytest.approx(same - 1, rel=1e-9, abs=1e-12)
        if blocks > 1:
            assert mechanism.other_block_variance == pytest.approx(2 * length / (likelihood - 1) ** 2, rel=1e-9)


def test_hadamard_response_is_decoded_as_the_paper_does() -> None:
    mechanism = HadamardResponse(1.7, 11, 4)
    likelihood, size = math.exp(1.7), mechanism.block_outputs
    length = 2 * 4 - 1 + likelihood
    counts = np.random.default_rng(0).integers(0, 50, 4 * size)
    clients = int(counts.sum())
    shares = counts / clients
    outputs = np.arange(4 * size)
    for item in range(11):
        in_block = (length * shares.reshape(4, size)[item // 3].sum() - 2) / (likelihood - 1)
        in_set = shares[mechanism.supports(outputs, item)].sum()
        expected = 2 * (length * in_set - 1) / (likelihood - 1) - in_block
        assert mechanism.decode(counts, clients)[item] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_subset_selection_has_the_best_size(epsilon: float) -> None:
    best = min((SubsetSelection(epsilon, 60, size) for size in range(1, 60)), key=lambda value: value.variance_bound)
    assert subset_selection(epsilon, 60).subset_size == best.subset_size


def test_subsets_of_one_item_are_randomised_response() -> None:
    subsets, response = SubsetSelection(2.0, 9, 1), FrequencyRandomisedResponse(2.0, 9)
    assert subsets.holder_variance == pytest.approx(response.holder_variance, rel=1e-12)
    assert subsets.other_variance == pytest.approx(response.other_variance, rel=1e-12)
    assert subsets.bits_per_client == response.bits_per_client


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_unary_encoding_has_the_variances_of_the_paper(epsilon: float) -> None:
    mechanism = UnaryEncoding(epsilon, 10)
    assert mechanism.other_variance == pytest.approx(ideal(epsilon), rel=1e-12)
    assert mechanism.holder_variance == pytest.approx(ideal(epsilon) + 1, rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_who_wins_is_as_documented(epsilon: float) -> None:
    items = 10_000
    variances = {build: build(epsilon, items).variance_bound for build in BUILDERS}
    least = variances[subset_selection]
    assert least == min(variances.values())
    assert variances[hadamard_response] == pytest.approx(variances[recursive_hadamard_response])
    # From three digits of a prime up to 251 on, the best prime for a large epsilon has too many outputs.
    assert variances[projective_geometry_response] <= 1.04 * least if epsilon <= 4 else 1.15 * least
    if epsilon <= 7:
        assert least / items == pytest.approx(ideal(epsilon), rel=0.1)
        assert variances[hadamard_response] <= 2.07 * least
    published = HadamardResponse(epsilon, items, published_blocks(epsilon, items)).variance_bound
    assert variances[hadamard_response] <= published <= 1.39 * variances[hadamard_response]


def test_bits_of_recursive_hadamard_response_are_given_or_the_best() -> None:
    result = [recursive_hadamard_response(3.0, 100, bits) for bits in range(1, 9)]
    assert [item.bits_per_client for item in result] == list(range(1, 9))
    assert recursive_hadamard_response(3.0, 100) == min(result, key=lambda value: value.variance_bound)
    with pytest.raises(ValueError, match="message_bits must be a whole number from 1 to 8, got 9"):
        recursive_hadamard_response(3.0, 100, 9)


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_large_domains_have_the_stated_error(build: Callable[[float, int], SupportMechanism], epsilon: float) -> None:
    mechanism, clients = build(epsilon, 20_000), 400
    items = np.random.default_rng(0).integers(0, 20_000, clients)
    messages = mechanism.encode(items, np.random.default_rng(1))
    estimates = mechanism.decode(mechanism.aggregate(messages), clients)
    error = np.square(estimates - mechanism.domain.total(items) / clients).sum()
    # The sum has 20 000 errors, few of which depend on each other.
    assert error == pytest.approx(mechanism.error(items).of_mean(clients), rel=0.15)
    for item in (0, 19_999):
        assert mechanism.decode(mechanism.aggregate(messages), clients)[item] == estimates[item]
        assert (mechanism.supports(messages, item).shape, mechanism.supports(messages, item).dtype) == ((clients,), np.bool_)


@pytest.mark.parametrize("epsilon", [1e-3, 100.0])
@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("categories", [2, 3, 1000])
def test_extremes_of_epsilon_are_served(build: Callable[[float, int], SupportMechanism], epsilon: float, categories: int) -> None:
    mechanism = build(epsilon, categories)
    assert 0 < mechanism.variance_bound < math.inf
    items = np.arange(categories)
    estimates = mechanism.decode(mechanism.aggregate(mechanism.encode(items, np.random.default_rng(0))), categories)
    assert np.isfinite(estimates).all()
    if epsilon == 100 and not isinstance(mechanism, UnaryEncoding | RecursiveHadamardResponse):
        # Coins or public rows leave random errors, even without privacy.
        assert mechanism.standard_errors(np.full(categories, 1 / categories), categories).max() < 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UnaryEncoding(1e-4, 10), "epsilon must be a number from 0.001 to 100, got 0.0001"),
        (lambda: UnaryEncoding(1.0, 1), "categories must be a whole number from 2 to 2147483648, got 1"),
        (lambda: SubsetSelection(1.0, 10, 10), "subset_size must be a whole number from 1 to 9, got 10"),
        (lambda: HadamardResponse(1.0, 10, 3), "blocks must be a power of two, got 3"),
        (lambda: HadamardResponse(1.0, 10, 32), "blocks must be a whole number from 1 to 20, got 32"),
        (lambda: RecursiveHadamardResponse(1.0, 10, 6), "blocks must be a power of two, got 6"),
        (lambda: ProjectiveGeometryResponse(1.0, 10, 4, 3), "prime must be a prime, got 4"),
        (lambda: ProjectiveGeometryResponse(1.0, 10, 2, 3), "digits must be enough for 10 points of each block, got 3 of the prime 2: 7"),
        (lambda: projective_geometry_response(1.0, 2**40), "categories must be a whole number from 1 to 1099511627775, got 1099511627776"),
        (lambda: ProjectiveGeometryResponse(1.0, 10, 3, 1), "digits must be a whole number from 2 to 40, got 1"),
    ],
)
def test_parameters_out_of_range_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("mechanism", "messages"),
    [
        (HadamardResponse(1.0, 3, 1), [4]),
        (HadamardResponse(1.0, 3, 1), [[1]]),
        (ProjectiveGeometryResponse(1.0, 7, 2, 3), [7]),
        (RecursiveHadamardResponse(1.0, 3, 2), [[0, 4]]),
        (RecursiveHadamardResponse(1.0, 3, 2), [[2, 0]]),
        (RecursiveHadamardResponse(1.0, 3, 2), [1, 2]),
        (UnaryEncoding(1.0, 9), [[1]]),
        (SubsetSelection(1.0, 9, 2), [[1]]),
        (SubsetSelection(1.0, 9, 1), [[9]]),
    ],
)
def test_messages_that_cannot_be_are_refused(mechanism: SupportMechanism, messages: Any) -> None:
    with pytest.raises(ValueError, match="messages must "):
        mechanism.aggregate(np.array(messages))
