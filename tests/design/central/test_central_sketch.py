"""Tests of project and perturb.

Points under test: noise of exactly the stated variance, and errors that agree with predictions.

Seeds are fixed; means are within 5 standard errors, and one seed in a million would fail where a p-value is tested.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats

from quietbits.design.central.central_sketch import CentralSketchMechanism
from quietbits.design.contracts.gaussian import gaussian_privacy
from quietbits.design.contracts.guarantee import ADJACENCIES
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.design.transforms.linear_sketch import LinearSketch

SKETCH = CountMeanSketch(60, 2, 10, seed=1)
MECHANISM = CentralSketchMechanism(NormBall(60, 2.0, 2.0), SKETCH, clients=4, sketch_clip=2.2, noise_multiplier=1.5, delta=1e-5)


def made(**changes: Any) -> CentralSketchMechanism:
    return replace(MECHANISM, **changes)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_noise_of_the_sum_has_the_stated_law(adjacency: str) -> None:
    mechanism = made(adjacency=adjacency)
    sensitivity = 2.2 if adjacency == "add-or-remove-one" else 4.4
    assert mechanism.noise_deviation == pytest.approx(1.5 * sensitivity, rel=1e-15)
    vectors = np.random.default_rng(1).normal(size=(4, 60))
    sketches = SKETCH.encode(mechanism.ball.clip(vectors))
    sketches *= np.minimum(1, 2.2 / np.linalg.norm(sketches, axis=1))[:, None]
    rng = np.random.default_rng(2)
    noise = np.array([mechanism.aggregate(mechanism.encode(vectors, rng)) - sketches.sum(axis=0) for _ in range(500)])
    assert scipy.stats.kstest(noise.ravel() / mechanism.noise_deviation, "norm").pvalue > 1e-6
    # The mean of 10 000 squares is nearly 1: each is chi-square, of mean 1 and variance 2.
    assert np.mean(noise**2) / mechanism.noise_deviation**2 == pytest.approx(1, abs=5 * math.sqrt(2 / 10_000))
    # Each client's share of the noise is independent of the others' shares.
    shares = np.concatenate([mechanism.encode(np.zeros((4, 60)), rng) for _ in range(250)], axis=1)
    assert np.abs(np.corrcoef(shares)[np.triu_indices(4, 1)]).max() < 6 / math.sqrt(5000)
    assert mechanism.privacy().accounts[0].name == gaussian_privacy(1.5, adjacency, "central").accounts[0].name
    assert mechanism.guarantee == gaussian_privacy(1.5, adjacency, "central").guarantee(1e-5, adjacency)


def test_decoding_scales_the_noise_up_by_as_much_as_is_stated() -> None:
    # Each client adds d deviation**2 / n for any vector; the mean divides by n once more. Zero vectors leave only the noise.
    rng = np.random.default_rng(3)
    rounds = [made(sketch=CountMeanSketch(60, 2, 10, seed=seed)) for seed in range(500)]
    squares = np.array([np.sum(item.decode(item.aggregate(item.encode(np.zeros((4, 60)), rng)), 4) ** 2) for item in rounds])
    predicted = MECHANISM.error(np.zeros((4, 60))).of_mean(4) - MECHANISM.bias_bound**2
    assert predicted == pytest.approx(60 * (1.5 * 2.2) ** 2 / 16, rel=1e-14)
    assert abs(squares.mean() - predicted) < 5 * squares.std() / math.sqrt(500)
    assert (MECHANISM.variance(np.random.default_rng(4).normal(size=(9, 60))) == MECHANISM.variance_bound).all()


@pytest.mark.parametrize("sketch", [CountMeanSketch(60, 1, 30), CountMeanSketch(60, 5, 9), HadamardSketch(60, 30)], ids=repr)
@pytest.mark.parametrize("clients", [1, 20])
def test_the_error_is_compression_and_noise(sketch: LinearSketch, clients: int) -> None:
    # No vector reaches the clip norm, so the error is exactly the shared part plus each client's part.
    mechanism = CentralSketchMechanism(NormBall(60, 2.0), sketch, clients, sketch_clip=6.0, noise_multiplier=0.05, delta=1e-5)
    vectors = np.random.default_rng(5).normal(size=(clients, 60)) + 0.5
    mean, rng = mechanism.ball.clip(vectors).mean(axis=0), np.random.default_rng(6)
    rounds = [mechanism.renewed(seed) for seed in range(200)]
    squares = np.array([np.sum((item.decode(item.aggregate(item.encode(vectors, rng)), clients) - mean) ** 2) for item in rounds])
    error = mechanism.error(vectors)
    predicted = error.variance / clients + error.shared
    assert abs(squares.mean() - predicted) < 5 * squares.std() / math.sqrt(200)
    assert 0.1 < error.shared / predicted < 0.999


def test_a_message_is_a_float_for_each_coordinate_of_the_sketch() -> None:
    assert MECHANISM.bits_per_client == 64 * 20
    assert MECHANISM.encode(np.zeros((3, 60)), np.random.default_rng(0)).shape == (3, 20)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": 0}, "clients must be a whole number from 1 to 9007199254740992, got 0"),
        ({"sketch_clip": 0.0}, "sketch_clip must be a number from 1e-100 to 1e.100, got 0.0"),
        ({"delta": 0.0}, "delta must be a number above 0 and below 1, got 0.0"),
        ({"adjacency": "swap"}, "adjacency must be one of "),
        ({"noise_multiplier": 0.0}, "noise_multiplier must be a number from 0.001 to 1e.06, got 0.0"),
        ({"noise_multiplier": math.nan}, "noise_multiplier must be a number from 0.001 to 1e.06, got nan"),
    ],
)
def test_bad_fields_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes)
