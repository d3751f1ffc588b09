"""Clients that have sent a message, as sorted keys."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bytes of the key of an identifier: two of 2**32 identifiers share a key with probability below 2**-64.
KEY_BYTES = 16
# Number of keys that an error names.
NAMED_KEYS = 3

Keys = NDArray[Any]


class SeenClients:
    """A sorted array of keys, each of a client whose message was counted.

    Parameters
    ----------
    dtype : str
        Type of the keys: ``"u8"`` for indices, ``"S16"`` for keys of identifiers.
    """

    def __init__(self, dtype: str) -> None:
        self.keys: Keys = np.empty(0, dtype=dtype)

    def add(self, keys: Keys) -> NDArray[np.bool_]:
        """Add keys, and return for each whether neither an earlier key nor one that was seen before is the same."""
        distinct, first = np.unique(keys, return_index=True)
        places = np.searchsorted(self.keys, distinct)
        seen = np.zeros(len(distinct), dtype=bool)
        inside = places < len(self.keys)
        seen[inside] = self.keys[places[inside]] == distinct[inside]
        self.keys = np.insert(self.keys, places[~seen], distinct[~seen])
        new = np.zeros(len(keys), dtype=bool)
        new[first[~seen]] = True
        return new

    def common(self, other: "SeenClients") -> Keys:
        """Return the keys that both have."""
        return np.intersect1d(self.keys, other.keys, assume_unique=True)


def identifier_keys(identifiers: Sequence[Any]) -> Keys:
    """Return a key of 16 bytes for each identifier: a hash of its Python literal.

    Examples
    --------
    >>> keys = identifier_keys(["a", 1, "1", "a"])
    >>> len(np.unique(keys))
    3
    """
    digests = b"".join(hashlib.blake2b(repr(name).encode(), digest_size=KEY_BYTES).digest() for name in identifiers)
    return np.frombuffer(digests, dtype=f"S{KEY_BYTES}")
