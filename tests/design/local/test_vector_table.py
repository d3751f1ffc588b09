"""Tables for vectors: bias, stated variance, and stated privacy.

A check at 5 sigma has one false alarm in 10**6 draws.
"""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from quietbits.arrays import WordArray
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.noise.random_words import WordSource, secure_words, seeded_words
from quietbits.design.tables.certificate import certified_table
from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.provenance import record_provenance
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.errors import InfeasibleError
from quietbits.solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from quietbits.solvers.accounting.renyi_divergence import renyi_matrix
from quietbits.solvers.divergences.vector_composition import vector_divergences

NORMS = [1.0, 2.0, 3.0, math.inf]
VECTOR = np.array([0.31, -0.2, 0.0, 0.45, -0.04])
CLIP_NORM = 1.5


@pytest.fixture(scope="module")
def metric_table() -> LookupTable:
    return design_mvu(4.0, 3, 2, "l1")


TABLES: dict[str, Callable[[], LookupTable]] = {
    "generalised": lambda: generalised_randomised_response(2.0, 3, interval=(7.0, 8.0)),
    "bitwise": lambda: bitwise_randomised_response(4.0, 2),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("table", TABLES)
def test_messages_are_unbiased_and_vary_as_stated(norm: float, table: str) -> None:
    mechanism = VectorTableMechanism(TABLES[table](), NormBall(5, norm, CLIP_NORM))
    clients = 20_000
    messages = mechanism.encode(np.tile(VECTOR, (clients, 1)), np.random.default_rng(11))
    decoded = mechanism.letters[messages]
    np.testing.assert_allclose(mechanism.decode(mechanism.aggregate(messages), clients), decoded.mean(axis=0), rtol=0, atol=1e-11)
    assert (np.abs(decoded.mean(axis=0) - VECTOR) < 5 * decoded.std(axis=0) / math.sqrt(clients)).all()
    errors = ((decoded - VECTOR) ** 2).sum(axis=1)
    assert abs(errors.mean() - mechanism.variance(VECTOR[None, :])[0]) < 5 * errors.std() / math.sqrt(clients)
    assert mechanism.variance(VECTOR[None, :])[0] <= mechanism.variance_bound
    assert mechanism.bias_bound == 0.0


def test_rejection_is_biased_less_than_its_bound_and_keeps_the_ball() -> None:
    table = generalised_randomised_response(6.0, 4)
    mechanism = VectorTableMechanism(table, NormBall(5, 2.0, CLIP_NORM), dithering="rejection", rejection_probability=0.5)
    assert 0.3 < mechanism.shrinkage < 1
    assert mechanism.input_distance == 14 / 15
    assert mechanism.bias_bound == pytest.approx(0.5 * CLIP_NORM / 7 / mechanism.shrinkage)
    clients = 100_000
    vector = VECTOR / np.linalg.norm(VECTOR) * CLIP_NORM
    messages = mechanism.encode(np.tile(vector, (clients, 1)), np.random.default_rng(12))
    decoded = mechanism.letters[messages]
    noise = 5 * decoded.std(axis=0) / math.sqrt(clients)
    assert np.linalg.norm(decoded.mean(axis=0) - vector) < mechanism.bias_bound + np.linalg.norm(noise)
    errors = ((decoded - vector) ** 2).sum(axis=1)
    # The proved bound holds for the conditional distribution; the stated variance is that of vectors that are never rejected.
    assert errors.mean() < mechanism.variance_bound + 5 * errors.std() / math.sqrt(clients)
    assert errors.mean() == pytest.approx(mechanism.variance(vector[None, :])[0], rel=0.05)


def test_for_the_largest_norm_nothing_is_rejected() -> None:
    mechanism = VectorTableMechanism(TABLES["generalised"](), NormBall(5, math.inf), dithering="rejection")
    assert (mechanism.shrinkage, mechanism.bias_bound, mechanism.input_distance) == (1.0, 0.0, 1.0)


# For norms other than 1 and 2, computing the necessary shrinkage of vectors takes a while.
@pytest.mark.parametrize(
    ("dithering", "dimension", "norm"),
    [
        *itertools.product(["systematic"], [1, 3, 40], [1.0, 1.5, 2.0, math.inf]),
        *itertools.product(["rejection"], [1, 3, 40], [1.0, 2.0]),
        ("rejection", 3, 3.0),
        ("rejection", 3, math.inf),
    ],
)
def test_no_vector_varies_more_than_the_bound(dithering: str, dimension: int, norm: float, metric_table: LookupTable) -> None:
    table = metric_table if dithering == "systematic" else generalised_randomised_response(2.0, 5)
    mechanism = VectorTableMechanism(table, NormBall(dimension, norm), dithering=dithering)
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(4000, dimension)) * rng.exponential(size=(4000, dimension)) ** rng.uniform(0, 8, size=(4000, 1))
    vectors *= rng.uniform(0, 1, size=(4000, 1)) / np.linalg.norm(vectors, ord=norm, axis=1, keepdims=True)
    variances = mechanism.variance(vectors)
    assert variances.max() <= mechanism.variance_bound
    if dimension == 1 and dithering == "systematic":
        line = mechanism.variance(np.linspace(-1, 1, 20_001)[:, None])
        assert line.max() == pytest.approx(mechanism.variance_bound, rel=1e-6)


