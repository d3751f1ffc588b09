"""Inputs made from a mechanism's own public randomness.

Points under test: errors stay within the bound for a known seed.

The chance of a false alarm is below 1e-5 per test (5 sigma).
"""

import functools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from built_in_trials import OPTIONS

from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.conformance.mechanism_cases import DELTA, EPSILON
from quietbits.arrays import FloatArray
from quietbits.design.contracts.domains import Categories, Domain, Interval
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.registry import Entry
from quietbits.design.contracts.task import Task
from quietbits.design.secure_sum.cpsgd import CpsgdMechanism
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism

CLIENTS, ROUNDS, SLOW_ROUNDS = 20, 60, 12
SLOW = ("dp-rec", "minimal-random-coding", "minimal-random-coding-plain", "poisson-private-representation", "sparse-discrete-gaussian")
MORE_BITS = {"cpsgd": {"bits": 12}, "poisson-binomial": {"bits": 7}}


def domain_of(entry: Entry) -> Domain:
    """Return a domain of vectors that exceed a frame's level, or of items, or else of numbers."""
    if NormBall in entry.domains:
        return NormBall(16, (entry.norms or (2.0,))[-1] if 2.0 not in (entry.norms or (2.0,)) else 2.0, 2.0)
    return Categories(9) if Categories in entry.domains else Interval(-1.0, 3.0)


@functools.cache
def mechanism_of(name: str) -> Mechanism:
    entry = REGISTRY[name]
    options = {**OPTIONS.get(name, {}), **MORE_BITS.get(name, {})}
    return entry.mechanism_for(Task(domain_of(entry), CLIENTS, EPSILON, DELTA, entry.adjacencies[0]), options)


def known_seed_inputs(mechanism: Mechanism) -> Iterator[FloatArray | int | float]:
    """Yield inputs for which public randomness may be the worst."""
    domain = mechanism.domain
    if isinstance(domain, Interval):
        yield from (domain.low, domain.high)
        return
    if isinstance(domain, Categories):
        sketch = getattr(mechanism, "sketch", None)
        if sketch is not None:
            buckets = sketch.buckets(np.arange(domain.size))
            shared = (buckets[:, None] == buckets).sum(axis=(1, 2))
            yield int(shared.argmax())
        yield domain.size - 1
        return
    directions = [np.eye(1, domain.dimension), np.ones((1, domain.dimension))]
    if hasattr(mechanism, "frame"):
        directions.append(mechanism.frame.synthesis(np.eye(4, mechanism.frame.size)))
    for summed in (mechanism, getattr(mechanism, "inner", None)):
        rotation = getattr(summed, "_rotation", None)
        if rotation is not None and summed.ball.dimension == domain.dimension:
            directions.append(rotation.inverse(np.eye(2, summed.padded_dimension)))
    if hasattr(mechanism, "sketch"):
        rows = np.linalg.svd(np.array([mechanism.sketch.encode(row) for row in np.eye(domain.dimension)]).T)[2]
        directions += [rows[:1], rows[-1:]]
    for direction in np.vstack(directions):
        yield direction * domain.clip_norm / float(domain.norms(direction[None])[0])


def errors_of_rounds(mechanism: Mechanism, held: FloatArray | int | float, rounds: int) -> FloatArray:
    """Return errors of the mean of equal clients with a fixed seed, shape (rounds, coordinates)."""
    inputs = np.repeat(np.asarray(held)[None], CLIENTS, axis=0)
    true = mechanism.domain.total(mechanism.domain.clip(inputs)) / CLIENTS
    rng = np.random.default_rng(3)
    estimates = [mechanism.decode(mechanism.aggregate(mechanism.encode(inputs, rng)), CLIENTS) for _ in range(rounds)]
    return (np.array(estimates) - true).reshape(rounds, -1)


@pytest.mark.parametrize("name", REGISTRY)
def test_inputs_made_from_the_seed_stay_within_the_stated_error(name: str) -> None:
    mechanism = mechanism_of(name)
    rounds = SLOW_ROUNDS if name in SLOW else ROUNDS
    for held in known_seed_inputs(mechanism):
        errors = errors_of_rounds(mechanism, held, rounds)
        squares = np.sum(errors**2, axis=1)
        stated = mechanism.variance_bound / CLIENTS + mechanism.seed_bias_bound**2
        assert squares.mean() <= stated + 5 * squares.std() / math.sqrt(rounds) + 1e-12
        spread = math.sqrt(squares.mean() / rounds)
        assert np.linalg.norm(errors.mean(axis=0)) <= mechanism.seed_bias_bound + 5 * spread
        # Bounds for inputs that do not depend on the seed are not larger.
        assert mechanism.error().of_mean(CLIENTS) <= stated + mechanism.worst_shared_variance + mechanism.bias_bound**2


def test_vectors_along_rotated_axes_are_cut_off_as_far_as_is_stated() -> None:
    mechanism = CpsgdMechanism(NormBall(1024, 2.0), clients=10, levels=1024, trials=2, delta=1e-3, rotated=True)
    vector = mechanism._rotation.inverse(np.eye(1, 1024))[0]
    errors = np.mean(
        [mechanism.decode(mechanism.aggregate(mechanism.encode(np.tile(vector, (10, 1)), rng)), 10) - vector for rng in rngs()], 0
    )
    assert mechanism.bias_bound < 1e-3
    assert np.linalg.norm(errors) == pytest.approx(mechanism.seed_bias_bound, rel=0.02)
    assert mechanism.seed_bias_bound == pytest.approx(1 - mechanism.level_bound, rel=1e-6)


def test_sums_along_rotated_axes_wrap_and_are_as_far_off_as_is_stated() -> None:
    mechanism = DistributedDiscreteGaussianMechanism(NormBall(256, 2.0), 100, bits=11, granularity=0.05, local_sigma=0.1, delta=1e-5)
    vector = mechanism._rotation.inverse(np.eye(1, 256))[0]
    error = mechanism.decode(mechanism.aggregate(mechanism.encode(np.tile(vector, (100, 1)), next(rngs()))), 100) - vector
    assert mechanism.wrap_probability < 1e-3
    assert mechanism.error().of_mean(100) < 0.2 * float(error @ error) < mechanism.seed_bias_bound**2
    # If the largest coordinates fit, the seed does not matter.
    wide = DistributedDiscreteGaussianMechanism(NormBall(256, 2.0), 100, bits=16, granularity=0.05, local_sigma=0.1, delta=1e-5)
    assert wide.seed_bias_bound == pytest.approx(wide.bias_bound, rel=1e-9)


def rngs() -> Iterator[np.random.Generator]:
    return (np.random.default_rng(seed) for seed in range(10))
