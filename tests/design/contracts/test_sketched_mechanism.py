"""Tests of mechanisms on sketches.

Points under test: stated clipping probabilities and compression errors, in every trust model.

Seeds are fixed; shares of rounds are within 5 standard deviations of a bound.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from quietbits.design.central.central_sketch import CentralSketchMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.design.transforms.layered_sketch import LayeredSketch

BALL = NormBall(800, 2.0, 3.0)
MECHANISM = CentralSketchMechanism(BALL, CountMeanSketch(800, 4, 100, seed=1), 5, sketch_clip=3.3, noise_multiplier=1.0, delta=1e-5)


def made(**changes: Any) -> CentralSketchMechanism:
    return replace(MECHANISM, **changes)


@pytest.mark.parametrize("sketch", [CountMeanSketch(800, 4, 100), HadamardSketch(800, 400)], ids=repr)
def test_sketches_are_clipped_no_more_often_than_stated(sketch: Any) -> None:
    mechanism, rounds = made(sketch=sketch), 400
    edge = 3.0 * np.ones((1, 800)) / math.sqrt(800)
    lengths = np.array([np.linalg.norm(mechanism.renewed(seed).sketched(edge)) for seed in range(rounds)])
    for clip in (3.15, 3.3, 3.6):
        bound = replace(mechanism, sketch_clip=clip).clipping_probability
        assert np.mean(lengths > clip) <= bound + 5 * math.sqrt(bound / rounds)
    # Chebyshev's inequality divides the variance 2/m by the square of 1.1**2 - 1.
    assert mechanism.clipping_probability == pytest.approx(2 / 400 / 0.21**2, rel=1e-12)
    assert made(sketch_clip=3.0).clipping_probability == made(sketch_clip=0.1).clipping_probability == 1.0
    # Some sketches are clipped, as the share longer than 1.05 times the vector is about 2(1 - Phi(1.5)) / 2.
    assert 0.01 < np.mean(lengths > 3.15) < 0.2


def test_the_clip_must_follow_the_scale_of_the_rows() -> None:
    # Sketches whose rows are scaled by 1/t are half as long for t = 4, so clipping to half the norm has the same effect.
    scaled = CountMeanSketch(800, 4, 100, seed=1, scaling="mean")
    follows, does_not = made(sketch=scaled, sketch_clip=3.3 * scaled.length_factor), made(sketch=scaled)
    for name in ("clipping_probability", "bias_bound", "worst_shared_variance", "variance_bound"):
        assert getattr(follows, name) == pytest.approx(getattr(MECHANISM, name), rel=1e-12)
    assert follows.guarantee == MECHANISM.guarantee == does_not.guarantee
    vectors = np.random.default_rng(1).normal(size=(5, 800))
    decoded = [item.decode(item.aggregate(item.encode(vectors, np.random.default_rng(2))), 5) for item in (MECHANISM, follows)]
    np.testing.assert_allclose(decoded[0], decoded[1], rtol=1e-9, atol=1e-9)
    # With the norm of the vectors, the same guarantee needs noise of four times the variance, as the signal is half as long.
    assert does_not.variance_bound == pytest.approx(4 * MECHANISM.variance_bound, rel=1e-12)
    # With a clip norm too small for the scale, every sketch is clipped.
    assert made(sketch_clip=3.3 / 2).clipping_probability == 1.0


def test_what_compression_costs_is_common_to_all_clients() -> None:
    mean = np.random.default_rng(3).normal(size=800)
    assert MECHANISM.worst_shared_variance == pytest.approx(799 / 400 * 9, rel=1e-14)
    assert MECHANISM.shared_variance(mean) == pytest.approx(799 / 400 * float(mean @ mean), rel=1e-14)
    vectors = np.stack([BALL.clip_norm * np.eye(800)[0], -BALL.clip_norm * np.eye(800)[0]])
    # Vectors that cancel out have no compression error, and equal vectors have the largest. Vectors outside the ball count as clipped.
    assert MECHANISM.error(vectors).shared == 0.0
    assert MECHANISM.error(np.tile(9 * vectors[:1], (5, 1))).shared == pytest.approx(MECHANISM.error().shared, rel=1e-14)
    layers = LayeredSketch((CountMeanSketch(700, 1, 70, seed=1), CountMeanSketch(100, 1, 100, seed=2)))
    assert made(sketch=layers).shared_variance(np.eye(800)[750]) == pytest.approx(99 / 100, rel=1e-14)
    assert made(sketch=layers).worst_shared_variance == pytest.approx(699 / 70 * 9, rel=1e-14)


def test_the_bias_of_clipped_sketches_is_below_its_bound() -> None:
    # Nearly half of the sketches are clipped.
    ball, rounds = NormBall(60, 2.0, 1.0), 1500
    mechanism = CentralSketchMechanism(ball, CountMeanSketch(60, 1, 30), 1, sketch_clip=1.02, noise_multiplier=1e-3, delta=1e-5)
    vector = np.ones((1, 60)) / math.sqrt(60)
    rng = np.random.default_rng(4)
    errors = []
    for seed in range(rounds):
        renewed = mechanism.renewed(seed)
        errors.append(renewed.decode(renewed.aggregate(renewed.encode(vector, rng)), 1) - vector[0])
    bias = np.linalg.norm(np.mean(errors, axis=0))
    spread = math.sqrt(np.mean(np.sum(np.square(errors), axis=1)) / rounds)
    # The bias shortens the estimate.
    assert np.mean(errors, axis=0) @ vector[0] < -5 * spread / math.sqrt(60)
    assert bias <= mechanism.bias_bound + 5 * spread


def test_another_round_has_another_sketch_and_is_the_same_otherwise() -> None:
    renewed = MECHANISM.renewed(7)
    assert renewed == made(sketch=CountMeanSketch(800, 4, 100, seed=7))
    assert renewed.guarantee == MECHANISM.guarantee


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ball": NormBall(800, 1.0)}, "ball must be of norm 2 for sketches, got norm 1"),
        ({"ball": NormBall(801, 2.0)}, "sketch must be of 801 coordinates, as the ball is, got 800"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes)
