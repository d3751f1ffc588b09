"""cpSGD as a secure-sum mechanism.

Each test of a few statistics has a chance of a false alarm below 1e-5 (5 sigma).
"""

import dataclasses
import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from quietbits.design.contracts.accounts import amplified_rounds
from quietbits.design.contracts.gaussian import near_gaussian_account
from quietbits.design.contracts.mechanism import SecureSumMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import NearGaussianNoise
from quietbits.design.secure_sum.aggregation import SecureSum
from quietbits.design.secure_sum.cpsgd import CpsgdMechanism
from quietbits.design.transforms.k_level_quantisation import quantisation_error
from quietbits.design.transforms.rotation import RandomisedHadamard
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.gaussian_privacy import gaussian_epsilon
from quietbits.solvers.accounting.sampling import FixedSizeSampling
from quietbits.solvers.divergences.binomial_divergence import shifted_binomial_delta
from quietbits.solvers.divergences.cpsgd_theorem import binomial_theorem_epsilon
from quietbits.solvers.divergences.near_gaussian_noise import binomial_near_gaussian_epsilon
from quietbits.solvers.divergences.quantised_divergence import quantised_l2_bound, quantised_sensitivity

MECHANISM = CpsgdMechanism(NormBall(5, 2.0, 2.0), clients=4, levels=9, trials=30, delta=1e-5)
# Two clients hold a number each.
PAIR = CpsgdMechanism(NormBall(1, 2.0, 1.0), clients=2, levels=3, trials=250, delta=0.3)


def made(mechanism: CpsgdMechanism = MECHANISM, **changes: Any) -> CpsgdMechanism:
    return dataclasses.replace(mechanism, **changes)


def errors_of_rounds(mechanism: CpsgdMechanism, vectors: np.ndarray, rounds: int, seed: int) -> np.ndarray:
    """Return errors of the mean in independent rounds, shape (rounds, dimension)."""
    messages = mechanism.encode(np.tile(vectors, (rounds, 1)), np.random.default_rng(seed)).reshape(rounds, len(vectors), -1)
    estimates = [mechanism.decode(mechanism.aggregate(one_round), mechanism.clients) for one_round in messages]
    return np.array(estimates) - mechanism.ball.clip(vectors).mean(axis=0)


@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize("probability", [0.5, 0.2])
def test_the_mean_is_unbiased_and_its_error_as_predicted(rotated: bool, probability: float) -> None:
    mechanism, rounds = made(rotated=rotated, probability=probability), 1000
    vectors = np.random.default_rng(1).uniform(-1.5, 1.5, size=(4, 5))
    if rotated:
        flattened = RandomisedHadamard(5, mechanism.rotation_seed).forward(mechanism.ball.clip(vectors))
        assert np.abs(flattened).max() < mechanism.level_bound
    errors = errors_of_rounds(mechanism, vectors, rounds, seed=2)
    assert np.abs(errors.mean(axis=0)).max() < 5 * errors.std() / math.sqrt(rounds)
    squares = np.sum(errors**2, axis=1)
    predicted = mechanism.variance(vectors).mean() / 4
    assert abs(squares.mean() - predicted) < 5 * squares.std() / math.sqrt(rounds)
    assert predicted <= mechanism.variance_bound / 4 <= mechanism.mean_squared_error_bound


def test_the_variance_bound_is_reached_half_way_between_levels() -> None:
    # Levels are 2 apart, so each of the 5 coordinates, which are 1, is half-way between two levels. The vector's norm, sqrt(5) = 2.236, is
    # below the ball's radius 4.
    mechanism = made(ball=NormBall(5, 2.0, 4.0), levels=5)
    assert mechanism.variance(np.ones((1, 5)))[0] == pytest.approx(5 * 4 * 30 / 4 + 5 * 4 / 4, rel=1e-12)
    assert mechanism.variance_bound == pytest.approx(5 * 4 * 30 / 4 + 5 * 4 / 4, rel=1e-11)
    assert mechanism.variance(np.ones((1, 5)))[0] <= mechanism.variance_bound


