"""The distributed Skellam mechanism.

Each test of a few statistics has a chance of a false alarm below 1e-5 (5 sigma).
"""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import quietbits
from quietbits.design.contracts.guarantee import ADJACENCIES
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.distributed_skellam import DistributedSkellamMechanism
from quietbits.design.transforms.rotation import ROTATIONS, RandomisedHadamard
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.divergences.discrete_gaussian_divergence import rounded_norm
from quietbits.solvers.divergences.skellam_divergence import least_skellam_divergences, skellam_tail

DELTA = 1e-5
MECHANISM = DistributedSkellamMechanism(NormBall(5, 2.0, 10.0), clients=4, bits=16, granularity=1.0, local_variance=0.3, delta=DELTA)
# Two clients in one dimension permit an enumeration of all sums.
PAIR = DistributedSkellamMechanism(NormBall(1, 2.0, 20.0), clients=2, bits=9, granularity=1.0, local_variance=625.0, delta=DELTA)
REACH = 700


def made(**changes: Any) -> DistributedSkellamMechanism:
    return dataclasses.replace(MECHANISM, **changes)


def errors_of_rounds(mechanism: DistributedSkellamMechanism, vectors: np.ndarray, rounds: int, seed: int) -> np.ndarray:
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
    # In one dimension the rotation is a sign, and rounding a half adds a quarter of the squared granularity.
    mechanism = made(ball=NormBall(1, 2.0, 4.0), granularity=2.0, local_variance=36.0)
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
        assert 2 ** (bits - 1) <= int(messages.max()) < 2**bits
        assert mechanism.bits_per_client == 8 * bits
        np.testing.assert_array_equal(messages, mechanism.noisy_steps(-np.ones((50, 5)), np.random.default_rng(4)) % 2**bits)


@pytest.mark.parametrize("bits", [4, 62])
def test_chunks_add_up_modulo_the_modulus(bits: int) -> None:
    mechanism = made(clients=40, bits=bits)
    messages = mechanism.encode(np.full((40, 5), -1.0), np.random.default_rng(5))
    whole = mechanism.aggregate(messages)
    assert int(whole.max()) < 2**bits
    parts = sum((mechanism.aggregate(chunk) for chunk in np.split(messages, 40)), np.zeros(8, dtype=np.uint64))
    assert parts.max() > whole.max()
    np.testing.assert_array_equal(mechanism.decode(parts, 40), mechanism.decode(whole, 40))


def test_with_few_bits_sums_wrap_as_often_as_predicted_at_most() -> None:
    # Half the modulus is 2.7 standard deviations of a coordinate of the sum.
    rounds, wrapped = 300, 0
    few = made(ball=NormBall(8, 2.0, 40.0), clients=10, bits=10, local_variance=1600.0)
    vectors = np.tile(np.eye(8)[0] * 40.0, (10, 1))
    for seed in range(rounds):
        mechanism = dataclasses.replace(few, rotation_seed=seed)
        steps = mechanism.noisy_steps(vectors, np.random.default_rng(seed))
        recovered = mechanism.recovered_steps(mechanism.aggregate(mechanism.encode(vectors, np.random.default_rng(seed))))
        wrapped += int(np.count_nonzero(steps.sum(axis=0) != recovered))
        np.testing.assert_array_equal((steps.sum(axis=0) - recovered) % 2**10, np.zeros(8))
    likely = few.coordinate_wrap_probability
    assert few.wrap_probability == 8 * likely < 1
    # The rotation makes the coordinates of a round dependent, so the standard error counts all 8 as a single one.
    assert 0 < wrapped / (8 * rounds) < likely + 5 * math.sqrt(likely / rounds)


