"""Numbers of docs/reference/wire-format.md."""

import numpy as np

from quietbits.design.deployment.public_words import public_words
from quietbits.design.deployment.wire_format import Header, pack_fields

HASH = bytes(range(32))


def header(round_number: int) -> str:
    """Return a header of the page's deployment, in hexadecimal digits."""
    return Header(HASH[:8], round_number).to_bytes().hex()


def message(fields: list[int], field_bits: int) -> str:
    """Return a message, in hexadecimal digits."""
    return pack_fields(np.array([fields]), field_bits).tobytes().hex()


def file(round_number: int, fields: list[int], field_bits: int) -> str:
    """Return a file of messages of one field, in hexadecimal digits."""
    return header(round_number) + "".join(message([field], field_bits) for field in fields)


def record(client: int, field: int, field_bits: int) -> str:
    """Return a record with a client's index, in hexadecimal digits."""
    return client.to_bytes(8, "big").hex() + message([field], field_bits)


def public_word() -> int:
    """Return the first public word of client 2 in round 1."""
    return int(public_words(HASH, 1, np.array([2], dtype=np.uint64), 1)[0, 0])
