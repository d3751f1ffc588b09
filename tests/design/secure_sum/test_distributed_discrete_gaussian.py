"""The distributed discrete Gaussian mechanism.

Each test of a few statistics has a chance of a false alarm below 1e-5 (5 sigma).
"""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from quietbits.design.contracts.guarantee import ADJACENCIES
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism, discrete_gaussian_privacy
from quietbits.design.transforms.rotation import ROTATIONS, RandomisedHadamard
from quietbits.solvers.accounting.sampling import PoissonSampling
from quietbits.solvers.divergences.discrete_gaussian_divergence import rounded_norm

DELTA = 1e-5
MECHANISM = DistributedDiscreteGaussianMechanism(NormBall(5, 2.0, 10.0), clients=4, bits=16, granularity=1.0, local_sigma=0.5, delta=DELTA)


def made(**changes: Any) -> DistributedDiscreteGaussianMechanism:
    return dataclasses.replace(MECHANISM, **changes)


def errors_of_rounds(mechanism: DistributedDiscreteGaussianMechanism, vectors: np.ndarray, rounds: int, seed: int) -> np.ndarray:
    """Return errors of the mean in independent rounds, shape (rounds, dimension)."""
    messages = mechanism.encode(np.tile(vectors, (rounds, 1)), np.random.default_rng(seed)).reshape(rounds, len(vectors), -1)
    estimates = [mechanism.decode(mechanism.aggregate(one_round), mechanism.clients) for one_round in messages]
    return np.array(estimates) - mechanism.ball.clip(vectors).mean(axis=0)


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_without_rejection_the_mean_is_unbiased_and_its_error_as_predicted(rotation: str) -> None:
    # The vectors are far inside the ball, so rounding never rejects: a rounded vector would need a squared norm above 15**2.
    mechanism, rounds = made(rotation=rotation), 2000
    vectors = np.random.default_rng(1).uniform(-1, 1, size=(4, 5))
    errors = errors_of_rounds(mechanism, vectors, rounds, seed=2)
    assert np.abs(errors.mean(axis=0)).max() < 5 * errors.std() / math.sqrt(rounds)
    squares = np.sum(errors**2, axis=1)
    predicted = mechanism.variance(vectors).mean() / 4
    # The prediction includes rounding errors on the Fourier rotation's padding, at most 1/4 per client, the largest f (1 - f).
    padding = 0.0 if rotation == "hadamard" else 1 / 4 / 4
    allowed = 5 * squares.std() / math.sqrt(rounds)
    assert predicted - padding - allowed < squares.mean() < predicted + allowed
    assert predicted <= mechanism.variance_bound / 4


def test_the_predicted_variance_is_noise_and_rounding_by_hand() -> None:
    # In one dimension the rotation is a sign. Rounding adds f (1 - f) times the squared granularity for a coordinate with a fraction f of a
    # step. This is a quarter of the squared granularity half-way between grid points.
    mechanism = made(ball=NormBall(1, 2.0, 4.0), granularity=2.0, local_sigma=6.0)
    assert mechanism.variance([[1.0], [0.5], [2.0], [-3.0]]) == pytest.approx(36 + 4 * np.array([1 / 4, 3 / 16, 0, 1 / 4]), rel=1e-12)


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_at_the_edge_of_the_ball_the_bias_and_the_error_stay_below_their_bounds(rotation: str) -> None:
    mechanism, rounds = made(rotation=rotation, ball=NormBall(5, 2.0, 1.5)), 2000
    vectors = np.tile([1.0, -1.0, 2.0, 3.0, 0.5], (4, 1))
    errors = errors_of_rounds(mechanism, vectors, rounds, seed=3)
    spread = math.sqrt(5) * errors.std() / math.sqrt(rounds)
    assert np.linalg.norm(errors.mean(axis=0)) < mechanism.bias_bound + 5 * spread
    squares = np.sum(errors**2, axis=1)
    # The errors of the four clients share a bias; only the variance is divided by their number.
    assert squares.mean() < mechanism.variance_bound / 4 + mechanism.bias_bound**2 + 5 * squares.std() / math.sqrt(rounds)


