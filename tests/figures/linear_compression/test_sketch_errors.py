"""The parts of a sketched sum's error.

Requirements: parts are zero without their cause, and otherwise as large as predicted.

Seeds are fixed; means of rounds are within 5 standard errors.
"""

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
from quietbits.design.secure_sum.sketched_sum import SketchedSum
from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.design.transforms.linear_sketch import LinearSketch
from quietbits.figures.linear_compression.sketched_sums import SketchErrorParts, split_sketch_error

CLIENTS, DIMENSION = 12, 64
BALL = NormBall(DIMENSION, 2.0, 1.0)


def made(sketch: LinearSketch | None = None, *, clip: float = 4.0, **changes: Any) -> SketchedSum:
    sketch = sketch or CountMeanSketch(DIMENSION, 2, 12, seed=1)
    ball = NormBall(sketch.sketch_dimension, 2.0, clip)
    sums = {"bits": 30, "granularity": 1e-2, "local_sigma": 0.3, "delta": 1e-5, "rotation": "fourier"} | changes
    return SketchedSum(BALL, sketch, DistributedDiscreteGaussianMechanism(ball, CLIENTS, **sums))


def inside(length: float = 1.0) -> np.ndarray:
    """Return vectors at a distance from zero, with a mean far from zero."""
    vectors = np.random.default_rng(1).normal(size=(CLIENTS, DIMENSION)) + 0.7
    return np.asarray(length * vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def split(mechanism: SketchedSum, vectors: np.ndarray, seed: int = 2) -> SketchErrorParts:
    return split_sketch_error(mechanism, [vectors], np.random.default_rng(seed))


def test_the_error_is_that_of_the_estimate() -> None:
    # The same words make the same messages.
    mechanism, vectors = made(bits=9), 1.5 * inside()
    parts = split(mechanism, vectors)
    estimate = mechanism.decode(mechanism.aggregate(mechanism.encode(vectors, np.random.default_rng(2))), CLIENTS)
    assert parts.squared_error == pytest.approx(np.sum((estimate - vectors.mean(axis=0)) ** 2), rel=1e-12)
    assert parts.zero == pytest.approx(np.sum(vectors.mean(axis=0) ** 2), rel=1e-12)
    assert parts.clients == CLIENTS
    # All steps have an error in this case.
    assert all(getattr(parts, field.name) > 0 for field in fields(parts) if field.name not in ("clipped_sketches", "sketch_clipping"))


@pytest.mark.parametrize("length", [0.5, 1.0, 2.0])
def test_vectors_inside_the_ball_are_not_clipped(length: float) -> None:
    parts = split(made(clip=10.0), inside(length))
    outside = max(length - 1.0, 0.0)
    # Vectors outside the ball lose their excess length.
    assert parts.clipping == pytest.approx(np.sum((outside * inside().mean(axis=0)) ** 2), rel=1e-9, abs=1e-28)
    assert parts.clipped_vectors == float(length > 1)
    assert (parts.sketch_clipping, parts.clipped_sketches) == (0.0, 0.0)


def test_a_sketch_of_all_coordinates_loses_nothing() -> None:
    lossless, lossy = (split(made(HadamardSketch(DIMENSION, size, seed=1)), inside()) for size in (64, 32))
    assert lossless.compression < 1e-28 < 0.1 < lossy.compression
    # Rotations keep lengths, so all 64 coordinates have the noise variance.
    assert lossless.squared_error == pytest.approx(lossless.rounding + lossless.privatisation, rel=0.3)


def test_compression_and_noise_are_as_predicted() -> None:
    mechanism, vectors = made(), inside()
    parts = [split(mechanism.renewed(seed), vectors, seed) for seed in range(1, 201)]
    noise = DIMENSION * 0.3**2 / CLIENTS
    expected = {"compression": mechanism.sketch.compression_error(vectors.mean(axis=0)), "privatisation": noise}
    for name, value in expected.items():
        values = np.array([getattr(part, name) for part in parts])
        assert abs(values.mean() - value) < 5 * values.std() / math.sqrt(200)
    # Rounding has a variance of at most a quarter of a squared step on each of d coordinates, and a sixth on average over fractions.
    rounding = np.mean([part.rounding for part in parts])
    assert 0.6 < rounding / (DIMENSION * 1e-4 / 6 / CLIENTS) < 1.5
    # Errors of independent steps add up.
    whole = np.array([part.squared_error - part.compression - part.rounding - part.privatisation for part in parts])
    assert abs(whole.mean()) < 5 * whole.std() / math.sqrt(200)
    assert all(part.clipping < 1e-28 and part.wrap_around == 0 and part.wrapped_coordinates == 0 for part in parts)


def test_sketches_are_clipped_where_the_norm_is_small() -> None:
    sketch = CountMeanSketch(DIMENSION, 2, 12, seed=1)
    lengths = np.linalg.norm(sketch.encode(inside()), axis=1)
    for clip in (0.5, float(np.median(lengths)), 10.0):
        parts = split(made(sketch, clip=clip), inside())
        assert parts.clipped_sketches == np.mean(lengths > clip)
        assert (parts.sketch_clipping > 0) == (lengths > clip).any()


def test_few_bits_wrap() -> None:
    narrow, wide = (split(made(bits=bits), inside()) for bits in (7, 20))
    assert (wide.wrapped_coordinates, wide.wrap_around) == (0, 0.0)
    assert narrow.wrapped_coordinates > 0
    assert narrow.wrap_around > wide.squared_error
    # Earlier steps have the same errors.
    for name in ("clipping", "compression", "sketch_clipping", "rounding", "privatisation", "zero"):
        assert getattr(narrow, name) == getattr(wide, name)


def test_chunks_add_up() -> None:
    mechanism, vectors = made(clip=1.1), 1.2 * inside()
    whole, parts = split(mechanism, vectors), split_sketch_error(mechanism, np.split(vectors, 4), np.random.default_rng(2))
    for name in ("clipping", "compression", "sketch_clipping", "zero", "clipped_vectors", "clipped_sketches"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-9)
    # Other chunks use other words for the noise.
    assert parts.privatisation != whole.privatisation


@pytest.mark.parametrize(("chunks", "sent"), [([], 0), ([inside()[:-1]], CLIENTS - 1), ([inside(), inside()], 2 * CLIENTS)])
def test_another_number_of_vectors_is_refused(chunks: list[np.ndarray], sent: int) -> None:
    with pytest.raises(ValueError, match=f"chunks must hold the vectors of the mechanism's 12 clients, got {sent}"):
        split_sketch_error(made(), chunks, np.random.default_rng(0))


def test_vectors_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"vectors must have the shape \(clients, 64\), got \(12, 63\)"):
        split_sketch_error(made(), [inside()[:, 1:]], np.random.default_rng(0))
    with pytest.raises(ValueError, match="words must be "):
        split_sketch_error(made(), [inside()], 0)  # type: ignore[arg-type]
