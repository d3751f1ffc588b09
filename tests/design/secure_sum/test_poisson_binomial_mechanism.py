"""The Poisson-binomial mechanism and its biased coin tosses.

Each test has a chance of a false alarm below 1e-5 (5 sigma).
"""

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from quietbits.arrays import WordArray
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.noise.binomial_noise import count_successes
from quietbits.design.noise.random_words import WordSource, seeded_words
from quietbits.design.secure_sum.poisson_binomial_mechanism import PoissonBinomialMechanism, poisson_binomial_privacy
from quietbits.solvers.accounting.renyi_curve import RenyiCurve
from quietbits.solvers.accounting.sampling import FixedSizeSampling
from quietbits.solvers.divergences.extreme_tosses import extreme_tosses
from quietbits.solvers.divergences.poisson_binomial_divergence import poisson_binomial_pairs

DELTA = 1e-5
MECHANISM = PoissonBinomialMechanism(NormBall(5, 2.0, 10.0), clients=4, trials=6, theta=0.2, delta=DELTA)
# The frame makes two coordinates of one dimension; two clients permit an enumeration of all sums.
PAIR = PoissonBinomialMechanism(NormBall(1, 2.0, 3.0), clients=2, trials=2, theta=0.25, delta=0.05)


def made(**changes: Any) -> PoissonBinomialMechanism:
    return dataclasses.replace(MECHANISM, **changes)


