"""Thresholding of noisy sums of sketches, with a memory, and of clients' vectors.

`threshold_with_memory` follows appendix A.2 of Chen, Choquette-Choo, Kairouz, Suresh 2022 (*The Fundamental Price of Secure Aggregation in
Differentially Private Federated Learning*): the server zeroes small coordinates of the secure sum, and adds them to the next round's sum.
The sum is private before the thresholding, so that guarantees stay the same.

`keep_largest` is not in that paper: it zeroes coordinates of each client's vector before the sketch, without a memory. Its result is not
private. No layer of a client's vector gets longer, so that the clip norm holds as before. The error adds to that of a sketch and its noise
by the triangle inequality: the error of the mean of all clients is at most the mean of the clients' errors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import LARGEST_DIMENSION, check_integer, check_real
from ...arrays import FloatArray, IntegerArray
from ...solvers.numerics.rounding import SLACK
from .dithering import finite_values

MOST_THRESHOLD = 100.0


@dataclass(frozen=True, eq=False)
class RememberedSum:
    """A sum without its small coordinates, and those coordinates for the next round.

    Attributes
    ----------
    kept : ndarray of float64
        The sum and the memory before it, with small coordinates zeroed.
    memory : ndarray of float64
        The coordinates that were zeroed, and zeros elsewhere.
    """

    kept: FloatArray
    memory: FloatArray


def threshold_with_memory(values: ArrayLike, memory: ArrayLike, threshold: float) -> RememberedSum:
    """Add the memory to a sum, zero small coordinates, and remember them (error feedback).

    No part of a sum is lost, as the kept sums of all rounds and the last memory add up to the sum of all values. The sum of the next round
    must be of the same sketch.

    Parameters
    ----------
    values, memory : array_like of shape (coordinates,)
        A round's sum, such as the noisy mean of sketches, and the memory of the round before; zeros at first.
    threshold : float
        Threshold in root mean squares of values and memory together: from 0, which keeps all coordinates, to 100.

    Examples
    --------
    >>> first = threshold_with_memory([3.0, 1.0, -1.0, 0.0], [0.0, 0.0, 0.0, 0.0], threshold=1.0)
    >>> first.kept.tolist(), first.memory.tolist()
    ([3.0, 0.0, 0.0, 0.0], [0.0, 1.0, -1.0, 0.0])
    >>> threshold_with_memory([0.0, 1.0, 0.5, 0.0], first.memory, threshold=1.0).kept.tolist()
    [0.0, 2.0, 0.0, 0.0]
    """
    array, before = finite_values("values", values), finite_values("memory", memory)
    if array.ndim != 1 or before.shape != array.shape:
        raise ValueError(f"memory must have the shape of the values, (coordinates,), got {before.shape} and {array.shape}")
    whole = array + before
    limit = check_real("threshold", threshold, low=0.0, high=MOST_THRESHOLD) * math.sqrt(float(np.mean(whole**2))) if whole.size else 0.0
    small = np.abs(whole) < limit
    return RememberedSum(np.where(small, 0.0, whole), np.where(small, whole, 0.0))


@dataclass(frozen=True, eq=False)
class ThresholdedVectors:
    """Clients' vectors after thresholding, and the norms of the zeroed parts.

    Attributes
    ----------
    vectors : ndarray of float64, shape (clients, dimension)
        Vectors with zeros in place of small coordinates.
    layer_errors : ndarray of float64, shape (clients, layers)
        L2 norm of the zeroed part of each layer, exact up to rounding.
    kept : ndarray of int64, shape (clients, layers)
        Number of coordinates of each layer that are not zero.
    """

    vectors: FloatArray
    layer_errors: FloatArray
    kept: IntegerArray

    @property
    def errors(self) -> FloatArray:
        """L2 norm of the zeroed part of each client's vector, shape (clients,)."""
        return np.asarray(np.linalg.norm(self.layer_errors, axis=1))

    @property
    def mean_error_bound(self) -> float:
        """Upper bound on the L2 norm of the zeroed part of all vectors' mean.

        The bound is the mean of the vectors' errors.
        """
        return float(self.errors.mean()) * (1 + SLACK)


def keep_largest(vectors: ArrayLike, sizes: Sequence[int], share: float) -> ThresholdedVectors:
    """Keep each client's largest coordinates of each layer, and zero the others.

    Coordinates are compared by absolute value.

    Parameters
    ----------
    vectors : array_like of shape (clients, dimension)
        Vectors of at least one client, layer after layer.
    sizes : sequence of int
        Number of coordinates of each layer, such as `ModelLayers.sizes`; they sum to the dimension.
    share : float
        Share of each layer's coordinates that is kept, rounded up: from 0 to 1. A layer's error is at most ``sqrt(1 - share)`` times its
        norm, with equality for equal coordinates.

    Examples
    --------
    >>> keep_largest([[0.1, -3.0, 0.2, 0.05]], sizes=(2, 2), share=0.5).vectors.tolist()
    [[0.0, -3.0, 0.2, 0.0]]
    """
    array = _vectors(vectors, sizes)
    share = check_real("share", share, low=0.0, high=1.0)
    left = np.zeros_like(array)
    for start, size in zip(_starts(sizes), sizes, strict=True):
        count = math.ceil(share * size)
        if count == 0:
            continue
        layer = array[:, start : start + size]
        places = np.argpartition(-np.abs(layer), count - 1, axis=1)[:, :count]
        np.put_along_axis(left[:, start : start + size], places, np.take_along_axis(layer, places, axis=1), axis=1)
    return _split(array, left, sizes)


def _vectors(vectors: ArrayLike, sizes: Sequence[int]) -> FloatArray:
    array = finite_values("vectors", vectors)
    dimension = _dimension(sizes)
    if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] != dimension:
        raise ValueError(f"vectors must have the shape (clients, {dimension}), the sum of the sizes, with a client, got {array.shape}")
    return array


def _dimension(sizes: Sequence[int]) -> int:
    check_integer("number of sizes", len(sizes), low=1, high=LARGEST_DIMENSION)
    return sum(check_integer("sizes", size, low=1, high=LARGEST_DIMENSION) for size in sizes)


def _starts(sizes: Sequence[int]) -> list[int]:
    return [0, *accumulate(sizes)][:-1]


def _split(array: FloatArray, left: FloatArray, sizes: Sequence[int]) -> ThresholdedVectors:
    starts = _starts(sizes)
    taken = np.sqrt(np.add.reduceat((array - left) ** 2, starts, axis=1))
    return ThresholdedVectors(left, taken, np.add.reduceat(left != 0, starts, axis=1, dtype=np.int64))
