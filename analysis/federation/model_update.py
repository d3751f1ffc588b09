"""A model's arrays as one vector, and back: what clients clip and encode is the difference that their training made."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray

Arrays = Mapping[str, NDArray[Any]]
"""A model's arrays, by name."""


def coordinates(arrays: Arrays) -> int:
    """Return how many numbers a model has: those of arrays of floating point. Counters and the like are not trained."""
    return sum(array.size for array in arrays.values() if array.dtype.kind == "f")


def update_vector(before: Arrays, after: Arrays) -> FloatArray:
    """Return what training changed, one float64 vector of all arrays of floating point in the order of `before`."""
    shapes = {name: array.shape for name, array in before.items()}
    found = {name: array.shape for name, array in after.items()}
    if shapes != found:
        raise ValueError(f"arrays must have the names and shapes {shapes} that the server sent, got {found}")
    parts = [after[name].astype(np.float64) - array for name, array in before.items() if array.dtype.kind == "f"]
    return np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0)


def updated_arrays(before: Arrays, update: FloatArray) -> dict[str, NDArray[Any]]:
    """Return the arrays moved by a vector, each of its own shape and type; those of whole numbers stay.

    Examples
    --------
    >>> before = {"weights": np.zeros((2, 2), np.float32), "steps": np.array(7)}
    >>> updated_arrays(before, np.arange(4.0))["weights"].tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    if update.shape != (coordinates(before),):
        raise ValueError(f"update must have {coordinates(before)} coordinates, got the shape {update.shape}")
    moved, start = dict(before), 0
    for name, array in before.items():
        if array.dtype.kind == "f":
            moved[name] = (array + update[start : start + array.size].reshape(array.shape)).astype(array.dtype)
            start += array.size
    return moved
