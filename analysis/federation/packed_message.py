"""Messages as bytes, in which whole numbers take the number of bits of their mechanism."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import WordArray

# Number of values packed at a time, a multiple of 8, so that a batch fills whole bytes at any width.
CHUNK = 2**16
WIDEST = 64


@dataclass(frozen=True, eq=False)
class PackedMessage:
    """The bytes of a client's message.

    Attributes
    ----------
    content : ndarray
        Bytes of packed numbers, or the message itself if it is not packed.
    width : int
        Number of bits of a number; 0 for a message that is not packed.
    kind : str
        Type of the message's numbers, as numpy writes it.
    shape : tuple of int
        Shape of the message.
    """

    content: NDArray[Any]
    width: int
    kind: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, message: NDArray[Any], bits: float) -> "PackedMessage":
        """Return a message of `bits` bits in packed form; only numbers of equal width are packed."""
        width = math.ceil(bits / message.size - 1e-9) if message.size else WIDEST
        packable = message.dtype.kind in "iu" and width <= 8 * message.itemsize and bool((message >> (width - 1) >> 1 == 0).all())
        content = packed(message.ravel(), width) if packable else message
        return cls(content, width if packable else 0, message.dtype.str, message.shape)

    @property
    def message(self) -> NDArray[Any]:
        """The message that was packed."""
        if not self.width:
            return self.content
        return unpacked(self.content, self.width, math.prod(self.shape)).astype(np.dtype(self.kind)).reshape(self.shape)


def packed(numbers: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Return whole numbers below ``2**width`` packed one after another, lowest bit first.

    Examples
    --------
    >>> packed(np.array([1, 2, 3, 4], dtype=np.uint8), 4).tolist()
    [33, 67]
    """
    places = np.arange(width, dtype=np.uint64)
    parts = [
        np.packbits(((numbers[start : start + CHUNK, None].astype(np.uint64) >> places) & np.uint64(1)).astype(np.uint8), bitorder="little")
        for start in range(0, len(numbers), CHUNK)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint8)


def unpacked(content: NDArray[Any], width: int, count: int) -> WordArray:
    """Return the `count` numbers in bytes; raise ValueError for a wrong number of bytes."""
    if content.dtype != np.uint8 or content.shape != (-(-count * width // 8),):
        raise ValueError(f"message must be {-(-count * width // 8)} bytes, got an array of {content.dtype} and shape {content.shape}")
    places = np.arange(width, dtype=np.uint64)
    numbers = np.empty(count, dtype=np.uint64)
    for start in range(0, count, CHUNK):
        stop = min(count, start + CHUNK)
        bits = np.unpackbits(content[start * width // 8 : -(-stop * width // 8)], count=(stop - start) * width, bitorder="little")
        numbers[start:stop] = (bits.reshape(-1, width).astype(np.uint64) << places).sum(axis=1, dtype=np.uint64)
    return numbers
