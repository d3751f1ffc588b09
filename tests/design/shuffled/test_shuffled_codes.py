"""Tests of shuffled codes: laws, errors, and guarantees against exact small cases."""

import functools
import itertools
import math
from collections import Counter

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from quietbits.analysis.audits.mechanism_audit import audit
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.unit_vectors.rotating_simplex import RotatingSimplexMechanism
from quietbits.design.shuffled.shuffled_codes import (
    ShuffledCodeMechanism,
    ShuffledRandomCoding,
    ShuffledRotatingSimplex,
    check_coded,
    largest_coordinates_sum,
    shuffled_code_privacy,
)
from quietbits.errors import InfeasibleError

KINDS = (ShuffledRotatingSimplex, ShuffledRandomCoding)


def code(kind: type[ShuffledCodeMechanism] = ShuffledRotatingSimplex, dimension: int = 7, **fields: float) -> ShuffledCodeMechanism:
    usual = {"clients": 200, "local_epsilon": 2.0, "letter_bits": 3, "seed_bits": 4, "closest": 2}
    return kind(NormBall(dimension, 2.0, 3.0), **{**usual, **fields})  # type: ignore[arg-type]


def histograms(laws: list[NDArray[np.float64]]) -> dict[tuple[int, ...], float]:
    """Return the exact law of the multiset of letters of clients with different laws."""
    result: dict[tuple[int, ...], float] = {(): 1.0}
    for law in laws:
        longer: Counter[tuple[int, ...]] = Counter()
        for seen, mass in result.items():
            for letter, share in enumerate(law):
                longer[tuple(sorted((*seen, letter)))] += mass * share
        result = dict(longer)
    return result


def divergence(first: NDArray[np.float64], second: NDArray[np.float64], others: list[NDArray[np.float64]], epsilon: float) -> float:
    """Return the hockey-stick divergence of all messages, by enumeration."""
    left, right = histograms([*others, first]), histograms([*others, second])
    return math.fsum(max(0.0, mass - math.exp(epsilon) * right[seen]) for seen, mass in left.items())


def whole_law(closest: tuple[tuple[int, ...], ...], letters: int, local_epsilon: float) -> NDArray[np.float64]:
    """Return the law of codebook and letter for any sets of closest letters, one for each codebook."""
    law = np.ones((len(closest), letters))
    for row, near in zip(law, closest, strict=True):
        row[list(near)] = math.exp(local_epsilon)
    return np.asarray((law / law.sum()).ravel())


@pytest.mark.parametrize(("letters", "number", "books", "clients"), [(4, 1, 2, 3), (4, 2, 1, 4), (3, 1, 2, 3), (5, 2, 1, 3), (2, 1, 3, 3)])
def test_no_inputs_of_small_codes_reveal_more_than_the_account_says(letters: int, number: int, books: int, clients: int) -> None:
    # All sets of closest letters count, also those that no vectors have; the others' sets are drawn at random.
    local, epsilons = 1.3, (0.0, 0.2, 0.5, 0.9, 1.2)
    sets = list(itertools.combinations(range(letters), number))
    rng = np.random.default_rng(0)
    bounds = [shuffled_bound(local, letters, number, clients, epsilon) for epsilon in epsilons]
    first = whole_law((sets[0],) * books, letters, local)
    largest = np.zeros(len(epsilons))
    for second_sets in itertools.product(sets, repeat=books):
        second = whole_law(second_sets, letters, local)
        for _ in range(4):
            drawn = rng.integers(len(sets), size=(clients - 1, books))
            others = [whole_law(tuple(sets[place] for place in row), letters, local) for row in drawn]
            largest = np.maximum(largest, [divergence(first, second, others, epsilon) for epsilon in epsilons])
    assert (largest <= np.array(bounds) * (1 + 1e-9) + 1e-12).all()
    # The bounds are of the size of the largest divergence.
    assert largest[0] > 0.5 * bounds[0]


