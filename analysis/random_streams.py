"""Random streams that depend only on a root seed and a task's own name."""

import hashlib

import numpy as np

from ..arguments import check_integer

LARGEST_SEED = 2**63 - 1


def named_stream(seed: int, name: str) -> np.random.Generator:
    """Return the random generator of one task: the same whatever other tasks there are, in whatever order they run.

    Seeds are from 0 to 2**63 - 1; generators of different names or seeds are independent.

    Examples
    --------
    >>> int(named_stream(0, "a").integers(1000)) == int(named_stream(0, "a").integers(1000))
    True
    >>> int(named_stream(0, "a").integers(2**60)) == int(named_stream(0, "b").integers(2**60))
    False
    """
    seed = check_integer("seed", seed, low=0, high=LARGEST_SEED)
    # Python's own hash of a string changes from run to run; SHA-256 does not. The words are those of SeedSequence(seed, spawn_key=digest),
    # which takes twice as long to gather them.
    words = seed.to_bytes(16, "little") + hashlib.sha256(name.encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(np.frombuffer(words, dtype="<u4"))))