def test_the_variance_bound_is_reached(metric_table: LookupTable) -> None:
    # Either all coordinates are equal, at the best distance from zero, or as many coordinates as the ball allows are at the best of all
    # distances.
    mechanism = VectorTableMechanism(metric_table, NormBall(12, 2.0))
    sizes = np.linspace(-1, 1, 4001)[:, None]
    flat = [mechanism.variance(np.where(np.arange(12) < k, 1 / math.sqrt(k), 0.0) * sizes).max() for k in range(1, 13)]
    assert 0.99 * mechanism.variance_bound < max(flat) <= mechanism.variance_bound


class OneWordEach(WordSource):
    """Source of random words that gives every vector the same word."""

    def __init__(self, word: int, vectors: int) -> None:
        self.word, self.vectors = word, vectors

    def __call__(self, count: int) -> WordArray:
        assert count == self.vectors
        return np.full(count, self.word, dtype=np.uint64)


def exact_outputs(mechanism: VectorTableMechanism, vectors: np.ndarray) -> np.ndarray:
    """Return the exact message laws of two coordinates on the grid's quarter steps, flattened."""
    rows = mechanism.table.probabilities
    # The upper 53 bits of each word are the uniform number in the middle of a cell, which contains no breakpoint.
    shares = []
    for cell in range(8):
        first, second = mechanism._dithered_rows(vectors, OneWordEach((2 * cell + 1) << 60, len(vectors))).T
        shares.append((rows[first][:, :, None] * rows[second][:, None, :]).reshape(len(vectors), -1))
    return np.asarray(np.mean(shares, axis=0))


def divergences_of(mechanism: VectorTableMechanism, orders: list[float]) -> np.ndarray:
    """Return the divergences behind the mechanism's accounts."""
    ball = mechanism.ball
    return vector_divergences(mechanism.table.weights, orders, ball.dimension, ball.norm, mechanism.input_distance)


def largest_divergence(outputs: np.ndarray, order: float) -> float:
    """Return the largest Rényi divergence of two distributions."""
    sums = outputs**order @ (outputs ** (1 - order)).T
    return math.log(sums.max()) / (order - 1)


@pytest.mark.parametrize("first_and_third", [([2, 10, 4, 0], [0, 8, 0, 8]), ([8, 4, 0, 4], [0, 2, 8, 6])])
def test_the_variance_bound_looks_at_both_sides_of_zero(first_and_third: tuple[list[int], list[int]]) -> None:
    # Rows 0 to 2 stand for -1, 0 and 1; one side varies more than the other.
    first, third = first_and_third
    table = certified_table(
        mechanism="mvu",
        epsilon=20.0,
        metric=None,
        alphabet=tuple(Fraction(numerator, 3) for numerator in (-2, 0, 1, 4)),
        total=16,
        weights=np.array([first, [0, 12, 0, 4], third, [0, 4, 0, 12]]),
        provenance=record_provenance("by hand", 0, 0.0),
    )
    mechanism = VectorTableMechanism(table, NormBall(1, 2.0))
    line = mechanism.variance(np.linspace(-1, 1, 20_001)[:, None])
    assert line.max() == pytest.approx(mechanism.variance_bound, rel=1e-6)
    assert abs(line[0] - line[-1]) > 1


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("name", ["metric", "generalised", "bitwise"])
def test_the_guarantee_holds_for_every_two_vectors(norm: float, name: str, metric_table: LookupTable) -> None:
    table = metric_table if name == "metric" else TABLES[name]()
    mechanism = VectorTableMechanism(table, NormBall(2, norm))
    radius = 2 ** (table.bits_in - 1) - 1
    quarters = np.arange(-4 * radius, 4 * radius + 1) / (4 * radius)
    pairs = np.array([*itertools.product(quarters, repeat=2)])
    ball = pairs[np.linalg.norm(pairs, ord=norm, axis=1) <= 1]
    outputs = np.unique(exact_outputs(mechanism, ball).round(15), axis=0)
    orders = [1.5, 2.0, 8.0]
    bounds = divergences_of(mechanism, [*orders, math.inf])
    for order, bound in zip(orders, bounds[:-1], strict=True):
        assert 0.6 * bound < largest_divergence(outputs, order) <= bound + 1e-9
    pure = math.log((outputs.max(axis=0) / outputs.min(axis=0)).max())
    assert 0.6 * bounds[-1] < pure <= bounds[-1] + 1e-9
    assert mechanism.guarantee.epsilon == bounds[-1]
    converted = RenyiCurve(DEFAULT_ORDERS, divergences_of(mechanism, list(DEFAULT_ORDERS))).composed(3).epsilon(1e-3)
    assert mechanism.privacy().account("rdp").bound(1e-3, 3, None).epsilon == converted.epsilon


