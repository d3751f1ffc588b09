"""Capabilities of the registry's mechanisms.

Points under test: joint clients, copies for other numbers of clients, laws.
"""

import numpy as np
import pytest
from built_in_trials import OPTIONS

from quietbits import REGISTRY, InfeasibleError, Interval, Mechanism, NormBall, SecureSumMechanism, Task
from quietbits.analysis.conformance.mechanism_cases import CATEGORIES, CLIENTS, DELTA, DIMENSION, EPSILON
from quietbits.design.central.central_sketch import CentralSketchMechanism
from quietbits.design.shuffled.shuffled_items import ShuffledRandomisedResponse
from quietbits.design.transforms.count_sketch import CountMeanSketch

CENTRAL = CentralSketchMechanism(
    NormBall(12, 2.0), CountMeanSketch(12, rows=2, width=3, seed=1), clients=4, sketch_clip=1.1, noise_multiplier=1.0, delta=1e-3
)


def built(name: str) -> Mechanism:
    entry = REGISTRY[name]
    domain = {Interval: Interval(), NormBall: NormBall(DIMENSION, (entry.norms or (2.0,))[0])}.get(entry.domains[0], CATEGORIES)
    return entry.mechanism_for(Task(domain, CLIENTS, EPSILON, DELTA, entry.adjacencies[0]), OPTIONS.get(name, {}))


@pytest.mark.parametrize("name", REGISTRY)
def test_the_server_sees_messages_together_outside_the_local_trust_model(name: str) -> None:
    mechanism = built(name)
    assert (mechanism.joint_clients is None) == (REGISTRY[name].trust_model == "local")
    again = mechanism.for_clients(mechanism.joint_clients or CLIENTS)
    assert (again.joint_clients, again.guarantee, again.bits_per_client) == (
        mechanism.joint_clients,
        mechanism.guarantee,
        mechanism.bits_per_client,
    )


@pytest.mark.parametrize("name", REGISTRY)
def test_the_law_of_messages_is_the_stated_bias_and_variance(name: str) -> None:
    mechanism = built(name)
    inputs = np.zeros((2, DIMENSION)) if isinstance(mechanism.domain, NormBall) else np.zeros(2, dtype=np.int64)
    law = mechanism.law(inputs)
    np.testing.assert_allclose(law.variance, mechanism.variance(inputs), rtol=1e-5)
    np.testing.assert_allclose(law.bias, mechanism.known_bias(inputs), atol=1e-5)


def test_other_clients_of_a_trusted_server_and_of_a_shuffler() -> None:
    fewer = CENTRAL.for_clients(2)
    assert (fewer.clients, fewer.noise_deviation, fewer.guarantee) == (2, CENTRAL.noise_deviation, CENTRAL.guarantee)
    shuffled = ShuffledRandomisedResponse(2.0, 4, clients=100, delta=1e-3)
    assert shuffled.for_clients(10).guarantee.epsilon > shuffled.guarantee.epsilon


def test_the_score_of_a_trusted_sum_is_that_of_its_estimate() -> None:
    first = np.zeros((4, 12))
    second = first.copy()
    first[0, 3] = 1.0
    rounds = np.random.default_rng(0).normal(size=(20, 4, 6))
    general, own = Mechanism.message_score(CENTRAL, first, second)(rounds), CENTRAL.message_score(first, second)(rounds)
    np.testing.assert_allclose(general / own, general[0] / own[0], rtol=1e-9)


def test_a_client_without_an_input_is_refused_where_none_is_provided_for() -> None:
    mechanism = built("exact-histogram")
    assert isinstance(mechanism, SecureSumMechanism)
    with pytest.raises(InfeasibleError, match="count must be 0 for ExactHistogramMechanism, whose clients all need an input, got 1"):
        mechanism.noise_steps(1, np.random.default_rng(0))
