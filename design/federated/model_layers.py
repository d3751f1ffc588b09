"""Layers of published models: tensor shapes, exact parameter counts, places in a vector."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ...arguments import LARGEST_DIMENSION, check_choice, check_integer


@dataclass(frozen=True)
class Layer:
    """A layer of a model, with the shapes of its tensors.

    Attributes
    ----------
    name : str
        Name of the layer, such as ``"dense"``.
    shapes : tuple of tuple of int
        Shapes of its tensors, in their order in a vector: weights first, then biases.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        """Check the shapes."""
        check_integer("number of shapes", len(self.shapes), low=1, high=LARGEST_DIMENSION)
        for length in (length for shape in self.shapes for length in shape):
            check_integer("shapes", length, low=1, high=LARGEST_DIMENSION)

    @property
    def size(self) -> int:
        """Number of the layer's parameters."""
        return sum(math.prod(shape) for shape in self.shapes)


@dataclass(frozen=True)
class ModelLayers:
    """The layers of a model, in the order of their parameters in a vector.

    Examples
    --------
    >>> model = ModelLayers("small", (dense(4, 2), dense(2, 3)))
    >>> model.dimension, model.sizes, model.places
    (19, (10, 9), (slice(0, 10, None), slice(10, 19, None)))
    """

    name: str
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        """Refuse a model without layers."""
        check_integer("number of layers", len(self.layers), low=1, high=LARGEST_DIMENSION)

    # A training reads the sizes in every step, so they are cached.
    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of parameters of each layer."""
        return tuple(layer.size for layer in self.layers)

    @cached_property
    def dimension(self) -> int:
        """Number of the model's parameters."""
        return sum(self.sizes)

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Slice of each layer in a vector of all parameters."""
        return tuple(slice(end - size, end) for size, end in zip(self.sizes, accumulate(self.sizes), strict=True))


def dense(inputs: int, outputs: int, name: str = "dense") -> Layer:
    """Return a fully connected layer with biases."""
    return Layer(name, ((inputs, outputs), (outputs,)))


def convolution(side: int, inputs: int, outputs: int, name: str = "convolution") -> Layer:
    """Return a convolution with square kernels and biases."""
    return Layer(name, ((side, side, inputs, outputs), (outputs,)))


def lstm(inputs: int, units: int, name: str = "lstm") -> Layer:
    """Return a long short-term memory: four gates, fed by inputs and units, with a single bias."""
    return Layer(name, ((inputs, 4 * units), (units, 4 * units), (4 * units,)))


# F-EMNIST has images of 28 x 28 and 62 classes. Convolutions of 3 x 3 without padding and one pooling by 2 give sides of 28, 26, 13, 11.
FEMNIST_CNN = ModelLayers(
    "femnist-cnn", (convolution(3, 1, 32), convolution(3, 32, 64), dense(11 * 11 * 64, 128, "hidden"), dense(128, 62, "output"))
)
# Figure 12 of Chen, Choquette-Choo, Kairouz, Suresh 2022 states 784-200-200-62.
FEMNIST_MLP = ModelLayers("femnist-mlp", (dense(784, 200, "first"), dense(200, 200, "second"), dense(200, 62, "output")))
# The model has 10 000 words and four special tokens, an embedding of 96, 670 units, and a projection back to 96 (Reddi et al. 2021,
# *Adaptive federated optimization*).
STACKOVERFLOW_LSTM = ModelLayers(
    "stackoverflow-lstm",
    (Layer("embedding", ((10_004, 96),)), lstm(96, 670), dense(670, 96, "projection"), dense(96, 10_004, "output")),
)
MODELS = {model.name: model for model in (FEMNIST_CNN, FEMNIST_MLP, STACKOVERFLOW_LSTM)}


def model_layers(name: str) -> ModelLayers:
    """Return the layers of a published model by name, such as ``"femnist-cnn"``.

    The models are those of Chen, Choquette-Choo, Kairouz, Suresh 2022; Figures 11 to 13 state their layers and parameter counts.

    Examples
    --------
    >>> [(name, model_layers(name).dimension) for name in MODELS]
    [('femnist-cnn', 1018174), ('femnist-mlp', 209662), ('stackoverflow-lstm', 4050748)]
    """
    return MODELS[check_choice("model", name, MODELS)]