def test_the_guarantee_is_tight_for_the_largest_norm_and_for_one_coordinate(metric_table: LookupTable) -> None:
    orders = [1.5, 2.0, 8.0, math.inf]
    worst = [renyi_matrix(metric_table.weights, order).max() for order in orders]
    box = VectorTableMechanism(metric_table, NormBall(7, math.inf))
    np.testing.assert_allclose(divergences_of(box, orders), 7 * np.array(worst), rtol=1e-10)
    line = VectorTableMechanism(metric_table, NormBall(1, 2.0))
    inner = [renyi_matrix(metric_table.weights, order)[:-1, :-1].max() for order in orders]
    assert (divergences_of(line, orders) >= np.array(inner) * (1 - 1e-12)).all()


def test_a_delta_lowers_epsilon_and_is_stated() -> None:
    table = generalised_randomised_response(0.5, 3)
    pure = VectorTableMechanism(table, NormBall(100, math.inf)).guarantee
    approximate = VectorTableMechanism(table, NormBall(100, math.inf), delta=1e-5).guarantee
    assert pure.epsilon == pytest.approx(50, rel=1e-9)
    assert approximate.epsilon < 0.7 * pure.epsilon
    assert (approximate.delta, approximate.metric, approximate.trust_model) == (1e-5, None, "local")
    assert (pure.delta, pure.adjacency) == (0.0, "replace-one")
    # The result is the pure guarantee if that is smaller.
    single = VectorTableMechanism(table, NormBall(1, math.inf), delta=1e-12).guarantee
    assert single.epsilon == pytest.approx(0.5, rel=1e-9)


def test_the_loss_distribution_dominates_all_pairs_of_a_box() -> None:
    table = generalised_randomised_response(1.0, 2)
    losses = VectorTableMechanism(table, NormBall(3, math.inf), delta=1e-3).privacy().account("pld")
    rows = table.probabilities
    outputs = [np.multiply.outer(np.outer(rows[i], rows[j]), rows[k]).ravel() for i, j, k in itertools.product(range(4), repeat=3)]
    for epsilon in (0.5, 1.0, 2.0, 2.9):
        largest = max(np.maximum(first - math.exp(epsilon) * second, 0).sum() for first in outputs for second in outputs)
        # The bound at the largest possible delta has that epsilon, up to the upward rounding of losses.
        assert epsilon <= losses.bound(largest, 1, None).epsilon <= epsilon + 1e-2


def test_loss_distributions_are_known_for_one_coordinate_and_for_boxes_only(metric_table: LookupTable) -> None:
    def names(ball: NormBall) -> list[str]:
        return [account.name for account in VectorTableMechanism(metric_table, ball).privacy().accounts]

    assert names(NormBall(1, 2.0)) == names(NormBall(5000, math.inf)) == ["pure", "rdp", "pld"]
    assert names(NormBall(2, 2.0)) == ["pure", "rdp"]
    # The account does not compose this many coordinates over this many rounds.
    huge = VectorTableMechanism(metric_table, NormBall(5000, math.inf)).privacy().account("pld").bound(1e-5, 10, None)
    assert huge.reason == "too expensive to compute, or not known, for these rounds, this sampling and this delta"