def test_the_wrap_probability_by_hand() -> None:
    # The bound treats flattened signal and rounding, n = 10, r = 40, d = 8, as a Gaussian; a fine grid gives the t of zero derivative.
    few = made(ball=NormBall(8, 2.0, 40.0), clients=10, bits=10, local_variance=1600.0)
    tilts, room = np.linspace(0, 0.1, 200_001), 512 - 10 * few.bias_bound
    exponents = tilts * room - ((10 * 40) ** 2 / 8 + 10 / 4) * tilts**2 / 2 - 16_000 * (np.cosh(tilts) - 1)
    assert few.coordinate_wrap_probability == pytest.approx(2 * math.exp(-exponents.max()), rel=1e-6)
    # With one client and little noise, only the noise uses the range above the largest coordinate.
    sure = made(ball=NormBall(1, 2.0, 40.0), clients=1, bits=7, local_variance=16.0)
    assert sure.wrap_probability == pytest.approx(2 * skellam_tail(16.0, 64 - 40), rel=1e-9)
    assert made(bits=1).wrap_probability == 1.0


def test_the_noise_alone_wraps_no_more_often_than_its_bound() -> None:
    # The exact law is zeros plus Skellam noise of variance 400; the bound for certain coordinates must exceed its tail.
    mechanism = made(ball=NormBall(1, 2.0, 1.0), clients=4, bits=8, local_variance=100.0)
    noise = stats.skellam(200, 200)
    assert noise.cdf(-129) + noise.sf(127) <= mechanism.coordinate_wrap_probability < 1e-6


def divergences_of(mechanism: DistributedSkellamMechanism, orders: np.ndarray) -> np.ndarray:
    """Return the published bound on the squared norm after rounding."""
    dimension, radius = mechanism.padded_dimension, mechanism.ball.clip_norm / mechanism.granularity
    squared = radius**2 + dimension / 4 + radius + math.sqrt(dimension) / 2
    vectors = 2 if mechanism.adjacency == "replace-one" else 1
    l1, l2 = vectors * min(math.sqrt(dimension * squared), squared), vectors * math.sqrt(squared)
    return least_skellam_divergences(mechanism.clients * mechanism.local_variance / mechanism.granularity**2, l1, l2, orders)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
# For short vectors, the squared norm is the smaller bound on the L1 norm.
@pytest.mark.parametrize(("clip_norm", "local_variance"), [(50.0, 900.0), (0.5, 0.09)])
def test_the_account_is_made_of_the_least_divergences(adjacency: str, clip_norm: float, local_variance: float) -> None:
    mechanism = made(clients=100, ball=NormBall(100, 2.0, clip_norm), local_variance=local_variance, adjacency=adjacency)
    orders = np.array(DEFAULT_ORDERS[:-1])
    expected = RenyiCurve(orders, divergences_of(mechanism, orders)).composed(3).epsilon(DELTA).epsilon
    # Earlier guarantees used the whole number below the squared norm, and were slightly smaller than the account.
    assert mechanism.privacy().account("rdp").bound(DELTA, 3, None).epsilon == pytest.approx(expected, rel=1e-12)
    assert mechanism.norm_bound <= rounded_norm(clip_norm, 1.0, 128)


def rounded(position: float) -> dict[int, float]:
    """Return the law of a rounded number, over both neighbours without rejected neighbours."""
    low = math.floor(position)
    fraction = position - low
    kept = {point: mass for point, mass in ((low, 1 - fraction), (low + 1, fraction)) if mass and point**2 <= 420}
    return {point: mass / sum(kept.values()) for point, mass in kept.items()}


