"""The penalty from the noise: its formula, and how often noise is above it."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from quietbits.design.noise.discrete_gaussian import sample_discrete_gaussian
from quietbits.solvers.decoders.noise_penalty import noise_penalty

DIMENSION, MEASUREMENTS = 300, 50


@pytest.mark.parametrize("kind", ["Gaussian", "discrete Gaussian", "signs"])
def test_noise_is_seldom_above_the_penalty(kind: str) -> None:
    """All three are sub-Gaussian with the parameter 1.5; the penalty fails more often than it may with a probability below 1e-6."""
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((MEASUREMENTS, DIMENSION))
    matrix *= 7 / np.linalg.norm(matrix, axis=0)
    runs, probability = 2000, 0.2
    noise = {
        "Gaussian": lambda: 1.5 * rng.standard_normal((runs, MEASUREMENTS)),
        "discrete Gaussian": lambda: sample_discrete_gaussian(1.5, (runs, MEASUREMENTS), rng),
        "signs": lambda: 1.5 * rng.choice([-1.0, 1.0], (runs, MEASUREMENTS)),
    }[kind]()
    largest = np.abs(noise @ matrix).max(axis=1) / MEASUREMENTS
    penalty = noise_penalty(DIMENSION, 1.5, 7.0, MEASUREMENTS, probability)
    assert np.sum(largest > penalty) <= binom.isf(1e-6, runs, probability)
    # It is not much too large, either: three quarters of it would not do.
    assert np.mean(largest > 0.75 * penalty) > probability


def test_it_is_the_union_bound() -> None:
    found = noise_penalty(1000, 0.7, 14.0, 200, 0.05)
    assert found == pytest.approx(math.sqrt(2 * math.log(2 * 1000 / 0.05)) * 0.7 * 14.0 / 200, rel=1e-15)
    # The Gaussian tail is below Chernoff's bound, and not by much.
    tail = 2 * 1000 * norm.sf(found * 200 / (0.7 * 14.0))
    assert 0.05 / 20 < tail < 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimension": 0}, "dimension must be a whole number .*, got 0"),
        ({"noise_deviation": 0.0}, r"noise_deviation must be a number .*, got 0\.0"),
        ({"largest_column_norm": -1.0}, r"largest_column_norm must be a number .*, got -1\.0"),
        ({"measurements": 1.5}, r"measurements must be a whole number .*, got 1\.5"),
        ({"failure_probability": 1.0}, r"failure_probability must be a number above 0 and below 1, got 1\.0"),
    ],
)
def test_bad_arguments(change: dict, message: str) -> None:
    good = {"dimension": 10, "noise_deviation": 1.0, "largest_column_norm": 1.0, "measurements": 5, "failure_probability": 0.1}
    with pytest.raises(ValueError, match=message):
        noise_penalty(**(good | change))
