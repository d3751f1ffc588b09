"""Tests of populations of vectors.

Points under test: the sets on which populations are uniform, and chunks that depend on the dimension only.
"""

import numpy as np
import pytest

from quietbits.analysis.simulation.populations import CHUNK_COORDINATES, POPULATIONS, population_chunks

# These populations exist in every dimension.
SYNTHETIC = [kind for kind in POPULATIONS if kind != "digits-gradients"]


def vectors(kind: str, clients: int, dimension: int, seed: int = 1, **options: float) -> np.ndarray:
    return np.concatenate(list(population_chunks(kind, clients, dimension, np.random.default_rng(seed), **options)))


@pytest.mark.parametrize("kind", SYNTHETIC)
@pytest.mark.parametrize("dimension", [1, 3, 40])
def test_shapes_and_finite_values(kind: str, dimension: int) -> None:
    result = vectors(kind, 100, dimension)
    assert result.shape == (100, dimension)
    assert np.isfinite(result).all()


@pytest.mark.parametrize("kind", SYNTHETIC)
def test_chunks_are_small_and_hold_every_client(kind: str) -> None:
    sizes = [len(chunk) for chunk in population_chunks(kind, 1000, CHUNK_COORDINATES // 300, np.random.default_rng(1))]
    assert sizes == [300, 300, 300, 100]
    wide = [chunk.shape for chunk in population_chunks(kind, 2, CHUNK_COORDINATES + 1, np.random.default_rng(1))]
    assert wide == [(1, CHUNK_COORDINATES + 1)] * 2


@pytest.mark.parametrize("kind", SYNTHETIC)
def test_the_first_clients_do_not_depend_on_how_many_follow(kind: str) -> None:
    size = CHUNK_COORDINATES // 1000
    np.testing.assert_array_equal(vectors(kind, 2 * size, 1000), vectors(kind, 3 * size, 1000)[: 2 * size])


@pytest.mark.parametrize("kind", SYNTHETIC)
def test_the_scale_is_a_factor_on_the_same_vectors(kind: str) -> None:
    np.testing.assert_array_equal(vectors(kind, 50, 20, scale=4.0), 4 * vectors(kind, 50, 20))


def test_chunks_are_drawn_when_they_are_asked_for() -> None:
    rng, untouched = np.random.default_rng(1), np.random.default_rng(1)
    chunks = population_chunks("sphere", 10, 4, rng)
    assert rng.bit_generator.state == untouched.bit_generator.state
    next(chunks)
    assert rng.bit_generator.state != untouched.bit_generator.state


def test_norms_and_signs() -> None:
    cases = {"uniform-l1": 1, "positive-sphere": 2, "sphere": 2, "sparse": 2, "sparse-mean": 2, "uniform-cube": None}
    assert cases.keys() == set(SYNTHETIC)
    for kind, norm in cases.items():
        result = vectors(kind, 500, 30)
        if norm is not None:
            np.testing.assert_allclose(np.linalg.norm(result, ord=norm, axis=1), 1, rtol=1e-12)
        assert (result >= 0).all() == (kind in ("uniform-l1", "positive-sphere", "sparse-mean"))
        assert abs(result).max() <= 1


def test_moments() -> None:
    # Means of 20 000 x 5 coordinates agree within 5 of their standard errors from the sample: each fails by chance with probability 1e-6.
    dimension = 5
    ball_mean = 3 / 8  # On the unit sphere in 5 dimensions, E|u_1| is Gamma(5/2) / (sqrt(pi) Gamma(3)) = 3/8.
    expected = {
        "uniform-l1": (1 / dimension, None),
        "positive-sphere": (ball_mean, 1 / dimension),
        "sphere": (0.0, 1 / dimension),
        "uniform-cube": (0.0, 1 / 3),
        "sparse": (0.0, 1 / dimension),
    }
    # The mean of sparse-mean is a fixed vector.
    assert expected.keys() == set(SYNTHETIC) - {"sparse-mean"}
    for kind, (mean, square) in expected.items():
        result = vectors(kind, 20_000, dimension, seed=3)
        for power, wanted in ((1, mean), (2, square)):
            if wanted is not None:
                coordinates = result**power
                errors = coordinates.mean(axis=0) - wanted
                sigma = coordinates.std(axis=0) / np.sqrt(len(coordinates)) + 1e-15
                assert (abs(errors) < 5 * sigma).all(), (kind, power)


def test_a_part_of_the_l1_simplex_is_what_normalised_uniform_numbers_are() -> None:
    # For two uniform numbers the share x / (x + y) of the first is below t <= 1/2 with probability t / (2 (1 - t)).
    shares = vectors("uniform-l1", 40_000, 2, seed=5)[:, 0]
    for place in (0.1, 0.25, 0.4):
        probability = place / (2 * (1 - place))
        sigma = np.sqrt(probability * (1 - probability) / len(shares))
        assert abs((shares < place).mean() - probability) < 5 * sigma


def test_sparse_vectors_have_so_many_coordinates_in_random_places() -> None:
    for options, nonzero in (({}, 4), ({"nonzero": 7}, 7), ({"nonzero": 64}, 64)):
        result = vectors("sparse", 4000, 64, **options) != 0
        assert (result.sum(axis=1) == nonzero).all()
        probability = nonzero / 64
        sigma = np.sqrt(probability * (1 - probability) / 4000)
        assert (abs(result.mean(axis=0) - probability) <= 5 * sigma).all()
    assert (np.count_nonzero(vectors("sparse", 20, 5), axis=1) == 1).all()


def test_a_sparse_mean_is_the_same_for_all_clients_in_all_chunks() -> None:
    result = vectors("sparse-mean", 10, CHUNK_COORDINATES // 4, nonzero=100)
    assert (result == result[0]).all()
    places = np.flatnonzero(result[0])
    assert len(places) == 100
    assert (result[0, places] == 0.1).all()
    # The nonzero coordinates are spread over the vector.
    assert places.max() - places.min() > CHUNK_COORDINATES // 8


@pytest.mark.parametrize("dimension", [650, 8170])
def test_gradients_of_digits_have_a_mean_well_inside_the_ball(dimension: int) -> None:
    result = vectors("digits-gradients", 1000, dimension)
    norms = np.linalg.norm(result, axis=1)
    assert 0.07 < np.mean(norms > 1) < 0.13
    clipped = result / np.maximum(norms, 1.0)[:, None]
    assert 0.05 < np.linalg.norm(clipped.mean(axis=0)) < 0.25
    np.testing.assert_array_equal(vectors("digits-gradients", 50, dimension, scale=4.0), 4 * result[:50])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("cube", 5, 5), {}, "population must be one of .* sparse, sparse-mean, digits-gradients, got 'cube'"),
        (("sphere", 0, 5), {}, "clients must be a whole number from 1"),
        (("sphere", 5, 0), {}, "dimension must be a whole number from 1"),
        (("sphere", 5, 5), {"scale": 0.0}, "scale must be a number from"),
        (("sphere", 5, 5), {"nonzero": 2}, "nonzero must be left out for the population sphere"),
        (("digits-gradients", 5, 100), {}, "dimension must be a network's for the population digits-gradients, such as 92 or 101, got 100"),
        (("digits-gradients", 5, 650), {"nonzero": 2}, "nonzero must be left out for the population digits-gradients"),
        (("sparse", 5, 5), {"nonzero": 6}, "nonzero must be a whole number from 1 to 5, got 6"),
    ],
)
def test_bad_arguments_are_named_at_once(arguments: tuple, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        population_chunks(*arguments, np.random.default_rng(1), **options)
