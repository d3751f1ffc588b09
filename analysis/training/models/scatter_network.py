"""Multinomial regression on scattering features, which are normalised in groups: MVU's figure 4."""

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....arguments import check_integer
from ....arrays import FloatArray, IntegerArray
from ....design.federated.model_layers import ModelLayers
from .dense_network import DenseNetwork
from .scattering import CHANNELS, STRIDE, scattered

# Tramer and Boneh 2021, *Differentially private learning needs better features*; MVU's public code has 27, too: 3 channels of 81 each, or
# 9 of the 243 of images in colour. The 24 of its text divide neither.
GROUPS = 27
# Added to a group's variance (Wu and He 2018, *Group normalization*).
SMALLEST_VARIANCE = 1e-5
# Numbers of features: a gigabyte, more than those of CIFAR-10's test.
MOST_KEPT = 2**28


@dataclass(frozen=True)
class ScatterNetwork:
    """A linear model of scattering features; these have no parameters.

    Attributes
    ----------
    image_shape : tuple of int
        (height, width, channels) of an input; height and width multiples of 4, at least 8.
    classes : int
        Number of classes.
    """

    image_shape: tuple[int, int, int]
    classes: int
    _known: dict[bytes, NDArray[np.float32]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the image's sides."""
        for side in self.image_shape[:2]:
            check_integer("side of an image", side, low=2 * STRIDE, high=2**12)
            if side % STRIDE:
                raise ValueError(f"side of an image must be a multiple of {STRIDE} for scatter-softmax, got {side}")

    @cached_property
    def layers(self) -> ModelLayers:
        """The linear layer alone."""
        return self._dense.layers

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Return zeros."""
        return self._dense.start(rng)

    def scores(self, parameters: FloatArray, inputs: FloatArray) -> FloatArray:
        """As the protocol says, to single precision: features are kept, as those of a test are asked for again and again."""
        key = hashlib.sha256(np.ascontiguousarray(inputs).data).digest()
        if key not in self._known:
            if sum(features.size for features in self._known.values()) > MOST_KEPT:
                self._known.clear()
            self._known[key] = self.features(inputs).astype(np.float32)
        return self._dense.scores(parameters, self._known[key].astype(float))

    def gradients(self, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray) -> FloatArray:
        """As the protocol says."""
        features = self.features(inputs.reshape(-1, inputs.shape[-1])).reshape(*inputs.shape[:2], -1)
        return self._dense.gradients(parameters, features, labels)

    def features(self, inputs: FloatArray) -> FloatArray:
        """Return features of images of shape (n, height * width * channels), those of each channel of the image after the other's."""
        planes = np.moveaxis(inputs.reshape(-1, *self.image_shape), 3, 1).reshape(-1, *self.image_shape[:2])
        groups = scattered(planes).reshape(len(inputs), GROUPS, -1)
        groups -= groups.mean(axis=2, keepdims=True)
        groups /= np.sqrt(np.mean(groups**2, axis=2, keepdims=True) + SMALLEST_VARIANCE)
        return groups.reshape(len(inputs), -1)

    @cached_property
    def _dense(self) -> DenseNetwork:
        height, width, channels = self.image_shape
        return DenseNetwork((math.prod((CHANNELS, channels, height // STRIDE, width // STRIDE)), self.classes))