def sum_of_two(first: float | None, second: float) -> np.ndarray:
    """Return the law of the pair's sum from -REACH to REACH; None is an absent vector."""
    noise = special.ive(np.abs(np.arange(-REACH, REACH + 1)), 625.0)
    own = {0: 1.0} if first is None else rounded(first)
    total = np.zeros(4 * REACH + 1)
    for point, mass in own.items():
        for other, weight in rounded(second).items():
            total += mass * weight * np.roll(np.convolve(noise, noise), point + other)
    return total[REACH:-REACH]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_guarantee_holds_for_all_outputs_of_two_clients_in_one_dimension(adjacency: str) -> None:
    # The bound c**2 + 1/4 + c + 1/2 at c = 20 is 420.75, so rounding keeps whole numbers up to 20.
    mechanism = dataclasses.replace(PAIR, adjacency=adjacency)
    epsilon, orders = mechanism.guarantee.epsilon, np.array([2.0, 3.0, 6.0])
    claimed = divergences_of(mechanism, orders)
    largest_delta, largest = 0.0, np.zeros(3)
    for second in (-20.0, 0.0, 0.5, 19.6):
        neighbour = sum_of_two(-20.0 if adjacency == "replace-one" else None, second)
        for first in (-20.0, -19.5, -3.3, 0.25, 12.0, 20.0):
            present = sum_of_two(first, second)
            for left, right in ((present, neighbour), (neighbour, present)):
                # The sum is enumerated at every residue modulo 2**9.
                wrapped = [np.bincount(np.arange(-REACH, REACH + 1) % 512, weights=masses, minlength=512) for masses in (left, right)]
                largest_delta = max(largest_delta, float(np.maximum(wrapped[0] - math.exp(epsilon) * wrapped[1], 0).sum()))
                kept = (left > 1e-60) & (right > 1e-60)
                moments = [np.log(np.sum(left[kept] ** order * right[kept] ** (1 - order))) / (order - 1) for order in orders]
                largest = np.maximum(largest, moments)
    assert PAIR.delta / 20 < largest_delta <= PAIR.delta
    # The exact divergence attains 400 of the squared-norm bound 420.75; the other hundredth is the theorem's second term.
    assert (largest <= claimed).all()
    assert (largest > 0.99 * 400 / 420.75 * claimed).all()


def test_what_is_enumerated_is_what_the_mechanism_sends() -> None:
    rounds = 40_000
    vectors = np.tile([[19.6], [0.5]], (rounds, 1))
    sums = PAIR.encode(vectors, np.random.default_rng(9)).reshape(rounds, 2).sum(axis=1) % 512
    sign = float(RandomisedHadamard(1, PAIR.rotation_seed).forward([1.0])[0])
    masses = sum_of_two(19.6 * sign, 0.5 * sign)
    expected = rounds * np.bincount(np.arange(-REACH, REACH + 1) % 512, weights=masses, minlength=512)
    counted = np.bincount(sums, minlength=512)
    assert (np.abs(counted - expected) <= 5 * np.sqrt(expected) + 6).all()
    # The chi-square sums over values with at least ten expected draws; the margin is five sigma of its degrees of freedom.
    often = expected >= 10
    degrees = int(often.sum())
    assert degrees > 20
    assert np.sum((counted - expected)[often] ** 2 / expected[often]) < degrees + 5 * math.sqrt(2 * degrees)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ball": NormBall(5, 1.0)}, "ball must be of norm 2 for Skellam noise, got norm 1"),
        ({"clients": 0}, "clients must be a whole number from 1 to 1000000000, got 0"),
        ({"bits": 63}, "bits must be a whole number from 1 to 62, got 63"),
        ({"granularity": 0.0}, "granularity must be a number from 1e-100 to 1e\\+100, got 0.0"),
        ({"granularity": 1e-9, "local_variance": 1e-18}, "granularity must be at least .* for clip_norm 10.0, got 1e-09"),
        ({"local_variance": 0.0}, "local_variance must be a number from 1e-100 to 1e\\+100, got 0.0"),
        ({"local_variance": 1e-6}, r"local_variance in squared steps must be a number from 2e-06 to 2e\+10, got 1e-06"),
        ({"local_variance": 3e10}, r"local_variance in squared steps must be a number from 2e-06 to 2e\+10, got 30000000000.0"),
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


def test_the_example_of_the_documentation_runs() -> None:
    text = (Path(quietbits.__file__).parent / "docs" / "explanations" / "distributed-noise.md").read_text(encoding="utf-8")
    example = text.split("```python\n")[1].split("```")[0]
    assert "calibrate_distributed_skellam" in example
    exec(example, {})  # noqa: S102 - the example is the project's own
