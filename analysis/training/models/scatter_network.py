"""Multinomial regression on group-normalised scattering transforms (MVU's figure 4).

The features are fixed wavelets and moduli, computed by products in Fourier space (Bruna and Mallat 2013, *Invariant scattering convolution
networks*), with two scales, eight angles and depth two. Wavelets, padding and the order of channels are those of Kymatio (Andreux et al.
2020), which Tramer and Boneh 2021 and MVU's figure 4 use.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ....arguments import check_integer
from ....arrays import FloatArray, IntegerArray
from ....design.federated.model_layers import ModelLayers
from .relu_networks import DenseNetwork

ANGLES = 8
# Number of channels of an image's plane: the smoothed plane, the moduli of two scales, and the coarser moduli of the finer moduli.
CHANNELS = 1 + 2 * ANGLES + ANGLES**2
# Number of pixels between two places of a feature, and number of mirrored pixels beyond each edge.
STRIDE, MARGIN = 4, 4
# Width of the finest wavelet, its frequency, and the ratio by which it is narrower along its waves.
WIDTH, FREQUENCY, SLANT = 0.8, 0.75 * math.pi, 4 / ANGLES
# Multiples of 2 pi, in both directions, at which the narrowest Gaussian's transform is not negligible.
ALIASES = 3
# Number of planes per batch of a transform.
PLANES = 8
# Number of groups, from Tramer and Boneh 2021, *Differentially private learning needs better features*, and from MVU's public code. Groups
# have 3 of 81 channels, or 9 of the 243 channels of images in colour; the 24 groups of MVU's text divide neither number.
GROUPS = 27
# Constant that is added to a group's variance (Wu and He 2018, *Group normalization*).
SMALLEST_VARIANCE = 1e-5
# Largest number of values of features, of 4 bytes each, that a process keeps: all of MNIST, or a third of CIFAR-10.
MOST_KEPT = 3 * 10**8


def scattered(planes: FloatArray) -> FloatArray:
    """Return features of planes, shape (n, height, width).

    Sides are multiples of 4, at least 8. The features are of shape (n, 81, height / 4, width / 4). They are the smoothed plane, the moduli
    of the fine and the coarse scale at eight angles each, and, for each angle of the fine scale, the coarse moduli of its modulus.
    """
    features = np.empty((len(planes), CHANNELS, planes.shape[1] // STRIDE, planes.shape[2] // STRIDE))
    for start in range(0, len(planes), PLANES):
        features[start : start + PLANES] = _scattered(planes[start : start + PLANES])
    return features


def _scattered(planes: FloatArray) -> FloatArray:
    padded = np.pad(planes, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)), mode="reflect")
    sides = padded.shape[1], padded.shape[2]
    fine, coarse = (_wavelets(scale, *sides) for scale in (0, 1))
    spectra = fft.fft2(padded)[:, None]
    of_fine = np.abs(fft.ifft2(spectra * fine))
    of_coarse = np.abs(fft.ifft2(_every_second(spectra * coarse)))
    of_both = np.abs(fft.ifft2(_every_second(fft.fft2(of_fine)[:, :, None] * coarse)))
    moduli = (padded[:, None], of_fine, of_coarse, of_both.reshape(len(planes), ANGLES**2, *of_both.shape[3:]))
    return np.concatenate([_smoothed(modulus, sides) for modulus in moduli], axis=1)


def _smoothed(moduli: FloatArray, sides: tuple[int, int]) -> FloatArray:
    """Return every fourth pixel of smoothed planes, without mirrored pixels.

    The argument holds either all pixels of the planes or every second pixel.
    """
    step = sides[0] // moduli.shape[-2]
    return np.asarray(_weights(sides[0], step) @ moduli @ _weights(sides[1], step).T)


@cache
def _weights(side: int, step: int) -> FloatArray:
    """Return the matrix that smooths along a side by a Gaussian, as wide as the coarse wavelets.

    The matrix maps every `step`-th pixel to every fourth pixel.
    """
    spectrum = _bell(2 * WIDTH * _frequencies(side)).sum(axis=1)
    # Subsampling to every second pixel keeps the lower half of the frequencies.
    cycles = np.fft.fftfreq(side) * step
    kernel = np.fft.ifft(np.where((cycles >= -0.5) & (cycles < 0.5), spectrum, 0.0)).real * step
    return np.asarray(kernel[np.subtract.outer(np.arange(MARGIN, side - MARGIN, STRIDE), np.arange(0, side, step)) % side])


@cache
def _wavelets(scale: int, height: int, width: int) -> FloatArray:
    """Return the Morlet wavelets of a scale in Fourier space, shape (angles, height, width).

    The transforms of the wavelets are real.
    """
    filters = []
    for number in range(ANGLES):
        angle = (ANGLES // 2 - 1 - number) * math.pi / ANGLES
        waves, envelope = (_gabor(WIDTH * 2**scale, angle, frequency, height, width) for frequency in (FREQUENCY / 2**scale, 0.0))
        # The mean of a wavelet is zero.
        filters.append(waves - envelope * (waves[0, 0] / envelope[0, 0]))
    return np.array(filters)


def _gabor(deviation: float, angle: float, frequency: float, height: int, width: int) -> FloatArray:
    """Return the transform of waves under a Gaussian, `SLANT` times as narrow along the waves."""
    down = _frequencies(height)[:, None, :, None] - frequency * math.cos(angle)
    right = _frequencies(width)[:, None] - frequency * math.sin(angle)
    along, across = math.cos(angle) * down + math.sin(angle) * right, math.cos(angle) * right - math.sin(angle) * down
    return np.asarray((_bell(deviation * along) * _bell(deviation / SLANT * across)).sum(axis=(2, 3)))


def _frequencies(side: int) -> FloatArray:
    """Return the frequencies of a side, and their aliases.

    Samples of a function have the sum of its transform over the aliases.
    """
    return np.asarray(2 * math.pi * np.add.outer(np.fft.fftfreq(side), np.arange(-ALIASES, ALIASES + 1)))


def _bell(values: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-(values**2) / 2))


def _every_second(spectra: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the spectra of every second pixel along each side."""
    height, width = spectra.shape[-2] // 2, spectra.shape[-1] // 2
    rows = spectra[..., :height, :] + spectra[..., height:, :]
    return np.asarray((rows[..., :width] + rows[..., width:]) / 4)