def test_a_letter_that_rules_an_input_out_gives_no_privacy() -> None:
    table = certified_table(
        mechanism="mvu",
        epsilon=1.0,
        metric=None,
        alphabet=(Fraction(0), Fraction(1)),
        total=2,
        weights=np.array([[2, 0], [0, 2]]),
        provenance=record_provenance("by hand", 0, 0.0),
    )
    mechanism = VectorTableMechanism(table, NormBall(3, math.inf), delta=1e-5)
    assert mechanism.guarantee.epsilon == math.inf
    assert [account.name for account in mechanism.privacy().accounts] == ["pure", "rdp"]


def test_histograms_of_many_letters_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = VectorTableMechanism(TABLES["generalised"](), NormBall(5, 1.0))
    messages = mechanism.encode(np.zeros((100, 5)), np.random.default_rng(0))
    whole = mechanism.aggregate(messages)
    monkeypatch.setattr("quietbits.design.local.vector_table.COUNTED", 16)
    assert (mechanism.aggregate(messages) == whole).all()
    assert whole.sum() == 500
    monkeypatch.setattr("quietbits.design.local.vector_table.LEAST_COMPARED", 5)
    # More clients send a letter than a byte can count.
    repeated = np.concatenate([np.tile(messages, (6, 1)), np.zeros((600, 5), dtype=messages.dtype)])
    compared = VectorTableMechanism(TABLES["generalised"](), NormBall(5, 1.0)).aggregate(repeated)
    assert compared.flags.c_contiguous
    assert (compared - 6 * whole == 600 * np.eye(1, 8)).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dithering", ["systematic", "rejection"])
