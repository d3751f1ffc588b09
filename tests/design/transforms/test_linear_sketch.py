"""Properties of every sketch: linearity, no bias, stated errors, and stated lengths.

Seeds are fixed. Means over sketches are within 5 standard errors, or 6 with many coordinates, so that about one seed in a million would
fail a test by chance.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.gaussian_sketch import GaussianSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.design.transforms.layered_sketch import LayeredSketch
from quietbits.design.transforms.linear_sketch import IdentitySketch, LinearSketch

DIMENSION, ROUNDS = 40, 500
MADE: dict[str, Callable[[int], LinearSketch]] = {
    "one row": lambda seed: CountMeanSketch(DIMENSION, 1, 8, seed),
    "four rows": lambda seed: CountMeanSketch(DIMENSION, 4, 5, seed),
    "four rows over 4": lambda seed: CountMeanSketch(DIMENSION, 4, 5, seed, scaling="mean"),
    "hadamard": lambda seed: HadamardSketch(DIMENSION, 20, seed),
    "longer than its vectors": lambda seed: HadamardSketch(DIMENSION, 50, seed),
    "gaussian": lambda seed: GaussianSketch(DIMENSION, 20, seed),
    "layers": lambda seed: LayeredSketch((CountMeanSketch(25, 1, 5, 2 * seed), HadamardSketch(15, 6, 2 * seed + 1))),
    "none": lambda seed: IdentitySketch(DIMENSION, seed),
}
KINDS = pytest.mark.parametrize("kind", MADE)
VECTOR = np.random.default_rng(0).exponential(size=DIMENSION) * np.where(np.arange(DIMENSION) % 3, 1.0, -1.0)
SQUARE = float(VECTOR @ VECTOR)


class Drawn(NamedTuple):
    """Sketches of every seed, applied to a vector, to ones and to noise."""

    sketched: np.ndarray
    decoded: np.ndarray
    sketched_ones: np.ndarray
    decoded_noise: np.ndarray


@cache
def drawn(kind: str) -> Drawn:
    # Each sketch serves all three inputs at once, since making it takes longer than using it.
    rng, rows = np.random.default_rng(5), []
    for seed in range(ROUNDS):
        sketch = MADE[kind](seed)
        sketched, ones = sketch.encode(np.stack([VECTOR, np.ones(DIMENSION)]))
        noise = rng.normal(size=len(sketched)) / math.sqrt(len(sketched))
        rows.append((sketched, sketch.decode(sketched), ones, sketch.decode(noise)))
    return Drawn(*(np.array(column) for column in zip(*rows, strict=True)))


def within(values: np.ndarray, expected: float, errors: float = 5.0) -> None:
    """Check that a mean equals its expectation up to its standard error or to rounding."""
    allowed = errors * values.std() / math.sqrt(len(values)) + 1e-9 * abs(expected)
    assert abs(values.mean() - expected) <= allowed


def matrix(sketch: LinearSketch) -> np.ndarray:
    """Return the sketch's matrix S, as `encode` applies it."""
    return np.asarray(sketch.encode(np.eye(sketch.dimension)).T)


