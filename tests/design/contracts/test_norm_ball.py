"""The ball of vectors.

Points under test: clipping, counting the vectors outside, and refusals of bad arguments.
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from quietbits.arguments import check_norm
from quietbits.design.contracts.norm_ball import NormBall

NORMS = [1.0, 1.5, 2.0, 64.0, math.inf]


# Powers up to the 64th of coordinates are finite, and normal numbers where they contribute.
@pytest.mark.parametrize("norm", NORMS)
@settings(max_examples=30)
@given(vectors=arrays(float, (3, 4), elements=st.floats(-1e4, 1e4)))
def test_clipped_vectors_lie_in_the_ball_and_others_stay(norm: float, vectors: np.ndarray) -> None:
    ball = NormBall(4, norm, 2.5)
    clipped = ball.clip(vectors)
    assert (np.linalg.norm(clipped / 2.5, ord=norm, axis=1) <= 1 + 1e-12).all()
    assert ball.clipped_count(clipped) == 0
    inside = np.linalg.norm(vectors / 1e3, ord=norm, axis=1) <= 2.5e-3
    np.testing.assert_array_equal(clipped[inside], vectors[inside])


@pytest.mark.parametrize(("norm", "size"), [(2.0, 1e160), (7.0, 1e50), (64.0, 1e5)])
def test_large_vectors_are_clipped_to_the_surface(norm: float, size: float) -> None:
    ball = NormBall(2, norm, 1.0)
    np.testing.assert_allclose(ball.norms(ball.clip([[size, size]])), 1.0, rtol=1e-12)


@pytest.mark.parametrize("clip_norm", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("norm", NORMS)
def test_vectors_of_the_largest_floats_are_clipped_to_the_surface(norm: float, clip_norm: float) -> None:
    ball, largest = NormBall(3, norm, clip_norm), np.finfo(float).max
    clipped = ball.clip([[largest, -largest, largest], [0.0, 0.0, 5e-324]])
    np.testing.assert_allclose(clipped[0], clip_norm * np.array([1, -1, 1]) / 3 ** (1 / norm), rtol=1e-12)
    assert clipped[1].tolist() == [0.0, 0.0, 5e-324]
    assert ball.clipped_count([[largest, -largest, largest]]) == 1


@pytest.mark.parametrize(("norm", "clip_norm"), [(7.0, 1e-50), (64.0, 1e-6)])
def test_vectors_are_clipped_to_small_balls(norm: float, clip_norm: float) -> None:
    clipped = NormBall(2, norm, clip_norm).clip([[2 * clip_norm, 2 * clip_norm]])
    assert np.linalg.norm(clipped[0] / clip_norm, ord=norm) <= 1 + 1e-12


@pytest.mark.parametrize("norm", NORMS)
def test_norms_agree_with_their_definition(norm: float) -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 9))
    expected = np.abs(vectors).max(axis=1) if math.isinf(norm) else (np.abs(vectors) ** norm).sum(axis=1) ** (1 / norm)
    # Squares of the smallest numbers underflow.
    for factor in (1.0, 1e-200):
        np.testing.assert_allclose(NormBall(9, norm).norms(factor * vectors), factor * expected, rtol=1e-12)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0])
def test_clipping_keeps_directions_for_finite_norms(norm: float) -> None:
    vectors = 10 * np.random.default_rng(1).normal(size=(20, 6))
    clipped = NormBall(6, norm, 0.5).clip(vectors)
    np.testing.assert_allclose(clipped * np.linalg.norm(vectors, axis=1)[:, None], vectors * np.linalg.norm(clipped, axis=1)[:, None])
    np.testing.assert_allclose(NormBall(6, norm).norms(clipped), 0.5, rtol=1e-12)


def test_clipping_cuts_coordinates_off_for_the_largest_coordinate() -> None:
    assert NormBall(3, math.inf, 2.0).clip([[-5.0, 1.0, 2.5]]).tolist() == [[-2.0, 1.0, 2.0]]


@pytest.mark.parametrize("norm", NORMS)
def test_vectors_outside_are_counted(norm: float) -> None:
    ball = NormBall(2, norm, 1.0)
    assert ball.clipped_count([[1.0, 0.0], [0.0, -1.0], [1.001, 0.0], [0.0, 0.0], [5.0, 5.0]]) == 2
    assert ball.clipped_count(np.zeros((0, 2))) == 0
    assert ball.clip(np.zeros((0, 2))).shape == (0, 2)


def test_vectors_are_not_changed_in_place() -> None:
    for norm in NORMS:
        vectors = np.array([[3.0, 4.0]])
        NormBall(2, norm).clip(vectors)
        assert vectors.tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize("vectors", [np.zeros(3), np.zeros((2, 4)), np.zeros((1, 2, 3)), np.zeros(())])
def test_other_shapes_are_refused(vectors: np.ndarray) -> None:
    ball = NormBall(3, 2.0)
    for function in (ball.check, ball.clip, ball.clipped_count):
        with pytest.raises(ValueError, match=r"vectors must have the shape \(clients, 3\), got \("):
            function(vectors)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_coordinates_that_are_not_numbers_are_refused(value: float) -> None:
    ball = NormBall(2, 1.0)
    for function in (ball.check, ball.clip, ball.clipped_count):
        with pytest.raises(ValueError, match="vectors must hold finite numbers only, got"):
            function([[0.0, value]])


@pytest.mark.parametrize("vectors", [[["0.5", "1"]], [[1j, 0.0]], [[0.0, 1.0], [0.0]], [[10**400, 0]], [[{}, 0.0]]])
def test_anything_but_an_array_of_real_numbers_is_refused(vectors: Any) -> None:
    with pytest.raises(ValueError, match="vectors must be an array of real numbers: "):
        NormBall(2, 1.0).check(vectors)


@pytest.mark.parametrize("norm", [0.5, 0.0, -1.0, -math.inf, math.nan, 65.0, "0.5", None])
def test_other_norms_are_refused(norm: float) -> None:
    with pytest.raises(ValueError, match=r"norm must be a number from 1 to 64, got .*; the number inf stands for"):
        check_norm(norm, high=64.0)
    with pytest.raises(ValueError, match=r"norm must be a number from 1 to 64, got .*; the number inf stands for"):
        NormBall(2, norm)


@pytest.mark.parametrize("dimension", [0, -1, 1.5, 2**31 + 1])
def test_other_dimensions_are_refused(dimension: int) -> None:
    with pytest.raises(ValueError, match="dimension must be a whole number from 1 to 2147483648, got"):
        NormBall(dimension, 2.0)


@pytest.mark.parametrize("clip_norm", [0.0, -1.0, math.inf, math.nan, 1e101])
def test_other_clip_norms_are_refused(clip_norm: float) -> None:
    with pytest.raises(ValueError, match=r"clip_norm must be a number from 1e-100 to 1e\+100, got"):
        NormBall(2, 2.0, clip_norm)


def test_a_norm_may_be_typed_as_on_the_command_line() -> None:
    assert NormBall(3, "inf") == NormBall(3, math.inf)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="norm must be a number of at least 1, or inf, got 'big'"):
        NormBall(3, "big")  # type: ignore[arg-type]
