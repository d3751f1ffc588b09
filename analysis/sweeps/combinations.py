"""Every combination of some values, each made when it is asked for."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

Made = TypeVar("Made")


class Combinations(Sequence[Made], Generic[Made]):
    """What is made of each combination of the axes' values, in the order of `itertools.product`; it takes no memory.

    Examples
    --------
    >>> pairs = Combinations("{} {}".format, "ab", range(10**9))
    >>> len(pairs), pairs[-1], pairs[:2]
    (2000000000, 'b 999999999', ['a 0', 'a 1'])
    """

    def __init__(self, make: Callable[..., Made], *axes: Sequence[Any]) -> None:
        self._make = make
        self._axes = axes

    def __len__(self) -> int:
        """Return the number of combinations."""
        return math.prod(map(len, self._axes))

    @overload
    def __getitem__(self, place: int) -> Made: ...

    @overload
    def __getitem__(self, place: slice) -> list[Made]: ...

    def __getitem__(self, place: int | slice) -> Made | list[Made]:
        """Return what is at a place, or a list of some."""
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        rest = range(len(self))[place]
        values = []
        for axis in reversed(self._axes):
            rest, digit = divmod(rest, len(axis))
            values.append(axis[digit])
        return self._make(*reversed(values))
