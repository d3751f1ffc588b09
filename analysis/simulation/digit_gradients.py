"""Gradients of networks in training on scikit-learn's digits, as vectors of any length.

A client holds one or more images. The digits are 1797 images of 8 by 8 pixels (Alpaydin, Kaynak 1998), which ship with scikit-learn.
Networks are fully connected, with ReLU units and a softmax; without hidden layers they are multinomial regression, and with (60, 60) the
network that Agarwal, Suresh, Yu, Kumar, McMahan 2018 (*cpSGD*) trains on larger digits.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import distribution
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy

from ...arguments import MOST_CLIENTS, check_integer, check_real
from ...arrays import FloatArray, IntegerArray
from ...design.contracts.norm_ball import LARGEST_CLIP_NORM
from ...design.federated.model_layers import ModelLayers, dense
from ...extras import optional, require
from ..random_streams import named_stream

PIXELS, CLASSES, IMAGES = 64, 10, 1797
WIDEST, MOST_HIDDEN, MOST_STEPS = 2**14, 8, 10_000
# scikit-learn's `load_digits` reads this file.
DIGITS_FILE = "sklearn/datasets/data/digits.csv.gz"
BATCH, LEARNING_RATE = 64, 0.1
USUAL_STEPS = 20
# Number of coordinates of a chunk's gradients.
CHUNK_COORDINATES = 2**18
# Largest ratio of the widths of three hidden layers, and largest distance of a width from the middle.
WIDTH_RATIO = 4.0
WIDTHS_TRIED = 300
LARGEST_NETWORK = 2**28
KEPT_MODELS = 4
# Quantile of the gradients' norms that is the unit norm of a population; a tenth of the images have a larger gradient.
UNIT_QUANTILE = 0.9


@dataclass(frozen=True, eq=False)
class Digits:
    """Labelled images of digits.

    Attributes
    ----------
    images : ndarray of float64, shape (1797, 64)
        Pixels from 0 to 1.
    labels : ndarray of int64, shape (1797,)
        Labels from 0 to 9.
    """

    images: FloatArray
    labels: IntegerArray


@cache
def digits() -> Digits:
    """Return the digits, read from scikit-learn's file if it exists.

    Reading the file avoids the import of ``load_digits``, which takes a second in every process.
    """
    require("sklearn", "the digits")
    file = Path(str(distribution("scikit-learn").locate_file(DIGITS_FILE)))
    if file.is_file():
        rows = np.loadtxt(file, delimiter=",")
        return Digits(rows[:, :-1] / 16.0, rows[:, -1].astype(np.int64))
    with optional("sklearn", "the digits"):
        from sklearn.datasets import load_digits

    bunch = load_digits()
    return Digits(np.asarray(bunch.data / 16.0, dtype=float), np.asarray(bunch.target, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class DigitModel:
    """A network, and its gradients.

    Attributes
    ----------
    weights : tuple of ndarray, of shapes (inputs, outputs)
        Weights of each layer.
    biases : tuple of ndarray, of shapes (outputs,)
        Biases of each layer.
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]

    @property
    def layers(self) -> ModelLayers:
        """Shapes of the layers, in the order in which they lie in a gradient."""
        named = enumerate(self.weights)
        return ModelLayers("digits", tuple(dense(weight.shape[0], weight.shape[1], f"layer-{index}") for index, weight in named))

    @property
    def dimension(self) -> int:
        """Number of the model's parameters."""
        return self.layers.dimension

    def losses(self, images: FloatArray, labels: IntegerArray) -> FloatArray:
        """Return the cross-entropy of each image, of shapes (..., 64) and (...)."""
        log_shares = scipy.special.log_softmax(self._activations(images)[-1], axis=-1)
        return np.asarray(-np.take_along_axis(log_shares, labels[..., None], axis=-1)[..., 0])

    def accuracy(self) -> float:
        """Return the share of all images that the network classifies correctly."""
        data = digits()
        return float(np.mean(self._activations(data.images)[-1].argmax(axis=-1) == data.labels))

    def gradients(self, images: FloatArray, labels: IntegerArray) -> FloatArray:
        """Return each client's gradient of its images' mean loss, shape (clients, dimension).

        Images are of shape (clients, samples, 64) and labels of shape (clients, samples).
        """
        activations, errors = self._backward(images, labels)
        gradients = np.empty((len(images), self.dimension))
        start = 0
        for inputs, error in zip(activations, errors, strict=True):
            weights = start + inputs.shape[-1] * error.shape[-1]
            place = gradients[:, start:weights].reshape(len(images), inputs.shape[-1], error.shape[-1])
            np.matmul(inputs.transpose(0, 2, 1), error, out=place)
            gradients[:, weights : weights + error.shape[-1]] = error.sum(axis=1)
            start = weights + error.shape[-1]
        return gradients

    def gradient_norms(self) -> FloatArray:
        """Return the L2 norm of each image's gradient, shape (1797,), without making the gradients."""
        activations, errors = self._backward(digits().images[:, None], digits().labels[:, None])
        # A layer's gradient is the product of its inputs (and 1 for the bias) with the errors of its outputs.
        squares = sum(
            (np.sum(inputs**2, axis=-1) + 1) * np.sum(error**2, axis=-1) for inputs, error in zip(activations, errors, strict=True)
        )
        return np.asarray(np.sqrt(squares)[:, 0])

    def _activations(self, images: FloatArray) -> list[FloatArray]:
        """Return the inputs of every layer, and the last layer's outputs."""
        layers = [np.asarray(images, dtype=float)]
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            sums = layers[-1] @ weight + bias
            layers.append(sums if index + 1 == len(self.weights) else np.maximum(sums, 0.0))
        return layers

    def _backward(self, images: FloatArray, labels: IntegerArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return the inputs of every layer, and the loss's derivatives by each layer's sums."""
        *activations, scores = self._activations(images)
        error = scipy.special.softmax(scores, axis=-1)
        np.put_along_axis(error, labels[..., None], np.take_along_axis(error, labels[..., None], axis=-1) - 1, axis=-1)
        errors = [error / labels.shape[-1]]
        for weight, inputs in zip(self.weights[:0:-1], activations[:0:-1], strict=True):
            errors.append((errors[-1] @ weight.T) * (inputs > 0))
        return activations, errors[::-1]


def train_digit_model(hidden: tuple[int, ...] = (60, 60), steps: int = USUAL_STEPS, seed: int = 0) -> DigitModel:
    """Train a network by some steps of stochastic gradient descent.

    Batches have 64 images, and the learning rate is 0.1.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers: none for multinomial regression, at most 8 of at most 2**14 units.
    steps : int
        Number of steps, 0 to 10**4; 0 leaves the network's initial weights (He et al. 2015, *Delving deep into rectifiers*).
    seed : int
        Root seed.

    Examples
    --------
    >>> model = train_digit_model()
    >>> model.dimension, model.accuracy() > 0.5
    (8170, True)
    """
    check_integer("number of hidden layers", len(hidden), low=0, high=MOST_HIDDEN)
    widths = [PIXELS, *(check_integer("hidden", width, low=1, high=WIDEST) for width in hidden), CLASSES]
    steps = check_integer("steps", steps, low=0, high=MOST_STEPS)
    rng = named_stream(seed, f"network of the digits, {widths}")
    weights = [rng.standard_normal((width, next_width)) * math.sqrt(2 / width) for width, next_width in pairwise(widths)]
    biases = [np.zeros(width) for width in widths[1:]]
    model, data = DigitModel(tuple(weights), tuple(biases)), digits()
    for _ in range(steps):
        chosen = rng.integers(0, IMAGES, size=BATCH)
        activations, errors = model._backward(data.images[None, chosen], data.labels[None, chosen])
        for weight, bias, inputs, error in zip(weights, biases, activations, errors, strict=True):
            weight -= LEARNING_RATE * (inputs[0].T @ error[0])
            bias -= LEARNING_RATE * error[0].sum(axis=0)
    return model


def digit_gradients(
    model: DigitModel, clients: int, rng: np.random.Generator, *, samples: int = 1, scale: float = 1.0
) -> Iterator[FloatArray]:
    """Yield the clients' gradients in chunks whose size depends on the dimension only.

    Parameters
    ----------
    model : DigitModel
        Model whose gradients are taken.
    clients : int
        Number of clients.
    rng : numpy.random.Generator
        Source of each client's images, which are drawn from all images with replacement.
    samples : int
        Number of images of a client, from 1 to 1797.
    scale : float
        Factor on every gradient.

    Returns
    -------
    iterator of ndarray of float64, shape (clients of the chunk, dimension)
        Chunks of at most 2**18 coordinates, or of a single client.

    Examples
    --------
    >>> model = train_digit_model((324, 324))
    >>> [chunk.shape for chunk in digit_gradients(model, 5, np.random.default_rng(0))]
    [(2, 129610), (2, 129610), (1, 129610)]
    """
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    samples = check_integer("samples", samples, low=1, high=IMAGES)
    scale = check_real("scale", scale, low=1 / LARGEST_CLIP_NORM, high=LARGEST_CLIP_NORM)
    size = max(1, CHUNK_COORDINATES // model.dimension)
    return (scale * _drawn(model, min(size, clients - start), samples, rng) for start in range(0, clients, size))


def gradient_unit(model: DigitModel) -> float:
    """Return the norm that a tenth of the images' gradients exceed."""
    return float(np.quantile(model.gradient_norms(), UNIT_QUANTILE))


@lru_cache(maxsize=KEPT_MODELS)
def model_of_dimension(dimension: int) -> DigitModel:
    """Return the network with `dimension` parameters, after 20 steps."""
    return train_digit_model(hidden_widths(dimension))


@lru_cache(maxsize=KEPT_MODELS)
def unit_of_dimension(dimension: int) -> float:
    """Return `gradient_unit` of `model_of_dimension`."""
    return gradient_unit(model_of_dimension(dimension))


def population_of_gradients(clients: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Return gradients of single images, in units of `gradient_unit`.

    A tenth of the gradients are longer than 1.
    """
    return _drawn(model_of_dimension(dimension), clients, 1, rng) / unit_of_dimension(dimension)


def hidden_widths(dimension: int) -> tuple[int, ...]:
    """Return the hidden layers with which a network of the digits has `dimension` parameters.

    The result is None for 650 parameters. Otherwise it is two layers of the same width w with ``w**2 + 76 w + 10`` parameters, such as 60
    for 8170, or else three layers of widths as close together as possible.

    Raises
    ------
    ValueError
        If no such layers exist; the message names the nearest numbers below and above.

    Examples
    --------
    >>> [hidden_widths(dimension) for dimension in (650, 8170, 2**17, 2**20)]
    [(), (60, 60), (237, 238, 237), (657, 740, 691)]
    """
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_NETWORK)
    widths = _widths(dimension)
    if widths is None:
        below = next((number for number in range(dimension - 1, 0, -1) if _widths(number) is not None), None)
        above = next(number for number in range(dimension + 1, 2 * LARGEST_NETWORK) if _widths(number) is not None)
        nearest = f"{above}" if below is None else f"{below} or {above}"
        raise ValueError(f"dimension must be a network's for the population digits-gradients, such as {nearest}, got {dimension}")
    return widths


def _widths(dimension: int) -> tuple[int, ...] | None:
    if dimension == PIXELS * CLASSES + CLASSES:
        return ()
    width = math.isqrt(max(dimension - 10 + 38**2, 0)) - 38
    if width > 0 and width * width + 76 * width + 10 == dimension:
        return (width, width)
    # dimension = 65 a + (a + 1) b + (b + 1) c + 10 (c + 1), about 2 w^2 + 76 w for equal widths.
    middle = math.sqrt(max(dimension, 1) / 2 + 19.0**2) - 19
    room = min(middle, WIDTHS_TRIED)
    widths = np.arange(max(1, math.floor(middle - room / 2)), max(2, math.ceil(middle + room)))
    first, second = widths[:, None], widths[None, :]
    rest = dimension - 10 - 65 * first - (first + 1) * second
    third = rest // (second + 11)
    exact = (rest > 0) & (third * (second + 11) == rest)
    if not exact.any():
        return None
    spread = np.maximum(np.maximum(first, second), third) / np.maximum(np.minimum(np.minimum(first, second), third), 1)
    spread = np.where(exact & (third > 0), spread, np.inf)
    best = np.unravel_index(int(spread.argmin()), spread.shape)
    if spread[best] > WIDTH_RATIO:
        return None
    return int(widths[best[0]]), int(widths[best[1]]), int(third[best])


def _drawn(model: DigitModel, clients: int, samples: int, rng: np.random.Generator) -> FloatArray:
    chosen = rng.integers(0, IMAGES, size=(clients, samples))
    return model.gradients(digits().images[chosen], digits().labels[chosen])
