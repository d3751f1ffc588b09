"""Labelled examples divided among clients, each client's made or read when it is asked for."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and what they show.

    Attributes
    ----------
    inputs : ndarray of float64, shape (n, features)
        One example a row.
    labels : ndarray of int64, shape (n,)
        From 0 to classes - 1. Where an example has several classes, shape (n, classes), of 0 and 1; where it has a class at each position,
        the shape of the inputs, and -1 where nothing is asked.
    """

    inputs: FloatArray
    labels: IntegerArray

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Cohort:
    """The examples of several clients, one client's after the other's.

    Attributes
    ----------
    examples : Examples
        Of all of them.
    sizes : ndarray of int64, shape (clients,)
        Number of each client's.
    """

    examples: Examples
    sizes: IntegerArray


@dataclass(frozen=True, eq=False)
class FederatedData:
    """A population of clients with examples, and examples to test on.

    Attributes
    ----------
    clients : int
        Number of clients.
    features : int
        Numbers of an input.
    classes : int
        Number of classes.
    test : Examples
        No client has these.
    client_examples : callable
        Returns a client's examples, from its number; the same ones each time.
    image_shape : tuple of int or None
        (height, width, channels), if inputs are images, row by row.
    cohort_examples : callable or None
        Does what `cohort` promises faster than one client at a time, for numbers that are checked.
    """

    clients: int
    features: int
    classes: int
    test: Examples
    client_examples: Callable[[int], Examples]
    image_shape: tuple[int, int, int] | None = None
    cohort_examples: Callable[[IntegerArray], Cohort] | None = None

    def cohort(self, clients: ArrayLike) -> Cohort:
        """Return the examples of clients, by their numbers, which may repeat: those of `client_examples`, in this order."""
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
