"""Randomly deformed images for any number of clients, made on demand from a few images.

Random numbers are a function of a seed, a purpose, the client and a count, so that any client's images can be made alone.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from ...arguments import check_choice, check_integer, check_real
from ...arrays import FloatArray, IntegerArray, WordArray
from ..random_streams import named_stream
from .deformation import NUMBERS, Deformation, deformed
from .federated_data import Cohort, Examples, FederatedData
from .splits import LARGEST_ALPHA, SMALLEST_ALPHA, SPLITS

# The constants are SplitMix64's step and mixing constants (Steele, Lea, Flood 2014, *Fast splittable pseudorandom number generators*).
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
MOST_CLIENTS, MOST_SAMPLES = 10**9, 10**4


def counted_uniforms(seed: int, purpose: str, clients: IntegerArray, count: int) -> FloatArray:
    """Return `count` uniform numbers in (0, 1) for each client, shape (clients, count).

    The numbers depend on the seed, the purpose, the client and the number's place. They serve data, not privacy.

    Examples
    --------
    >>> whole = counted_uniforms(0, "angles", np.arange(1000), 3)
    >>> bool((counted_uniforms(0, "angles", np.array([998]), 3) == whole[998]).all())
    True
    """
    key = named_stream(seed, purpose).integers(0, 2**64, dtype=np.uint64)
    starts = _mixed(_mixed(clients.astype(np.uint64) * STEP) ^ key)
    words = _mixed(starts[:, None] + np.arange(1, count + 1, dtype=np.uint64) * STEP)
    return ((words >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52


def _mixed(words: WordArray) -> WordArray:
    words = (words ^ (words >> np.uint64(30))) * FIRST
    words = (words ^ (words >> np.uint64(27))) * SECOND
    return words ^ (words >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class EndlessImages:
    """One-channel images that are deformed anew for each client; no deformed image occurs twice.

    Attributes
    ----------
    name : str
        Name of the data, from which the random numbers derive.
    images : ndarray, shape (n, height * width)
        Images of any type of number, in multiples of `unit`.
    labels : ndarray of int64, shape (n,)
        Classes from 0 to classes - 1.
    test : Examples
        Test images as published, without deformation.
    sides : tuple of int
        Height and width.
    classes : int
        Number of classes.
    deformation : Deformation
        Largest deformation of the images.
    unit : float
        Value in `images` that stands for 1.
    """

    name: str
    images: NDArray[np.generic]
    labels: IntegerArray
    test: Examples
    sides: tuple[int, int]
    classes: int
    deformation: Deformation
    unit: float = 1.0

    def divided(self, clients: int, seed: int, *, split: str = "iid", alpha: float = 1.0, samples: int = 1) -> FederatedData:
        """Return clients with `samples` deformed images each.

        The split ``"dirichlet"`` gives each client its own shares of the classes, of concentration `alpha`.
        """
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        check_choice("split", split, SPLITS)
        alpha = check_real("alpha", alpha, low=SMALLEST_ALPHA, high=LARGEST_ALPHA)
        count = check_integer("samples", samples, low=1, high=MOST_SAMPLES)
        by_class = _ByClass.of(self.labels, self.classes)

        def cohort(numbers: IntegerArray) -> Cohort:
            places = counted_uniforms(seed, f"{self.name}, images", numbers, count)
            if split == "iid":
                chosen = (places * len(self.labels)).astype(np.int64).ravel()
            else:
                # Shares of a symmetric Dirichlet distribution are gamma numbers over their sum.
                gammas = scipy.special.gammaincinv(alpha, counted_uniforms(seed, f"{self.name}, shares of classes", numbers, self.classes))
                # No client has images of an empty class.
                gammas *= by_class.sizes > 0
                aims = counted_uniforms(seed, f"{self.name}, classes", numbers, count)
                chosen = by_class.chosen(np.cumsum(gammas, axis=1), aims, places)
            # Each image of a client has its own number.
            own = (numbers[:, None] * count + np.arange(count)).ravel()
            uniforms = counted_uniforms(seed, f"{self.name}, deformations", own, NUMBERS)
            images = self.images[chosen].astype(float) / self.unit
            inputs = deformed(images.reshape(-1, *self.sides), uniforms, self.deformation).reshape(len(chosen), -1)
            return Cohort(Examples(inputs, self.labels[chosen]), np.full(len(numbers), count))

        def alone(client: int) -> Examples:
            return cohort(np.array([check_integer("client", client, low=0, high=clients - 1)])).examples

        return FederatedData(clients, self.images.shape[1], self.classes, self.test, alone, (*self.sides, 1), cohort)


@dataclass(frozen=True, eq=False)
class _ByClass:
    """Image numbers in the order of their classes, with the start and the size of each class."""

    order: IntegerArray
    starts: IntegerArray
    sizes: IntegerArray

    @classmethod
    def of(cls, labels: IntegerArray, classes: int) -> "_ByClass":
        sizes = np.bincount(labels, minlength=classes)
        return cls(np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes, sizes)

    def chosen(self, heights: NDArray[np.float64], aims: NDArray[np.float64], places: NDArray[np.float64]) -> IntegerArray:
        """Return an image for each aim and place, shape (clients * count,).

        `heights` are the cumulative sums of each client's shares of the classes.
        """
        last = len(self.sizes) - 1
        classes = np.minimum((aims[:, :, None] * heights[:, -1:, None] > heights[:, None, :]).sum(axis=2), last)
        return np.asarray(self.order[self.starts[classes] + (places * self.sizes[classes]).astype(np.int64)].ravel())