class FixedWords(WordSource):
    """Source of random words that repeats one word."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __call__(self, count: int) -> WordArray:
        return np.full(count, self.value, dtype=np.uint64)


class Steps(WordSource):
    """Source of given random bits, a step at a time; all later bits are 0."""

    def __init__(self, steps: list[np.ndarray], kind: type = np.uint8) -> None:
        self.steps = [step.astype(kind).view(np.uint64) for step in reversed(steps)]

    def __call__(self, count: int) -> WordArray:
        return self.steps.pop() if self.steps else np.zeros(count, dtype=np.uint64)


def errors_of_rounds(mechanism: PoissonBinomialMechanism, vectors: np.ndarray, rounds: int, seed: int) -> np.ndarray:
    """Return errors of the mean in independent rounds, shape (rounds, dimension)."""
    messages = mechanism.encode(np.tile(vectors, (rounds, 1)), np.random.default_rng(seed)).reshape(rounds, len(vectors), -1)
    estimates = [mechanism.decode(mechanism.aggregate(one_round), mechanism.clients) for one_round in messages]
    return np.array(estimates) - mechanism.ball.clip(vectors).mean(axis=0)


# Tests of tosses


@pytest.mark.parametrize("bias", [0.25, -0.25, 0.1, -0.1, 1e-6, 0.499, -0.499, 2.0**-63, 0.0])
def test_a_trial_succeeds_below_the_whole_number_next_to_one_half(bias: float) -> None:
    # The bias is rounded toward 1/2, by less than 2**-64.
    exact = Fraction(bias) * 2**64
    threshold = 2**63 + (math.floor(exact) if bias >= 0 else math.ceil(exact))
    for word, expected in ((threshold - 1, 3), (threshold, 0)):
        assert count_successes(np.array([bias]), 3, FixedWords(word)).tolist() == [expected]


def test_a_bias_below_the_resolution_is_none() -> None:
    for bias in (2.0**-65, -(2.0**-65)):
        assert count_successes(np.array([bias]), 1, FixedWords(2**63 - 1)).tolist() == [1]
        assert count_successes(np.array([bias]), 1, FixedWords(2**63)).tolist() == [0]


@pytest.mark.parametrize("trials", [3, 5, 12, 33, 64, 67])
def test_successes_have_the_binomial_distribution(trials: int) -> None:
    biases = np.tile([-0.4, 0.05, 0.3], (100_000, 1))
    counts = count_successes(biases, trials, seeded_words(np.random.default_rng(trials)))
    assert counts.shape == biases.shape
    for column, bias in enumerate(biases[0].tolist()):
        expected = stats.binom.pmf(np.arange(trials + 1), trials, 0.5 + bias) * len(counts)
        counted = np.bincount(counts[:, column], minlength=trials + 1)
        many = expected > 20
        statistic = np.sum((counted - expected)[many] ** 2 / expected[many])
        assert stats.chi2.sf(statistic, np.count_nonzero(many)) > 1e-6


@pytest.mark.parametrize("eighths", range(1, 8))
def test_successes_are_binomial_over_all_random_bits(eighths: int) -> None:
    # Three digits decide a probability of whole eighths: all bits of five trials are tried.
    patterns = np.arange(8**5)
    counts = count_successes(np.full(8**5, eighths / 8 - 0.5), 5, Steps([patterns >> 5 * step & 31 for step in range(3)]))
    ways = [math.comb(5, successes) * eighths**successes * (8 - eighths) ** (5 - successes) for successes in range(6)]
    assert np.bincount(counts, minlength=6).tolist() == ways


@pytest.mark.parametrize("bias", [0.3, -0.41, 1 / 3])
def test_the_first_other_digit_decides(bias: float) -> None:
    threshold = 2**63 + math.trunc(Fraction(bias) * 2**64)
    for place in range(64):
        equal = Steps([np.full(1, 2**64 - 1, dtype=np.uint64)] * place, kind=np.uint64)
        assert count_successes(np.array([bias]), 64, equal).tolist() == [64 * (threshold >> (63 - place) & 1)]
    # A number that equals the threshold is not below it.
    assert count_successes(np.array([bias]), 64, FixedWords(2**64 - 1)).tolist() == [0]


def test_the_number_of_words_does_not_depend_on_biases() -> None:
    after = []
    for bias in (-0.4, 0.0, 1 / 3):
        rng = np.random.default_rng(5)
        count_successes(np.full(50_000, bias), 37, rng)
        after.append(rng.integers(2**62))
    assert len(set(after)) == 1


def test_bad_tosses_are_refused() -> None:
    words = FixedWords(0)
    with pytest.raises(ValueError, match=r"biases must be from -0\.499 to 0\.499, got 0\.5"):
        count_successes(np.array([0.0, 0.5]), 1, words)
    with pytest.raises(ValueError, match=r"biases must be from -0\.499 to 0\.499, got nan"):
        count_successes(np.array([math.nan]), 1, words)
    with pytest.raises(ValueError, match="trials must be a whole number from 1 to 1048576, got 0"):
        count_successes(np.array([0.0]), 0, words)


# Tests of the mechanism


def test_steps_and_their_law_come_from_one_representation() -> None:
    vectors, total = np.random.default_rng(1).normal(size=(4, 5)) * 9, np.ones(MECHANISM.padded_dimension, dtype=np.int64)
    for mechanism in (MECHANISM, made(kashin_constant=1.0)):
        total[:] = 1
        law = mechanism.add_steps(total, vectors, np.random.default_rng(2))
        assert (total - 1).tolist() == mechanism.summed_steps(vectors, np.random.default_rng(2)).tolist()
        assert np.array_equal(law.bias, mechanism.law(vectors).bias)
        assert np.array_equal(law.variance, mechanism.law(vectors).variance)


def test_the_mean_is_unbiased_and_its_error_as_predicted() -> None:
    rounds = 4000
    vectors = np.random.default_rng(1).normal(size=(4, 5)) * 3
    assert MECHANISM.scaled_down_count(vectors) == 0
    errors = errors_of_rounds(MECHANISM, vectors, rounds, seed=2)
    assert np.abs(errors.mean(axis=0)).max() < 5 * errors.std() / math.sqrt(rounds)
    squares = np.sum(errors**2, axis=1)
    predicted = MECHANISM.variance(vectors).mean() / 4
    assert abs(squares.mean() - predicted) < 5 * squares.std() / math.sqrt(rounds)
    assert predicted <= MECHANISM.variance_bound / 4


def test_the_prediction_counts_what_the_coefficients_take_off() -> None:
    # With few trials at a large theta, the prediction for vectors at the edge would be a quarter too large without the term in ||a||**2.
    mechanism, rounds = made(clients=1, trials=1, theta=0.45), 5000
    vector = np.full((1, 5), 10.0)
    squares = np.sum(errors_of_rounds(mechanism, vector, rounds, seed=3) ** 2, axis=1)
    predicted = float(mechanism.variance(vector)[0])
    assert abs(squares.mean() - predicted) < 5 * squares.std() / math.sqrt(rounds)
    assert predicted < 0.8 * float(mechanism.variance(np.zeros((1, 5)))[0])


def test_vectors_without_a_representation_are_scaled_down_and_the_bias_is_predicted() -> None:
    mechanism, rounds = made(clients=1, kashin_constant=1.0), 5000
    # The vector lies along a column of the frame, which has the largest possible coefficient.
    vector = mechanism.frame.synthesis(np.eye(16)[:1])
    vector *= 10 / np.linalg.norm(vector)
    assert mechanism.scaled_down_count(vector) == 1
    assert made(kashin_constant=math.sqrt(5)).scaled_down_count(vector) == 0
    errors = errors_of_rounds(mechanism, vector, rounds, seed=4)
    assert np.linalg.norm(errors.mean(axis=0)) > 1
    squares = np.sum(errors**2, axis=1)
    bias = float(np.linalg.norm(mechanism.known_bias(vector)))
    predicted = float(mechanism.variance(vector)[0]) + bias**2
    assert abs(squares.mean() - predicted) < 5 * squares.std() / math.sqrt(rounds)
    assert 1 < bias <= mechanism.bias_bound == pytest.approx(10 * (1 - 1 / math.sqrt(5)))
    assert predicted <= mechanism.error().of_mean(1)


def test_a_client_of_the_worst_kind_is_within_the_stated_error() -> None:
    # A vector along a column of the frame needs larger coefficients than the level.
    mechanism = PoissonBinomialMechanism(NormBall(64, 2.0), clients=200, trials=16, theta=0.25, delta=DELTA)
    vector = mechanism.frame.synthesis(np.eye(1, mechanism.frame.size))
    vector /= np.linalg.norm(vector)
    vectors, rng = np.repeat(vector, 200, axis=0), np.random.default_rng(3)
    errors = np.array([mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, rng)), 200) - vector[0] for _ in range(100)])
    bias, variance = mechanism.known_bias(vector)[0], float(mechanism.variance(vector)[0]) / 200
    squares = np.sum(errors**2, axis=1)
    assert abs(squares.mean() - variance - bias @ bias) < 5 * squares.std() / 10
    assert 0.01 < np.linalg.norm(bias) <= mechanism.bias_bound
    assert squares.mean() - 5 * squares.std() / 10 < mechanism.error().of_mean(200)


def test_a_bias_of_one_unit_is_predicted() -> None:
    # A constant of 1 shortens vectors of four coordinates by up to a half: here by up to one unit.
    mechanism = PoissonBinomialMechanism(NormBall(4, 2.0, 2.0), clients=1, trials=6, theta=0.2, delta=DELTA, kashin_constant=1.0)
    assert mechanism.bias_bound == 1.0
    vector = mechanism.frame.synthesis(np.eye(mechanism.frame.size)[:1])
    vector *= 2 / np.linalg.norm(vector)
    assert 0.5 < np.linalg.norm(mechanism.known_bias(vector)) <= 1.0


@pytest.mark.parametrize(("clients", "trials", "word"), [(5, 51, np.uint8), (1, 256, np.uint16)])
def test_messages_are_in_the_narrowest_words_of_the_largest_sum(clients: int, trials: int, word: type) -> None:
    # The largest sums are 255 and 256; nearly all trials of the largest coefficient succeed.
    mechanism = PoissonBinomialMechanism(NormBall(1, 2.0), clients=clients, trials=trials, theta=0.499, delta=DELTA)
    messages = mechanism.encode(np.full((500 if clients == 1 else 5, 1), -1.0), np.random.default_rng(0))
    assert messages.dtype == word
    assert messages.max() == trials


def test_the_variance_by_hand() -> None:
    # In one dimension the frame has two columns of squared norm 1/2. The level is 3 / sqrt(2), and the coefficients are +-x / sqrt(2).
    at_zero = (9 / 2) / (4 * 2 * 0.25**2)
    assert PAIR.variance([[0.0], [2.0], [-3.0], [7.0]]) == pytest.approx([at_zero - x**2 / 4 for x in (0, 2, 3, 3)], rel=1e-12)
    assert PAIR.variance_bound == pytest.approx(at_zero, rel=1e-12)


def test_messages_are_counts_and_nothing_wraps() -> None:
    for clients, dtype in [(4, np.uint8), (50, np.uint16), (20_000, np.uint32)]:
        mechanism = made(clients=clients)
        messages = mechanism.encode(np.full((50, 5), -9.0), np.random.default_rng(5))
        assert messages.shape == (50, 16)
        assert messages.dtype == dtype
        assert set(np.unique(messages)) == set(range(7))
        assert mechanism.modulus == 6 * clients + 1
        assert mechanism.bits_per_client == 16 * math.log2(6 * clients + 1)
        assert mechanism.wrap_probability == mechanism.coordinate_wrap_probability == 0.0
    # If all trials of all clients succeed, decoding returns the largest sum.
    everything = np.full((4, 16), 6, dtype=np.uint8)
    assert MECHANISM.recovered_steps(MECHANISM.aggregate(everything)).tolist() == [24] * 16


def test_chunks_add_up_and_sums_are_those_of_the_counts() -> None:
    mechanism = made(clients=40)
    vectors = np.random.default_rng(6).normal(size=(40, 5)) * 5
    messages = mechanism.encode(vectors, np.random.default_rng(7))
    counts = mechanism.noisy_steps(vectors, np.random.default_rng(7))
    whole = mechanism.aggregate(messages)
    np.testing.assert_array_equal(mechanism.recovered_steps(whole), counts.sum(axis=0))
    parts = sum((mechanism.aggregate(chunk) for chunk in np.split(messages, 40)), np.zeros(16, dtype=np.uint64))
    np.testing.assert_array_equal(mechanism.decode(parts, 40), mechanism.decode(whole, 40))


def test_where_not_all_configurations_are_computed_cells_bound_them() -> None:
    few, many = (poisson_binomial_privacy(clients, 4, 0.1, dimension=16) for clients in (20, 1000))
    assert [account.name for account in few.accounts] == ["pure", "rdp", "pld"]
    assert [account.name for account in many.accounts] == ["pure", "rdp", "pld", "rdp-extremes"]
    report = many.report(1e-5, rounds=3)
    orders = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 23.0, 32.0, 63.0])
    at_extremes, by_half = (poisson_binomial_pairs(clients, 4, 0.1).renyi_divergences(orders) for clients in (1000, 500))
    for divergences, name in ((at_extremes, "rdp-extremes"), (extreme_tosses(1000, 4, 0.1).renyi_divergences(orders), "rdp")):
        result = RenyiCurve(orders, 3 * 16 * divergences).epsilon(1e-5).epsilon
        assert result * 0.95 < report.account(name).bound.epsilon <= result
    # Half of the other clients prove divergences that are about twice as large.
    assert 1 < report.epsilon / report.epsilon_by("rdp-extremes") < 1.01
    assert RenyiCurve(orders, 3 * 16 * by_half).epsilon(1e-5).epsilon > 1.4 * report.epsilon
    assert report.best is not None
    assert report.best.name == "rdp"
    assert not many.account("rdp-extremes").is_guarantee
    proven = many.account("rdp").curve
    assert proven is not None
    np.testing.assert_array_less(
        proven(None).divergences[:20], 16 * 1.02 * poisson_binomial_pairs(1000, 4, 0.1).renyi_divergences(proven(None).orders[:20])
    )
    assert many.account("rdp-extremes").assumes == "all other clients at the same extreme hide a client the least"


def test_the_exact_loss_is_stated_only_where_all_configurations_are_computed() -> None:
    few, many = (poisson_binomial_privacy(clients, 4, 0.1).account("pld") for clients in (20, 1000))
    assert few.bound(1e-5, 1, None).epsilon == poisson_binomial_pairs(20, 4, 0.1).epsilon(1e-5)
    assert math.isinf(few.bound(1e-5, 2, None).epsilon)
    assert math.isinf(poisson_binomial_privacy(20, 4, 0.1, dimension=2).account("pld").bound(1e-5, 2, None).epsilon)
    assert math.isinf(many.bound(1e-5, 1, None).epsilon)


def test_sampling_amplifies_one_round_by_its_loss_and_many_by_divergences() -> None:
    privacy, sampling = poisson_binomial_privacy(50, 2, 0.1), FixedSizeSampling(50, 5)
    single, many = (privacy.report(1e-5, rounds=rounds, sampling=sampling) for rounds in (1, 100))
    # One round of a single coordinate has an exact loss, whose epsilon at 10 delta is amplified.
    everyone = privacy.report(1e-4).epsilon_by("pld")
    assert single.epsilon_by("pld") == pytest.approx(math.log1p(0.1 * math.expm1(everyone)), rel=1e-9)
    assert math.isinf(many.epsilon_by("pld"))
    assert many.epsilon < privacy.epsilon(1e-5, rounds=100) * 0.8


def sum_of_two(first: float, second: float, mechanism: PoissonBinomialMechanism = PAIR) -> np.ndarray:
    """Return the joint law of two sums, shape (5, 5), from two coefficients per vector."""
    coefficients = mechanism.frame.analysis(np.array([[first], [second]])) / mechanism.level
    columns = []
    for own, other in coefficients.T.tolist():
        single, two = (stats.binom.pmf(np.arange(3), 2, 0.5 + 0.25 * ratio) for ratio in (own, other))
        columns.append(np.convolve(single, two))
    return np.outer(columns[0], columns[1])


def test_the_guarantee_holds_for_all_outputs_of_two_clients_in_one_dimension() -> None:
    epsilon, orders = PAIR.guarantee.epsilon, np.array([1.5, 2.0, 8.0])
    # The account covers two coordinates, and all configurations of the other client.
    pairs = poisson_binomial_pairs(2, 2, 0.25)
    assert pairs.proven
    claimed, pure = 2 * pairs.renyi_divergences(orders), PAIR.privacy().account("pure").bound(0.0, 1, None).epsilon
    largest_delta, largest, largest_loss = 0.0, np.zeros(3), 0.0
    grid = (-3.0, -1.7, 0.0, 0.9, 3.0)
    for first, other, second in itertools.product(grid, grid, grid):
        left, right = sum_of_two(first, second), sum_of_two(other, second)
        largest_delta = max(largest_delta, float(np.maximum(left - math.exp(epsilon) * right, 0).sum()))
        largest = np.maximum(largest, [np.log(np.sum(left**order * right ** (1 - order))) / (order - 1) for order in orders])
        largest_loss = max(largest_loss, float(np.log(left / right).max()))
    assert 0 < largest_delta <= PAIR.delta
    # In one dimension all coefficients of a vector at the edge are extreme, so the bound is attained.
    assert largest == pytest.approx(claimed, rel=1e-9)
    assert largest_loss == pytest.approx(pure, rel=1e-9)


def test_what_is_enumerated_is_what_the_mechanism_sends_and_its_mean_is_the_vectors() -> None:
    rounds, vectors = 100_000, np.array([[3.0], [2.4]])
    sums = PAIR.noisy_steps(np.tile(vectors, (rounds, 1)), np.random.default_rng(11)).reshape(rounds, 2, 2).sum(axis=1)
    masses = sum_of_two(3.0, 2.4)
    counted = np.bincount(5 * sums[:, 0] + sums[:, 1], minlength=25)
    # Chi-square with 24 degrees of freedom exceeds 75 with probability 4e-7.
    assert np.sum((counted - rounds * masses.ravel()) ** 2 / (rounds * masses.ravel())) < 75


@pytest.mark.parametrize("seed", [0, 1])
def test_the_mean_and_the_variance_of_all_that_is_enumerated(seed: int) -> None:
    # The frame of seed 0 is the matrix's alternating row, that of seed 1 its constant row, for which half of all trials do not cancel.
    mechanism, vectors = dataclasses.replace(PAIR, frame_seed=seed), np.array([[3.0], [2.4]])
    assert abs(mechanism.frame.synthesis(np.ones((1, 2)))[0, 0]) == pytest.approx(math.sqrt(2) * seed)
    masses = sum_of_two(3.0, 2.4, mechanism)
    estimates = [[mechanism.decode(np.array([i, j], dtype=np.uint64), 2)[0] for j in range(5)] for i in range(5)]
    assert np.sum(masses * estimates) == pytest.approx(2.7, abs=1e-12)
    assert np.sum(masses * (np.array(estimates) - 2.7) ** 2) == pytest.approx(mechanism.variance(vectors).mean() / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ball": NormBall(5, 1.0)}, "ball must be of norm 2 for the Poisson-binomial mechanism, got norm 1"),
        ({"clients": 0}, "clients must be a whole number from 1 to 10000000, got 0"),
        ({"trials": 5000}, "trials must be a whole number from 1 to 4096, got 5000"),
        ({"theta": 0.5}, "theta must be a number from 1e-06 to 0.499, got 0.5"),
        ({"delta": 1.0}, "delta must be a number above 0 and below 1, got 1.0"),
        ({"frame_seed": -1}, "seed must be a whole number from 0 to .*, got -1"),
        ({"kashin_constant": 0.5}, "kashin_constant must be a number from 1 to 100000, got 0.5"),
    ],
)
def test_a_field_out_of_range_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 16\), got \(4, 5\)"):
        MECHANISM.aggregate(np.zeros((4, 5), dtype=np.uint8))
    with pytest.raises(ValueError, match="values must be from 0 to 24, got 25"):
        MECHANISM.aggregate(np.full((4, 16), 25))
    with pytest.raises(ValueError, match=r"aggregate must have the shape \(16,\), got \(5,\)"):
        MECHANISM.decode(np.zeros(5, dtype=np.uint64), 4)
    with pytest.raises(ValueError, match="values must be whole numbers of at most 64 bits, got an array of float64"):
        MECHANISM.decode(np.zeros(16), 4)
    for clients in (3, 5):
        with pytest.raises(ValueError, match=f"clients must be 4, for whose noise the guarantee is stated, got {clients}"):
            MECHANISM.decode(np.zeros(16, dtype=np.uint64), clients)


def test_numbers_of_any_type_are_kept_as_floats() -> None:
    mechanism = made(kashin_constant=2, theta=np.float32(0.125))
    assert [type(value) for value in (mechanism.kashin_constant, mechanism.theta, mechanism.delta)] == [float] * 3


@pytest.mark.parametrize(("clients", "searched"), [(4, "all configurations"), (1000, "all others at one extreme")])
def test_facts_say_which_configurations_were_searched(clients: int, searched: str) -> None:
    assert PoissonBinomialMechanism(NormBall(5, 2.0), clients, 6, 0.2, 1e-5).facts()["worst_case"] == searched
