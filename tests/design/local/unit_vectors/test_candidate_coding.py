"""PrivUnitG in a few bits.

Points under test: its index by enumeration, privacy for every seed, moments by another sum, and errors.

Points under test of shared seeds: the shared error of equal and of different vectors, seeds, and candidates.

Points under test of plain random coding: its index by enumeration, its epsilon, its bias, and published figures.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import comb, ndtr

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.unit_vectors import candidate_coding
from quietbits.design.local.unit_vectors.candidate_coding import (
    MinimalRandomCodingMechanism,
    PlainRandomCodingMechanism,
    minimal_random_coding_mechanism,
    plain_random_coding_mechanism,
)
from quietbits.design.local.unit_vectors.privunit_g import PrivUnitGMechanism
from quietbits.design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism
from quietbits.design.relative_entropy.coding import decode_relative_entropy
from quietbits.design.relative_entropy.shared_randomness import SharedNormals, seeds_of_round
from quietbits.errors import InfeasibleError

# Squared errors of one unit vector in 200 dimensions, with 8 bits and without bias.
REFERENCES = {1.0: 1276.7, 4.0: 89.0, 6.0: 45.7}

CASES = [(0.1, 1, 1), (1.0, 1, 3), (1.0, 4, 3), (3.0, 3, 40), (5.0, 6, 2), (20.0, 5, 10)]


def mechanism_of(epsilon: float, bits: int, dimension: int, clip_norm: float = 1.0) -> MinimalRandomCodingMechanism:
    return MinimalRandomCodingMechanism(epsilon, bits, NormBall(dimension, 2.0, clip_norm))


def unit_vectors(dimension: int, count: int) -> np.ndarray:
    vectors = np.random.default_rng(dimension).normal(size=(count, dimension))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(("epsilon", "bits", "dimension"), CASES)
def test_every_candidate_is_as_likely_as_its_density_to_a_factor_of_e_to_the_epsilon(epsilon: float, bits: int, dimension: int) -> None:
    mechanism = mechanism_of(epsilon, bits, dimension)
    constant = math.exp(epsilon) * mechanism.cap_probability + 1 - mechanism.cap_probability
    for seed in range(20):
        rows = np.array([mechanism.index_probabilities(vector, seed) for vector in unit_vectors(dimension, 10)])
        np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-14)
        # The guarantee holds for every seed, so also for a seed chosen by an adversary.
        assert (rows * 2**bits * constant >= 1 - 1e-15).all()
        assert (rows * 2**bits * constant <= math.exp(epsilon) * (1 + 1e-15)).all()


def test_epsilon_is_reached() -> None:
    mechanism = mechanism_of(2.0, 2, 1)
    for seed in range(100):
        first, second = (mechanism.index_probabilities([sign], seed) for sign in (1.0, -1.0))
        if np.abs(np.log(first / second)).max() == pytest.approx(2.0, abs=1e-12):
            return
    pytest.fail("no seed of 100 shows the difference that is claimed")


@pytest.mark.parametrize(("epsilon", "bits", "dimension"), CASES)
def test_candidates_in_the_cap_have_the_papers_probabilities(epsilon: float, bits: int, dimension: int) -> None:
    mechanism = mechanism_of(epsilon, bits, dimension)
    cap, samples, vector = Fraction(mechanism.cap_probability), 2**bits, unit_vectors(dimension, 1)[0]
    low = 1 / (Fraction(math.exp(epsilon)) * cap + 1 - cap)
    high = Fraction(math.exp(epsilon)) * low
    for seed in range(20):
        candidates = np.array([decode_relative_entropy(index, dimension, seed) for index in range(samples)])
        in_cap = candidates @ vector >= mechanism.threshold
        share = Fraction(int(in_cap.sum()), samples)
        # In the paper's algorithm, weights are proportional to the densities unless a weight exceeds the largest or least permitted value.
        total = share * high + (1 - share) * low
        inside, outside = high / total, low / total
        if 0 < share < cap:
            assert inside > high
            inside, outside = high, (1 - share * high) / (1 - share)
        elif cap < share < 1:
            assert outside < low
            inside, outside = (1 - (1 - share) * low) / share, low
        expected = np.where(in_cap, float(inside / samples), float(outside / samples))
        np.testing.assert_allclose(mechanism.index_probabilities(vector, seed), expected, rtol=1e-12)


@pytest.mark.parametrize(("epsilon", "bits", "dimension"), CASES)
def test_moments_by_enumeration_of_caps(epsilon: float, bits: int, dimension: int) -> None:
    mechanism = mechanism_of(epsilon, bits, dimension, clip_norm=2.0)
    cap, t, samples = mechanism.cap_probability, mechanism.threshold, 2**bits
    low = 1 / (math.exp(epsilon) * cap + 1 - cap)
    density = stats.norm.pdf(t)
    mean = square = 0.0
    for inside in range(samples + 1):
        chance = float(comb(samples, inside, exact=True)) * cap**inside * float(ndtr(t)) ** (samples - inside)
        share = inside / samples
        kept = min(share * math.exp(epsilon) * low, 1 - (1 - share) * low)
        mean += chance * (kept * density / cap - (1 - kept) * density / ndtr(t))
        square += chance * (kept * (1 + t * density / cap) + (1 - kept) * (1 - t * density / ndtr(t)))
    assert mechanism.projection_mean == pytest.approx(mean, rel=1e-9)
    assert mechanism.variance_bound == pytest.approx(4 * (square + dimension - 1) / mean**2, rel=1e-9)
    corner = np.full((1, dimension), 1 / math.sqrt(dimension))
    assert mechanism.variance(corner)[0] == pytest.approx(mechanism.variance_bound - 1, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "bits"), [(1.0, 2), (4.0, 5)])
def test_indices_have_the_distribution_that_is_stated(epsilon: float, bits: int) -> None:
    mechanism, clients = mechanism_of(epsilon, bits, 3, clip_norm=2.0), 750
    vector = 2 * unit_vectors(3, 1)[0]
    messages = mechanism.encode(np.tile(vector, (clients, 1)), np.random.default_rng(3))
    # Each seed has its own distribution of the index, and the randomised probability transform ranks every index uniformly.
    rng = np.random.default_rng(4)
    ranks = []
    for seed, index in messages.tolist():
        probabilities = mechanism.index_probabilities(vector / 2, seed)
        ranks.append(probabilities[:index].sum() + rng.random() * probabilities[index])
    # The Kolmogorov-Smirnov test gives a false alarm in a million seeds.
    assert stats.kstest(ranks, "uniform").pvalue > 1e-6
    # The mean is within 5 standard errors.
    decoded = np.array([mechanism.decode(mechanism.aggregate(row[None]), 1) for row in messages])
    assert (np.abs(decoded.mean(axis=0) - vector) < 5 * decoded.std(axis=0) / math.sqrt(clients)).all()
    errors = np.square(decoded - vector).sum(axis=1)
    assert abs(errors.mean() - mechanism.variance(vector[None])[0]) < 5 * errors.std() / math.sqrt(clients)


def test_short_vectors_have_no_bias() -> None:
    mechanism, clients = mechanism_of(3.0, 3, 2), 2000
    for vector in (np.zeros(2), np.array([0.3, -0.2])):
        estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(np.tile(vector, (clients, 1)), np.random.default_rng(1))), clients)
        assert (np.abs(estimate - vector) < 5 * math.sqrt(mechanism.variance_bound / clients)).all()


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_more_bits_come_close_to_the_uncompressed_mechanism(epsilon: float) -> None:
    ball = NormBall(200, 2.0)
    variances = [MinimalRandomCodingMechanism(epsilon, bits, ball).variance_bound for bits in (1, 2, 4, 8, 14, 20)]
    assert variances == sorted(variances, reverse=True)
    least = PrivUnitGMechanism(epsilon, ball).variance_bound
    assert least < variances[-1] < 1.02 * least


@cache
def chances_inside(bits: int) -> np.ndarray:
    """Return the probabilities of each number of points inside a cap, shape (2**bits + 1, caps)."""
    return stats.binom.pmf(np.arange(2**bits + 1)[:, None], 2**bits, ndtr(-np.linspace(-5, 6, 800)))


@pytest.mark.parametrize(("epsilon", "bits"), list(itertools.product((0.5, 5.0, 20.0), (1, 3, 4, 10))))
@pytest.mark.parametrize("dimension", [1, 10, 50])
def test_no_other_threshold_gives_less_variance(epsilon: float, bits: int, dimension: int) -> None:
    mechanism = mechanism_of(epsilon, bits, dimension)
    cap = ndtr(-np.linspace(-5, 6, 800))
    low = 1 / (math.exp(epsilon) * cap + 1 - cap)
    inside = np.arange(2**bits + 1)[:, None]
    share = inside / 2**bits
    kept = (chances_inside(bits) * np.minimum(share * math.exp(epsilon) * low, 1 - (1 - share) * low)).sum(axis=0)
    t = np.linspace(-5, 6, 800)
    means = stats.norm.pdf(t) * (kept - cap) / (cap * ndtr(t))
    usable = means > 1e-6
    assert ((dimension + t * means) / means**2)[usable].min() >= mechanism.variance_bound * (1 - 1e-6)


@pytest.mark.parametrize(("epsilon", "excess"), [(0.5, 0.25), (4.0, 0.25), (4.0, 2.0)])
def test_fewest_bits_are_enough_and_one_less_is_not(epsilon: float, excess: float) -> None:
    ball = NormBall(200, 2.0)
    mechanism = minimal_random_coding_mechanism(epsilon, ball, excess)
    limit = (1 + excess) * PrivUnitGMechanism(epsilon, ball).variance_bound
    assert mechanism.variance_bound <= limit < MinimalRandomCodingMechanism(epsilon, mechanism.message_bits - 1, ball).variance_bound


def test_twenty_bits_may_be_too_few_and_the_message_says_what_would_do() -> None:
    ball = NormBall(200, 2.0)
    with pytest.raises(InfeasibleError, match=r"excess must be at least 0\.\d+ for epsilon 20 and 20 bits, got 0\.25") as caught:
        minimal_random_coding_mechanism(20.0, ball)
    enough = float(str(caught.value).split()[5]) + 0.001
    assert minimal_random_coding_mechanism(20.0, ball, enough).message_bits == 20


def test_bad_arguments_are_refused() -> None:
    ball = NormBall(3, 2.0)
    with pytest.raises(ValueError, match=r"epsilon must be a number from 0\.001 to 20, got 21"):
        MinimalRandomCodingMechanism(21.0, 3, ball)
    with pytest.raises(ValueError, match="message_bits must be a whole number from 1 to 20, got 0"):
        MinimalRandomCodingMechanism(1.0, 0, ball)
    with pytest.raises(ValueError, match="ball must be of norm 2 for minimal random coding, got norm 1"):
        MinimalRandomCodingMechanism(1.0, 3, NormBall(3, 1.0))
    with pytest.raises(ValueError, match=r"excess must be a number from 0\.001 to 1000, got 0"):
        minimal_random_coding_mechanism(1.0, ball, excess=0.0)
    mechanism = MinimalRandomCodingMechanism(1.0, 3, ball)
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 2\), got \(1, 3\)"):
        mechanism.aggregate(np.zeros((1, 3), dtype=np.uint64))
    with pytest.raises(ValueError, match="messages must hold indices from 0 to 7, got 8"):
        mechanism.aggregate(np.array([[1, 8]], dtype=np.uint64))
    with pytest.raises(ValueError, match="seed must be a whole number from 0"):
        mechanism.index_probabilities([1.0, 0.0, 0.0], -1)
    with pytest.raises(ValueError, match=r"direction must be a unit vector, got one of length 0\.5"):
        mechanism.index_probabilities([0.5, 0.0, 0.0], 1)
    with pytest.raises(ValueError, match="direction must be a unit vector, got one of length inf"):
        mechanism.index_probabilities([1e200, 1e200, 0.0], 1)


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (np.array([[1.0, 2.0]]), "messages must hold whole numbers, got float64"),
        (np.array([[True, True]]), "messages must hold whole numbers, got bool"),
        (np.array([[-1, 1]]), "messages must hold no number below 0, got -1"),
        (np.array([[1, -1]]), "messages must hold no number below 0, got -1"),
    ],
)
def test_messages_of_another_kind_are_refused(messages: np.ndarray, message: str) -> None:
    # A float cannot hold seeds above 2**53.
    ball = NormBall(3, 2.0)
    for mechanism in (MinimalRandomCodingMechanism(1.0, 3, ball), RotatingSimplexMechanism(1.0, 2, ball)):
        with pytest.raises(ValueError, match=message):
            mechanism.aggregate(messages)


def test_candidates_are_the_same_for_few_clients_and_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    # The vectors have more coordinates than a block of the generator.
    mechanism, vectors = mechanism_of(3.0, 4, 20), unit_vectors(20, 30)
    messages = mechanism.encode(vectors, np.random.default_rng(0))
    candidates = [SharedNormals(seed, 20).vector(index) for seed, index in messages.tolist()]
    np.testing.assert_allclose(mechanism.aggregate(messages), np.sum(candidates, axis=0, dtype=float), rtol=1e-12)
    stated = [mechanism.index_probabilities(vector, 5) for vector in vectors]
    expected = [SharedNormals(5, 20).vectors(0, 16).astype(float) @ vector >= mechanism.threshold for vector in vectors]
    for probabilities, inside in zip(stated, expected, strict=True):
        assert (probabilities[inside] > probabilities[~inside].max()).all()
    monkeypatch.setattr(candidate_coding, "BATCH", 1)
    np.testing.assert_array_equal(mechanism.encode(vectors, np.random.default_rng(0)), messages)
    np.testing.assert_array_equal([mechanism.index_probabilities(vector, 5) for vector in vectors], stated)


@pytest.mark.parametrize(("epsilon", "bits", "dimension"), [(6.0, 3, 1), (4.0, 4, 5), (4.0, 7, 12)])
def test_the_mean_candidate_of_a_seed_is_as_long_as_is_stated(epsilon: float, bits: int, dimension: int) -> None:
    mechanism, vector = mechanism_of(epsilon, bits, dimension), np.eye(1, dimension)[0]
    means = [mechanism.index_probabilities(vector, seed) @ SharedNormals(seed, dimension).vectors(0, 2**bits) for seed in range(2000)]
    squares = np.square(means).sum(axis=1)
    assert abs(squares.mean() - mechanism.mean_candidate_square) < 5 * squares.std() / math.sqrt(len(squares))


def errors_of_rounds(mechanism: MinimalRandomCodingMechanism, vectors: np.ndarray, rounds: int) -> np.ndarray:
    rng, clients = np.random.default_rng(1), len(vectors)
    copies = [mechanism.renewed(seed) for seed in range(rounds)]
    estimates = [copy.decode(copy.aggregate(copy.encode(vectors, rng)), clients) for copy in copies]
    return np.array(estimates) - vectors.mean(axis=0)


@pytest.mark.parametrize("seed_bits", [0, 2])
def test_clients_with_equal_vectors_share_the_stated_error_and_others_share_less(seed_bits: int) -> None:
    mechanism, clients = replace(mechanism_of(4.0, 5, 8, clip_norm=2.0), seed_bits=seed_bits), 40
    equal, different = np.tile(2 * unit_vectors(8, 1), (clients, 1)), 2 * unit_vectors(8, clients)
    own = replace(mechanism, seed_bits=None).error(equal).of_mean(clients)
    assert mechanism.error(equal).of_mean(clients) == own + mechanism.shared_variance(equal[0]) > 1.5 * own
    errors = errors_of_rounds(mechanism, equal, 250)
    squares = np.square(errors).sum(axis=1)
    # The variance includes a client's part of the shared error.
    expected = own + mechanism.worst_shared_variance * (1 - 1 / clients)
    assert abs(squares.mean() - expected) < 5 * squares.std() / math.sqrt(len(squares))
    assert np.linalg.norm(errors.mean(axis=0)) < 5 * math.sqrt(squares.mean() / len(squares))
    squares = np.square(errors_of_rounds(mechanism, different, 100)).sum(axis=1)
    assert own < squares.mean() < expected - 5 * squares.std() / math.sqrt(len(squares))


def test_shared_seeds_are_those_of_the_round_and_own_seeds_are_not_renewed() -> None:
    own = mechanism_of(2.0, 3, 4)
    assert own.renewed(5) is own
    assert (own.worst_shared_variance, own.facts()) == (0.0, {})
    shared = replace(own, seed_bits=2).renewed(5)
    assert shared.facts() == {"worst_shared_squared_error": shared.worst_shared_variance}
    assert shared.guarantee == own.guarantee
    messages = shared.encode(unit_vectors(4, 200), np.random.default_rng(0))
    assert set(messages[:, 0].tolist()) == set(seeds_of_round(5, range(4)).tolist())
    assert replace(shared, seed_bits=4).worst_shared_variance == pytest.approx(shared.worst_shared_variance / 4, rel=1e-14)
    with pytest.raises(ValueError, match="seed_bits must be a whole number from 0 to 48, got 49"):
        replace(own, seed_bits=49)
    with pytest.raises(ValueError, match="public_seed must be a whole number from 0"):
        replace(own, public_seed=-1)


@pytest.mark.parametrize(("dimension", "piece"), [(21, 4096), (21, 8), (40, 16)])
def test_candidates_of_shared_seeds_are_those_of_own_seeds(dimension: int, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Pieces and batches are short: vectors take several of them, the last of which are shorter.
    mechanism, vectors = replace(mechanism_of(3.0, 4, dimension), seed_bits=1), unit_vectors(dimension, 30)
    messages = mechanism.encode(vectors, np.random.default_rng(0))
    monkeypatch.setattr(candidate_coding, "PIECE", piece)
    monkeypatch.setattr(candidate_coding, "BATCH", 100)
    in_caps = mechanism._in_caps_of_seed(vectors, np.arange(30), 5)
    candidates = SharedNormals(5, dimension).vectors(0, 16).astype(float)
    np.testing.assert_array_equal(in_caps, vectors @ candidates.T >= mechanism.threshold)
    monkeypatch.setattr(candidate_coding, "MOST_PRODUCTS", 100)
    assert (mechanism.encode(vectors, np.random.default_rng(0)) == messages).all()
    assert len(np.unique(messages, axis=0)) < len(messages)
    sent = [SharedNormals(seed, dimension).vector(index) for seed, index in messages.tolist()]
    np.testing.assert_allclose(mechanism.aggregate(messages), np.sum(sent, axis=0, dtype=float), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("epsilon", REFERENCES)
def test_published_figures(epsilon: float) -> None:
    mechanism = PlainRandomCodingMechanism(epsilon, 8, NormBall(200, 2.0), unbiased=True)
    assert mechanism.bias_bound == 0
    assert mechanism.variance_bound - 1 == pytest.approx(REFERENCES[epsilon], abs=0.051)
    # The proven epsilon is slightly less than twice the epsilon of the weights.
    assert 1.8 * epsilon < mechanism.epsilon < 2 * epsilon


def test_indices_have_probabilities_in_proportion_to_the_density() -> None:
    mechanism = PlainRandomCodingMechanism(2.0, 6, NormBall(5, 2.0))
    probabilities = mechanism.index_probabilities(np.eye(1, 5)[0], seed=3)
    assert probabilities.sum() == pytest.approx(1, rel=1e-12)
    assert math.log(probabilities.max() / probabilities.min()) == pytest.approx(2.0, rel=1e-12)


def test_two_vectors_come_close_to_epsilon_and_not_above_it() -> None:
    # On a line, the first of two candidates may lie in one vector's cap, and the second candidate in the other vector's cap.
    mechanism = PlainRandomCodingMechanism(1.0, 1, NormBall(1, 2.0))
    ratios = [
        np.abs(np.log(mechanism.index_probabilities([1.0], seed) / mechanism.index_probabilities([-1.0], seed))).max()
        for seed in range(200)
    ]
    assert max(ratios) == pytest.approx(mechanism.epsilon, rel=1e-9)
    assert max(ratios) <= mechanism.epsilon


@pytest.mark.parametrize(("bits", "unbiased"), [(3, False), (3, True), (6, False)])
def test_bias_and_variance_are_exact(bits: int, unbiased: bool) -> None:
    mechanism = PlainRandomCodingMechanism(4.0, bits, NormBall(6, 2.0, 2.0), unbiased)
    vectors = np.tile([[0.0, 2.0, 0.0, 0.0, 0.0, 0.0]], (1200, 1))
    messages = mechanism.encode(vectors, np.random.default_rng(0))
    result = np.array([mechanism.decode(mechanism.aggregate(messages[row : row + 1]), 1) for row in range(len(messages))])
    spread = result.std(axis=0) / math.sqrt(len(result))
    assert (np.abs(result.mean(axis=0) - [0, 2 * mechanism.shrinking, 0, 0, 0, 0]) < 5 * spread).all()
    assert mechanism.bias_bound == pytest.approx(2 * (1 - mechanism.shrinking), abs=1e-12)
    np.testing.assert_allclose(mechanism.known_bias(2 * vectors[:1]), [[0, -mechanism.bias_bound, 0, 0, 0, 0]], atol=1e-12)
    assert (mechanism.shrinking == 1) is unbiased
    squares = np.square(result - result.mean(axis=0)).sum(axis=1)
    assert abs(squares.mean() - mechanism.variance(vectors)[0]) < 5 * squares.std() / math.sqrt(len(squares))


def test_many_candidates_are_privunit_g() -> None:
    mechanism = PlainRandomCodingMechanism(3.0, 18, NormBall(50, 2.0))
    assert mechanism.shrinking == pytest.approx(1, abs=1e-3)
    assert mechanism.variance_bound == pytest.approx(PrivUnitGMechanism(3.0, mechanism.ball).variance_bound, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "bits"), [(0.001, 1), (1.0, 8), (20.0, 20)])
def test_the_epsilon_that_is_asked_for_is_kept_and_used(epsilon: float, bits: int) -> None:
    mechanism = plain_random_coding_mechanism(epsilon, bits, NormBall(20, 2.0)).epsilon
    assert epsilon * (1 - 1e-9) < mechanism <= epsilon


def test_other_norms_are_refused() -> None:
    with pytest.raises(ValueError, match="ball must be of norm 2 for minimal random coding, got norm 1"):
        PlainRandomCodingMechanism(1.0, 3, NormBall(3, 1.0))


@pytest.mark.parametrize("bits", [1, 2, 5, 12])
@pytest.mark.parametrize("epsilon", [1e-4, 1.3e-4, 0.0123, 1.0, 20.0])
def test_epsilon_is_rounded_upward(epsilon: float, bits: int) -> None:
    with mpmath.workdps(50):
        density, others = mpmath.exp(epsilon), 2**bits - 1
        exact = epsilon + mpmath.log((1 + others * density) / (density + others))
        mechanism = PlainRandomCodingMechanism(epsilon, bits, NormBall(8, 2.0)).epsilon
        assert exact < mechanism < exact * (1 + mpmath.mpf("2e-14"))