@KINDS
def test_it_is_one_matrix_and_decoding_its_transpose(kind: str) -> None:
    sketch = MADE[kind](3)
    dense = matrix(sketch)
    assert dense.shape == (sketch.sketch_dimension, DIMENSION) == sketch.operator().shape
    vectors, sketches = (np.random.default_rng(1).normal(size=(2, 3, count)) for count in (DIMENSION, sketch.sketch_dimension))
    before = vectors.copy(), sketches.copy()
    np.testing.assert_allclose(sketch.encode(vectors), vectors @ dense.T, atol=1e-13)
    np.testing.assert_allclose(sketch.decode(sketches), sketches @ dense / sketch.length_factor**2, atol=1e-12)
    np.testing.assert_array_equal(vectors, before[0])
    np.testing.assert_array_equal(sketches, before[1])
    assert sketch.encode(vectors[0, 0]).shape == (sketch.sketch_dimension,)
    assert sketch.encode(np.zeros((0, DIMENSION))).shape == (0, sketch.sketch_dimension)
    # Sums of sketches are sketches of sums, and are decoded like sketches.
    parts, total = sketch.encode(vectors).reshape(6, -1), vectors.reshape(6, -1).sum(axis=0)
    np.testing.assert_allclose(sketch.decode(parts.sum(axis=0)), sketch.decode(parts).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(sketch.decode(parts.sum(axis=0)), sketch.decode(sketch.encode(total)), atol=1e-12)


@KINDS
def test_the_operator_is_adjoint(kind: str) -> None:
    sketch = MADE[kind](4)
    x, y = (np.random.default_rng(2).normal(size=count) for count in (DIMENSION, sketch.sketch_dimension))
    operator = sketch.operator()
    assert operator.matvec(x) @ y == pytest.approx(x @ operator.rmatvec(y), rel=1e-12)
    np.testing.assert_allclose(operator.matvec(x), sketch.encode(x), atol=1e-14)
    np.testing.assert_allclose(operator.rmatvec(y), matrix(sketch).T @ y, atol=1e-13)


@KINDS
def test_decoding_is_unbiased_and_off_by_the_distortion(kind: str) -> None:
    sketch, errors = MADE[kind](0), drawn(kind).decoded - VECTOR
    assert (np.abs(errors.mean(axis=0)) <= 6 * errors.std(axis=0) / math.sqrt(ROUNDS) + 1e-12).all()
    squares = np.sum(errors**2, axis=1)
    within(squares, sketch.compression_error(VECTOR))
    largest = sketch.distortion * SQUARE
    # The error of a layered sketch depends on the layer that holds the vector's length.
    assert sketch.compression_error(VECTOR) <= largest * (1 + 1e-12)
    assert kind == "layers" or sketch.compression_error(VECTOR) == pytest.approx(largest, rel=1e-12)


def test_the_distortion_of_a_count_mean_sketch_is_that_of_every_vector() -> None:
    # The relative error is (d - 1) / m for one coordinate, for two, and for all equal, with one row or several.
    for rows, width in ((1, 12), (3, 4)):
        vectors = np.stack([np.eye(DIMENSION)[5], np.eye(DIMENSION)[:2].sum(axis=0), np.ones(DIMENSION)])
        sketches = [CountMeanSketch(DIMENSION, rows, width, seed) for seed in range(ROUNDS // 2)]
        errors = np.array([sketch.decode(sketch.encode(vectors)) for sketch in sketches]) - vectors
        for vector, squares in zip(vectors, np.sum(errors**2, axis=2).T, strict=True):
            within(squares, (DIMENSION - 1) / 12 * float(vector @ vector))


@KINDS
def test_lengths_are_kept_on_average_and_vary_no_more_than_stated(kind: str) -> None:
    sketch = MADE[kind](0)
    squares = np.sum(drawn(kind).sketched ** 2, axis=1) / SQUARE / sketch.length_factor**2
    within(squares, 1.0)
    deviations = (squares - 1) ** 2
    assert deviations.mean() <= sketch.length_variance + 5 * deviations.std() / math.sqrt(ROUNDS) + 1e-24
    assert sketch.length_variance <= 2 / min(sketch.sketch_dimension, 5)
    for factor in (1.1, 1.5):
        # The margin is five standard deviations of a share.
        bound = sketch.excess_probability(factor)
        assert np.mean(squares > factor**2) <= bound + 5 * math.sqrt(bound / ROUNDS)
    assert sketch.excess_probability(1 + 1e-9) == (0.0 if kind == "none" else 1.0)


def test_squared_lengths_vary_as_much_as_the_bound_says() -> None:
    # The bound is the exact chi-square variance for a Gaussian ensemble, and nearly exact for one row and many equal coordinates: (1 - 1/d)
    # 2/m.
    for kind, exact in (("gaussian", 2 / 20), ("one row", (1 - 1 / DIMENSION) * 2 / 8)):
        squares = np.sum(drawn(kind).sketched_ones ** 2, axis=1) / DIMENSION
        within((squares - 1) ** 2, exact)


@KINDS
def test_noise_is_scaled_up_by_the_noise_gain(kind: str) -> None:
    sketch = MADE[kind](0)
    within(np.sum(drawn(kind).decoded_noise ** 2, axis=1), sketch.noise_gain)
    assert sketch.noise_gain == pytest.approx(DIMENSION / sketch.sketch_dimension * (4 if kind == "four rows over 4" else 1), rel=1e-14)


@KINDS
def test_the_operator_norm_is_below_its_bound_and_not_far_below(kind: str) -> None:
    sketches = [MADE[kind](seed) for seed in range(100)]
    squares = np.array([np.linalg.norm(matrix(sketch), 2) ** 2 for sketch in sketches]) / sketches[0].length_factor ** 2
    bound = sketches[0].squared_operator_norm_bound
    assert squares.mean() <= bound * (1 + 1e-12)
    # The bound for several rows is that of a single row.
    assert bound <= (3 if "four" in kind else 2) * squares.mean()


@KINDS
def test_another_round_has_another_sketch_of_the_same_size(kind: str) -> None:
    sketch = MADE[kind](3)
    renewed = sketch.renewed(9)
    assert type(renewed) is type(sketch)
    assert (renewed.dimension, renewed.sketch_dimension, renewed.distortion) == (DIMENSION, sketch.sketch_dimension, sketch.distortion)
    assert renewed == sketch.renewed(9)
    if kind != "none":
        assert not np.allclose(renewed.encode(VECTOR), sketch.encode(VECTOR))
    if kind != "layers":
        assert (renewed.seed, sketch.renewed(3)) == (9, sketch)


@KINDS
def test_arrays_of_another_shape_are_refused_by_name(kind: str) -> None:
    sketch = MADE[kind](0)
    size = sketch.sketch_dimension
    with pytest.raises(ValueError, match=r"vectors must have a last axis of length 40, got the shape \(3, 41\)"):
        sketch.encode(np.zeros((3, 41)))
    with pytest.raises(ValueError, match=rf"sketches must have a last axis of length {size}, got the shape \(3, {size + 1}\)"):
        sketch.decode(np.zeros((3, size + 1)))
    with pytest.raises(ValueError, match=r"vectors must have a last axis of length 40, got the shape \(\)"):
        sketch.encode(1.0)
    for function, name, length in ((sketch.encode, "vectors", DIMENSION), (sketch.decode, "sketches", size)):
        with pytest.raises(ValueError, match=f"{name} must hold finite numbers only, got nan"):
            function(np.full(length, math.nan))


@pytest.mark.parametrize("made", [lambda **c: CountMeanSketch(rows=1, width=1, **c), lambda **c: HadamardSketch(size=1, **c)])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dimension": 0}, "dimension must be a whole number from 1 to 2147483648, got 0"),
        ({"dimension": 2.5}, "dimension must be a whole number from 1 to 2147483648, got 2.5"),
        ({"dimension": 2**31 + 1}, "dimension must be a whole number from 1 to 2147483648, got 2147483649"),
        ({"seed": -1}, "seed must be a whole number from 0 to 340282366920938463463374607431768211455, got -1"),
        ({"seed": 2**128}, "seed must be a whole number from 0 to 340282366920938463463374607431768211455, got 3402"),
    ],
)
def test_bad_fields_are_refused(made: Callable[..., LinearSketch], changes: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**{"dimension": 10, "seed": 0} | changes)
