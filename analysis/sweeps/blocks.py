"""Blocks ``[[mechanism]]`` of a grid's file: lists stand for all combinations, which are counted before they are made."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ...arguments import check_integer


def block_combinations(block: Mapping[str, Any], most: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the mechanism's name and the other values, by their keys, of each combination.

    Parameters
    ----------
    block : mapping
        The ``name`` and what else there is: one value or a list of values for each key.
    most : int
        How many combinations there may be.
    """
    if "name" not in block:
        raise ValueError("name is missing: a mechanism must have one")
    lists = {key: values_of(value) for key, value in block.items()}
    for key, values in lists.items():
        if not values:
            raise ValueError(f"{key} must have at least one value, got none")
    check_integer("number of combinations", math.prod(len(values) for values in lists.values()), low=1, high=most)
    names = lists.pop("name")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"name must be that of a mechanism, got {name!r}")
    return ((name, dict(zip(lists, chosen, strict=True))) for name in names for chosen in itertools.product(*lists.values()))


def values_of(value: Any) -> tuple[Any, ...]:
    """Return what stands at a key as its values: one, or those of a list."""
    return tuple(value) if isinstance(value, list) else (value,)
