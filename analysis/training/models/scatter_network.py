"""Multinomial regression on scattering features, which are normalised in groups: MVU's figure 4."""

import hashlib
import math
from collections.abc import Callable
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
# Numbers of features that a process keeps, of 4 bytes each: those of all of MNIST, or of a third of CIFAR-10.
MOST_KEPT = 3 * 10**8


@dataclass
class KeptFeatures:
    """Features of images that have been met: making those of one takes longer than everything else that is done with it.

    They are found by the image, whoever has it. Those of the first images are kept, up to `most` numbers, and the others made each time: of
    images that are drawn at random, no other choice is better. What is kept changes no result.
    """

    most: int
    numbers: int = 0
    known: dict[bytes, NDArray[np.float32]] = field(default_factory=dict)

    def of(self, image: FloatArray, shape: tuple[int, int, int], make: Callable[[FloatArray], FloatArray]) -> NDArray[np.float32]:
        """Return the features that `make` makes of an image, flat and of the given shape, to single precision."""
        key = hashlib.sha256(np.ascontiguousarray(image).data).digest() + repr(shape).encode()
        found = self.known.get(key)
        if found is None:
            # Each image alone: the last bits do not depend on the others of its batch.
            found = make(image[None])[0].astype(np.float32)
            if self.numbers + found.size <= self.most:
                self.known[key] = found
                self.numbers += found.size
        return found


# Shared by the runs of a grid that a process does one after the other.
_KEPT = KeptFeatures(MOST_KEPT)


@dataclass(frozen=True)
class ScatterNetwork:
    """A linear model of scattering features; these have no parameters, and single precision.

    Attributes
    ----------
    image_shape : tuple of int
        (height, width, channels) of an input; height and width multiples of 4, at least 8.
    classes : int
        Number of classes.
    """

    image_shape: tuple[int, int, int]
    classes: int

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
        """As the protocol says."""
        return self._dense.scores(parameters, self._kept(inputs))

    def gradients(self, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, *, scale: float = 1.0) -> FloatArray:
        """As the protocol says."""
        features = self._kept(inputs.reshape(-1, inputs.shape[-1])).reshape(*inputs.shape[:2], -1)
        return self._dense.gradients(parameters, features, labels, scale=scale)

    def _kept(self, inputs: FloatArray) -> FloatArray:
        """Return `features`, to single precision, of which those that have been asked for before are kept."""
        found = np.empty((len(inputs), self._dense.widths[0]))
        for row, image in zip(found, inputs, strict=True):
            row[:] = _KEPT.of(image, self.image_shape, self.features)
        return found

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