def shuffled_bound(local: float, letters: int, number: int, clients: int, epsilon: float) -> float:
    """Return the exact blanket divergence of two inputs without a common letter, by enumeration over the blanket's letters."""
    ratio = math.exp(local)
    total = number * ratio + letters - number
    values = {ratio - math.exp(epsilon): number / total, 1 - math.exp(epsilon) * ratio: number / total}
    values[1 - math.exp(epsilon)] = (letters - 2 * number) / total
    values[0.0] = values.get(0.0, 0.0) + 1 - letters / total
    outcomes = itertools.product(values.items(), repeat=clients)
    return math.fsum(math.prod(mass for _, mass in row) * max(0.0, sum(value for value, _ in row)) for row in outcomes) / clients


@pytest.mark.parametrize(("letters", "closest", "clients"), [(4, 1, 3), (8, 3, 4), (2, 1, 5)])
def test_the_account_is_the_blanket_of_two_inputs_without_a_common_letter(letters: int, closest: int, clients: int) -> None:
    privacy = shuffled_code_privacy(1.3, letters, closest, clients)
    for epsilon in (0.2, 0.5, 0.9):
        exact = shuffled_bound(1.3, letters, closest, clients, epsilon)
        claimed = privacy.epsilon(exact)
        assert epsilon * (1 - 1e-9) <= claimed < 1.05 * epsilon + 0.02


@pytest.mark.parametrize(("letters", "closest"), [(4, 1), (8, 3), (16, 8), (6, 2)])
def test_an_overlap_makes_the_losses_smaller_in_convex_order(letters: int, closest: int) -> None:
    ratio, factor = math.exp(2.0), math.exp(0.4)
    thresholds = np.linspace(-factor * ratio, ratio, 200)

    def stop_losses(overlap: int) -> NDArray[np.float64]:
        first, second = np.ones(letters), np.ones(letters)
        first[:closest] = second[closest - overlap : 2 * closest - overlap] = ratio
        return np.maximum(0, (first - factor * second)[:, None] - thresholds).sum(axis=0)

    losses = [stop_losses(overlap) for overlap in range(closest + 1)]
    for more, less in itertools.pairwise(losses):
        assert (more >= less - 1e-9).all()
    assert (losses[0] > losses[-1] + 1e-3).any()


@pytest.mark.parametrize("kind", KINDS)
def test_letters_have_the_stated_law(kind: type[ShuffledCodeMechanism]) -> None:
    mechanism = code(kind, seed_bits=1)
    vector = 2.0 * np.eye(7)[2]
    law = mechanism.letter_law(vector, np.arange(2, dtype=np.uint64))
    np.testing.assert_allclose(law.sum(axis=1), 1)
    assert law.max() / law.min() <= math.exp(2.0) * (1 + 1e-12)
    draws = 40_000
    messages = mechanism.encode(np.tile(vector, (draws, 1)), np.random.default_rng(0))
    counts = np.bincount((messages @ np.array([8, 1], dtype=np.uint64)).astype(np.int64), minlength=16)
    expected = draws * law.ravel() / 2
    # Five standard deviations of each count.
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed_bits", [0, 2, 12])
def test_errors_over_public_seeds_are_as_stated(kind: type[ShuffledCodeMechanism], seed_bits: int) -> None:
    mechanism, rounds = code(kind, seed_bits=seed_bits), 200
    vectors, rng = np.tile(3.0 * np.eye(7)[1], (200, 1)), np.random.default_rng(1)
    copies = [mechanism.renewed(seed) for seed in range(rounds)]
    errors = np.array([copy.decode(copy.aggregate(copy.encode(vectors, rng)), 200) - vectors[0] for copy in copies])
    squares = np.square(errors).sum(axis=1)
    allowed = 5 * squares.std() / math.sqrt(rounds)
    stated = mechanism.error(vectors)
    assert squares.mean() <= stated.of_mean(200) + allowed
    # A simplex has exactly this error; the bound of random candidates adds little.
    exact = (stated.variance - stated.shared) / 200 + stated.shared
    assert squares.mean() >= (1 if kind is ShuffledRotatingSimplex else 0.85) * exact - allowed
    # The bias over public seeds is zero: 7 coordinates, within five standard deviations.
    assert (np.abs(errors.mean(axis=0)) <= 5 * errors.std(axis=0) / math.sqrt(rounds)).all()


