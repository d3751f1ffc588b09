"""Gradients of networks on digits.

The tests run against finite differences, for exact dimensions, in bounded memory.
"""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from quietbits.analysis.simulation.digit_gradients import (
    CHUNK_COORDINATES,
    DigitModel,
    digit_gradients,
    digits,
    hidden_widths,
    train_digit_model,
)


@pytest.fixture(scope="module")
def model() -> DigitModel:
    return train_digit_model((5, 4), steps=10)


def moved(model: DigitModel, step: np.ndarray) -> DigitModel:
    """Return the network with all its parameters moved by a step along a direction."""
    weights, biases = [], []
    for part, weight in zip(model.layers.places, model.weights, strict=True):
        weights.append(weight + step[part][: weight.size].reshape(weight.shape))
        biases.append(step[part][weight.size :])
    return DigitModel(tuple(weights), tuple(first + second for first, second in zip(model.biases, biases, strict=True)))


@pytest.mark.parametrize("samples", [1, 3])
def test_gradients_are_finite_differences_of_the_mean_loss(model: DigitModel, samples: int) -> None:
    chosen = np.arange(4 * samples).reshape(4, samples)
    images, labels = digits().images[chosen], digits().labels[chosen]
    result = model.gradients(images, labels)
    assert result.shape == (4, model.dimension)
    rng = np.random.default_rng(0)
    for _ in range(5):
        direction = rng.standard_normal(model.dimension) * 1e-6
        ahead, behind = (moved(model, sign * direction).losses(images, labels).mean(axis=1) for sign in (1, -1))
        # A unit whose sum is within the step of zero would make a larger error, but no unit has such a sum.
        assert (ahead - behind) / 2e-6 == pytest.approx(result @ direction / 1e-6, rel=1e-5, abs=1e-7)


def test_norms_are_those_of_the_gradients(model: DigitModel) -> None:
    gradients = model.gradients(digits().images[:50, None], digits().labels[:50, None])
    assert model.gradient_norms()[:50] == pytest.approx(np.linalg.norm(gradients, axis=1), rel=1e-12)


def test_training_recognises_more_and_is_deterministic() -> None:
    start, trained = (train_digit_model((30,), steps=steps) for steps in (0, 200))
    assert start.accuracy() < 0.3
    assert trained.accuracy() > 0.8
    again = train_digit_model((30,), steps=200)
    assert all(np.array_equal(first, other) for first, other in zip(trained.weights, again.weights, strict=True))
    other_seed = train_digit_model((30,), steps=200, seed=1)
    assert not np.array_equal(trained.weights[0], other_seed.weights[0])


@pytest.mark.parametrize(
    ("dimension", "hidden"),
    [(650, ()), (8170, (60, 60)), (2**17, (237, 238, 237)), (2**20, (657, 740, 691)), (1_047_142, (986, 986))],
)
def test_exact_dimensions(dimension: int, hidden: tuple[int, ...]) -> None:
    assert hidden_widths(dimension) == hidden
    widths = (64, *hidden, 10)
    assert sum(first * other + other for first, other in pairwise(widths)) == dimension


@pytest.mark.parametrize("dimension", [*(2**k for k in range(10, 28)), 1_018_174, 4_050_748, 209_662])
def test_powers_of_two_and_the_papers_dimensions_have_networks(dimension: int) -> None:
    widths = (64, *hidden_widths(dimension), 10)
    assert sum(first * other + other for first, other in pairwise(widths)) == dimension


def test_a_long_gradient_is_made_in_chunks_of_bounded_memory() -> None:
    model = train_digit_model(hidden_widths(2**18), steps=1)
    digits()
    tracemalloc.start()
    try:
        clients = 0
        for chunk in digit_gradients(model, 20, np.random.default_rng(0)):
            assert chunk.shape == (1, 2**18)
            clients += len(chunk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert clients == 20
    # Memory holds a chunk, its scaled copy, and the previous chunk.
    assert peak < 5 * 8 * CHUNK_COORDINATES


def test_several_images_of_a_client_bring_its_gradient_nearer_to_the_mean(model: DigitModel) -> None:
    rng = np.random.default_rng(0)
    single, many = (np.concatenate(list(digit_gradients(model, 200, rng, samples=samples))) for samples in (1, 50))
    assert np.linalg.norm(many, axis=1).mean() < np.linalg.norm(single, axis=1).mean()


def test_what_is_refused(model: DigitModel) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="clients must be a whole number from 1"):
        digit_gradients(model, 0, rng)
    with pytest.raises(ValueError, match="samples must be a whole number from 1 to 1797"):
        digit_gradients(model, 1, rng, samples=0)
    with pytest.raises(ValueError, match="hidden must be a whole number from 1"):
        train_digit_model((0,))
    with pytest.raises(ValueError, match="steps must be a whole number from 0"):
        train_digit_model((), steps=-1)
    with pytest.raises(ValueError, match=r"dimension must be a network's .* got 5"):
        hidden_widths(5)
