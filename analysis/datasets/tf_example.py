"""TensorFlow's Example messages, in which federated data sets are stored, read without TensorFlow.

The format is that of protocol buffers: ``Example {Features features = 1}``, ``Features {map<string, Feature> feature = 1}``, and a Feature
is one of ``BytesList = 1``, ``FloatList = 2``, ``Int64List = 3``, whose values are field 1.
"""

import struct
from collections.abc import Iterator

from ...errors import DataError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
FIXED = {FIXED64: 8, FIXED32: 4}
BYTES, FLOATS, INTEGERS = 1, 2, 3
LONGEST_VARINT = 10

Values = list[bytes] | list[float] | list[int]


def read_example(message: bytes) -> dict[str, Values]:
    """Return the features of a serialised Example by name; a `DataError` if the message is damaged.

    Examples
    --------
    >>> read_example(bytes.fromhex("0a100a0e0a047461677312060a040a026373"))
    {'tags': [b'cs']}
    """
    try:
        found: dict[str, Values] = {}
        for features in _parts(message, 1):
            for entry in _parts(features, 1):
                (name,), (feature,) = _parts(entry, 1), _parts(entry, 2)
                found[name.decode()] = _values(feature)
    except (ValueError, IndexError, struct.error) as error:
        raise DataError(f"is not an Example message of TensorFlow: {error}") from error
    return found


def _values(feature: bytes) -> Values:
    for kind, content in _fields(feature):
        if not isinstance(content, bytes):
            raise ValueError("a list of values has no length")
        if kind == BYTES:
            return _parts(content, 1)
        if kind == FLOATS:
            return [one for part in _parts(content, 1) for one in struct.unpack(f"<{len(part) // 4}f", part)]
        if kind == INTEGERS:
            return [_signed(one) for _, part in _fields(content) for one in ([part] if isinstance(part, int) else _varints(part))]
    return []


def _parts(message: bytes, number: int) -> list[bytes]:
    """Return the contents of a field that has a length, or of floats that stand alone."""
    return [content for found, content in _fields(message) if found == number and isinstance(content, bytes)]


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the number and the content of each field."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == VARINT:
            content, place = _varint(message, place)
            yield key >> 3, content
            continue
        if kind == LENGTH:
            length, place = _varint(message, place)
        elif kind in FIXED:
            length = FIXED[kind]
        else:
            raise ValueError(f"a field has the wire type {kind}")
        if length > len(message) - place:
            raise ValueError(f"a field of {length} bytes begins {len(message) - place} bytes before the end")
        yield key >> 3, message[place : place + length]
        place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Return a number of variable length and where it ends."""
    number = 0
    for count in range(LONGEST_VARINT):
        byte = message[place + count]
        number |= (byte & 127) << (7 * count)
        if byte < 128:
            return number, place + count + 1
    raise ValueError(f"a number is longer than {LONGEST_VARINT} bytes")


def _varints(message: bytes) -> Iterator[int]:
    place = 0
    while place < len(message):
        number, place = _varint(message, place)
        yield number


def _signed(number: int) -> int:
    """Return the number whose two's complement, in 64 bits, this is."""
    number &= 2**64 - 1
    return number - 2**64 if number >= 2**63 else number