def test_the_published_bounds_by_hand() -> None:
    # Without rotation, d D^2 (1 + 4 m p q) / (n (k - 1)^2) is the exact worst case.
    plain = made(probability=0.25)
    assert plain.mean_squared_error_bound == pytest.approx(5 * 4 * (1 + 4 * 30 * 3 / 16) / (4 * 64), rel=1e-11)
    assert plain.mean_squared_error_bound == pytest.approx(plain.variance_bound / 4, rel=1e-11)
    rotated = made(rotated=True, delta=0.3)
    spread = 2 * math.log(2 * 4 * 8 / 0.1) * 4
    assert rotated.mean_squared_error_bound == pytest.approx(spread * (1 + 30) / (4 * 64) + 4 * 4 * 0.01, rel=1e-11)


@pytest.mark.parametrize("dimension", [1, 3, 8, 100])
@pytest.mark.parametrize("rotated", [False, True])
def test_the_published_bound_is_above_the_predicted_error(dimension: int, rotated: bool) -> None:
    mechanism = made(ball=NormBall(dimension, 2.0, 3.0), rotated=rotated)
    assert mechanism.variance_bound / 4 <= mechanism.mean_squared_error_bound
    vectors = np.random.default_rng(3).normal(size=(20, dimension))
    assert mechanism.variance(vectors).max() <= mechanism.variance_bound


def test_the_bias_of_rotated_coordinates_that_are_cut_off_is_within_its_bound() -> None:
    # Each seed's bias is known exactly, as the clipped part, rotated back. Such a large delta permits clipping.
    vectors = np.array([[1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.5, -0.5, 0.25, 0.0, 0.0, 0.0, 0.0]])
    base = CpsgdMechanism(NormBall(8, 2.0, 1.5), clients=2, levels=5, trials=8, delta=0.999, rotated=True)
    biases, cut = [], 0
    for seed in range(400):
        mechanism = made(base, rotation_seed=seed)
        rotation = RandomisedHadamard(8, seed)
        flattened = rotation.forward(vectors)
        inside = np.clip(flattened, -mechanism.level_bound, mechanism.level_bound)
        cut += int(np.any(inside != flattened))
        biases.append(rotation.inverse(inside - flattened).mean(axis=0))
    assert cut <= binom.isf(1e-6, 400, 0.333)
    assert np.linalg.norm(np.mean(biases, axis=0)) <= base.bias_bound
    assert base.bias_bound == pytest.approx(2 * 1.5 * 0.333)
    assert made(base, rotated=False).bias_bound == 0.0


def test_a_coordinate_that_is_cut_off_biases_by_what_is_cut_off() -> None:
    # The rotation flattens every row of a Hadamard matrix, with the right signs, into one coordinate beyond the bound.
    mechanism, rounds = CpsgdMechanism(NormBall(1024, 2.0), clients=2, levels=5, trials=2, delta=1e-2, rotated=True), 400
    assert mechanism.level_bound < 0.25
    rotation = RandomisedHadamard(1024, 0)
    vector = rotation.inverse(np.eye(1024)[7])
    errors = errors_of_rounds(mechanism, np.array([vector, vector]), rounds, seed=9)
    expected = rotation.inverse(-np.eye(1024)[7] * (1 - mechanism.level_bound))
    projected = errors @ expected / (expected @ expected)
    assert abs(projected.mean() - 1) < 5 * projected.std() / math.sqrt(rounds)


@pytest.mark.parametrize("rotated", [False, True])
def test_sums_never_wrap_and_come_through_a_secure_sum(rotated: bool) -> None:
    mechanism: SecureSumMechanism = made(rotated=rotated)
    vectors = np.random.default_rng(4).normal(size=(4, 5))
    messages = mechanism.encode(vectors, np.random.default_rng(5))
    steps = mechanism.noisy_steps(vectors, np.random.default_rng(5))
    np.testing.assert_array_equal(messages, steps)
    assert messages.dtype == np.uint8
    assert mechanism.padded_dimension == (8 if rotated else 5)
    secure = SecureSum(4, mechanism.padded_dimension, mechanism.modulus)
    total = secure.total([messages], np.random.default_rng(6))
    np.testing.assert_array_equal(mechanism.recovered_steps(total), steps.sum(axis=0))
    np.testing.assert_array_equal(mechanism.recovered_steps(mechanism.aggregate(messages)), steps.sum(axis=0))
    assert mechanism.bits_per_client == mechanism.padded_dimension * math.log2(4 * 38 + 1)
    assert (mechanism.wrap_probability, mechanism.coordinate_wrap_probability) == (0.0, 0.0)


