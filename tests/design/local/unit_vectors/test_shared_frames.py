"""Frames made of reflections: orthonormal, uniformly random, and equal on client and server."""

import math

import numpy as np
import pytest
from scipy import stats

from quietbits.design.local.unit_vectors import shared_frames
from quietbits.design.local.unit_vectors.shared_frames import frame_coordinates, frame_sum, frame_words
from quietbits.design.local.unit_vectors.shared_normals import normal_numbers
from quietbits.design.relative_entropy.shared_randomness import philox_words


def frame(seed: int, dimension: int, count: int) -> np.ndarray:
    return np.array([frame_sum([seed], column[None], dimension) for column in np.eye(count)]).T


def test_a_frame_is_the_product_of_its_reflections() -> None:
    dimension, count, seed = 6, 4, 11
    product = np.eye(dimension)
    words = philox_words([seed], frame_words(dimension, count))[0]
    drawn, start = [], 0
    for step in range(count):
        length = (dimension - step + 1) // 2
        drawn.append(normal_numbers(words[start : start + length].view(np.uint32))[: dimension - step])
        start += length
    for step, normals in enumerate(drawn):
        target = np.zeros(dimension - step)
        target[0] = -math.copysign(float(np.linalg.norm(normals)), normals[0])
        along = normals - target
        reflection = np.eye(dimension)
        reflection[step:, step:] -= 2 * np.outer(along, along) / (along @ along)
        np.testing.assert_allclose(reflection[step:, step:] @ normals, target, atol=1e-12)
        # Before the reflections of earlier steps, the step's column is the normal vector up to this sign.
        product = product @ reflection @ np.diag(np.where(np.arange(dimension) == step, math.copysign(1.0, target[0]), 1.0))
    np.testing.assert_allclose(frame(seed, dimension, count), product[:, :count], atol=1e-12)
    np.testing.assert_allclose(frame(seed, dimension, 1)[:, 0], drawn[0] / np.linalg.norm(drawn[0]), atol=1e-12)


@pytest.mark.parametrize(("dimension", "count"), [(1, 1), (2, 1), (5, 3), (5, 5), (200, 63)])
def test_frames_are_orthonormal_and_coordinates_are_inner_products(dimension: int, count: int) -> None:
    seeds = [0, 5, 2**64 - 1]
    vectors = np.random.default_rng(0).normal(size=(3, dimension))
    coordinates = frame_coordinates(seeds, vectors, count)
    frames = [frame(seed, dimension, count) for seed in seeds]
    for vector, own, columns in zip(vectors, coordinates, frames, strict=True):
        np.testing.assert_allclose(columns.T @ columns, np.eye(count), atol=1e-13)
        np.testing.assert_allclose(own, vector @ columns, atol=1e-12)
    together = sum(columns @ own for own, columns in zip(coordinates, frames, strict=True))
    np.testing.assert_allclose(frame_sum(seeds, coordinates, dimension), together, atol=1e-12)


def test_frames_are_uniformly_random() -> None:
    clients, dimension, count = 8_000, 4, 3
    basis = [frame_coordinates(list(range(clients)), np.tile(axis, (clients, 1)), count) for axis in np.eye(dimension)]
    # Every entry of a frame is a coordinate of a uniformly random unit vector; the 12 tests give a false alarm in 10**5 runs.
    law = stats.beta(1.5, 1.5, loc=-1, scale=2)
    for rows in basis:
        for column in rows.T:
            assert stats.kstest(column, law.cdf).pvalue > 1e-6
    # Squares of two entries have the correlations of random orthogonal matrices, which are moments of the Haar measure.
    first, second = basis[0], basis[1]
    for mean, expected in [
        ((first[:, 0] * second[:, 1]) ** 2, (dimension + 1) / (dimension * (dimension - 1) * (dimension + 2))),
        ((first[:, 0] * first[:, 1]) ** 2, 1 / (dimension * (dimension + 2))),
        (first[:, 0] * first[:, 1] * second[:, 0] * second[:, 1], -1 / (dimension * (dimension - 1) * (dimension + 2))),
    ]:
        assert abs(mean.mean() - expected) <= 5 * mean.std() / math.sqrt(clients)


def test_a_square_frame_has_either_sign() -> None:
    # The last column of a square frame is fixed up to the sign of the determinant.
    signs = [np.sign(np.linalg.det(frame(seed, 3, 3))) for seed in range(400)]
    assert abs(np.sum(signs)) <= 5 * 20


def test_a_number_that_is_zero_is_no_frame_without_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_frames, "normal_numbers", lambda halves: np.zeros(halves.shape))
    assert np.abs(frame_coordinates([1], np.array([[0.5]]), 1)).tolist() == [[0.5]]
    np.testing.assert_allclose(np.linalg.norm(frame_coordinates([1], np.array([[0.5, 0.0]]), 2)), 0.5)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, vectors = list(range(7)), np.random.default_rng(1).normal(size=(7, 10))
    whole = frame_coordinates(seeds, vectors, 3)
    total = frame_sum(seeds, whole, 10)
    monkeypatch.setattr(shared_frames, "CHUNK", 60)
    np.testing.assert_array_equal(frame_coordinates(seeds, vectors, 3), whole)
    np.testing.assert_allclose(frame_sum(seeds, whole, 10), total, rtol=1e-12)
