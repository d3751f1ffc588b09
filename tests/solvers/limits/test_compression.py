"""Limits of compression, against quantisers with known errors."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from quietbits.solvers.limits.compression import (
    compression_bound,
    mean_compression_bound,
    necessary_bits,
    unbiased_compression_bound,
    unbiased_mean_compression_bound,
)

DIMENSIONS = [1, 2, 3, 5, 30, 1000, 2**20]


def mean_coordinate(dimension: int) -> float:
    """Return E |u_1| of a uniformly random unit vector."""
    return math.exp(math.lgamma(dimension / 2) - math.lgamma((dimension + 1) / 2)) / math.sqrt(math.pi)


@pytest.mark.parametrize("dimension", [2, 3, 30, 2**20])
def test_without_bits_nothing_is_known_but_the_ball(dimension: int) -> None:
    assert compression_bound(dimension, 0.0, radius=3.0) == pytest.approx(9.0, rel=1e-8)
    assert mean_compression_bound(dimension, 0.0, 1000, radius=3.0) == pytest.approx(9.0, rel=1e-8)
    assert unbiased_compression_bound(dimension, 0.0) == math.inf
    assert unbiased_mean_compression_bound(dimension, 0.0, 10) == math.inf


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_bounds_fall_with_bits_to_nothing(dimension: int) -> None:
    for bound in (
        compression_bound,
        unbiased_compression_bound,
        lambda dimension, bits: mean_compression_bound(dimension, bits, 500),
        lambda dimension, bits: unbiased_mean_compression_bound(dimension, bits, 500),
    ):
        values = [bound(dimension, bits) for bits in np.concatenate([np.linspace(0, 5, 41), np.geomspace(5, 1000 * dimension, 60)])]
        assert all(more <= less for less, more in itertools.pairwise(values))
        assert values[-1] < 1e-200
        assert values[1] > 0


@pytest.mark.parametrize("levels", [2, 3, 4, 7, 16])
def test_the_uniform_quantiser_of_numbers_is_optimal_without_shared_randomness(levels: int) -> None:
    worst = 1 / levels**2
    assert worst * (1 - 1e-8) <= compression_bound(1, math.log2(levels), shared_randomness=False) <= worst


@pytest.mark.parametrize("levels", [3, 4, 7, 16, 1000])
def test_shared_dither_beats_the_covering_bound_but_not_the_shared_one(levels: int) -> None:
    dithered = 1 / (3 * (levels - 1) ** 2)
    assert compression_bound(1, math.log2(levels)) <= dithered < compression_bound(1, math.log2(levels), shared_randomness=False)


@pytest.mark.parametrize(("levels", "grid"), [(1, 21), (2, 25), (3, 13)])
def test_no_mixture_of_quantisers_of_numbers_is_better(levels: int, grid: int) -> None:
    # The best mixture of codebooks against all inputs of a grid that includes the prior's points is a matrix game.
    points = np.linspace(-1, 1, grid)
    prior = np.linspace(-1, 1, 2 * levels)
    inputs = np.union1d(points, prior)
    codebooks = np.array(list(itertools.combinations(points, levels)))
    losses = ((inputs[:, None, None] - codebooks[None]) ** 2).min(axis=2)
    game = linprog(
        np.append(np.zeros(len(codebooks)), 1.0),
        A_ub=np.hstack([losses, -np.ones((len(inputs), 1))]),
        b_ub=np.zeros(len(inputs)),
        A_eq=np.append(np.ones(len(codebooks)), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * len(codebooks) + [(None, None)],
    )
    assert game.status == 0
    assert 0.6 * game.fun <= compression_bound(1, math.log2(levels)) <= game.fun * (1 + 1e-9)


@pytest.mark.parametrize("dimension", [2, 3, 10, 100, 10_000])
def test_signs_of_a_randomly_rotated_vector(dimension: int) -> None:
    # The best multiple of the sign vector has an error of 1 - m**2, the best unbiased multiple 1/m**2 - 1; `squared` is m**2.
    squared = dimension * mean_coordinate(dimension) ** 2
    assert compression_bound(dimension, dimension) <= 1 - squared
    assert unbiased_compression_bound(dimension, dimension) <= 1 / squared - 1
    # The quantiser sends one sign.
    squared = mean_coordinate(dimension) ** 2
    assert compression_bound(dimension, 1) <= 1 - squared
    if dimension >= 10:
        assert compression_bound(dimension, 1) >= 0.85 * (1 - squared)
    assert unbiased_compression_bound(dimension, 1) <= 1 / squared - 1


@pytest.mark.parametrize("dimension", [2, 3, 4, 20])
def test_random_codebooks_under_random_rotations(dimension: int) -> None:
    generator = np.random.default_rng(1)

    def directions(count: int) -> np.ndarray:
        vectors = generator.standard_normal((count, dimension))
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    inputs = directions(4000)
    for bits in (1, 3, 6, 9):
        codebook = directions(2**bits) * generator.uniform(size=(2**bits, 1)) ** (1 / dimension)
        products, squares = inputs @ codebook.T, (codebook**2).sum(axis=1)
        # The mean error over rotations depends on the length of the input alone.
        errors = [(radius**2 + squares - 2 * radius * products).min(axis=1).mean() for radius in np.linspace(0, 1, 6)]
        assert compression_bound(dimension, bits) <= max(errors)


def test_stochastic_rounding_of_numbers() -> None:
    for levels in (2, 3, 8, 100):
        bound = unbiased_compression_bound(1, math.log2(levels), shared_randomness=False)
        assert 0.1 / (levels - 1) ** 2 <= unbiased_compression_bound(1, math.log2(levels)) <= bound <= 1 / (levels - 1) ** 2


def test_few_bits_without_bias_cost_dimension_over_bits() -> None:
    value = unbiased_compression_bound(10**6, 1000.0)
    assert value == pytest.approx(10**6 / (2 * math.log(2) * 1000), rel=2e-3)


def test_messages_that_do_not_span_the_space_have_bias() -> None:
    assert unbiased_compression_bound(7, 2.9, shared_randomness=False) == math.inf
    assert unbiased_compression_bound(7, 3.0, shared_randomness=False) < math.inf
    assert unbiased_compression_bound(7, 2.9) < math.inf


@pytest.mark.parametrize("clients", [1, 2, 7, 100, 10_000, 10**6])
@pytest.mark.parametrize("dimension", [3, 64, 4096])
def test_the_mean_of_signs_of_random_directions(dimension: int, clients: int) -> None:
    variance = (1 / mean_coordinate(dimension) ** 2 - 1) / clients
    shrunk = variance / (1 + variance)
    assert mean_compression_bound(dimension, 1.0, clients) <= shrunk
    assert unbiased_mean_compression_bound(dimension, 1.0, clients) <= variance
    # Both bounds are within a factor of about ten.
    assert mean_compression_bound(dimension, 1.0, clients) >= 0.07 * shrunk
    assert unbiased_mean_compression_bound(dimension, 1.0, clients) >= 0.1 * variance


def test_one_client_is_a_mean_and_more_bits_are_no_less() -> None:
    assert mean_compression_bound(50, 20.0, 1) == pytest.approx(compression_bound(50, 20.0), rel=1e-12)
    assert mean_compression_bound(50, 1e-3, 100) >= compression_bound(50, 0.1) * (1 - 1e-12)


@pytest.mark.parametrize("trust_model", ["secure-sum", "local", "central"])
@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 100, 2**20])
def test_fewer_bits_than_necessary_do_not_suffice(dimension: int, trust_model: str, unbiased: bool) -> None:
    clients = 1000

    def bound(bits: float) -> float:
        if trust_model == "secure-sum":
            return (unbiased_compression_bound if unbiased else compression_bound)(dimension, bits, radius=2.0)
        return (unbiased_mean_compression_bound if unbiased else mean_compression_bound)(dimension, bits, clients, radius=2.0)

    last = math.inf
    for error in (1e-12, 1e-4, 0.1, 3.9):
        bits = necessary_bits(error, dimension, clients, trust_model, unbiased=unbiased, radius=2.0)
        assert bits <= last
        last = bits
        assert bound(bits * (1 + 1e-9) + 1e-300) <= error
        if bits > 0:
            assert bound(bits) > error


def test_nothing_is_necessary_for_the_error_of_zero() -> None:
    assert necessary_bits(4.0, 100, 10, "secure-sum", radius=2.0) == 0.0
    assert necessary_bits(4.0, 100, 10, "secure-sum", unbiased=True, radius=2.0) > 0


def test_a_secure_sum_needs_more_than_messages_that_are_seen() -> None:
    assert necessary_bits(0.01, 10_000, 1000, "secure-sum", unbiased=True) > 10 * necessary_bits(0.01, 10_000, 1000, "local", unbiased=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0), "dimension must be a whole number from 1"),
        ((3, -1.0), "bits must be a number from 0"),
        ((3, math.inf), "bits must be a number from 0"),
    ],
)
def test_bad_sizes_are_refused(arguments: tuple[int, float], message: str) -> None:
    for bound in (compression_bound, unbiased_compression_bound):
        with pytest.raises(ValueError, match=message):
            bound(*arguments)
    with pytest.raises(ValueError, match=message):
        mean_compression_bound(*arguments, 10)


def test_bad_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="trust_model must be one of local, secure-sum, central, got 'shuffle'"):
        necessary_bits(1.0, 3, 10, "shuffle")
    with pytest.raises(ValueError, match="error must be a number from"):
        necessary_bits(0.0, 3, 10, "local")
    with pytest.raises(ValueError, match="clients must be a whole number from 1"):
        mean_compression_bound(3, 1.0, 0)
    with pytest.raises(ValueError, match="radius must be a number from"):
        compression_bound(3, 1.0, radius=0.0)
