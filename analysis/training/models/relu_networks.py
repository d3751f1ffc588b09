"""ReLU networks, dense or with a convolution first, with gradients of many clients.

Without hidden layers a fully connected network is multinomial regression. The convolution is 3 by 3, with average pooling by 2.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ....arguments import check_integer
from ....arrays import FloatArray, IntegerArray
from ....design.federated.model_layers import ModelLayers, convolution, dense
from .network import check_widths, score_errors

KERNEL, POOL = 3, 2


@dataclass(frozen=True)
class DenseNetwork:
    """A fully connected network; `widths` counts inputs, hidden units and classes."""

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the widths."""
        check_widths(self.widths)

    @cached_property
    def layers(self) -> ModelLayers:
        """Layers between successive widths, each with weights, then biases."""
        return ModelLayers("dense", tuple(dense(*pair, f"dense-{number}") for number, pair in enumerate(pairwise(self.widths), 1)))

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Draw weights as He et al. 2015 do; the last layer, and all biases, are zeros.

        The initialisation is that of *Delving deep into rectifiers*.
        """
        parameters = np.zeros(self.layers.dimension)
        for place, (inputs, outputs) in list(zip(self.layers.places, pairwise(self.widths), strict=True))[:-1]:
            weights = parameters[place][: inputs * outputs]
            weights[:] = rng.standard_normal(len(weights)) * math.sqrt(2 / inputs)
        return parameters

    def scores(self, parameters: FloatArray, inputs: FloatArray) -> FloatArray:
        """Return scores by the protocol of `Network`."""
        return self.activations(parameters, inputs)[-1]

    def gradients(self, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, *, scale: float = 1.0) -> FloatArray:
        """Return gradients by the protocol of `Network`."""
        gradients = np.empty((len(inputs), self.layers.dimension))
        *activations, scores = self.activations(parameters, inputs)
        self.backward(parameters, activations, score_errors(scores, labels, scale), gradients)
        return gradients

    def activations(self, parameters: FloatArray, inputs: FloatArray) -> list[FloatArray]:
        """Return the inputs of all layers, and the scores."""
        layers = [inputs]
        for number, (weights, biases) in enumerate(self._tensors(parameters), 1):
            sums = times(layers[-1], weights)
            sums += biases
            layers.append(sums if number == len(self.widths) - 1 else np.maximum(sums, 0.0, out=sums))
        return layers

    def backward(
        self, parameters: FloatArray, activations: list[FloatArray], errors: FloatArray, gradients: FloatArray, *, to_inputs: bool = False
    ) -> FloatArray:
        """Write each client's gradient to `gradients`, and return derivatives.

        The derivatives are by the inputs if `to_inputs`, else by the first layer's sums.
        """
        places = self.layers.places
        for number, (weights, _) in reversed(list(enumerate(self._tensors(parameters)))):
            inputs, outputs = self.widths[number : number + 2]
            start = places[number].start
            ends = start + inputs * outputs, start + (inputs + 1) * outputs
            outer_sums(activations[number], errors, gradients[:, start : ends[0]].reshape(len(gradients), inputs, outputs))
            gradients[:, ends[0] : ends[1]] = errors[:, 0] if errors.shape[1] == 1 else errors.sum(axis=1)
            if number:
                errors = times(errors, np.swapaxes(weights, -1, -2)) * (activations[number] > 0)
            elif to_inputs:
                errors = times(errors, np.swapaxes(weights, -1, -2))
        return errors

    def _tensors(self, parameters: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return weights and biases; weights of several clients have a first axis for clients."""
        lead, layers = parameters.shape[:-1], []
        for place, (inputs, outputs) in zip(self.layers.places, pairwise(self.widths), strict=True):
            layer = parameters[..., place]
            weights = layer[..., : inputs * outputs].reshape(*lead, inputs, outputs)
            biases = layer[..., inputs * outputs :]
            layers.append((weights, biases[:, None] if lead else biases))
        return layers


