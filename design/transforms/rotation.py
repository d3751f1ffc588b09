"""Random rotations with a public seed, after which no coordinate of a vector is large.

Rotations keep the length and remove peaks. `RandomisedHadamard` is the rotation of Agarwal et al. 2018 (*cpSGD*) and pads to a power of
two; `RandomisedFourier` is the rotation of Kairouz, Liu, Steinke 2021 (*The Distributed Discrete Gaussian Mechanism for Federated Learning
with Secure Aggregation*), pads by at most one coordinate.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_choice, check_integer, check_real
from ...arrays import FloatArray, WordArray
from ...solvers.numerics.walsh_hadamard import padded_dimension, walsh_hadamard
from ..contracts.norm_ball import NormBall
from .dithering import finite_values
from .vector_dithering import BLOCK, row_blocks

LARGEST_SEED = 2**128 - 1


class Rotation(Protocol):
    """A public linear map of vectors that keeps lengths, and its inverse.

    The rotation maps `dimension` coordinates into `padded_dimension`.
    """

    @property
    def dimension(self) -> int:
        """Number of coordinates of the vectors."""

    @property
    def padded_dimension(self) -> int:
        """Number of coordinates of the rotated vectors."""

    def forward(self, vectors: ArrayLike) -> FloatArray:
        """Rotate vectors of shape (..., dimension) into the shape (..., padded_dimension)."""

    def forward_within(self, padded: FloatArray, out: FloatArray) -> FloatArray:
        """Rotate finite vectors, and overwrite the padded rows that hold them.

        Vectors are the first coordinates of rows of `padded_dimension`. The method returns the result. A result that needs another array
        takes `out`, of the same shape, which saves the time of a new array.
        """

    def inverse(self, vectors: ArrayLike) -> FloatArray:
        """Rotate vectors of shape (..., padded_dimension) back, without the padding.

        The shape of the result is (..., dimension). The rotation of the result is, up to floating-point rounding, the argument's projection
        on all rotated vectors.
        """


def rotation_of(kind: str, dimension: int, seed: int) -> Rotation:
    """Return a rotation of one of the kinds in `ROTATIONS`."""
    return _KINDS[check_choice("rotation", kind, ROTATIONS)](dimension, seed)


def rotated_dimension(kind: str, dimension: int) -> int:
    """Return the number of coordinates of rotated vectors.

    Examples
    --------
    >>> rotated_dimension("hadamard", 1_018_174), rotated_dimension("fourier", 1_018_174)
    (1048576, 1018174)
    """
    return rotation_of(kind, dimension, 0).padded_dimension


@dataclass(frozen=True)
class RandomisedHadamard:
    """Random signs and the normalised Walsh-Hadamard transform of the padded vector.

    Vectors are padded with zeros, and the transform is divided by the square root of the padded dimension.

    Attributes
    ----------
    dimension : int
        Number of coordinates of the vectors, from 1 to 2**31.
    seed : int
        Public seed, from 0 to 2**128 - 1: clients and server use the same seed. The signs are bits of the counter-based generator Philox,
        whose words numpy promises not to change.

    Examples
    --------
    >>> rotation = RandomisedHadamard(dimension=3, seed=1)
    >>> np.abs(rotation.forward([0.0, 2.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> rotation.inverse(rotation.forward([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    """

    dimension: int
    seed: int

    def __post_init__(self) -> None:
        """Check the ranges of the fields."""
        _check_fields(self.dimension, self.seed)

    @cached_property
    def padded_dimension(self) -> int:
        """Smallest power of two that is not below the dimension."""
        return padded_dimension(self.dimension)

    def forward(self, vectors: ArrayLike) -> FloatArray:
        """Rotate finite vectors.

        The call takes at most twice the memory of the result beside the argument, and 8 bytes per coordinate for the signs.
        """
        array = _check_vectors(vectors, self.dimension)
        padded = np.empty((*array.shape[:-1], self.padded_dimension))
        padded[..., : self.dimension] = array
        return self.forward_within(padded, np.empty_like(padded))

    def forward_within(self, padded: FloatArray, out: FloatArray) -> FloatArray:
        """Rotate finite vectors in place."""
        padded[..., self.dimension :] = 0.0
        padded[..., : self.dimension] *= self._scaled_signs
        return walsh_hadamard(padded, out, overwrite=True)

    def inverse(self, vectors: ArrayLike) -> FloatArray:
        """Rotate finite vectors back."""
        transformed = walsh_hadamard(_check_vectors(vectors, self.padded_dimension))
        return transformed[..., : self.dimension] * self._scaled_signs

    def sign_words(self) -> tuple[int, ...]:
        """Return the words whose bits, the least significant first, are 1 for the coordinates of sign -1."""
        return tuple(_public_words(self.seed, -(-self.dimension // 64)).tolist())

    @cached_property
    def _scaled_signs(self) -> FloatArray:
        words = np.array(self.sign_words(), dtype="<u8")
        bits = np.unpackbits(words.view(np.uint8), count=self.dimension, bitorder="little")
        scale = 1 / math.sqrt(self.padded_dimension)
        return np.where(bits, -scale, scale)


@dataclass(frozen=True)
class RandomisedFourier:
    """Random phases of paired coordinates, and the unitary discrete Fourier transform.

    A vector of d coordinates becomes d / 2 complex numbers, each multiplied by an independent phase that is uniform on the circle; real and
    imaginary parts of the transform are the rotated coordinates. A zero pads an odd dimension.

    Attributes
    ----------
    dimension : int
        Number of coordinates of the vectors, from 1 to 2**31.
    seed : int
        Public seed, from 0 to 2**128 - 1; clients and server use the same seed.

    Examples
    --------
    >>> rotation = RandomisedFourier(dimension=3, seed=1)
    >>> rotated = rotation.forward([1.0, 2.0, 3.0])
    >>> rotated.shape, rotation.inverse(rotated).round(12).tolist()
    ((4,), [1.0, 2.0, 3.0])
    """

    dimension: int
    seed: int

    def __post_init__(self) -> None:
        """Check the ranges of the fields."""
        _check_fields(self.dimension, self.seed)

    @property
    def padded_dimension(self) -> int:
        """Smallest even number that is not below the dimension."""
        return self.dimension + self.dimension % 2

    def forward(self, vectors: ArrayLike) -> FloatArray:
        """Rotate finite vectors.

        The call takes at most twice the memory of the result beside the argument, and 8 bytes per coordinate for the phases; more for
        lengths with large prime factors.
        """
        array = _check_vectors(vectors, self.dimension)
        padded = np.empty((*array.shape[:-1], self.padded_dimension))
        padded[..., : self.dimension] = array
        return self.forward_within(padded, padded)

    def forward_within(self, padded: FloatArray, out: FloatArray) -> FloatArray:  # noqa: ARG002
        """Rotate finite vectors in place."""
        padded[..., self.dimension :] = 0.0
        numbers = padded.view(np.complex128)
        numbers *= self._phases
        transformed: NDArray[np.complex128] = scipy.fft.fft(numbers, norm="ortho", overwrite_x=True)
        return transformed.view(np.float64)

    def inverse(self, vectors: ArrayLike) -> FloatArray:
        """Rotate finite vectors back."""
        array = np.ascontiguousarray(_check_vectors(vectors, self.padded_dimension))
        numbers: NDArray[np.complex128] = scipy.fft.ifft(array.view(np.complex128), norm="ortho")
        numbers *= self._phases.conj()
        return np.ascontiguousarray(numbers.view(np.float64)[..., : self.dimension])

    @cached_property
    def _phases(self) -> NDArray[np.complex128]:
        uniforms = (_public_words(self.seed, self.padded_dimension // 2) >> np.uint64(11)) * 2.0**-53
        phases: NDArray[np.complex128] = np.exp(2j * np.pi * uniforms)
        return phases


def rotated_blocks(vectors: FloatArray, ball: NormBall, rotation: Rotation) -> Iterator[FloatArray]:
    """Yield checked vectors clipped and rotated, a few at a time, in memory that the next vectors overwrite."""
    padded = rotation.padded_dimension
    room = np.empty((2, min(len(vectors), max(1, BLOCK // padded)), padded))
    for rows in row_blocks(len(vectors), padded):
        part = vectors[rows]
        clipped, rotated = room[:, : len(part)]
        ball.clip_checked(part, clipped[:, : ball.dimension])
        yield rotation.forward_within(clipped, rotated)


def flattened_bound(padded_dimension: int, norm: float, failure_probability: float) -> float:
    """Return a probable upper bound on every coordinate of a rotated vector.

    The bound holds with high probability over the seed. A rotated coordinate is a sum of independent terms of mean zero, so that for every
    s the mean of ``exp(s z)`` is at most ``exp(s**2 norm**2 / (2 D))``, D the padded dimension: each term is ``+- x_l / sqrt(D)`` for
    random signs, where ``cosh(t) <= exp(t**2 / 2)``; and ``r_j sqrt(2 / D)`` times the cosine of a uniform angle for random phases, with
    r_j the length of the j-th pair, where the mean of ``exp(t cos)`` is ``I_0(t) <= exp(t**2 / 4)``. Chernoff's bound and a union over D
    coordinates and both signs give ``sqrt(2 ln(2 D / q) / D)`` times the norm, for the failure probability q. The bound is never above the
    norm. For n vectors, divide q by n.

    Examples
    --------
    >>> round(flattened_bound(2**16, norm=1.0, failure_probability=0.01), 4)
    0.0224
    """
    padded = check_integer("padded_dimension", padded_dimension, low=1, high=2 * LARGEST_DIMENSION)
    norm = check_real("norm", norm, low=0.0, high=1e100)
    failure_probability = check_real("failure_probability", failure_probability, low=1e-300, high=1.0)
    spread = math.sqrt(2 * math.log(2 * padded / failure_probability) / padded)
    return norm * min(1.0, spread) * (1 + 1e-12)


def _check_fields(dimension: int, seed: int) -> None:
    check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    check_integer("seed", seed, low=0, high=LARGEST_SEED)


def _check_vectors(vectors: ArrayLike, dimension: int) -> FloatArray:
    array = finite_values("vectors", vectors)
    if array.ndim == 0 or array.shape[-1] != dimension:
        raise ValueError(f"vectors must have the shape (..., {dimension}), got {array.shape}")
    return array


def _public_words(seed: int, count: int) -> WordArray:
    return np.random.Philox(key=seed).random_raw(count)


_KINDS: Mapping[str, Callable[[int, int], Rotation]] = MappingProxyType({"hadamard": RandomisedHadamard, "fourier": RandomisedFourier})
ROTATIONS = tuple(_KINDS)
