"""Tests of mechanisms with shuffled letters: guarantees, and laws of histograms."""

import math
from functools import cache

import numpy as np
import pytest

from quietbits.design.frequencies.randomised_response import FrequencyRandomisedResponse
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.shuffled.shuffled_items import ShuffledRandomisedResponse, shuffled_response_privacy
from quietbits.design.shuffled.shuffled_mechanism import ShuffledMechanism
from quietbits.design.shuffled.shuffled_privacy import shuffled_privacy
from quietbits.design.shuffled.shuffled_table import ShuffledTableMechanism, shuffled_table_privacy
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.accounting.sampling import FixedSizeSampling
from quietbits.solvers.divergences.shuffled_letters import ShuffledLetters

RESPONSE = generalised_randomised_response(3.0, 2)


@cache
def designed() -> LookupTable:
    return design_mvu(2.0, 2, 2).with_interval(-1.0, 3.0)


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.2, 1.0, 2.5, 3.0])
def test_the_law_of_a_letter_is_that_of_what_is_sent(value: float) -> None:
    mechanism = ShuffledTableMechanism(designed(), clients=10)
    law, draws = mechanism.letter_law(value), 20_000
    assert law.sum() == pytest.approx(1)
    counts = mechanism.aggregate(mechanism.encode(np.full(draws, value), np.random.default_rng(0)))
    # The counts are within five standard deviations.
    assert (np.abs(counts - draws * law) <= 5 * np.sqrt(draws * law * (1 - law))).all()


def test_the_law_of_an_item() -> None:
    mechanism = ShuffledRandomisedResponse(2.0, 5, clients=10)
    law, draws = mechanism.letter_law(3), 40_000
    assert (law[3] / law[0], law.sum()) == (pytest.approx(math.exp(2)), pytest.approx(1))
    counts = mechanism.aggregate(mechanism.encode(np.full(draws, 3), np.random.default_rng(0)))
    assert (np.abs(counts - draws * law) <= 5 * np.sqrt(draws * law * (1 - law))).all()


@pytest.mark.parametrize(
    "mechanism", [ShuffledTableMechanism(RESPONSE, 1000, 1e-6), ShuffledRandomisedResponse(3.0, 4, 1000, 1e-6)], ids=["table", "items"]
)
def test_what_is_stated(mechanism: ShuffledMechanism) -> None:
    guarantee = mechanism.guarantee
    assert (guarantee.trust_model, guarantee.adjacency, guarantee.delta, guarantee.metric) == ("shuffled", "replace-one", 1e-6, None)
    assert guarantee.epsilon == pytest.approx(ShuffledLetters(RESPONSE.weights, 1000).epsilon(1e-6), rel=1e-6)
    assert (mechanism.bits_per_client, mechanism.secure_sum_bits) == (2.0, 4 * math.log2(1001))


def test_a_message_is_that_of_the_local_mechanism() -> None:
    items = np.resize([0, 1, 2, 3], 100)
    shuffled, local = ShuffledRandomisedResponse(3.0, 4, 1000), FrequencyRandomisedResponse(3.0, 4)
    words = [seeded_words(np.random.default_rng(1)) for _ in range(2)]
    np.testing.assert_array_equal(shuffled.encode(items, words[0]), local.encode(items, words[1]))
    assert shuffled.error() == local.error()
    assert local.guarantee.trust_model == "local"


def test_without_delta_it_is_the_letters_own_privacy() -> None:
    mechanism = ShuffledTableMechanism(RESPONSE, 10**6, 0.0)
    assert 2.999 < mechanism.guarantee.epsilon <= 3.0
    report = mechanism.privacy().report(0.0)
    assert [account.bound.reason is None for account in report.accounts] == [True, False, False]


def test_many_clients_hide_one_and_one_is_not_hidden() -> None:
    epsilons = [shuffled_response_privacy(3.0, 4, clients).epsilon(1e-6) for clients in (1, 10, 100, 1000, 10_000)]
    assert 2.999 < epsilons[0] <= 3.0
    assert epsilons == sorted(epsilons, reverse=True)
    assert epsilons[-1] < 0.1 * epsilons[0]
    # A larger choice of items hides a client better.
    assert shuffled_response_privacy(3.0, 1000, 10_000).epsilon(1e-6) < 0.5 * shuffled_response_privacy(3.0, 4, 10_000).epsilon(1e-6)


def test_rounds_and_sampling() -> None:
    privacy = shuffled_table_privacy(RESPONSE, 2000)
    single, ten = (privacy.epsilon(1e-6, rounds=rounds) for rounds in (1, 10))
    assert 2 * single < ten < 5 * single
    sampling = FixedSizeSampling(20_000, 2000)
    assert privacy.epsilon(1e-6, sampling=sampling) < 0.2 * single
    assert privacy.epsilon(1e-6, rounds=10, sampling=sampling) < 0.5 * ten
    # The grid composes fewer rounds than these, so each round counts as (epsilon, delta)-private.
    many = privacy.report(1e-6, rounds=30_000).account("blanket").bound.epsilon
    assert ten < many < 30_000 * single


def test_a_letter_that_only_some_inputs_send_is_not_accounted_for() -> None:
    privacy = shuffled_privacy([[1, 0], [1, 1]], math.inf, 10)
    assert [account.name for account in privacy.accounts] == ["pure"]
    assert math.isinf(privacy.epsilon(1e-3))


@pytest.mark.parametrize("clients", [0, 10**12 + 1])
def test_faults(clients: int) -> None:
    for made in (lambda: ShuffledTableMechanism(RESPONSE, clients), lambda: ShuffledRandomisedResponse(1.0, 3, clients)):
        with pytest.raises(ValueError, match="clients must be a whole number from 1 to 1000000000000"):
            made()
    with pytest.raises(ValueError, match=r"epsilon must be a number from 0\.001 to 20"):
        ShuffledRandomisedResponse(21.0, 3, 10)
    with pytest.raises(ValueError, match="delta must be a number above 0 and below 1"):
        ShuffledTableMechanism(RESPONSE, 10, 1.0)
