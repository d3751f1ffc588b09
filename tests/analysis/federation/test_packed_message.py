"""Tests of messages as bytes.

Requirements: messages have as many bits as the mechanism states, and the same numbers after decoding.
"""

import numpy as np
import pytest

from quietbits.analysis.federation.packed_message import CHUNK, PackedMessage, packed, unpacked


@pytest.mark.parametrize("width", [1, 5, 16, 33, 64])
def test_numbers_come_back_from_as_few_bytes_as_they_fill(width: int) -> None:
    count = CHUNK + 3
    numbers = np.random.default_rng(width).integers(2**width, size=count, dtype=np.uint64, endpoint=False) if width < 64 else None
    numbers = np.random.default_rng(0).integers(2**64, size=count, dtype=np.uint64) if numbers is None else numbers
    content = packed(numbers, width)
    assert len(content) == -(-count * width // 8)
    np.testing.assert_array_equal(unpacked(content, width, count), numbers)


@pytest.mark.parametrize(
    ("message", "bits", "size"),
    [
        (np.array([[0, 1, 1, 0]], dtype=np.uint8), 4.0, 1),
        (np.array([5]), 3.0, 1),
        (np.array([[3, 14, 15, 9, 2]], dtype=np.uint16), 5 * np.log2(17), 4),
        (np.array([[0.5, -0.5]]), 128.0, 16),
        (np.array([[-3, 4]], dtype=np.int16), 32.0, 4),
        # The message has a seed and an index, numbers of different widths.
        (np.array([[2**63, 3]], dtype=np.uint64), 5.0, 16),
    ],
)
def test_messages_are_packed_where_their_numbers_have_one_width(message: np.ndarray, bits: float, size: int) -> None:
    sent = PackedMessage.of(message, bits)
    assert sent.content.nbytes == size
    again = sent.message
    assert (again.dtype, again.shape) == (message.dtype, message.shape)
    np.testing.assert_array_equal(again, message)


def test_bytes_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="message must be 2 bytes, got an array of uint8 and shape \\(3,\\)"):
        unpacked(np.zeros(3, dtype=np.uint8), 4, 3)
