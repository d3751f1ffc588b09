"""What a client of DP-REC sends: the seed it has drawn and an index for each group, packed without gaps."""

from dataclasses import dataclass
from itertools import accumulate

from ...arguments import check_integer
from .coding import check_indices
from .group_layout import GroupLayout
from .shared_randomness import SEED_BITS


def message_bytes(layout: GroupLayout) -> int:
    """Return the length of a message in bytes: 64 bits of seed and the groups' bits, padded to whole bytes.

    Examples
    --------
    >>> message_bytes(GroupLayout(sizes=(2, 1), group_bits=(7, 4)))
    10
    """
    return -(-(SEED_BITS + layout.total_bits) // 8)


@dataclass(frozen=True)
class DpRecMessage:
    """One client's message (Triastcyn, Reisser, Louizos 2021, algorithm 3): a seed from 0 to 2**64 - 1, and an index for each group.

    Examples
    --------
    >>> layout = GroupLayout(sizes=(2, 1), group_bits=(7, 4))
    >>> packed = DpRecMessage(seed=258, indices=(5, 3)).to_bytes(layout)
    >>> packed.hex(), DpRecMessage.from_bytes(packed, layout)
    ('00000000000001020a60', DpRecMessage(seed=258, indices=(5, 3)))
    """

    seed: int
    indices: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the seed's range."""
        object.__setattr__(self, "seed", check_integer("seed", self.seed, low=0, high=2**SEED_BITS - 1))

    def to_bytes(self, layout: GroupLayout) -> bytes:
        """Return the message as it is sent: the seed, then the indices, the most significant bit first, and zeros up to a whole byte."""
        check_indices(self.indices, layout)
        length = message_bytes(layout)
        fields = [
            format(self.seed, f"0{SEED_BITS}b"),
            *(format(i, f"0{bits}b") for i, bits in zip(self.indices, layout.group_bits, strict=True)),
        ]
        return int("".join(fields).ljust(8 * length, "0"), 2).to_bytes(length, "big")

    @classmethod
    def from_bytes(cls, data: bytes, layout: GroupLayout) -> "DpRecMessage":
        """Return the message that `to_bytes` has packed.

        ``ValueError`` if the length is wrong or a bit is set after the last index. Other damage cannot be detected: every seed and every
        index is valid.
        """
        length = message_bytes(layout)
        if len(data) != length:
            raise ValueError(f"data must have {length} bytes for this layout, got {len(data)}")
        digits = format(int.from_bytes(data, "big"), f"0{8 * length}b")
        used = SEED_BITS + layout.total_bits
        if "1" in digits[used:]:
            raise ValueError(f"data must end in {8 * length - used} zero bits for this layout, got {digits[used:]}")
        ends = accumulate(layout.group_bits, initial=SEED_BITS)
        indices = tuple(int(digits[start : start + bits], 2) for start, bits in zip(ends, layout.group_bits, strict=False))
        return cls(seed=int(digits[:SEED_BITS], 2), indices=indices)