def test_messages_are_whole_numbers_of_the_stated_bits() -> None:
    for bits, dtype in [(3, np.uint8), (8, np.uint8), (9, np.uint16), (32, np.uint32), (62, np.uint64)]:
        mechanism = made(bits=bits)
        messages = mechanism.encode(-np.ones((50, 5)), np.random.default_rng(4))
        assert messages.shape == (50, 8)
        assert messages.dtype == dtype
        assert int(messages.max()) < 2**bits
        assert int(messages.max()) >= 2 ** (bits - 1)
        assert mechanism.bits_per_client == 8 * bits


@pytest.mark.parametrize("bits", [4, 62])
def test_chunks_add_up_modulo_the_modulus(bits: int) -> None:
    mechanism = made(clients=40, bits=bits)
    messages = mechanism.encode(np.full((40, 5), -1.0), np.random.default_rng(5))
    whole = mechanism.aggregate(messages)
    assert int(whole.max()) < 2**bits
    parts = sum((mechanism.aggregate(chunk) for chunk in np.split(messages, 40)), np.zeros(8, dtype=np.uint64))
    assert parts.max() > whole.max()
    np.testing.assert_array_equal(mechanism.decode(parts, 40), mechanism.decode(whole, 40))


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_with_few_bits_sums_wrap_as_often_as_predicted_at_most(rotation: str) -> None:
    # The same draws with more bits give the true sum. Half the modulus is 2.7 standard deviations.
    rounds, wrapped = 250, 0
    few = made(ball=NormBall(8, 2.0, 40.0), clients=10, bits=10, local_sigma=40.0, rotation=rotation)
    vectors = np.tile(np.eye(8)[0] * 40.0, (10, 1))
    for seed in range(rounds):
        narrow = dataclasses.replace(few, rotation_seed=seed)
        wide = dataclasses.replace(narrow, bits=40)
        sums = [item.aggregate(item.encode(vectors, np.random.default_rng(seed))) for item in (narrow, wide)]
        wrapped += not np.array_equal(narrow.decode(sums[0], 10), wide.decode(sums[1], 10))
    assert few.wrap_probability < 1
    assert 0 < wrapped < rounds * few.wrap_probability + 5 * math.sqrt(rounds * few.wrap_probability)


def test_the_wrap_probability_by_hand() -> None:
    # The variance adds flattened signal, rounding and noise, with n = 10, r = 40, d = 8 and sigma = 40. The largest squared norm is below
    # (40 + sqrt(8))**2.
    few = made(ball=NormBall(8, 2.0, 40.0), clients=10, bits=10, local_sigma=40.0)
    variance = (10 * 40) ** 2 / 8 + 10 / 4 + 10 * 40**2
    assert few.wrap_probability == pytest.approx(16 * math.exp(-((512 - 10 * few.bias_bound) ** 2) / (2 * variance)), rel=1e-9)
    # With one client and little noise, only the noise uses the range above the largest coordinate.
    sure = made(ball=NormBall(1, 2.0, 40.0), clients=1, bits=7, local_sigma=4.0)
    assert sure.wrap_probability == pytest.approx(2 * math.exp(-((64 - 40) ** 2) / 32), rel=1e-9)
    assert made(bits=1).wrap_probability == 1.0


