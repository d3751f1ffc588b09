"""TOML specifications of sweeps, trainings, grids and compositions: keys, lists, blocks and combinations."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, TypeVar, overload

from ...arguments import check_integer
from ...design.contracts.guarantee import ADJACENCIES

T = TypeVar("T")


def check_keys(where: str, document: Collection[str], keys: Collection[str], required: Collection[str] = ()) -> None:
    """Raise ValueError if a document has a key not in `keys`, or lacks a `required` key.

    `where` names the document in the message.
    """
    for key in document:
        if key not in keys:
            raise ValueError(f"{key} is not a key of {where}: it has {', '.join(keys)}")
    for key in required:
        if key not in document:
            needs = f"state one, {' or '.join(ADJACENCIES)}" if key == "adjacency" else f"have {', '.join(required)}"
            raise ValueError(f"{key} is missing: {where} must {needs}")


def listed(value: Any) -> tuple[Any, ...]:
    """Return the values at a key: the elements of a list, or the single value."""
    return tuple(value) if isinstance(value, list) else (value,)


def listed_intervals(value: Any) -> tuple[tuple[Any, Any], ...]:
    """Return the intervals at a key, which has a pair ``[low, high]`` or a list of pairs."""
    pairs = value if isinstance(value, list) and all(isinstance(pair, list) for pair in value) else [value]
    check_some("interval", pairs)
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"interval must be [low, high], or a list of such, got {pair!r}")
    return tuple((low, high) for low, high in pairs)


def check_some(name: str, values: Collection[Any]) -> None:
    """Raise ValueError if a key has no value."""
    if not values:
        raise ValueError(f"{name} must have at least one value, got none")


def check_distinct(name: str, values: Collection[Any], text: Callable[[Any], str] = str) -> None:
    """Raise ValueError if a key has the same value twice; `text` writes a value in the message."""
    for value, count in Counter(values).items():
        if count > 1:
            raise ValueError(f"{name} must not have the same value twice, got {text(value)} twice")


def read_blocks(
    blocks: Any,
    read: Callable[[str, dict[str, Any]], T],
    most: int,
    common: Mapping[str, Any] = MappingProxyType({}),
    *,
    block_name: str = "mechanism",
) -> list[T]:
    """Return the results of `read` for every combination of values in ``[[mechanism]]`` blocks.

    Parameters
    ----------
    blocks : list of dict
        The blocks of a document. A ValueError names the number of the block that is wrong.
    read : callable
        Called with a mechanism's name and its other values, by their keys.
    most : int
        Number of combinations that all blocks may have together.
    common : mapping
        Default values of the blocks' keys.
    block_name : str
        Name of the blocks.
    """
    if not isinstance(blocks, list) or not blocks or not all(isinstance(block, dict) for block in blocks):
        raise ValueError(f"{block_name} must be written as one or more blocks [[{block_name}]], got {blocks!r}")
    results: list[T] = []
    for number, block in enumerate(blocks, 1):
        try:
            results += [read(name, values) for name, values in _block_combinations({**common, **block}, most - len(results))]
        except ValueError as error:
            raise ValueError(f"[[{block_name}]] number {number}: {error}") from error
    return results


def _block_combinations(block: Mapping[str, Any], most: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the mechanism's name and the other values of each combination.

    The function counts combinations before it makes them.
    """
    if "name" not in block:
        raise ValueError("name is missing: state the name of a mechanism")
    lists = {key: listed(value) for key, value in block.items()}
    for key, values in lists.items():
        check_some(key, values)
    check_integer("number of combinations", math.prod(len(values) for values in lists.values()), low=1, high=most)
    names = lists.pop("name")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"name must be that of a mechanism, got {name!r}")
    return ((name, dict(zip(lists, chosen, strict=True))) for name in names for chosen in itertools.product(*lists.values()))


class Combinations(Sequence[T], Generic[T]):
    """Results of a function on all combinations of axes' values, made on demand.

    Examples
    --------
    >>> pairs = Combinations("{} {}".format, "ab", range(10**9))
    >>> len(pairs), pairs[-1], pairs[:2]
    (2000000000, 'b 999999999', ['a 0', 'a 1'])
    """

    def __init__(self, make: Callable[..., T], *axes: Sequence[Any]) -> None:
        self._make = make
        self._axes = axes

    def __len__(self) -> int:
        """Return the number of combinations."""
        return math.prod(map(len, self._axes))

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        """Return the result at a place, or a list of results."""
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        rest = range(len(self))[place]
        values = []
        for axis in reversed(self._axes):
            rest, digit = divmod(rest, len(axis))
            values.append(axis[digit])
        return self._make(*reversed(values))
