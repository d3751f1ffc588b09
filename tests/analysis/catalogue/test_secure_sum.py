"""Entries of secure sums.

Points under test: closeness of sums, drop-outs, adjacencies, and refusals of too many bits.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

from quietbits.analysis.catalogue.accounts import account_subject
from quietbits.analysis.catalogue.registry import REGISTRY, build_mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.design.secure_sum.sketched_sum import SketchedSecureSum
from quietbits.errors import InfeasibleError

BALL = NormBall(20, 2.0, 3.0)
NAMES = [name for name, entry in REGISTRY.items() if entry.trust_model == "secure-sum" and 2.0 in (entry.norms or ())]
# Sketches are as long as the vectors: by default an entry refuses shorter sketches, because compression costs more than noise.
SKETCH = {"rows": 1, "sketch_dimension": 20}
OPTIONS: dict[str, dict[str, Any]] = {
    "sketched-discrete-gaussian": SKETCH,
    "sketched-skellam": SKETCH,
    "sparse-discrete-gaussian": {"sparsity": 2, **SKETCH},
}
# With a sketch, the seed also determines the sketch.
SEEDS = dict.fromkeys(OPTIONS, "sketch_seed")


@functools.cache
def built(name: str, *, bits: int = 11, rotation_seed: int = 0, **changes: Any) -> Any:
    task = Task(**({"domain": BALL, "clients": 130, "epsilon": 3.0, "delta": 1e-4, "adjacency": REGISTRY[name].adjacencies[0]} | changes))
    return build_mechanism(name, task, {"bits": bits, SEEDS.get(name, "rotation_seed"): rotation_seed, **OPTIONS.get(name, {})})


@pytest.mark.parametrize("name", NAMES)
def test_the_promise_is_kept_and_not_by_much(name: str) -> None:
    mechanism = built(name)
    assert (mechanism.clients, mechanism.ball) == (130, BALL)
    assert 0.95 * 3.0 < mechanism.guarantee.epsilon <= 3.0
    assert mechanism.modulus <= 2**11


@pytest.mark.parametrize("name", NAMES)
def test_after_drop_outs_the_mechanism_for_those_that_remain_decodes_the_sum(name: str) -> None:
    # With a rotation, the levels of cpSGD depend on the number of clients. Squared errors have at least 20 degrees of freedom, and so a
    # relative deviation of sqrt(2/20); the margin is 6 deviations.
    everyone = dataclasses.replace(built(name), rotated=False) if name == "cpsgd" else built(name)
    vectors = np.random.default_rng(6).normal(size=(130, 20))
    if isinstance(everyone, SketchedSecureSum):
        # The sum adds up sketches; decoding sketches to vectors adds another error.
        everyone, vectors = everyone.inner, everyone.sketched(vectors)
    messages = everyone.encode(vectors, np.random.default_rng(7))
    masked_sum = SecureSum(130, everyone.padded_dimension, everyone.modulus, neighbours=20)
    total = masked_sum.total([messages], np.random.default_rng(8), dropped=range(10))
    with pytest.raises(ValueError, match=r"clients must be 130, for whose .* the guarantee is stated, got 120"):
        everyone.decode(total, 120)
    remaining = dataclasses.replace(everyone, clients=120)
    error = np.sum((remaining.decode(total, 120) - everyone.ball.clip(vectors[10:]).mean(axis=0)) ** 2)
    assert error == pytest.approx(remaining.variance(vectors[10:]).mean() / 120, rel=6 * np.sqrt(2 / 20))
    assert remaining.guarantee.epsilon > everyone.guarantee.epsilon


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_is_that_of_the_rotation(name: str) -> None:
    vectors = np.random.default_rng(3).normal(size=(130, 20))
    messages = [item.encode(vectors, np.random.default_rng(4)) for item in (built(name), built(name, rotation_seed=1))]
    assert (messages[0] != messages[1]).any()


@pytest.mark.parametrize("name", ["distributed-discrete-gaussian", "distributed-skellam"])
def test_the_fourier_rotation_pads_to_an_even_number_and_is_accounted_for_as_such(name: str) -> None:
    hadamard, fourier = (
        build_mechanism(name, Task(NormBall(21, 2.0, 3.0), 130, 3.0, 1e-4, "replace-one"), {"bits": 11, "rotation": rotation})
        for rotation in ("hadamard", "fourier")
    )
    assert (hadamard.padded_dimension, fourier.padded_dimension) == (32, 22)
    noise = {option.name: getattr(fourier, option.name) for option in REGISTRY[name].account_options if option.name.startswith("local_")}
    values = {"clients": 130, "dimension": 21, "clip": 3.0, "granularity": fourier.granularity, "bits": 11, "rotation": "fourier", **noise}
    accounted = account_subject(name, values, 1e-4, "replace-one")
    assert accounted.bits_per_client == 22 * 11 == fourier.bits_per_client
    assert accounted.report(1e-4).epsilon == fourier.guarantee.epsilon
    assert 0.95 * 3.0 < fourier.guarantee.epsilon <= 3.0
    vectors = np.random.default_rng(9).normal(size=(130, 21))
    decoded = fourier.decode(fourier.aggregate(fourier.encode(vectors, np.random.default_rng(10))), 130)
    # Squared errors have 21 degrees of freedom, and so relative deviations of sqrt(2/21); the margin is 6 deviations.
    error = np.sum((decoded - fourier.ball.clip(vectors).mean(axis=0)) ** 2)
    assert error < fourier.variance_bound / 130 * (1 + 6 * np.sqrt(2 / 21))


@pytest.mark.parametrize("name", [name for name in NAMES if len(REGISTRY[name].adjacencies) == 2])
def test_replacing_a_vector_is_twice_as_far_as_removing_it(name: str) -> None:
    replaced, removed = (built(name, adjacency=adjacency) for adjacency in ("replace-one", "add-or-remove-one"))
    assert replaced.variance_bound > 2 * removed.variance_bound


@pytest.mark.parametrize("name", NAMES)
def test_too_few_bits_are_refused_with_the_fewest_that_are_enough(name: str) -> None:
    with pytest.raises(InfeasibleError, match="bits must be at least") as caught:
        built(name, bits=2)
    enough = int(str(caught.value).split("bits must be at least ")[1].split()[0])
    assert built(name, bits=enough).guarantee.epsilon <= 3.0
    with pytest.raises(InfeasibleError, match=f"bits must be at least {enough}"):
        built(name, bits=enough - 1)


@pytest.mark.parametrize("name", NAMES)
def test_more_bits_than_are_of_use_do_no_harm(name: str) -> None:
    # The clip norm would have more steps than the encoder can round.
    mechanism = built(name, bits=62, domain=NormBall(20, 2.0, 1e-30))
    assert 0.95 * 3.0 < mechanism.guarantee.epsilon <= 3.0
    assert mechanism.variance_bound / 1e-60 <= built(name).variance_bound / 9.0


def test_noise_of_more_steps_than_can_be_drawn_is_not_asked_for() -> None:
    # The noise is 300 000 clip norms wide, so it limits the number of steps, not the clip norm.
    task = Task(NormBall(1, 2.0), 1, 1e-5, 1e-9, "add-or-remove-one")
    mechanism = build_mechanism("distributed-discrete-gaussian", task, {"bits": 62})
    estimate = mechanism.decode(mechanism.aggregate(mechanism.encode([[1.0]], np.random.default_rng(5))), 1)
    assert 0 < np.sum((estimate - 1.0) ** 2) < 25 * mechanism.error([[1.0]]).of_mean(1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": NormBall(20, 1.0)}, "norm must be 2 for .*, got 1"),
        ({"clients": 0}, "clients must be a whole number from 1"),
        ({"bits": 0}, "bits must be a whole number from 1"),
        ({"bits": 63}, "bits must be a whole number from 1"),
        ({"epsilon": -1.0}, "epsilon must be a number from"),
        ({"delta": 0.0}, "delta must be above 0 for .*, got 0.0"),
        ({"rotation_seed": -1}, "rotation_seed must be a whole number from 0 to 9223372036854775807, got -1"),
        ({"rotation_seed": 2**63}, "rotation_seed must be a whole number from 0 to 9223372036854775807, got 9223372036854775808"),
    ],
)
def test_bad_arguments_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("rotation_seed", SEEDS.get(name, "rotation_seed"))):
        built(name, **changes)
