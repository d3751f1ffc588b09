"""Checks of messages before servers count them or add them up."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import check_unmasked


def checked_messages(messages: ArrayLike, low: int, high: int, dimension: int | None = None) -> NDArray[Any]:
    """Return messages as an array if they are whole numbers from low to high.

    A message has one number per client, or one per coordinate if a dimension is given.

    Examples
    --------
    >>> checked_messages([[3, 0], [1, 2]], 0, 3, dimension=2).tolist()
    [[3, 0], [1, 2]]
    """
    check_unmasked("messages", messages)
    array = np.asarray(messages)
    of_each = () if dimension is None else (dimension,)
    if array.ndim != 1 + len(of_each) or array.shape[1:] != of_each:
        raise ValueError(f"messages must have the shape (clients,{'' if dimension is None else f' {dimension}'}), got {array.shape}")
    if array.size and not (np.issubdtype(array.dtype, np.integer) and array.min() >= low and array.max() <= high):
        raise ValueError(f"messages must be whole numbers from {low} to {high}, got {array.min()} to {array.max()}")
    return array