def test_encoding_is_repeatable_and_clips(norm: float, dithering: str) -> None:
    mechanism = VectorTableMechanism(generalised_randomised_response(2.0, 5), NormBall(3, norm), dithering=dithering)
    inside = np.tile([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0]], (200, 1))
    seeded = [mechanism.encode(vectors, np.random.default_rng(3)) for vectors in (inside, inside, 1e6 * inside)]
    assert (seeded[0] == seeded[1]).all()
    assert (seeded[0] == seeded[2]).all()
    assert (seeded[0] != mechanism.encode(inside, np.random.default_rng(4))).any()
    assert mechanism.encode(np.empty((0, 3)), np.random.default_rng(0)).shape == (0, 3)
    assert mechanism.variance(np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("dithering", ["systematic", "rejection"])
@pytest.mark.parametrize("norm", [1.0, math.inf])
def test_secure_messages_have_no_seed_and_the_same_mean(dithering: str, norm: float) -> None:
    mechanism = VectorTableMechanism(generalised_randomised_response(8.0, 6), NormBall(5, norm), dithering=dithering)
    vectors = np.tile(VECTOR, (20_000, 1))
    messages = mechanism.encode(vectors, secure_words)
    assert (messages != mechanism.encode(vectors, secure_words)).any()
    deviation = np.sqrt(mechanism.variance(VECTOR[None, :])[0] / len(vectors))
    # The test has no seed: one coordinate exceeds 6.5 sigma of the whole vector by chance in one run of 10**9.
    error = np.abs(mechanism.decode(mechanism.aggregate(messages), len(vectors)) - VECTOR)
    assert error.max() < 6.5 * deviation + mechanism.bias_bound


def test_dithered_rows_stay_in_the_ball_and_zero_stays_zero() -> None:
    mechanism = VectorTableMechanism(generalised_randomised_response(1.0, 5), NormBall(50, 1.0))
    rng = np.random.default_rng(1)
    words, vectors = seeded_words(rng), rng.normal(size=(5000, 50)) ** 3
    rows = mechanism._dithered_rows(vectors, words)
    assert np.abs(rows - 15).sum(axis=1).max() == 15
    assert (mechanism._dithered_rows(np.zeros((10, 50)), words) == 15).all()


@pytest.mark.parametrize("norm", NORMS)
def test_another_clip_norm_only_changes_the_scale(norm: float) -> None:
    table = TABLES["generalised"]()
    small, large = (VectorTableMechanism(table, NormBall(5, norm, clip_norm)) for clip_norm in (1.0, 1024.0))
    vectors = np.random.default_rng(2).normal(size=(50, 5))
    np.testing.assert_array_equal(small.encode(vectors, np.random.default_rng(0)), large.encode(1024 * vectors, np.random.default_rng(0)))
    np.testing.assert_allclose(large.letters, 1024 * small.letters, rtol=1e-15)
    np.testing.assert_allclose(large.variance(1024 * vectors), 1024**2 * small.variance(vectors), rtol=1e-12)
    assert large.variance_bound == pytest.approx(1024**2 * small.variance_bound, rel=1e-6)
    assert large.guarantee == small.guarantee


def test_letters_are_decoded_on_the_grid_s_scale() -> None:
    table = TABLES["generalised"]()
    centred = VectorTableMechanism(table, NormBall(5, 1.0, 2.0)).letters
    whole = VectorTableMechanism(table, NormBall(5, math.inf, 2.0)).letters
    assert centred.tolist() == [float(Fraction(2, 3) * (7 * letter - 3)) for letter in table.alphabet]
    assert whole.tolist() == [float(-2 + 4 * letter) for letter in table.alphabet]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": 1.0}, "delta must be a number from 0 to below 1, got 1.0"),
        ({"delta": -0.1}, "delta must be a number from 0 to 1, got -0.1"),
        ({"delta": math.nan}, "delta must be a number from 0 to 1, got nan"),
        ({"dithering": "independent"}, "dithering must be one of systematic, rejection, got 'independent'"),
        ({"rejection_probability": 1.0}, "rejection_probability must be a number from"),
        ({"table": generalised_randomised_response(1.0, 1)}, "table must have bits_in of 2 or more for a finite norm, got 1"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VectorTableMechanism(**{"table": generalised_randomised_response(1.0, 3), "ball": NormBall(5, 1.0), **arguments})


def test_one_bit_tables_do_for_the_largest_norm() -> None:
    table = generalised_randomised_response(1.0, 1)
    assert VectorTableMechanism(table, NormBall(5, math.inf)).guarantee.epsilon == pytest.approx(5.0, rel=1e-9)


def test_a_biased_table_is_refused() -> None:
    table = certified_table(
        mechanism="mvu",
        epsilon=2.0,
        metric=None,
        alphabet=(Fraction(0), Fraction(1)),
        total=4,
        weights=np.array([[3, 1], [1, 3]]),
        provenance=record_provenance("by hand", 0, 0.0),
    )
    with pytest.raises(ValueError, match=r"table must be exactly unbiased, got one with a bias of up to 0\.25"):
        VectorTableMechanism(table, NormBall(3, math.inf))


def test_too_few_inputs_for_rejection_are_refused_with_how_many_would_do() -> None:
    ball = NormBall(128, 1.0)
    with pytest.raises(InfeasibleError, match="needs 5 bits_in or more for dimension 128 and norm 1, got 4; systematic dithering needs 2"):
        VectorTableMechanism(generalised_randomised_response(1.0, 4), ball, dithering="rejection")
    assert VectorTableMechanism(generalised_randomised_response(1.0, 5), ball, dithering="rejection").shrinkage > 0


def test_messages_and_histograms_that_are_none_are_refused() -> None:
    mechanism = VectorTableMechanism(TABLES["generalised"](), NormBall(3, 2.0))
    with pytest.raises(ValueError, match=r"messages must have the shape \(clients, 3\), got \(3,\)"):
        mechanism.aggregate(np.zeros(3, dtype=np.uint8))
    for messages in (np.full((2, 3), 8), np.full((2, 3), -1), np.full((2, 3), 0.5)):
        with pytest.raises(ValueError, match="messages must be whole numbers from 0 to 7"):
            mechanism.aggregate(messages)
    with pytest.raises(ValueError, match="clients must be the number of letters in each histogram, 8, got 9"):
        mechanism.decode(np.ones((3, 8), dtype=np.int64), 9)


@pytest.mark.parametrize("bad", [[[8]], [[-1]], [[0.5]]])
def test_rows_that_a_table_does_not_have_are_refused(bad: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="rows must be"):
        TABLES["generalised"]().letters_of_rows(bad, np.zeros((1, 1), dtype=np.uint64))


def test_letters_of_rows_are_those_of_values_on_the_grid() -> None:
    table = generalised_randomised_response(1.0, 3)
    words = np.random.default_rng(0).integers(0, 2**64, size=8, dtype=np.uint64)
    expected = table.letters_from_words(np.arange(8) / 7, np.full(8, 2**64 - 1, dtype=np.uint64), words)
    assert (table.letters_of_rows(np.arange(8), words) == expected).all()
