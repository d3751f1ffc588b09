"""Mechanisms for one number.

Points under test: worst variances, metric privacy, and refusals that only some mechanisms have.
"""

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
MECHANISMS: dict[str, Callable[[], ScalarMechanism]] = {
    "laplace": lambda: LaplaceMechanism(1.5, INTERVAL),
    "cldp": lambda: CLDPMechanism(1.5, INTERVAL),
    "generalised": lambda: TableMeanMechanism(generalised_randomised_response(1.5, 3, interval=INTERVAL)),
    "bitwise": lambda: TableMeanMechanism(bitwise_randomised_response(1.5, 2, interval=INTERVAL)),
}


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> ScalarMechanism:
    return MECHANISMS[request.param]()


def test_the_variance_bound_is_the_largest(mechanism: ScalarMechanism) -> None:
    variances = mechanism.variance(np.linspace(-3, 5, 100_001))
    assert variances.max() == pytest.approx(mechanism.variance_bound, rel=1e-7)
    assert variances.max() <= mechanism.variance_bound * (1 + 1e-12)


def test_a_histogram_of_other_clients_is_refused() -> None:
    mechanism = MECHANISMS["generalised"]()
    with pytest.raises(ValueError, match="clients must be the number of letters in the histogram, 8, got 9"):
        mechanism.decode(np.ones(8, dtype=np.int64), 9)
    with pytest.raises(ValueError, match="messages must be from 0 to 7, got 8"):
        mechanism.aggregate(np.array([8]))


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
    with pytest.raises(ValueError, match="metric must be l1, or left out, for Laplace"):
        LaplaceMechanism(1.0, metric="l2")


def test_one_bit_randomised_response_is_cldp() -> None:
    cldp = CLDPMechanism(2.0, INTERVAL)
    table = generalised_randomised_response(2.0, 1, interval=INTERVAL)
    np.testing.assert_allclose(table.variance(np.linspace(-3, 5, 11)), cldp.variance(np.linspace(-3, 5, 11)), rtol=1e-9)
