"""Layout of a long vector's groups, each of which is coded independently."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from ...arguments import LARGEST_DIMENSION, check_integer

# Largest number of bits of a group, of which the coder draws 2**bits samples.
MOST_GROUP_BITS = 20
MOST_GROUPS = 2**20


@dataclass(frozen=True)
class GroupLayout:
    """Groups of consecutive coordinates, such as the tensors of a network, and the bits of each.

    Attributes
    ----------
    sizes : tuple of int
        Number of coordinates of each group, from 1.
    group_bits : tuple of int
        Number of bits that code each group, 1 to 20.

    Examples
    --------
    >>> layout = GroupLayout(sizes=(3, 2), group_bits=(7, 4))
    >>> layout.dimension, layout.total_bits, list(layout.slices())
    (5, 11, [slice(0, 3, None), slice(3, 5, None)])
    """

    sizes: tuple[int, ...]
    group_bits: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the numbers, and that there are as many sizes as bits."""
        sizes = tuple(check_integer("sizes", size, low=1, high=LARGEST_DIMENSION) for size in self.sizes)
        bits = tuple(check_integer("group_bits", number, low=1, high=MOST_GROUP_BITS) for number in self.group_bits)
        check_integer("number of groups", len(sizes), low=1, high=MOST_GROUPS)
        if len(sizes) != len(bits):
            raise ValueError(f"sizes and group_bits must have the same length, one for each group, got {len(sizes)} and {len(bits)}")
        check_integer("dimension", sum(sizes), low=1, high=LARGEST_DIMENSION)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "group_bits", bits)

    @property
    def groups(self) -> int:
        """Number of groups of coordinates."""
        return len(self.sizes)

    @property
    def dimension(self) -> int:
        """Number of coordinates of all groups together."""
        return sum(self.sizes)

    @property
    def total_bits(self) -> int:
        """Number of bits of all groups together."""
        return sum(self.group_bits)

    def slices(self) -> Iterator[slice]:
        """Yield the coordinates of each group in the whole vector."""
        for size, end in zip(self.sizes, accumulate(self.sizes), strict=True):
            yield slice(end - size, end)


def uniform_layout(dimension: int, groups: int, group_bits: int) -> GroupLayout:
    """Return a layout of groups of equal size and bits.

    The first groups are one coordinate longer if `groups` does not divide `dimension`.

    Examples
    --------
    >>> uniform_layout(10, 3, 7)
    GroupLayout(sizes=(4, 3, 3), group_bits=(7, 7, 7))
    """
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_DIMENSION)
    groups = check_integer("groups", groups, low=1, high=min(dimension, MOST_GROUPS))
    size, longer = divmod(dimension, groups)
    return GroupLayout(sizes=(size + 1,) * longer + (size,) * (groups - longer), group_bits=(group_bits,) * groups)
