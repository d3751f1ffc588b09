"""Tests of SQKR.

Points under test: bias, privacy and variance, by enumeration of all messages and by simulation (5 sigma, a false alarm below 1e-6 per
test).

The bases of Kerdock's frame are mutually unbiased, and every vector, even the worst, has small coefficients.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from quietbits.arrays import FloatArray
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.privacy import EpsilonBound
from quietbits.design.local.sqkr import KerdockFrame, SQKRMechanism, kerdock_signs, sqkr_mechanism
from quietbits.design.transforms.kashin import KASHIN_CONSTANT, KashinFrame, kashin_representation
from quietbits.solvers.accounting.pure_privacy import pure_renyi_divergences
from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard

PLANE = NormBall(dimension=2, norm=2.0, clip_norm=1.5)


def all_coordinates(mechanism: SQKRMechanism) -> NDArray[np.int64]:
    return np.array(list(itertools.product(range(mechanism.frame.size), repeat=mechanism.message_bits)))


def all_messages(mechanism: SQKRMechanism) -> NDArray[np.int64]:
    """Return every message, ordered by coordinates, then by symbols."""
    coordinates, symbols = all_coordinates(mechanism), np.arange(2**mechanism.message_bits)
    return np.column_stack([np.repeat(coordinates, len(symbols), axis=0), np.tile(symbols, len(coordinates))])


def message_probabilities(mechanism: SQKRMechanism, vector: FloatArray) -> FloatArray:
    """Return the probability of every message of a client with this vector."""
    coordinates = all_coordinates(mechanism)
    symbols = mechanism.symbol_probabilities(np.tile(vector, (len(coordinates), 1)), coordinates)
    return (symbols / len(coordinates)).ravel()


def decoded(mechanism: SQKRMechanism, messages: NDArray[np.int64]) -> FloatArray:
    return np.array([mechanism.decode(mechanism.aggregate(message[None, :]), 1) for message in messages])


@pytest.mark.parametrize("epsilon", [0.7, 3.0, math.inf])
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_by_enumeration_messages_are_unbiased_and_vary_as_stated(epsilon: float, bits: int) -> None:
    mechanism = SQKRMechanism(epsilon, bits, PLANE)
    decodings = decoded(mechanism, all_messages(mechanism))
    for vector in np.array([[0.0, 0.0], [1.5, 0.0], [-0.3, 1.1], [0.2, -0.1]]):
        probabilities = message_probabilities(mechanism, vector)
        assert probabilities.sum() == pytest.approx(1, rel=1e-12)
        np.testing.assert_allclose(probabilities @ decodings, vector, atol=1e-12)
        variance = probabilities @ np.sum((decodings - vector) ** 2, axis=1)
        assert float(mechanism.variance(vector[None, :])[0]) == pytest.approx(variance, rel=1e-12)
        assert variance <= mechanism.variance_bound * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("bits", [1, 2, 3])
@pytest.mark.parametrize("dimension", [1, 2])
def test_by_enumeration_any_two_vectors_are_epsilon_indistinguishable(epsilon: float, bits: int, dimension: int) -> None:
    mechanism = SQKRMechanism(epsilon, bits, NormBall(dimension, 2.0))
    angles = np.linspace(0, 2 * math.pi, 13)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])[:, :dimension]
    vectors = np.vstack([circle, 0.5 * circle, 100 * circle])
    probabilities = np.array([message_probabilities(mechanism, vector) for vector in vectors])
    losses = np.log(probabilities.max(axis=0) / probabilities.min(axis=0))
    assert losses.max() <= epsilon * (1 + 1e-12)
    if dimension == 1:
        # The two ends are coefficients at the level, which attain the guarantee.
        assert losses.max() == pytest.approx(epsilon, rel=1e-12)
        orders = np.array([1.5, 2.0, 10.0])
        first, last = message_probabilities(mechanism, np.array([1.0])), message_probabilities(mechanism, np.array([-1.0]))
        divergences = [math.log(np.sum(first**order * last ** (1 - order))) / (order - 1) for order in orders.tolist()]
        bounds = pure_renyi_divergences(epsilon, orders)
        assert np.all(divergences <= bounds * (1 + 1e-12))
        if bits == 1:
            np.testing.assert_allclose(divergences, bounds, rtol=1e-10)


@pytest.mark.parametrize(("epsilon", "bits"), [(1.0, 1), (2.0, 2), (math.inf, 2)])
def test_messages_are_drawn_with_the_stated_probabilities(epsilon: float, bits: int) -> None:
    mechanism = SQKRMechanism(epsilon, bits, PLANE)
    vector, clients = np.array([0.9, -0.7]), 200_000
    messages = mechanism.encode(np.tile(vector, (clients, 1)), np.random.default_rng(1))
    assert messages.dtype == np.int32
    shape = (*[mechanism.frame.size] * bits, 2**bits)
    counted = np.bincount(np.ravel_multi_index(tuple(messages.T), shape), minlength=math.prod(shape))
    expected = message_probabilities(mechanism, vector) * clients
    possible = expected > 0
    assert counted[~possible].sum() == 0
    cells = np.count_nonzero(possible)
    statistic = np.sum((counted[possible] - expected[possible]) ** 2 / expected[possible])
    # A chi-square with a mean of cells - 1 exceeds 7 standard deviations with probability below 1e-6 for this many cells.
    assert statistic < cells + 7 * math.sqrt(2 * cells)


def test_messages_of_many_dimensions_are_unbiased_and_vary_as_stated() -> None:
    mechanism = SQKRMechanism(3.0, 3, NormBall(20, 2.0, clip_norm=2.0), seed=5)
    clients, vector = 10_000, np.linspace(-0.5, 0.6, 20)
    assert mechanism.scaled_down_count(vector[None, :]) == 0
    messages = mechanism.encode(np.tile(vector, (clients, 1)), np.random.default_rng(2))
    variance = float(mechanism.variance(vector[None, :])[0])
    errors = np.array([mechanism.decode(mechanism.aggregate(part), 100) - vector for part in np.split(messages, 100)])
    # The sum has about 20 * 100 squares of equal variance, which gives a relative standard error of sqrt(2 / 2000) = 3.2 %.
    assert np.mean(np.sum(errors**2, axis=1)) == pytest.approx(variance / 100, rel=0.16)
    deviations = errors.mean(axis=0) / errors.std(axis=0) * 10
    assert np.abs(deviations).max() < 6


def test_the_published_error_of_one_bit_without_privacy_is_met() -> None:
    # Triastcyn, Reisser, Louizos 2021, *DP-REC*, compare 0.07 for 200 dimensions, 10 000 clients and one bit each.
    mechanism = SQKRMechanism(math.inf, 1, NormBall(200, 2.0))
    clients = 2000
    vectors = np.random.default_rng(3).normal(size=(clients, 200))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    predicted = (200 * KASHIN_CONSTANT**2 - 1) / clients
    assert predicted * clients / 10_000 == pytest.approx(0.0693, abs=5e-5)
    assert mechanism.variance(vectors).sum() / clients**2 == pytest.approx(predicted, rel=1e-9)
    estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, np.random.default_rng(4))), clients)
    # The error is about chi-square with 200 degrees of freedom, which has a relative standard deviation of 10 %.
    assert np.sum((estimate - vectors.mean(axis=0)) ** 2) == pytest.approx(predicted, rel=0.5)


def test_a_vector_that_is_scaled_down_is_counted_and_its_bias_is_known() -> None:
    ball = NormBall(4, 2.0)
    mechanism = SQKRMechanism(1.0, 2, ball, kashin_constant=1.0)
    vectors = np.random.default_rng(5).normal(size=(50, 4))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    assert mechanism.scaled_down_count(vectors) > 10
    assert mechanism.scaled_down_count(vectors / 2) == 0
    scaled = next(vector for vector in vectors if mechanism.scaled_down_count(vector[None, :]))
    decodings, probabilities = decoded(mechanism, all_messages(mechanism)), message_probabilities(mechanism, scaled)
    mean = probabilities @ decodings
    scale = float(mean @ scaled)
    np.testing.assert_allclose(mean, scale * scaled, atol=1e-12)
    assert 0.5 <= scale < 1
    np.testing.assert_allclose(mechanism.known_bias(scaled[None, :])[0], mean - scaled, atol=1e-12)
    variance = probabilities @ np.sum((decodings - mean) ** 2, axis=1)
    assert float(mechanism.variance(scaled[None, :])[0]) == pytest.approx(variance, rel=1e-12)
    assert mechanism.variance(vectors).max() <= mechanism.variance_bound
    # The bias stays for any number of clients.
    assert 1 - scale <= mechanism.bias_bound == 0.5
    assert mechanism.error().of_mean(10**12) == pytest.approx(0.25, rel=1e-9)
    certain = SQKRMechanism(1.0, 2, ball, kashin_constant=2.0)
    assert (certain.scaled_down_count(vectors), certain.bias_bound, certain.known_bias(vectors).shape) == (0, 0.0, ())
    assert SQKRMechanism(1.0, 2, ball, kashin_constant=50.0).level == certain.level


@pytest.mark.parametrize("dimension", [5, 16, 100, 200])
def test_vectors_along_the_frame_are_unbiased(dimension: int) -> None:
    mechanism = SQKRMechanism(math.inf, 1, NormBall(dimension, 2.0))
    frame = mechanism.frame
    columns = np.zeros((4, frame.size))
    columns[[0, 1, 2, 3, 1, 2, 3], [0, 1, frame.size // 2, -1, 7, 9, 3]] = 1.0
    vectors = frame.synthesis(columns)
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    coefficients = kashin_representation(vectors, frame, mechanism.level)
    assert np.abs(coefficients.coefficients).max() <= mechanism.level
    np.testing.assert_allclose(frame.synthesis(coefficients.coefficients), vectors, atol=1e-12)
    drawn = np.arange(40)[:, None] % frame.size
    up = mechanism.symbol_probabilities(np.tile(vectors[0], (40, 1)), drawn)[:, 1]
    np.testing.assert_allclose((2 * up - 1) * mechanism.level, coefficients.coefficients[0, drawn[:, 0]], atol=1e-12)
    assert mechanism.bias_bound == mechanism.scaled_down_count(vectors) == 0


def test_beyond_the_largest_proven_frame_the_bias_is_bounded() -> None:
    mechanism = SQKRMechanism(4.0, 4, NormBall(2048, 2.0, clip_norm=2.0))
    vectors = mechanism.frame.synthesis(np.eye(4, mechanism.frame.size))
    vectors *= 2 / np.linalg.norm(vectors, axis=1)[:, None]
    assert mechanism.bias_bound == pytest.approx(2 * (1 - KASHIN_CONSTANT / math.sqrt(2048)))
    biases = mechanism.known_bias(vectors)
    assert mechanism.scaled_down_count(vectors) == np.count_nonzero(biases.any(axis=1)) > 0
    assert np.all(np.linalg.norm(biases, axis=1) <= mechanism.bias_bound)
    assert SQKRMechanism(4.0, 4, NormBall(1024, 2.0)).bias_bound == 0


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5, 8.0])
def test_the_number_of_bits_is_the_best_one(epsilon: float) -> None:
    ball = NormBall(64, 2.0)
    best = sqkr_mechanism(epsilon, ball, seed=3)
    assert best.seed == 3
    assert best.variance_bound == min(SQKRMechanism(epsilon, bits, ball).variance_bound for bits in range(1, 17))
    published = SQKRMechanism(epsilon, max(1, round(epsilon * math.log2(math.e))), ball)
    assert published.message_bits - 4 <= best.message_bits <= published.message_bits
    if epsilon == 8:
        assert 3 * best.variance_bound < published.variance_bound


class FixedDraws(np.random.Generator):
    """Source of given uniform numbers, one per client, and zeros for all other draws."""

    def __init__(self, uniforms: list[float]) -> None:
        super().__init__(np.random.PCG64(0))
        self.uniforms = uniforms

    def random(self, size: int | tuple[int, ...]) -> FloatArray:
        return np.array(self.uniforms) if size == len(self.uniforms) else np.zeros(size)

    def integers(self, low: int, _high: int, size: int | tuple[int, ...]) -> NDArray[np.int64]:
        return np.full(size, low)


@pytest.mark.parametrize("epsilon", [0.001, 1.25, 13.3, 19.99, 20.0])
@pytest.mark.parametrize("bits", [1, 7, 16])
def test_symbols_are_replaced_often_enough_in_floating_point_too(epsilon: float, bits: int) -> None:
    # The encoder replaces a symbol with probability 1 - C; a uniform number has 2**53 values, and epsilon fixes how many replace.
    with mpmath.workdps(40):
        replacement = 2**bits / (mpmath.exp(mpmath.mpf(epsilon)) + 2**bits - 1)
        fewest = int(mpmath.ceil(replacement * 2**53))
        enough = float(replacement) * (1 + 1e-12) + 2.0**-53
    mechanism = SQKRMechanism(epsilon, bits, PLANE)
    sent = mechanism.encode(np.zeros((2, 2)), FixedDraws([(fewest - 1) * 2.0**-53, enough]))
    # Zero replaces the symbols, and all signs are positive.
    assert sent[:, -1].tolist() == [0, 2**bits - 1]


def test_the_guarantee_is_pure_and_nothing_is_promised_without_privacy() -> None:
    assert SQKRMechanism(1.25, 2, PLANE).guarantee.epsilon == 1.25
    public = SQKRMechanism(math.inf, 1, PLANE)
    assert math.isinf(public.guarantee.epsilon)
    assert public.contrast == 1.0
    (answer,) = public.privacy().report(1e-5, rounds=3).accounts
    assert answer.bound == EpsilonBound.nothing("there is no pure guarantee: an output that one input can give is impossible for another")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a number from 0.001 to 20, got 0.0"),
        ({"epsilon": math.nan}, "epsilon must be a number from 0.001 to 20, got nan"),
        ({"epsilon": -math.inf}, "epsilon must be a number from 0.001 to 20, got -inf"),
        ({"message_bits": 0}, "message_bits must be a whole number from 1 to 16, got 0"),
        ({"message_bits": 17}, "message_bits must be a whole number from 1 to 16, got 17"),
        ({"ball": NormBall(2, 1.0)}, "ball must be of norm 2 for SQKR, got norm 1"),
        ({"ball": NormBall(2**25, 2.0)}, "dimension must be a whole number from 1 to 16777216"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"kashin_constant": 0.5}, "kashin_constant must be a number from 1 to 100000, got 0.5"),
    ],
)
def test_bad_fields_are_refused(changes: dict[str, object], message: str) -> None:
    fields = {"epsilon": 1.0, "message_bits": 1, "ball": PLANE}
    with pytest.raises(ValueError, match=message):
        SQKRMechanism(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_best_number_of_bits_without_privacy_is_refused() -> None:
    with pytest.raises(ValueError, match=r"epsilon must be a number from 0.001 to 20, got inf"):
        sqkr_mechanism(math.inf, PLANE)


def test_bad_messages_are_refused() -> None:
    mechanism = SQKRMechanism(1.0, 2, PLANE)
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 3\), got \(1, 2\)"):
        mechanism.aggregate(np.zeros((1, 2), dtype=np.int32))
    with pytest.raises(ValueError, match="messages must hold coordinates from 0 to 3, got 4"):
        mechanism.aggregate(np.array([[0, 4, 0]]))
    with pytest.raises(ValueError, match="messages must hold symbols from 0 to 3, got -1"):
        mechanism.aggregate(np.array([[0, 3, -1]]))


@pytest.mark.parametrize("length", [4, 16, 64])
def test_columns_of_different_bases_are_at_the_same_angle(length: int) -> None:
    bases = kerdock_signs(length)[:, None, :] * walsh_hadamard(np.eye(length)) / math.sqrt(length)
    columns = bases.reshape(-1, length)
    assert len(bases) == length // 2
    products = np.abs(columns @ columns.T).reshape(len(bases), length, len(bases), length)
    for first in range(len(bases)):
        for second in range(len(bases)):
            expected = np.eye(length) if first == second else 1 / math.sqrt(length)
            np.testing.assert_allclose(products[first, :, second], expected, atol=1e-14)


@pytest.mark.parametrize("length", [256, 1024])
def test_bases_of_many_columns_are_at_the_same_angle(length: int) -> None:
    signs = kerdock_signs(length).astype(float)
    # The inner products of two bases' columns are the transform of the products of their signs.
    for first, second in ((0, 1), (1, 2), (3, length // 2 - 1), (length // 4, length // 4 + 1)):
        np.testing.assert_array_equal(np.abs(walsh_hadamard(signs[first] * signs[second])), math.sqrt(length))


@pytest.mark.parametrize(("dimension", "size"), [(1, 8), (4, 8), (5, 128), (16, 128), (17, 2048), (200, 32768)])
def test_the_frame_is_tight_with_columns_of_equal_length(dimension: int, size: int) -> None:
    frame = KerdockFrame(dimension, seed=3)
    rows = frame.analysis(np.eye(dimension))
    assert rows.shape == (dimension, frame.size) == (dimension, size)
    np.testing.assert_allclose(rows @ rows.T, np.eye(dimension), atol=1e-13)
    np.testing.assert_allclose(np.sum(rows**2, axis=0), dimension / size, rtol=1e-12)
    coefficients = np.random.default_rng(0).normal(size=(3, size))
    np.testing.assert_allclose(frame.synthesis(coefficients), coefficients @ rows.T, atol=1e-12)


def test_the_certain_constant_is_above_what_a_linear_program_needs() -> None:
    frame = KerdockFrame(6, seed=1)
    columns = frame.analysis(np.eye(6))
    rng = np.random.default_rng(2)
    vectors = np.vstack([rng.normal(size=(10, 6)), columns.T[:5], (columns.T[:5] + columns.T[40:45])])
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    ones = np.ones((frame.size, 1))
    box = np.vstack([np.hstack([np.eye(frame.size), -ones]), np.hstack([-np.eye(frame.size), -ones])])
    cost, plane = np.append(np.zeros(frame.size), 1.0), np.hstack([columns, np.zeros((6, 1))])
    least = [linprog(cost, box, np.zeros(len(box)), plane, vector, bounds=(None, None), method="highs").fun for vector in vectors]
    needed = max(least) * math.sqrt(frame.size)
    assert 1.2 < needed <= math.sqrt(3 - 2 / 16) < frame.certain_constant <= KASHIN_CONSTANT


@pytest.mark.parametrize("dimension", [4, 9, 16, 64, 200])
def test_no_vector_is_scaled_down_at_the_certain_level(dimension: int) -> None:
    frame = KerdockFrame(dimension, seed=5)
    rng = np.random.default_rng(1)
    sums = np.zeros((40, frame.size))
    for row, terms in zip(sums, [1] * 10 + [2] * 10 + [5] * 10 + [dimension] * 10, strict=True):
        row[rng.choice(frame.size, terms, replace=False)] = rng.choice([-1.0, 1.0], terms)
    vectors = np.vstack([frame.synthesis(sums), rng.normal(size=(10, dimension)), np.eye(2, dimension)])
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    level = frame.certain_constant / math.sqrt(frame.size)
    representation = kashin_representation(vectors, frame, level)
    np.testing.assert_array_equal(representation.scales, 1.0)
    assert np.abs(representation.coefficients).max() <= level
    np.testing.assert_allclose(frame.synthesis(representation.coefficients), vectors, atol=1e-13)
    if dimension in (64, 200):
        # Random rows shrink vectors along their columns by the same constant.
        rows = KashinFrame(dimension, seed=5)
        along = rows.synthesis(np.eye(10, rows.size))
        along /= np.linalg.norm(along, axis=1)[:, None]
        assert kashin_representation(along, rows, frame.certain_constant / math.sqrt(rows.size)).scales.min() < 0.99


def test_the_seed_decides_the_signs() -> None:
    vectors = np.ones((1, 20))
    assert np.array_equal(KerdockFrame(20, 7).analysis(vectors), KerdockFrame(20, 7).analysis(vectors))
    assert not np.allclose(KerdockFrame(20, 7).analysis(vectors), KerdockFrame(20, 8).analysis(vectors))


@pytest.mark.parametrize(("dimension", "seed", "name"), [(0, 0, "dimension"), (1025, 0, "dimension"), (3, -1, "seed")])
def test_bad_frames_are_refused(dimension: int, seed: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number from"):
        KerdockFrame(dimension, seed)