def test_the_largest_and_the_smallest_sum_are_recovered() -> None:
    largest = np.full((4, 5), 38)
    assert MECHANISM.recovered_steps(MECHANISM.aggregate(largest)).tolist() == [MECHANISM.modulus - 1] * 5
    assert MECHANISM.recovered_steps(MECHANISM.aggregate(0 * largest)).tolist() == [0] * 5
    assert MECHANISM.decode(MECHANISM.aggregate(largest), 4) == pytest.approx(np.full(5, 2.0 + 15 * 0.5))
    assert MECHANISM.message_bits_before_aggregation == math.log2(39)


def output_distribution(mechanism: CpsgdMechanism, values: tuple[float, float]) -> np.ndarray:
    """Return the law of the sum of two clients' messages, by enumeration; shape (modulus,)."""
    total = mechanism.clients * mechanism.trials
    noise = binom.pmf(np.arange(total + 1), total, mechanism.probability)
    levels = np.ones(1)
    for value in values:
        position = (value / mechanism.level_bound + 1) * (mechanism.levels - 1) / 2
        letter_weights = np.maximum(0.0, 1 - np.abs(np.arange(mechanism.levels) - position))
        assert letter_weights.sum() == pytest.approx(1.0)
        levels = np.convolve(levels, letter_weights)
    return np.convolve(levels, noise)


@lru_cache(maxsize=4)
def outputs_of(mechanism: CpsgdMechanism, other: float) -> np.ndarray:
    """Return the output distributions of one client's grid of inputs, shape (9, modulus).

    The other client's input is `other`; row 4 is the distribution for the input 0.
    """
    return np.array([output_distribution(mechanism, (value, other)) for value in np.linspace(-1, 1, 9)])


def largest_delta(mechanism: CpsgdMechanism, epsilon: float) -> float:
    """Return the exact delta at an epsilon, the largest over neighbours in a grid of inputs."""
    result = 0.0
    for other in (-1.0, 0.0, 0.3, 1.0):
        outputs, factor = outputs_of(mechanism, other), math.exp(epsilon)
        for reference in outputs if mechanism.adjacency == "replace-one" else outputs[4:5]:
            for differences in (reference - factor * outputs, outputs - factor * reference):
                result = max(result, float(np.maximum(differences, 0).sum(axis=1).max()))
    return result


@pytest.mark.parametrize("adjacency", ["replace-one", "add-or-remove-one"])
@pytest.mark.parametrize(("levels", "trials", "delta"), [(3, 250, 0.3), (8, 400, 0.05), (17, 2000, 1e-4), (17, 4000, 1e-4)])
def test_the_claimed_privacy_holds_for_all_outputs_of_two_clients(adjacency: str, levels: int, trials: int, delta: float) -> None:
    mechanism = made(PAIR, adjacency=adjacency, levels=levels, trials=trials, delta=delta)
    epsilon = mechanism.renyi_epsilon(delta)
    assert epsilon is not None
    assert largest_delta(mechanism, epsilon.epsilon) <= delta
    assert largest_delta(mechanism, mechanism.theorem_epsilon(delta)) <= delta
    gaussian = mechanism.gaussian_epsilon(delta)
    assert (gaussian is None) == (2 * trials / 4 < 1000)
    if gaussian is not None:
        assert largest_delta(mechanism, gaussian) <= delta
    # The theorem never counts as a guarantee.
    assert mechanism.guarantee.epsilon == min(epsilon.epsilon, math.inf if gaussian is None else gaussian)
    # For small delta, the Rényi account is at most half above the truth, as the guarantee fails at two thirds of its epsilon.
    if delta < 1e-3:
        assert largest_delta(mechanism, epsilon.epsilon / 1.5) > delta


