"""Messages as bytes: packed fields, and headers that name their deployment and round (``quietbits-message/1``)."""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import IntegerArray
from ...errors import DataError

Bytes = NDArray[np.uint8]
MAGIC, VERSION = b"QBM", 1
# Magic and version, the first bytes of the deployment's hash, and the round; all numbers are big-endian.
HEADER = struct.Struct(">3sB8sI")
HEADER_BYTES, HASH_BYTES, INDEX_BYTES = HEADER.size, 8, 8
MOST_ROUNDS = 2**32
# Number of bits of fields that are packed or unpacked at a time.
CHUNK_BITS = 2**24


@dataclass(frozen=True)
class Header:
    """The header of a file of messages, or of a message that travels alone.

    Attributes
    ----------
    hash_start : bytes
        First 8 bytes of the deployment's hash.
    round_number : int
        Number of the round, from 0.
    """

    hash_start: bytes
    round_number: int

    def to_bytes(self) -> bytes:
        """Return the header's 16 bytes."""
        return HEADER.pack(MAGIC, VERSION, self.hash_start, self.round_number)

    @staticmethod
    def from_bytes(data: bytes) -> "Header":
        """Return the header at the start of bytes; DataError if there is none of this version."""
        if len(data) < HEADER_BYTES:
            raise DataError(f"messages must begin with a header of {HEADER_BYTES} bytes, got {len(data)} bytes")
        magic, version, hash_start, round_number = HEADER.unpack_from(data)
        if magic != MAGIC:
            raise DataError(f"messages must begin with {MAGIC.decode()}, got {bytes(magic)!r}: this is no file of messages")
        if version != VERSION:
            raise DataError(f"messages must have version {VERSION}, got {version}: a newer quietbits may read them")
        return Header(bytes(hash_start), int(round_number))


def pack_fields(fields: IntegerArray, field_bits: int) -> Bytes:
    """Return messages as bytes: the bits of the fields, most significant first, filled up with zeros.

    Parameters
    ----------
    fields : ndarray of int64 or uint64, shape (clients, fields)
        Fields, each below ``2**field_bits``.
    field_bits : int
        Number of bits of a field, 1 to 62.

    Returns
    -------
    ndarray of uint8, shape (clients, bytes)
        Messages.

    Examples
    --------
    >>> pack_fields(np.array([[5, 1, 7]]), 3).tolist()
    [[167, 128]]
    """
    clients, count = fields.shape
    packed = np.empty((clients, -(-count * field_bits // 8)), dtype=np.uint8)
    shifts = np.arange(field_bits - 1, -1, -1, dtype=np.int64)
    for part in _parts(clients, count * field_bits):
        bits = (fields[part].astype(np.int64)[:, :, None] >> shifts & 1).astype(np.uint8)
        packed[part] = np.packbits(bits.reshape(len(bits), -1), axis=1)
    return packed


def unpack_fields(messages: Bytes, field_bits: int, count: int) -> tuple[IntegerArray, NDArray[np.bool_]]:
    """Return the fields of messages, shape (clients, count), and whether the bits that fill up the last byte are 0.

    Examples
    --------
    >>> fields, filled = unpack_fields(np.array([[167, 128], [167, 129]], dtype=np.uint8), 3, 3)
    >>> fields[0].tolist(), filled.tolist()
    ([5, 1, 7], [True, False])
    """
    used = count * field_bits
    filling = 8 * messages.shape[1] - used
    filled = messages[:, -1] & np.uint8((1 << filling) - 1) == 0
    fields = np.empty((len(messages), count), dtype=np.int64)
    weights = 1 << np.arange(field_bits - 1, -1, -1, dtype=np.int64)
    for part in _parts(len(messages), used):
        if count == 1:
            # One field: its bytes are a number, which is shifted once.
            number = np.zeros(len(messages[part]), dtype=np.uint64)
            for column in messages[part].T:
                number = number << np.uint64(8) | column
            fields[part, 0] = (number >> np.uint64(filling)).astype(np.int64)
            continue
        bits = np.unpackbits(messages[part], axis=1, count=used)
        fields[part] = bits.reshape(len(bits), count, field_bits) @ weights
    return fields, filled


def _parts(clients: int, bits: int) -> list[slice]:
    step = max(1, CHUNK_BITS // bits)
    return [slice(start, start + step) for start in range(0, clients, step)]
