"""The steps of a rounded secure sum.

Each test of a few statistics has a chance of a false alarm below 1e-5 (5 sigma).
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.secure_sum.distributed_skellam import DistributedSkellamMechanism
from quietbits.design.secure_sum.modular_arithmetic import messages_modulo, residues
from quietbits.design.secure_sum.rounded_secure_sum import RoundedSecureSum
from quietbits.design.transforms.rotation import ROTATIONS
from quietbits.design.transforms.vector_dithering import BLOCK

BALL = NormBall(5, 2.0, 6.0)
SUM: dict[str, Any] = {"ball": BALL, "clients": 3, "bits": 20, "granularity": 0.5, "delta": 1e-5}
MECHANISMS = [
    made
    for rotation in ROTATIONS
    for made in (
        DistributedDiscreteGaussianMechanism(local_sigma=0.7, rotation=rotation, **SUM),
        DistributedSkellamMechanism(local_variance=0.5, rotation=rotation, **SUM),
    )
]
EVERY = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda value: f"{type(value).__name__}-{value.rotation}")


@EVERY
def test_rounding_and_noise_are_the_message(mechanism: RoundedSecureSum) -> None:
    vectors = np.random.default_rng(1).normal(size=(3, 5))
    words = np.random.default_rng(2)
    rounded = mechanism.rounded_steps(vectors, words)
    noise = mechanism.noise_steps(3, words)
    assert rounded.shape == noise.shape == (3, mechanism.padded_dimension)
    np.testing.assert_array_equal(mechanism.noisy_steps(vectors, np.random.default_rng(2)), rounded + noise)
    # Rounded vectors are within the norm bound, also for vectors outside the ball.
    far = mechanism.rounded_steps(100 * np.random.default_rng(3).normal(size=(200, 5)), words)
    assert np.linalg.norm(far, axis=1).max() * 0.5 <= mechanism.norm_bound


@EVERY
def test_the_mean_of_steps_is_what_is_decoded(mechanism: RoundedSecureSum) -> None:
    vectors = np.random.default_rng(4).normal(size=(3, 5))
    aggregate = mechanism.aggregate(mechanism.encode(vectors, np.random.default_rng(5)))
    steps = mechanism.noisy_steps(vectors, np.random.default_rng(5)).sum(axis=0)
    np.testing.assert_array_equal(mechanism.mean_of_steps(steps), mechanism.decode(aggregate, 3))
    # The mean is linear in the steps.
    np.testing.assert_allclose(mechanism.mean_of_steps(3 * steps), 3 * mechanism.mean_of_steps(steps), atol=1e-13)
    with pytest.raises(ValueError, match="clients must be 3, for whose noise the guarantee is stated, got 2"):
        mechanism.decode(aggregate, 2)


@EVERY
def test_no_direction_has_more_variance_than_the_largest(mechanism: RoundedSecureSum) -> None:
    # The vectors are inside the ball, so rounding never rejects. The variances of 3000 messages along 20 directions are each within 5
    # standard errors.
    rounds, rng = 3000, np.random.default_rng(6)
    directions = np.concatenate([np.eye(5), rng.normal(size=(15, 5))])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    vector = rng.uniform(-1, 1, size=5)
    steps = mechanism.noisy_steps(np.tile(vector, (rounds, 1)), rng)
    decoded = 3 * np.array([mechanism.mean_of_steps(step) for step in steps]) @ directions.T
    variances = decoded.var(axis=0)
    allowed = 5 * (np.square(decoded - decoded.mean(axis=0)).std(axis=0) / math.sqrt(rounds))
    assert (variances <= mechanism.largest_directional_variance + allowed).all()
    # The noise alone has at least three quarters of the variance, so the bound is not loose.
    noise = 0.49 if isinstance(mechanism, DistributedDiscreteGaussianMechanism) else 0.5
    assert (variances >= noise - allowed).all()
    assert noise < mechanism.largest_directional_variance <= noise + 0.25 / 4 / (1 - math.exp(-0.5)) * (1 + 1e-9)
    assert mechanism.variance_bound <= mechanism.padded_dimension * mechanism.largest_directional_variance * (1 + 1e-9)


@EVERY
def test_wrapping_does_not_depend_on_the_unit_of_length(mechanism: RoundedSecureSum) -> None:
    few = replace(mechanism, bits=6)
    noise = {name: value for name in ("local_sigma", "local_variance") if (value := getattr(few, name, None)) is not None}
    scaled = {name: value * (16 if name == "local_variance" else 4) for name, value in noise.items()}
    other = replace(few, ball=NormBall(5, 2.0, 24.0), granularity=2.0, **scaled)
    assert 0 < few.coordinate_wrap_probability < 1
    assert other.coordinate_wrap_probability == pytest.approx(few.coordinate_wrap_probability, rel=1e-9)


@EVERY
@pytest.mark.parametrize(("bits", "word"), [(7, np.uint8), (8, np.uint8), (9, np.uint16), (16, np.uint16), (17, np.uint32)])
def test_messages_are_in_the_narrowest_words(mechanism: RoundedSecureSum, bits: int, word: type) -> None:
    few = replace(mechanism, bits=bits)
    messages = few.encode(np.zeros((2, 5)), np.random.default_rng(0))
    assert messages.dtype == word
    # Negative noise is also stored as a residue.
    np.testing.assert_array_equal(messages, few.noisy_steps(np.zeros((2, 5)), np.random.default_rng(0)) % 2**bits)
    assert messages.max() == 2**bits - 1
    assert messages_modulo([-1, 3], 2**bits).dtype == word
    assert residues([-1, 3], 2**bits).tolist() == messages_modulo([-1, 3], 2**bits).tolist() == [2**bits - 1, 3]


@EVERY
def test_what_one_seed_may_bias_is_what_wraps_of_the_largest_coordinates_cost(mechanism: RoundedSecureSum) -> None:
    # With 20 bits no sum wraps; with 4 bits every sum may wrap, and is then off by at most its own norm and the mean's.
    assert mechanism.seed_bias_bound == pytest.approx(mechanism.bias_bound, rel=1e-9, abs=1e-12)
    few = replace(mechanism, bits=4)
    furthest = math.sqrt(few.padded_dimension) * 8 * few.granularity / few.clients + few.ball.clip_norm
    assert few.seed_bias_bound == pytest.approx(few.bias_bound + furthest, rel=1e-12)


@EVERY
@pytest.mark.parametrize("bits", range(4, 10))
def test_fewer_sums_wrap_with_more_bits_and_bias_less(mechanism: RoundedSecureSum, bits: int) -> None:
    few = replace(mechanism, bits=bits)
    furthest = math.sqrt(few.padded_dimension) * 2 ** (bits - 1) * few.granularity / few.clients + few.ball.clip_norm
    wraps = min(1.0, few.padded_dimension * few._certain_wrap_probability)
    assert few.seed_bias_bound == pytest.approx(few.bias_bound + math.sqrt(wraps) * furthest, rel=1e-9)
    assert (wraps == 1.0) == (bits < 7)


def test_without_room_for_the_largest_coordinates_they_may_all_wrap() -> None:
    # Noise of a hundredth of a step hardly moves the three clients' coordinates, which reach from -36 to 36 steps.
    quiet = DistributedDiscreteGaussianMechanism(local_sigma=0.005, rotation="hadamard", **SUM)
    for bits, wraps in ((3, True), (8, False)):
        few = replace(quiet, bits=bits)
        furthest = math.sqrt(few.padded_dimension) * 2 ** (bits - 1) * few.granularity / few.clients + few.ball.clip_norm
        assert few.seed_bias_bound == pytest.approx(few.bias_bound + (furthest if wraps else 0.0), rel=1e-9, abs=1e-12)
    assert replace(quiet, bits=1, clients=10**6).coordinate_wrap_probability == 1.0


@pytest.mark.parametrize("mechanism", MECHANISMS[:2])
def test_a_coordinate_half_way_between_steps_adds_a_quarter_of_a_squared_step(mechanism: RoundedSecureSum) -> None:
    # One coordinate of at most 0.4 steps is never rejected, and may have the variance of a fair coin.
    short = replace(mechanism, ball=NormBall(1, 2.0, 0.4 * mechanism.granularity))
    assert short.bias_bound == 0.0
    noise = 0.49 if isinstance(mechanism, DistributedDiscreteGaussianMechanism) else 0.5
    assert short.largest_directional_variance == pytest.approx(noise + 0.25 * mechanism.granularity**2, rel=1e-3)


def test_vectors_longer_than_a_block_are_rounded_as_others_are() -> None:
    long = DistributedDiscreteGaussianMechanism(
        NormBall(BLOCK + 1, 2.0, 6.0), clients=2, bits=20, granularity=1e-3, delta=1e-5, local_sigma=0.7
    )
    assert long.rotation_seed == 0
    vectors = np.zeros((2, BLOCK + 1))
    vectors[:, 5] = 4.0
    mean = long.mean_of_steps(long.rounded_steps(vectors, np.random.default_rng(0)).sum(axis=0))
    # Rounding is off by less than a step in each coordinate.
    assert mean == pytest.approx(vectors[0], abs=0.01)


@EVERY
def test_the_variance_bound_is_that_of_noise_and_of_coordinates_half_way(mechanism: RoundedSecureSum) -> None:
    # Each coordinate of a vector has noise; each rotated coordinate adds a quarter of a squared step of 0.5, of which the padding keeps its
    # share.
    noise = 0.49 if isinstance(mechanism, DistributedDiscreteGaussianMechanism) else 0.5
    rounded = 5 if mechanism.rotation == "hadamard" else mechanism.padded_dimension
    rejected = math.exp(-0.5)
    assert mechanism.variance_bound == pytest.approx(5 * noise + rounded * 0.25 / 4 / (1 - rejected), rel=1e-9)


@EVERY
def test_a_granularity_is_a_number_above_zero(mechanism: RoundedSecureSum) -> None:
    for granularity in (0.0, -0.5, math.inf, math.nan):
        with pytest.raises(ValueError, match="granularity must be a number from 1e-100"):
            replace(mechanism, granularity=granularity)