@pytest.mark.parametrize("probability", [0.2, 0.8])
def test_the_theorem_holds_for_other_probabilities(probability: float) -> None:
    mechanism = made(PAIR, probability=probability, trials=500)
    assert mechanism.gaussian_epsilon(0.3) is None
    assert largest_delta(mechanism, mechanism.theorem_epsilon(0.3)) <= 0.3
    # The theorem holds here, but is unproven; earlier accounts took it for the guarantee.
    assert mechanism.guarantee.epsilon == uneven_epsilon(mechanism, mechanism.delta)
    assert mechanism.privacy().report(0.3).epsilon_by("theorem-1") == mechanism.theorem_epsilon(0.3)
    # With more trials, the account by Gaussian noise also applies to several clients.
    larger = made(mechanism, trials=20_000, levels=40, delta=1e-3)
    gaussian = larger.gaussian_epsilon(1e-3)
    assert gaussian is not None
    assert largest_delta(larger, gaussian) <= 1e-3
    assert larger.guarantee.epsilon == uneven_epsilon(larger, 1e-3) < 0.8 * gaussian


def uneven_epsilon(mechanism: CpsgdMechanism, delta: float) -> float:
    bound = mechanism.renyi_epsilon(delta)
    assert bound is not None
    return bound.epsilon


@pytest.mark.parametrize("adjacency", ["replace-one", "add-or-remove-one"])
@pytest.mark.parametrize("probability", [0.05, 0.2, 0.8])
@pytest.mark.parametrize(("levels", "trials", "delta"), [(3, 250, 0.3), (8, 400, 0.05), (17, 2000, 1e-4), (17, 4000, 1e-4)])
def test_uneven_noise_has_an_account_that_holds_for_all_outputs(
    adjacency: str, probability: float, levels: int, trials: int, delta: float
) -> None:
    mechanism = made(PAIR, adjacency=adjacency, levels=levels, trials=trials, delta=delta, probability=probability)
    epsilon = uneven_epsilon(mechanism, delta)
    assert largest_delta(mechanism, epsilon) <= delta
    # For small delta, the account is within a half of the truth.
    if delta < 1e-3 and probability > 0.1:
        assert largest_delta(mechanism, epsilon / 1.5) > delta
    rounds = [mechanism.renyi_epsilon(1e-4, number) for number in (1, 2, 5, 40)]
    epsilons = [each.epsilon for each in rounds if each is not None]
    assert epsilons == sorted(epsilons)


def test_the_renyi_account_holds_for_two_dimensions() -> None:
    # A single client has vectors in the plane, so the law is the product of two distributions, with neighbours in many directions.
    mechanism = CpsgdMechanism(NormBall(2, 2.0), clients=1, levels=4, trials=700, delta=1e-3)
    epsilon = mechanism.renyi_epsilon(1e-3)
    assert epsilon is not None
    noise = binom.pmf(np.arange(701), 700, 0.5)
    angles = np.arange(8) * np.pi / 4
    outputs = []
    for vector in [*np.stack([np.cos(angles), np.sin(angles)], axis=1), np.zeros(2)]:
        positions = (vector + 1) * 1.5
        rows = [np.convolve(np.maximum(0.0, 1 - np.abs(np.arange(4) - position)), noise) for position in positions]
        outputs.append(np.outer(*rows))
    deltas = [np.maximum(first - math.exp(epsilon.epsilon) * second, 0).sum() for first in outputs for second in outputs]
    assert 1e-6 < max(deltas) <= 1e-3


@pytest.mark.parametrize(("rotated", "events"), [(False, 2), (True, 3)])
def test_theorem_and_sensitivity_share_delta(rotated: bool, events: int) -> None:
    mechanism = made(clients=1000, trials=300, rotated=rotated)
    steps = quantised_sensitivity(mechanism.padded_dimension, 9, mechanism.level_bound, 4.0, 1e-5 / events)
    expected = binomial_theorem_epsilon(300_000, 0.5, 1.0, mechanism.padded_dimension, steps.l1, steps.l2, steps.linf, 1e-5 / events)
    assert mechanism.theorem_epsilon(1e-5) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("trials", "shift", "delta"), [(10**4, 500, 1e-6), (10**4, 1000, 1e-6), (10**6, 1250, 1e-2), (4000, 300, 1e-3)])
