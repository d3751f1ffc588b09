"""Labelled examples divided among clients, made or read on demand or split in memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from .splits import Split


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled training examples.

    Attributes
    ----------
    inputs : ndarray of float64, shape (n, features)
        Inputs, with an example in each row.
    labels : ndarray of int64, shape (n,)
        Classes from 0 to classes - 1. If examples have several classes, indicators 0 and 1 in the shape (n, classes). If examples have a
        class at each position, classes in the shape of the inputs, and -1 at positions without a label.
    """

    inputs: FloatArray
    labels: IntegerArray

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Cohort:
    """The examples of several clients, client after client.

    Attributes
    ----------
    examples : Examples
        Examples of all clients.
    sizes : ndarray of int64, shape (clients,)
        Number of examples of each client.
    """

    examples: Examples
    sizes: IntegerArray


@dataclass(frozen=True, eq=False)
class FederatedData:
    """A population of clients with examples, and test examples.

    Attributes
    ----------
    clients : int
        Number of clients.
    features : int
        Numbers in an input.
    classes : int
        Number of classes.
    test : Examples
        Test examples, which belong to no client.
    client_examples : callable
        Function of a client's number that returns the client's examples, the same at each call.
    image_shape : tuple of int or None
        (height, width, channels) if inputs are images, stored row by row.
    cohort_examples : callable or None
        Faster version of `cohort` for many clients, which expects checked numbers.
    """

    clients: int
    features: int
    classes: int
    test: Examples
    client_examples: Callable[[int], Examples]
    image_shape: tuple[int, int, int] | None = None
    cohort_examples: Callable[[IntegerArray], Cohort] | None = None

    def cohort(self, clients: ArrayLike) -> Cohort:
        """Return the examples of clients by their numbers, in order; numbers may repeat."""
        numbers = np.asarray(clients)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not numbers.size:
            raise ValueError(f"clients must be a list of whole numbers, got an array of {numbers.dtype} of shape {numbers.shape}")
        check_integer("client", int(numbers.min()), low=0, high=self.clients - 1)
        check_integer("client", int(numbers.max()), low=0, high=self.clients - 1)
        if self.cohort_examples is not None:
            return self.cohort_examples(numbers.astype(np.int64))
        parts = [self.client_examples(int(number)) for number in numbers]
        joined = Examples(np.concatenate([part.inputs for part in parts]), np.concatenate([part.labels for part in parts]))
        return Cohort(joined, np.array([len(part) for part in parts], dtype=np.int64))


def divided_data(
    inputs: NDArray[Any],
    labels: IntegerArray,
    test: Examples,
    split: Split,
    classes: int,
    image_shape: tuple[int, int, int] | None = None,
    *,
    unit: float = 1.0,
) -> FederatedData:
    """Return clients with a split's rows of `inputs`, divided by `unit`, and of `labels`.

    Inputs may be of any type of number, such as bytes with a unit of 255. Reading a client's inputs converts them to float64.
    """

    def rows(chosen: IntegerArray) -> Examples:
        return Examples(_as_floats(inputs.take(chosen, axis=0), unit), labels.take(chosen, axis=0))

    def cohort(clients: IntegerArray) -> Cohort:
        numbers, sizes = split.parts(clients)
        return Cohort(rows(numbers), sizes)

    return FederatedData(split.clients, inputs.shape[1], classes, test, lambda client: rows(split.part(client)), image_shape, cohort)


def first_images(inputs: NDArray[np.uint8], labels: IntegerArray, images: int | None) -> tuple[NDArray[np.uint8], IntegerArray]:
    """Return the first `images` images with their labels; None returns all."""
    if images is None:
        return inputs, labels
    images = check_integer("images", images, low=1, high=len(labels))
    return inputs[:images], labels[:images]


def _as_floats(values: NDArray[Any], unit: float) -> FloatArray:
    return np.asarray(values, dtype=float) / unit
