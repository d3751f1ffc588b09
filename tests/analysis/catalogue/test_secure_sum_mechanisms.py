"""Mechanisms of secure sums by name: each keeps the promise it was asked for, in as many bits, or says how many would do."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.catalogue.secure_sum_mechanisms import ADJACENCIES_OF, SECURE_SUM_MECHANISMS, build_secure_sum_mechanism
from quietbits.analysis.simulation.secure_sum import simulate_secure_sum
from quietbits.design.contracts.guarantee import ADJACENCIES
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.errors import InfeasibleError

BALL = NormBall(20, 2.0, 3.0)
SETTING: dict[str, Any] = {"ball": BALL, "clients": 130, "bits": 11, "epsilon": 3.0, "delta": 1e-4}


@functools.cache
def built(name: str, **changes: Any) -> Any:
    return build_secure_sum_mechanism(name, **(SETTING | changes))


@pytest.mark.parametrize("name", SECURE_SUM_MECHANISMS)
def test_the_promise_is_kept_and_not_by_much(name: str) -> None:
    mechanism = built(name)
    assert (mechanism.clients, mechanism.ball) == (130, BALL)
    assert 0.95 * 3.0 < mechanism.guarantee.epsilon <= 3.0
    assert mechanism.guarantee.delta <= 1e-4
    assert mechanism.guarantee.trust_model == "secure-sum"
    assert mechanism.modulus <= 2**11
    assert mechanism.bits_per_client == mechanism.padded_dimension * np.log2(mechanism.modulus)


@pytest.mark.parametrize("name", SECURE_SUM_MECHANISMS)
def test_a_round_is_as_exact_as_predicted(name: str) -> None:
    # Squared errors have at least 20 degrees of freedom: a relative deviation of sqrt(2/20), times 6.
    vectors = np.random.default_rng(1).normal(size=(130, 20))
    result = simulate_secure_sum(built(name), [vectors], np.random.default_rng(2))
    assert result.squared_error == pytest.approx(result.predicted_squared_error, rel=6 * np.sqrt(2 / 20))
    assert result.predicted_squared_error <= result.worst_squared_error
    assert result.wrapped_coordinates == 0


@pytest.mark.parametrize("name", SECURE_SUM_MECHANISMS)
def test_after_drop_outs_the_mechanism_for_those_that_remain_decodes_the_sum(name: str) -> None:
    # With a rotation, the levels of cpSGD depend on the number of clients. Errors are within 6 sigma, as above.
    everyone = dataclasses.replace(built(name), rotated=False) if name == "cpsgd" else built(name)
    vectors = np.random.default_rng(6).normal(size=(130, 20))
    messages = everyone.encode(vectors, np.random.default_rng(7))
    masked_sum = SecureSum(130, everyone.padded_dimension, everyone.modulus, neighbours=20)
    total = masked_sum.total([messages], np.random.default_rng(8), dropped=range(10))
    with pytest.raises(ValueError, match=r"clients must be 130, for whose .* the guarantee is stated, got 120"):
        everyone.decode(total, 120)
    remaining = dataclasses.replace(everyone, clients=120)
    error = np.sum((remaining.decode(total, 120) - BALL.clip(vectors[10:]).mean(axis=0)) ** 2)
    assert error == pytest.approx(remaining.variance(vectors[10:]).mean() / 120, rel=6 * np.sqrt(2 / 20))
    assert remaining.guarantee.epsilon > everyone.guarantee.epsilon


@pytest.mark.parametrize("name", SECURE_SUM_MECHANISMS)
def test_more_privacy_costs_exactness(name: str) -> None:
    assert built(name, epsilon=1.5).worst_variance > built(name).worst_variance


@pytest.mark.parametrize("name", SECURE_SUM_MECHANISMS)
def test_the_seed_is_that_of_the_rotation(name: str) -> None:
    vectors = np.random.default_rng(3).normal(size=(130, 20))
    messages = [one.encode(vectors, np.random.default_rng(4)) for one in (built(name), built(name), built(name, rotation_seed=1))]
    np.testing.assert_array_equal(messages[0], messages[1])
    assert (messages[0] != messages[2]).any()


@pytest.mark.parametrize("name", SECURE_SUM_MECHANISMS)
def test_the_guarantee_is_for_the_adjacency_that_was_asked_for(name: str) -> None:
    assert built(name).guarantee.adjacency == ADJACENCIES_OF[name][0]
    for adjacency in ADJACENCIES_OF[name][1:]:
        mechanism = built(name, adjacency=adjacency)
        assert mechanism.guarantee.adjacency == adjacency
        assert mechanism.guarantee.epsilon <= 3.0
    for adjacency in {*ADJACENCIES, "swap"} - {*ADJACENCIES_OF[name]}:
        with pytest.raises(ValueError, match=f"adjacency must be {' or '.join(ADJACENCIES_OF[name])} for {name}, got '{adjacency}'"):
            built(name, adjacency=adjacency)


@pytest.mark.parametrize("name", [name for name in SECURE_SUM_MECHANISMS if len(ADJACENCIES_OF[name]) == 2])
def test_replacing_a_vector_is_twice_as_far_as_removing_it(name: str) -> None:
    replaced, removed = (built(name, adjacency=adjacency) for adjacency in ("replace-one", "add-or-remove-one"))
    assert replaced.worst_variance > 2 * removed.worst_variance


def smallest_bits(error: InfeasibleError) -> int:
    return int(str(error).split("bits must be at least ")[1].split()[0])


@pytest.mark.parametrize("name", SECURE_SUM_MECHANISMS)
def test_too_few_bits_are_refused_with_a_number_that_will_do(name: str) -> None:
    with pytest.raises(InfeasibleError, match="bits must be at least") as caught:
        built(name, bits=2)
    enough = smallest_bits(caught.value)
    assert built(name, bits=enough).guarantee.epsilon <= 3.0
    with pytest.raises(InfeasibleError, match=f"bits must be at least {enough}"):
        built(name, bits=enough - 1)


@pytest.mark.parametrize("name", SECURE_SUM_MECHANISMS)
def test_more_bits_than_are_of_use_do_no_harm(name: str) -> None:
    # The clip norm would be more steps than can be rounded.
    mechanism = built(name, bits=62, ball=NormBall(20, 2.0, 1e-30))
    assert 0.95 * 3.0 < mechanism.guarantee.epsilon <= 3.0
    assert mechanism.worst_variance / 1e-60 <= built(name).worst_variance / 9.0


def test_noise_of_more_steps_than_can_be_drawn_is_not_asked_for() -> None:
    # Noise of 300 000 clip norms: it is what limits the number of steps, not the clip norm.
    mechanism = build_secure_sum_mechanism("distributed-discrete-gaussian", NormBall(1, 2.0), 1, 62, 1e-5, 1e-9)
    result = simulate_secure_sum(mechanism, [np.ones((1, 1))], np.random.default_rng(5))
    assert 0 < result.squared_error < 25 * result.predicted_squared_error


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"mechanism must be one of distributed-discrete-gaussian.*, got 'laplace'"):
        built("laplace")


@pytest.mark.parametrize("name", SECURE_SUM_MECHANISMS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ball": NormBall(20, 1.0)}, "ball must have norm 2 for a secure sum, got norm 1.0"),
        ({"clients": 0}, "clients must be a whole number from 1"),
        ({"bits": 0}, "bits must be a whole number from 1"),
        ({"bits": 63}, "bits must be a whole number from 1"),
        ({"epsilon": -1.0}, "epsilon must be a number from"),
        ({"delta": 0.0}, "delta must be a number above 0"),
        ({"rotation_seed": -1}, "rotation_seed must be a whole number from 0 to 9223372036854775807, got -1"),
        ({"rotation_seed": 2**63}, "rotation_seed must be a whole number from 0 to 9223372036854775807, got 9223372036854775808"),
    ],
)
def test_bad_arguments_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        built(name, **changes)
