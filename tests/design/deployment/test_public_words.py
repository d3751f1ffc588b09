import struct

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.deployment.public_words import public_words


def halves(words: list[int]) -> list[int]:
    """Return the words of 32 bits of words of 64 bits, the lower half first."""
    return [half for word in words for half in (word & 0xFFFFFFFF, word >> 32)]


def test_the_block_of_rfc_8439() -> None:
    # Section 2.3.2: key 00 01 ... 1f, nonce 00 00 00 09 00 00 00 4a 00 00 00 00, block 1.
    words = public_words(bytes(range(32)), 0x09000000, np.array([0x4A000000], dtype=np.uint64), 16)
    assert halves(words[0, 8:].tolist()) == [
        *(0xE4E7F110, 0x15593BD1, 0x1FDD0F50, 0xC47120A3, 0xC7F4D1C7, 0x0368C033, 0x9AAA2204, 0x4E6CD4C3),
        *(0x466482D2, 0x09AA9F07, 0x05D7C214, 0xA2028BD9, 0xD19C12B5, 0xB94E16DE, 0xE883D0CB, 0x4E3C50A2),
    ]


@pytest.mark.parametrize(
    ("key", "nonce", "block", "expected"),
    [
        # Appendix A.1 of RFC 8439, test vectors 1, 2, 3, 4 and 5: the first 8 bytes.
        ("00" * 32, "00" * 12, 0, "76b8e0ada0f13d90"),
        ("00" * 32, "00" * 12, 1, "9f07e7be5551387a"),
        ("00" * 31 + "01", "00" * 12, 1, "3aeb5224ecf84992"),
        ("00ff" + "00" * 30, "00" * 12, 2, "72d54dfbf12ec44b"),
        ("00" * 32, "00" * 11 + "02", 0, "c2c64d378cd53637"),
    ],
)
def test_the_vectors_of_rfc_8439(key: str, nonce: str, block: int, expected: str) -> None:
    number, client = struct.unpack("<IQ", bytes.fromhex(nonce))
    words = public_words(bytes.fromhex(key), number, np.array([client], dtype=np.uint64), 8 * block + 1)
    assert struct.pack("<Q", int(words[0, -1])).hex() == expected


@given(st.binary(min_size=32, max_size=32), st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4))
def test_words_are_those_of_another_implementation(key: bytes, number: int, clients: list[int]) -> None:
    words = public_words(key, number, np.array(clients, dtype=np.uint64), 20)
    for client, own in zip(clients, words, strict=True):
        start = struct.pack("<IIQ", 0, number, client)
        stream = Cipher(algorithms.ChaCha20(key, start), mode=None).encryptor().update(bytes(160))
        assert own.astype("<u8").tobytes() == stream


def test_no_words_are_an_empty_array() -> None:
    assert public_words(bytes(32), 0, np.arange(3, dtype=np.uint64), 0).shape == (3, 0)
