"""The protocol of trained models: parameters, scores, gradients, losses, accuracy."""

from typing import Protocol, TypeGuard

import numpy as np
import scipy

from ....arguments import check_integer
from ....arrays import FloatArray, IntegerArray
from ....design.federated.model_layers import ModelLayers

# Number of best scores for the accuracy of examples with several labels, which is the share of all labels among these scores (DP-REC's
# tags).
RECALL_AT = 5
# Number of examples per batch of a test, as a convolution takes a hundred times their memory.
TESTED_TOGETHER = 1000


class Network(Protocol):
    """A model with its parameters in a vector, layer by layer."""

    @property
    def layers(self) -> ModelLayers:
        """Shapes of the tensors, in the order in which they lie in a vector."""

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Draw the first parameters, shape (dimension,)."""

    def scores(self, parameters: FloatArray, inputs: FloatArray) -> FloatArray:
        """Return a score for each class, shape (n, classes), of inputs of shape (n, features)."""

    def gradients(self, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, *, scale: float = 1.0) -> FloatArray:
        """Return each client's scaled gradient of its mean loss, shape (clients, dimension).

        Parameters are of shape (dimension,), the same for all, or (clients, dimension); inputs of shape (clients, examples, features).
        Labels are of shape (clients, examples), or indicators 0 and 1 of shape (clients, examples, classes) if an example has several
        labels.
        """


class RandomNetwork(Network, Protocol):
    """A model whose gradients may be random."""

    def drawing(self, rng: np.random.Generator) -> Network:
        """Return the model with dropout in its gradients, drawn from `rng`."""


class SequenceNetwork(Network, Protocol):
    """A model that predicts a class at each position of its inputs.

    Labels have the shape of the inputs, with -1 at positions without a required class.
    """

    def answers(self, parameters: FloatArray, inputs: FloatArray) -> IntegerArray:
        """Return the best class at each position, shape (n, positions).

        The model returns no scores, as all scores at once could fill the memory.
        """


# The test checks for a method, because an isinstance of protocols takes as long as a chunk's scores in every round.
def is_random(network: Network) -> TypeGuard[RandomNetwork]:
    """Return whether the model's gradients may be random."""
    return hasattr(network, "drawing")


def is_sequential(network: Network) -> TypeGuard[SequenceNetwork]:
    """Return whether the model predicts a class at each position."""
    return hasattr(network, "answers")


def score_errors(scores: FloatArray, labels: IntegerArray, scale: float = 1.0) -> FloatArray:
    """Return the derivatives of a client's scaled mean loss by the scores.

    The loss is softmax with cross-entropy, or sigmoids of classes.
    """
    if labels.ndim == scores.ndim:
        if labels.shape != scores.shape:
            raise ValueError(f"model must give a score for each label, of shape {labels.shape}, got one of shape {scores.shape}")
        errors = scipy.special.expit(scores) - labels
    else:
        # The code computes a softmax in place.
        errors = np.subtract(scores, scores.max(axis=-1, keepdims=True), order="C")
        np.exp(errors, out=errors)
        errors /= errors.sum(axis=-1, keepdims=True)
        of_each = errors.reshape(-1, errors.shape[-1])
        of_each[np.arange(len(of_each)), labels.ravel()] -= 1
    errors /= scores.shape[-2] / scale
    return np.asarray(errors)


def score_accuracy(scores: FloatArray, labels: IntegerArray) -> float:
    """Return the share of examples with the best score at their class, or the recall at 5."""
    if labels.ndim == 1:
        return float(np.mean(scores.argmax(axis=1) == labels))
    best = np.argpartition(-scores, min(RECALL_AT, scores.shape[1]) - 1, axis=1)[:, :RECALL_AT]
    return float(np.take_along_axis(labels, best, axis=1).sum() / max(1, labels.sum()))


def network_accuracy(network: Network, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray) -> float:
    """Return a model's accuracy on examples.

    For a model of sequences, the accuracy is the share of the required positions with right answers.
    """
    parts = [inputs[start : start + TESTED_TOGETHER] for start in range(0, len(inputs), TESTED_TOGETHER)]
    if is_sequential(network):
        asked = labels >= 0
        right = np.concatenate([network.answers(parameters, part) for part in parts])[asked] == labels[asked]
        return float(np.count_nonzero(right) / max(1, len(right)))
    return score_accuracy(np.concatenate([network.scores(parameters, part) for part in parts]), labels)


def shape_of_images(model: str, shape: tuple[int, int, int] | None) -> tuple[int, int, int]:
    """Return a model's input shape; raise ValueError if the inputs are no images."""
    if shape is None:
        raise ValueError(f"model must be softmax, an mlp or an lstm for inputs that are not images, got {model!r}")
    return shape


def check_widths(widths: tuple[int, ...]) -> None:
    """Refuse layers that are empty or too wide."""
    for width in widths:
        check_integer("width of a layer", width, low=1, high=2**20)
