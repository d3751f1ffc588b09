"""Every protocol: unbiased, with the variance it states, adding up over chunks. Chance of a false alarm below 1e-6 per draw (5 sigma)."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from quietbits.design.contracts.mechanism import ScalarMechanism
from quietbits.design.local.cldp import CLDPMechanism
from quietbits.design.local.laplace import LaplaceMechanism
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.design.tables.table_mean import TableMeanMechanism

INTERVAL = (-3.0, 5.0)
PROTOCOLS: dict[str, Callable[[], ScalarMechanism]] = {
    "laplace": lambda: LaplaceMechanism(1.5, INTERVAL),
    "cldp": lambda: CLDPMechanism(1.5, INTERVAL),
    "generalised": lambda: TableMeanMechanism(generalised_randomised_response(1.5, 3, interval=INTERVAL)),
    "bitwise": lambda: TableMeanMechanism(bitwise_randomised_response(1.5, 2, interval=INTERVAL)),
}


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> ScalarMechanism:
    return PROTOCOLS[request.param]()


@pytest.mark.parametrize("value", [-3.0, -0.37, 1.0, 4.9])
def test_estimates_are_unbiased_and_vary_as_stated(protocol: ScalarMechanism, value: float) -> None:
    clients = 200_000
    messages = protocol.encode(np.full(clients, value), np.random.default_rng(7))
    variance = float(protocol.variance([value])[0])
    estimate = protocol.decode(protocol.aggregate(messages), clients)
    assert abs(estimate - value) < 5 * math.sqrt(variance / clients)
    # The empirical variance, from 200 means of 1000 clients each: chi-square with 200 degrees of freedom, 5 sigma = 50 %.
    means = [protocol.decode(protocol.aggregate(part), 1000) for part in messages.reshape(200, 1000)]
    assert np.mean(np.square(np.subtract(means, value))) == pytest.approx(variance / 1000, rel=0.5)


def test_aggregates_add_over_chunks(protocol: ScalarMechanism) -> None:
    messages = protocol.encode(np.linspace(-3, 5, 900), np.random.default_rng(0))
    parts = sum(protocol.aggregate(part) for part in np.array_split(messages, 7))
    np.testing.assert_allclose(parts, protocol.aggregate(messages), rtol=1e-12)


def test_the_worst_variance_is_the_largest(protocol: ScalarMechanism) -> None:
    variances = protocol.variance(np.linspace(-3, 5, 100_001))
    assert variances.max() == pytest.approx(protocol.worst_variance, rel=1e-7)
    assert variances.max() <= protocol.worst_variance * (1 + 1e-12)


def test_values_outside_the_interval_count_as_its_ends(protocol: ScalarMechanism) -> None:
    outside = protocol.encode(np.array([-100.0, 100.0] * 50), np.random.default_rng(3))
    ends = protocol.encode(np.array([-3.0, 5.0] * 50), np.random.default_rng(3))
    np.testing.assert_array_equal(outside, ends)


def test_nan_is_refused(protocol: ScalarMechanism) -> None:
    with pytest.raises(ValueError, match="values must hold finite numbers only"):
        protocol.encode([0.0, math.nan], np.random.default_rng(0))


@pytest.mark.parametrize("clients", [0, -1, 1.5])
def test_a_number_of_clients_that_cannot_be_is_refused(protocol: ScalarMechanism, clients: int) -> None:
    aggregate = protocol.aggregate(protocol.encode(np.zeros(10), np.random.default_rng(0)))
    with pytest.raises(ValueError, match="clients must be a whole number"):
        protocol.decode(aggregate, clients)


def test_a_histogram_of_other_clients_is_refused() -> None:
    protocol = PROTOCOLS["generalised"]()
    with pytest.raises(ValueError, match="clients must be the number of letters in the histogram, 8, got 9"):
        protocol.decode(np.ones(8, dtype=np.int64), 9)
    with pytest.raises(ValueError, match="messages must be from 0 to 7, got 8"):
        protocol.aggregate(np.array([8]))


@pytest.mark.parametrize("mechanism", [LaplaceMechanism, CLDPMechanism])
@pytest.mark.parametrize(("epsilon", "interval"), [(0.0, (0, 1)), (math.nan, (0, 1)), (1.0, (1, 1)), (1.0, (0, math.inf))])
def test_bad_arguments_are_refused(
    mechanism: type[LaplaceMechanism] | type[CLDPMechanism], epsilon: float, interval: tuple[float, float]
) -> None:
    with pytest.raises(ValueError, match="must be"):
        mechanism(epsilon, interval)


def test_laplace_states_the_guarantee_asked_for() -> None:
    assert LaplaceMechanism(1.0).guarantee.metric is None
    assert LaplaceMechanism(1.0, metric="l1").guarantee.metric == "l1"
    with pytest.raises(ValueError, match="metric must be None or 'l1'"):
        LaplaceMechanism(1.0, metric="l2")


def test_cldp_keeps_its_epsilon_and_one_bit_randomised_response_is_cldp_at_the_ends() -> None:
    cldp = CLDPMechanism(2.0, INTERVAL)
    odds = 0.5 + 0.5 * math.tanh(1.0)
    assert math.log(odds / (1 - odds)) == pytest.approx(2.0)
    table = generalised_randomised_response(2.0, 1, interval=INTERVAL)
    np.testing.assert_allclose(table.variance(np.linspace(-3, 5, 11)), cldp.variance(np.linspace(-3, 5, 11)), rtol=1e-9)