def times(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return rows, of any leading shape, times a shared matrix or each client's matrix."""
    if weights.ndim > 2:
        return np.asarray(np.matmul(rows, weights))
    return np.asarray((rows.reshape(-1, rows.shape[-1]) @ weights).reshape(*rows.shape[:-1], -1))


def outer_sums(rows: FloatArray, errors: FloatArray, products: FloatArray) -> None:
    """Write each client's sum of products of inputs and errors to `products`.

    The sum is over the client's examples.
    """
    if rows.shape[1] == 1:
        np.einsum("ci,co->cio", rows[:, 0], errors[:, 0], out=products)
    else:
        np.matmul(rows.transpose(0, 2, 1), errors, out=products)


@dataclass(frozen=True)
class ConvolutionalNetwork:
    """A convolution without padding, and fully connected layers on its pooled channels.

    Attributes
    ----------
    image_shape : tuple of int
        (height, width, channels) of an input; height and width at least 4.
    channels : int
        Number of channels of the convolution.
    widths : tuple of int
        Widths of the fully connected layers; the last is the number of classes.
    """

    image_shape: tuple[int, int, int]
    channels: int
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the sizes."""
        check_widths((self.channels, *self.widths))
        for side in self.image_shape[:2]:
            check_integer("side of an image", side, low=KERNEL + POOL - 1, high=2**12)

    @cached_property
    def layers(self) -> ModelLayers:
        """The convolution, and the dense layers."""
        first = convolution(KERNEL, self.image_shape[2], self.channels)
        return ModelLayers("convolutional", (first, *self._dense.layers.layers))

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Draw parameters as `DenseNetwork.start` does."""
        inputs = KERNEL * KERNEL * self.image_shape[2]
        kernels = rng.standard_normal(inputs * self.channels) * math.sqrt(2 / inputs)
        return np.concatenate([kernels, np.zeros(self.channels), self._dense.start(rng)])

    def scores(self, parameters: FloatArray, inputs: FloatArray) -> FloatArray:
        """Return scores by the protocol of `Network`."""
        return self._dense.scores(parameters[self._kernels :], self._pooled(self._convolved(parameters, self._patches(inputs[None])))[0])

    def gradients(self, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, *, scale: float = 1.0) -> FloatArray:
        """Return gradients by the protocol of `Network`."""
        patches = self._patches(inputs)
        maps = self._convolved(parameters, patches)
        of_dense = parameters[..., self._kernels :]
        *activations, scores = self._dense.activations(of_dense, self._pooled(maps))
        gradients = np.empty((len(inputs), self.layers.dimension))
        errors = score_errors(scores, labels, scale)
        pooled = self._dense.backward(of_dense, activations, errors, gradients[:, self._kernels :], to_inputs=True)
        self._backward(patches, maps, pooled, gradients)
        return gradients

    @property
    def _map_sides(self) -> tuple[int, int]:
        return self.image_shape[0] - KERNEL + 1, self.image_shape[1] - KERNEL + 1

    @cached_property
    def _pooled_sides(self) -> tuple[int, int]:
        return self._map_sides[0] // POOL, self._map_sides[1] // POOL

    @cached_property
    def _dense(self) -> DenseNetwork:
        return DenseNetwork((math.prod(self._pooled_sides) * self.channels, *self.widths))

    @cached_property
    def _kernels(self) -> int:
        """Number of parameters of the convolution."""
        return (KERNEL * KERNEL * self.image_shape[2] + 1) * self.channels

    def _patches(self, inputs: FloatArray) -> FloatArray:
        """Return the patches under the kernel.

        The patches have the shape (clients, examples * places, 9 channels of the input).
        """
        images = inputs.reshape(*inputs.shape[:2], *self.image_shape)
        windows = np.lib.stride_tricks.sliding_window_view(images, (KERNEL, KERNEL), axis=(2, 3))
        return np.moveaxis(windows, 4, -1).reshape(len(inputs), -1, KERNEL * KERNEL * self.image_shape[2])

    def _convolved(self, parameters: FloatArray, patches: FloatArray) -> FloatArray:
        """Return the units' outputs, shape (clients, examples, height, width, channels)."""
        lead, weights = parameters.shape[:-1], self._kernels - self.channels
        sums = times(patches, parameters[..., :weights].reshape(*lead, -1, self.channels))
        biases = parameters[..., weights : self._kernels]
        sums += biases[:, None] if lead else biases
        np.maximum(sums, 0.0, out=sums)
        return sums.reshape(len(patches), -1, *self._map_sides, self.channels)

    def _pooled(self, maps: FloatArray) -> FloatArray:
        """Return means over 2 by 2 units, flat; an odd last row is dropped.

        The means have the shape (clients, examples, inputs of the next layer).
        """
        high, wide = self._pooled_sides
        cut = maps[:, :, : POOL * high, : POOL * wide].reshape(*maps.shape[:2], high, POOL, wide, POOL, self.channels)
        return np.asarray(cut.mean(axis=(3, 5)).reshape(*maps.shape[:2], -1))

    def _backward(self, patches: FloatArray, maps: FloatArray, pooled: FloatArray, gradients: FloatArray) -> None:
        """Write the gradients of kernels and biases, from the derivatives by the pooled values."""
        high, wide = self._pooled_sides
        errors: FloatArray = np.zeros(maps.shape)
        spread = pooled.reshape(*maps.shape[:2], high, 1, wide, 1, self.channels) / POOL**2
        shape = (*maps.shape[:2], high, POOL, wide, POOL, self.channels)
        errors[:, :, : POOL * high, : POOL * wide] = np.broadcast_to(spread, shape).reshape(*maps.shape[:2], POOL * high, POOL * wide, -1)
        errors = np.where(maps > 0, errors, 0.0).reshape(len(maps), -1, self.channels)
        weights = self._kernels - self.channels
        outer_sums(patches, errors, gradients[:, :weights].reshape(len(gradients), -1, self.channels))
        errors.sum(axis=1, out=gradients[:, weights : self._kernels])
