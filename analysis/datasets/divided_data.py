"""Examples in memory, dealt out to clients by a split."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray
from .federated_data import Cohort, Examples, FederatedData
from .splits import Split


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
    """Return clients who have the rows of `inputs`, over `unit`, and `labels` that a split gives them.

    Inputs may be of any type of number, such as bytes with a unit of 255: they become float64 when a client's are asked for.
    """

    def rows(chosen: IntegerArray) -> Examples:
        return Examples(_as_floats(inputs.take(chosen, axis=0), unit), labels.take(chosen, axis=0))

    def cohort(clients: IntegerArray) -> Cohort:
        numbers, sizes = split.parts(clients)
        return Cohort(rows(numbers), sizes)

    return FederatedData(split.clients, inputs.shape[1], classes, test, lambda client: rows(split.part(client)), image_shape, cohort)


def first_images(inputs: NDArray[np.uint8], labels: IntegerArray, images: int | None) -> tuple[NDArray[np.uint8], IntegerArray]:
    """Return as many of the first images as are asked for, and their labels; None for all."""
    if images is None:
        return inputs, labels
    images = check_integer("images", images, low=1, high=len(labels))
    return inputs[:images], labels[:images]


def _as_floats(values: NDArray[Any], unit: float) -> FloatArray:
    return np.asarray(values, dtype=float) / unit
