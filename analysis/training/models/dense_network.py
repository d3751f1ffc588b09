"""Fully connected networks with ReLU units: multinomial regression without hidden layers. Gradients of many clients at a time."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ....arrays import FloatArray, IntegerArray
from ....design.federated.model_layers import ModelLayers, dense
from .network import check_widths, score_errors


@dataclass(frozen=True)
class DenseNetwork:
    """A network of fully connected layers; `widths` are those of its inputs, hidden layers and classes."""

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the widths."""
        check_widths(self.widths)

    @cached_property
    def layers(self) -> ModelLayers:
        """A layer for each step from width to width: weights, then biases."""
        return ModelLayers("dense", tuple(dense(*pair, f"dense-{number}") for number, pair in enumerate(pairwise(self.widths), 1)))

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Draw weights as He et al. 2015 (*Delving deep into rectifiers*) do; the last layer, and all biases, are zeros."""
        found = np.zeros(self.layers.dimension)
        for place, (inputs, outputs) in list(zip(self.layers.places, pairwise(self.widths), strict=True))[:-1]:
            weights = found[place][: inputs * outputs]
            weights[:] = rng.standard_normal(len(weights)) * math.sqrt(2 / inputs)
        return found

    def scores(self, parameters: FloatArray, inputs: FloatArray) -> FloatArray:
        """As the protocol says."""
        return self.activations(parameters, inputs)[-1]

    def gradients(self, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, *, scale: float = 1.0) -> FloatArray:
        """As the protocol says."""
        found = np.empty((len(inputs), self.layers.dimension))
        *activations, scores = self.activations(parameters, inputs)
        self.backward(parameters, activations, score_errors(scores, labels, scale), found)
        return found

    def activations(self, parameters: FloatArray, inputs: FloatArray) -> list[FloatArray]:
        """Return what goes into every layer, and at last the scores."""
        found = [inputs]
        for number, (weights, biases) in enumerate(self._tensors(parameters), 1):
            sums = times(found[-1], weights)
            sums += biases
            found.append(sums if number == len(self.widths) - 1 else np.maximum(sums, 0.0, out=sums))
        return found

    def backward(
        self, parameters: FloatArray, activations: list[FloatArray], errors: FloatArray, found: FloatArray, *, to_inputs: bool = False
    ) -> FloatArray:
        """Write each client's gradient to `found`, and return the derivatives by the inputs if they are wanted, else by the first sums."""
        places = self.layers.places
        for number, (weights, _) in reversed(list(enumerate(self._tensors(parameters)))):
            inputs, outputs = self.widths[number : number + 2]
            start = places[number].start
            ends = start + inputs * outputs, start + (inputs + 1) * outputs
            outer_sums(activations[number], errors, found[:, start : ends[0]].reshape(len(found), inputs, outputs))
            found[:, ends[0] : ends[1]] = errors[:, 0] if errors.shape[1] == 1 else errors.sum(axis=1)
            if number:
                errors = times(errors, np.swapaxes(weights, -1, -2)) * (activations[number] > 0)
            elif to_inputs:
                errors = times(errors, np.swapaxes(weights, -1, -2))
        return errors

    def _tensors(self, parameters: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return weights and biases; those of several clients have a first axis for them."""
        lead, found = parameters.shape[:-1], []
        for place, (inputs, outputs) in zip(self.layers.places, pairwise(self.widths), strict=True):
            layer = parameters[..., place]
            weights = layer[..., : inputs * outputs].reshape(*lead, inputs, outputs)
            biases = layer[..., inputs * outputs :]
            found.append((weights, biases[:, None] if lead else biases))
        return found


def times(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return rows, of any leading shape, times one matrix, or times that of each client."""
    if weights.ndim > 2:
        return np.asarray(np.matmul(rows, weights))
    return np.asarray((rows.reshape(-1, rows.shape[-1]) @ weights).reshape(*rows.shape[:-1], -1))


def outer_sums(rows: FloatArray, errors: FloatArray, found: FloatArray) -> None:
    """Write to `found`, for each client, the sum over its examples of the products of inputs and errors."""
    if rows.shape[1] == 1:
        np.einsum("ci,co->cio", rows[:, 0], errors[:, 0], out=found)
    else:
        np.matmul(rows.transpose(0, 2, 1), errors, out=found)