@pytest.mark.parametrize(("dimension", "clip_norm", "granularity"), [(1, 20.0, 1.0), (100, 50.0, 1.0), (100, 0.5, 1.0), (3, 1.0, 1e-3)])
def test_what_is_accounted_for_is_not_below_the_norm_that_vectors_are_rounded_to(
    dimension: int, clip_norm: float, granularity: float
) -> None:
    mechanism = made(ball=NormBall(dimension, 2.0, clip_norm), granularity=granularity)
    # The mechanism's bound is the whole number below the squared norm, the other bound is the squared norm.
    assert mechanism.norm_bound <= rounded_norm(clip_norm, granularity, mechanism.padded_dimension)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_guarantee_holds_for_all_outputs_of_two_clients_in_one_dimension(adjacency: str) -> None:
    # The neighbours are a vector at the edge, a whole number of steps, and zero or the opposite vector. The test enumerates every residue
    # of the sum.
    mechanism = made(ball=NormBall(1, 2.0, 20.0), clients=2, bits=9, local_sigma=25.0, adjacency=adjacency)
    points = np.arange(-1000, 1001)
    noise = np.exp(-(points**2) / (2 * 25.0**2))
    both = np.convolve(noise / noise.sum(), noise / noise.sum())
    absent = np.bincount(np.arange(-2000, 2001) % 512, weights=both, minlength=512)
    for steps in (-20, 20):
        present, neighbour = np.roll(absent, steps), np.roll(absent, -steps) if adjacency == "replace-one" else absent
        for left, right in ((present, neighbour), (neighbour, present)):
            reached = np.maximum(left - math.exp(mechanism.guarantee.epsilon) * right, 0).sum()
            assert DELTA / 20 < reached <= DELTA
    # The mechanism's sums have this law if both clients hold a vector at the edge.
    rounds = 20_000
    sums = mechanism.encode(np.full((2 * rounds, 1), 20.0), np.random.default_rng(9)).reshape(rounds, 2).sum(axis=1) % 512
    sign = int(RandomisedHadamard(1, mechanism.rotation_seed).forward([1.0])[0])
    expected = rounds * np.roll(absent, 40 * sign)
    assert (np.abs(np.bincount(sums, minlength=512) - expected) <= 5 * np.sqrt(expected) + 6).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ball": NormBall(5, 1.0)}, "ball must be of norm 2 for discrete Gaussian noise, got norm 1"),
        ({"clients": 0}, "clients must be a whole number from 1 to 1000000000, got 0"),
        ({"bits": 63}, "bits must be a whole number from 1 to 62, got 63"),
        ({"granularity": 0.0}, "granularity must be a number from 1e-100 to 1e\\+100, got 0.0"),
        ({"granularity": 1e-9, "local_sigma": 1e-9}, "granularity must be at least .* for clip_norm 10.0, got 1e-09"),
        ({"local_sigma": 0.0}, "local_sigma must be a number from 1e-100 to 1e\\+100, got 0.0"),
        ({"local_sigma": 1e-4}, "local_sigma in steps of the granularity must be a number from 0.001 to 1e\\+12, got 0.0001"),
        ({"delta": 0.0}, "delta must be"),
        ({"rotation_seed": -1}, "seed must be a whole number from 0 to .*, got -1"),
        ({"rotation": "none"}, "rotation must be one of hadamard, fourier, got 'none'"),
        ({"adjacency": "both"}, "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
    ],
)
def test_a_field_out_of_range_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 8\), got \(4, 5\)"):
        MECHANISM.aggregate(np.zeros((4, 5), dtype=np.uint16))
    with pytest.raises(ValueError, match="values must be from 0 to 65535, got 65536"):
        MECHANISM.aggregate(np.full((4, 8), 2**16))
    with pytest.raises(ValueError, match=r"aggregate must have the shape \(8,\), got \(5,\)"):
        MECHANISM.decode(np.zeros(5, dtype=np.uint64), 4)
    with pytest.raises(ValueError, match="values must be whole numbers of at most 64 bits, got an array of float64"):
        MECHANISM.decode(np.zeros(8), 4)


def test_sampling_everyone_is_no_sampling() -> None:
    privacy = discrete_gaussian_privacy(1000, 64, 1.0, 0.1, 0.001)
    certain = privacy.epsilon(1e-5, rounds=7, sampling=PoissonSampling(1.0))
    assert certain == pytest.approx(privacy.epsilon(1e-5, rounds=7), rel=1e-5)