def test_vectors_inside_the_ball_are_unbiased() -> None:
    mechanism, rng = code(seed_bits=20, clients=40_000), np.random.default_rng(2)
    vectors = np.tile([0.4, -0.9, 0, 0, 1.1, 0, 0], (40_000, 1))
    estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, rng)), 40_000)
    assert np.linalg.norm(estimate - vectors[0]) <= 3 * math.sqrt(mechanism.error(vectors).of_mean(40_000))


def test_the_simplex_has_the_error_of_the_local_mechanism() -> None:
    local = RotatingSimplexMechanism(2.0, 3, NormBall(7, 2.0, 3.0))
    shuffled = code(closest=local.closest)
    assert shuffled.variance_bound == pytest.approx(local.variance_bound, rel=1e-12)


@pytest.mark.parametrize(("count", "largest", "dimension"), [(8, 1, 2), (16, 5, 3), (64, 32, 5), (4, 2, 1), (256, 3, 40)])
def test_sums_of_largest_coordinates(count: int, largest: int, dimension: int) -> None:
    normals = np.random.default_rng(3).standard_normal((1000, count, dimension))
    coordinates = normals[:, :, 0] / np.linalg.norm(normals, axis=2)
    for power in (1, 2):
        sums = (np.sort(coordinates, axis=1)[:, -largest:] ** power).sum(axis=1)
        spread = sums.std() / math.sqrt(len(sums)) + 1e-12
        assert abs(sums.mean() - largest_coordinates_sum(count, largest, dimension, power)) <= 5 * spread


def test_a_largest_coordinate_by_adaptive_quadrature() -> None:
    # The largest of four coordinates in three dimensions, which are uniform from -1 to 1, is the largest of four uniform numbers.
    assert largest_coordinates_sum(4, 1, 3) == pytest.approx(2 * 4 / 5 - 1, rel=1e-12)
    density = functools.partial(scipy.stats.beta.pdf, a=9.5, b=9.5)
    exact = scipy.integrate.quad(lambda x: 4096 * (2 * x - 1) * density(x) * scipy.stats.beta.cdf(x, 9.5, 9.5) ** 4095, 0, 1, points=[0.9])
    assert largest_coordinates_sum(4096, 1, 20) == pytest.approx(exact[0], rel=1e-7)


@pytest.mark.parametrize("kind", KINDS)
# Clients in the middle of the ball hide a client better, since their letters outside the blanket differ.
@pytest.mark.parametrize(("others", "share"), [("zero", 0.3), ("same", 0.4)])
def test_an_audit_does_not_refute_the_guarantee_and_measures_much_of_it(
    kind: type[ShuffledCodeMechanism], others: str, share: float
) -> None:
    mechanism = code(kind, dimension=3, clients=6, letter_bits=2, closest=1, seed_bits=3, local_epsilon=2.5, delta=1e-2)
    result = audit(mechanism, 15_000, np.random.default_rng(0), others=others, confidence=1 - 1e-6)
    assert share * result.claim.epsilon < result.measured.epsilon_lower_bound <= result.claim.epsilon
    assert not result.refuted


def test_half_of_the_local_guarantee_is_refuted() -> None:
    class Boastful(ShuffledRotatingSimplex):
        @property
        def guarantee(self):  # type: ignore[no-untyped-def]
            return shuffled_code_privacy(self.local_epsilon / 2, self.letters, self.closest, self.clients).guarantee(1e-2, "replace-one")

    mechanism = code(Boastful, dimension=3, clients=3, letter_bits=2, closest=1, seed_bits=3, local_epsilon=3.0)
    assert audit(mechanism, 15_000, np.random.default_rng(0), confidence=1 - 1e-6).refuted


def test_faults() -> None:
    with pytest.raises(ValueError, match="closest must be at most half of the 8 letters, got 5"):
        code(closest=5)
    with pytest.raises(InfeasibleError, match="letter_bits must be at most 3 in 7 dimensions, got 4"):
        code(letter_bits=4)
    with pytest.raises(ValueError, match="seed_bits must be a whole number from 0 to 48"):
        code(seed_bits=49)
    for messages, words in (
        ([[16, 0]], "codebooks from 0 to 15, got 16"),
        ([[0, 8]], "letters from 0 to 7, got 8"),
        ([0, 1], r"shape \(clients, 2\)"),
    ):
        with pytest.raises(ValueError, match=words):
            check_coded(np.array(messages), 16, 8)
