"""Conversion of a model's arrays to the vector of their change by training, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray

Arrays = Mapping[str, NDArray[Any]]
"""Arrays of a model, by name."""


def coordinates(arrays: Arrays) -> int:
    """Return the number of a model's floating-point numbers, which are its trained parameters."""
    return sum(array.size for array in arrays.values() if array.dtype.kind == "f")


def update_vector(before: Arrays, after: Arrays) -> FloatArray:
    """Return training's change of all floating-point arrays, as a vector in `before`'s order."""
    shapes = {name: array.shape for name, array in before.items()}
    returned = {name: array.shape for name, array in after.items()}
    if shapes != returned:
        raise ValueError(f"arrays must have the names and shapes {shapes} that the server sent, got {returned}")
    parts = [after[name].astype(np.float64) - array for name, array in before.items() if array.dtype.kind == "f"]
    return np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0)


def updated_arrays(before: Arrays, update: FloatArray) -> dict[str, NDArray[Any]]:
    """Return a model's arrays moved by an update vector, with the same shapes and types.

    Arrays of whole numbers stay as they are.

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