def test_theorem_one_is_false_for_large_epsilon(trials: int, shift: int, delta: float) -> None:
    # In one dimension the exact delta is known. The theorem's condition holds, and its epsilon is too small.
    claimed = binomial_theorem_epsilon(trials, 0.5, 1.0, 1, shift, shift, shift, delta)
    assert claimed > 6
    assert shifted_binomial_delta(trials, 0.5, shift, claimed) > 1.2 * delta
    # Gaussian noise of the same variance refutes the claim.
    assert gaussian_epsilon(math.sqrt(trials) / 2 / shift, delta) > claimed


def test_theorem_one_is_false_for_uneven_probabilities_even_where_gaussian_noise_is_not() -> None:
    claimed = binomial_theorem_epsilon(12_687, 0.9, 1.0, 1, 269, 269, 269, 1.6655868293461683e-3)
    assert gaussian_epsilon(math.sqrt(12_687 * 0.09) / 269, 1.6655868293461683e-3) < claimed
    assert shifted_binomial_delta(12_687, 0.9, 269, claimed) > 4 * 1.6655868293461683e-3
    uneven = made(PAIR, probability=0.9, levels=200, trials=6000, delta=1e-3)
    with pytest.raises(InfeasibleError, match=r"it must be at most 10, and not less than that of Gaussian noise of the same variance"):
        uneven.theorem_epsilon(1e-3)


def test_a_false_epsilon_of_theorem_one_is_refused() -> None:
    mechanism = made(PAIR, levels=501, trials=5000, delta=1e-6)
    with pytest.raises(InfeasibleError, match=r"epsilon would be \d+\.\d+ by Theorem 1 of cpSGD, which does not hold for so large"):
        mechanism.theorem_epsilon(1e-6)
    assert largest_delta(mechanism, mechanism.guarantee.epsilon) <= 1e-6
    with pytest.raises(InfeasibleError, match="does not hold for so large an epsilon"):
        made(mechanism, levels=4_900_000, trials=20_000_000).theorem_epsilon(1e-6)
    assert 1 < made(mechanism, levels=20).theorem_epsilon(1e-6) < 10


def test_rotated_levels_reach_as_far_as_the_paper_says() -> None:
    mechanism = made(ball=NormBall(1000, 2.0, 2.0), clients=50, rotated=True, delta=3e-5)
    assert mechanism.level_bound == pytest.approx(2 * math.sqrt(2 * math.log(2 * 50 * 1024 / 1e-5) / 1024), rel=1e-9)
    assert made(rotated=False).level_bound == 2.0


@pytest.mark.parametrize("clip_norm", [1e-100, 1e100])
@pytest.mark.parametrize("rotated", [False, True])
def test_units_do_not_matter(clip_norm: float, rotated: bool) -> None:
    usual = made(ball=NormBall(2**20, 2.0), clients=10**6, levels=5, trials=400, rotated=rotated)
    unusual = made(usual, ball=NormBall(2**20, 2.0, clip_norm))
    assert unusual.theorem_epsilon(1e-5) == pytest.approx(usual.theorem_epsilon(1e-5), rel=1e-9)
    assert unusual.guarantee.epsilon == pytest.approx(usual.guarantee.epsilon, rel=1e-9)
    assert unusual.variance_bound / clip_norm**2 == pytest.approx(usual.variance_bound, rel=1e-9)