@dataclass
class KeptFeatures:
    """A cache of images' features, whose computation takes longer than all other steps together.

    The image is the key, for any client. The cache keeps the features of the first images, up to `most` numbers; other features are
    computed each time. For images drawn at random, no other choice is better. The cache changes no result.
    """

    most: int
    numbers: int = 0
    kept: dict[bytes, NDArray[np.float32]] = field(default_factory=dict)

    def of(self, image: FloatArray, shape: tuple[int, int, int], make: Callable[[FloatArray], FloatArray]) -> NDArray[np.float32]:
        """Return the features of an image by `make`, flat, in single precision, from the cache."""
        key = hashlib.sha256(np.ascontiguousarray(image).data).digest() + repr(shape).encode()
        features = self.kept.get(key)
        if features is None:
            # Each image is transformed alone, so that the last bits do not depend on a batch.
            features = make(image[None])[0].astype(np.float32)
            if self.numbers + features.size <= self.most:
                self.kept[key] = features
                self.numbers += features.size
        return features


# Runs of a grid in the same process share this cache.
_KEPT = KeptFeatures(MOST_KEPT)


@dataclass(frozen=True)
class ScatterNetwork:
    """A linear model of scattering features, which have no parameters and single precision.

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
        """Return the starting parameters, which are zeros."""
        return self._dense.start(rng)

    def scores(self, parameters: FloatArray, inputs: FloatArray) -> FloatArray:
        """Return scores by the protocol of `Network`."""
        return self._dense.scores(parameters, self._kept(inputs))

    def gradients(self, parameters: FloatArray, inputs: FloatArray, labels: IntegerArray, *, scale: float = 1.0) -> FloatArray:
        """Return gradients by the protocol of `Network`."""
        features = self._kept(inputs.reshape(-1, inputs.shape[-1])).reshape(*inputs.shape[:2], -1)
        return self._dense.gradients(parameters, features, labels, scale=scale)

    def _kept(self, inputs: FloatArray) -> FloatArray:
        """Return `features` in single precision, from the cache if possible."""
        rows = np.empty((len(inputs), self._dense.widths[0]))
        for row, image in zip(rows, inputs, strict=True):
            row[:] = _KEPT.of(image, self.image_shape, self.features)
        return rows

    def features(self, inputs: FloatArray) -> FloatArray:
        """Return features of images of shape (n, height * width * channels).

        The channels' features follow each other.
        """
        planes = np.moveaxis(inputs.reshape(-1, *self.image_shape), 3, 1).reshape(-1, *self.image_shape[:2])
        groups = scattered(planes).reshape(len(inputs), GROUPS, -1)
        groups -= groups.mean(axis=2, keepdims=True)
        groups /= np.sqrt(np.mean(groups**2, axis=2, keepdims=True) + SMALLEST_VARIANCE)
        return groups.reshape(len(inputs), -1)

    @cached_property
    def _dense(self) -> DenseNetwork:
        height, width, channels = self.image_shape
        return DenseNetwork((math.prod((CHANNELS, channels, height // STRIDE, width // STRIDE)), self.classes))