def test_without_enough_noise_there_is_no_guarantee() -> None:
    mechanism = made(trials=2)
    assert mechanism.guarantee.epsilon == math.inf
    reasons = {account.name: account.bound.reason for account in mechanism.privacy().report(1e-5).accounts}
    assert reasons.pop("theorem-1").startswith("trials must be at least ")
    assert reasons == {
        "rdp": "trials must be more, or fewer if probability is not 1/2, for Rényi divergences",
        "near-gaussian": "trials must be more for their noise to be nearly Gaussian",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ball": NormBall(5, 1.0)}, r"ball must be of norm 2 for cpSGD, got norm 1"),
        ({"clients": 0}, "clients must be a whole number from 1 to 1000000000, got 0"),
        ({"levels": 1}, "levels must be a whole number from 2 to 16777216, got 1"),
        ({"trials": 0}, "trials must be a whole number from 1 to 1099511627776, got 0"),
        ({"clients": 10**9, "trials": 10**6 + 1}, "trials must be a whole number from 1 to 1000000, got 1000001"),
        ({"delta": 0.0}, "delta must be a number above 0 and below 1, got 0.0"),
        ({"probability": 0.0}, "probability must be a number from 1e-09 to 1, got 0.0"),
        ({"rotation_seed": -1}, "seed must be a whole number from 0 to .*, got -1"),
        ({"adjacency": "both"}, "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
    ],
)
def test_a_field_out_of_range_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 5\), got \(4, 8\)"):
        MECHANISM.aggregate(np.zeros((4, 8), dtype=np.uint16))
    with pytest.raises(ValueError, match="values must be from 0 to 152, got 153"):
        MECHANISM.aggregate(np.full((4, 5), 153))
    with pytest.raises(ValueError, match=r"aggregate must have the shape \(5,\), got \(8,\)"):
        MECHANISM.decode(np.zeros(8, dtype=np.uint64), 4)
    with pytest.raises(ValueError, match="values must be whole numbers of at most 64 bits, got an array of float64"):
        MECHANISM.decode(np.zeros(5), 4)
    for clients in (3, 5):
        with pytest.raises(ValueError, match=f"clients must be 4, for whose noise the guarantee is stated, got {clients}"):
            MECHANISM.decode(np.zeros(5, dtype=np.uint64), clients)
    with pytest.raises(ValueError, match="delta must be a number above 0 and below 1, got 2"):
        MECHANISM.theorem_epsilon(2)


def test_rounding_is_what_the_variance_counts() -> None:
    vectors = np.random.default_rng(8).normal(size=(3, 5))
    noise = 5 * MECHANISM.step**2 * 30 / 4
    expected = noise + quantisation_error(MECHANISM.ball.clip(vectors), 9, 2.0)
    np.testing.assert_allclose(MECHANISM.variance(vectors), expected, rtol=1e-12)


@pytest.mark.parametrize("rounds", [1, 10, 1000])
def test_what_the_distance_may_fail_with_is_shared_by_all_rounds(rounds: int) -> None:
    # A hundredth of delta covers any round that exceeds the distance, and the remaining delta is for the noise.
    mechanism = made(ball=NormBall(300, 2.0, 2.0), trials=10**6)
    delta = 1e-6
    apart = quantised_l2_bound(mechanism.padded_dimension, mechanism.distance / mechanism.step, 0.01 * delta / rounds)
    expected = binomial_near_gaussian_epsilon(4 * 10**6, 0.5, apart, mechanism.padded_dimension, 0.99 * delta, rounds)
    assert expected is not None
    assert mechanism.gaussian_epsilon(delta, rounds) == pytest.approx(expected, rel=1e-12)
    once = quantised_l2_bound(mechanism.padded_dimension, mechanism.distance / mechanism.step, 0.01 * delta)
    assert apart > once or rounds == 1


@pytest.mark.parametrize(("trials", "word"), [(61, np.uint8), (62, np.uint16)])
def test_messages_are_in_the_narrowest_words(trials: int, word: type) -> None:
    # The sum has four clients' levels, from 0 to 2, and trials; it is at most 255 - 3, or at most 256.
    mechanism = made(levels=3, trials=trials)
    assert (mechanism.modulus <= 256) == (word is np.uint8)
    assert mechanism.encode(np.zeros((4, 5)), np.random.default_rng(0)).dtype == word


def test_one_seed_biases_by_at_most_what_is_cut_off_a_vector_along_an_axis() -> None:
    high = made(ball=NormBall(1024, 2.0), rotated=True, delta=1e-2)
    assert high.level_bound < 1.0
    assert high.seed_bias_bound == pytest.approx(1.0 - high.level_bound, rel=1e-9)
    assert made(high, ball=NormBall(1024, 2.0, 8.0)).seed_bias_bound == pytest.approx(8 * high.seed_bias_bound, rel=1e-9)
    # The rotated vector along an axis is itself, beyond the end of the levels.
    assert made(rotated=True, delta=1e-9).level_bound > 2.0
    assert made(rotated=True, delta=1e-9).seed_bias_bound == made(rotated=False).seed_bias_bound == 0.0


@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize(("adjacency", "vectors_apart"), [("replace-one", 2), ("add-or-remove-one", 1)])
def test_the_distance_covers_the_rounding_of_clipped_vectors(rotated: bool, adjacency: str, vectors_apart: int) -> None:
    mechanism = made(ball=NormBall(5, 2.0, 0.7), rotated=rotated, adjacency=adjacency)
    clipped = mechanism._flattened(np.random.default_rng(1).normal(size=(100, 5)) * 10)
    largest = max(sum(Fraction(value) ** 2 for value in vector) for vector in clipped.tolist())
    # In exact arithmetic some clipped vectors are longer than the clip norm.
    assert Fraction(0.7) ** 2 < largest <= (Fraction(mechanism.distance) / vectors_apart) ** 2


SAMPLED = CpsgdMechanism(NormBall(3, 2.0), clients=1000, levels=65, trials=4000, delta=1e-5)


def test_one_sampled_round_is_amplified_and_several_are_not_by_divergences() -> None:
    sampling = FixedSizeSampling(1000, 100)
    for name in ("rdp", "near-gaussian"):
        account = SAMPLED.privacy().account(name)
        everyone = account.bound(1e-4, 1, None).epsilon
        assert account.bound(1e-5, 1, sampling).epsilon == pytest.approx(math.log1p(0.1 * math.expm1(everyone)), rel=1e-9)
    # No amplification by sampling is known for this account, so two sampled rounds have the epsilon of two rounds with all clients.
    divergences = SAMPLED.privacy().account("rdp")
    assert divergences.bound(1e-5, 2, sampling).epsilon == divergences.bound(1e-5, 2, None).epsilon > 0.3


def test_samples_of_a_fixed_size_are_amplified_round_by_round() -> None:
    # The bound is for two vectors with common random numbers for rounding, but a fixed-size sample may contain another client's vector.
    sampling, rounds = FixedSizeSampling(1000, 10), 1000
    account = SAMPLED.privacy().account("near-gaussian")
    expected = amplified_rounds(lambda delta: account.bound(delta, 1, None), 1e-5, rounds, sampling, "replace-one")
    assert account.bound(1e-5, rounds, sampling).epsilon == expected.epsilon
    # Sampled Gaussian noise would have a smaller epsilon.
    gaussian = near_gaussian_account(NearGaussianNoise(SAMPLED.gaussian_epsilon), "replace-one", "")
    assert gaussian.bound(1e-5, rounds, sampling).epsilon < 0.9 * expected.epsilon


def test_one_round_is_accounted_for_unless_more_are_asked_for() -> None:
    assert SAMPLED.gaussian_epsilon(1e-5) == SAMPLED.gaussian_epsilon(1e-5, 1) < SAMPLED.gaussian_epsilon(1e-5, 2)
    assert SAMPLED.renyi_epsilon(1e-5) == SAMPLED.renyi_epsilon(1e-5, 1) != SAMPLED.renyi_epsilon(1e-5, 2)


def test_the_theorem_is_no_guarantee() -> None:
    privacy = SAMPLED.privacy()
    assert {account.name: account.is_guarantee for account in privacy.accounts} == {"theorem-1": False, "rdp": True, "near-gaussian": True}
    assert SAMPLED.guarantee.epsilon == min(account.bound(1e-5, 1, None).epsilon for account in privacy.accounts[1:])


@pytest.mark.parametrize(("clients", "trials", "largest", "bits"), [(7, 8, 63, 6), (8, 7, 64, 7)])
def test_the_bits_of_a_sum_hold_its_largest_number(clients: int, trials: int, largest: int, bits: int) -> None:
    assert clients * (1 + trials) == largest
    facts = CpsgdMechanism(NormBall(3, 2.0), clients=clients, levels=2, trials=trials, delta=1e-5).facts()
    assert (facts["modulus"], facts["bits"]) == (largest + 1, bits)


def test_a_single_client_sends_the_largest_number_of_its_sum() -> None:
    # All 255 trials succeed but for a probability of 3e-7, and the vector has the upper of two levels.
    mechanism = CpsgdMechanism(NormBall(1, 2.0), clients=1, levels=2, trials=255, delta=1e-5, probability=1 - 1e-9)
    assert mechanism.encode([[1.0]], np.random.default_rng(0)).tolist() == [[256]]
