"""Random streams that depend only on a root seed, a task's name, and the number of a round."""

import hashlib

import numpy as np

from ..arguments import check_integer

LARGEST_SEED = 2**63 - 1
# The jump is the period of PCG64 over the golden ratio, as in numpy's `PCG64.jumped`, so that the beginnings of all streams are far apart.
STEPS_BETWEEN_STREAMS = 0x9E3779B97F4A7C15F39CC0605CEDC835


def named_stream(seed: int, name: str) -> np.random.Generator:
    """Return the random generator of one task, independent of other tasks and their order.

    Seeds are from 0 to 2**63 - 1; generators of different names or seeds are independent.

    Examples
    --------
    >>> int(named_stream(0, "a").integers(1000)) == int(named_stream(0, "a").integers(1000))
    True
    >>> int(named_stream(0, "a").integers(2**60)) == int(named_stream(0, "b").integers(2**60))
    False
    """
    return np.random.Generator(_bit_generator(seed, name))


def _bit_generator(seed: int, name: str) -> np.random.PCG64:
    seed = check_integer("seed", seed, low=0, high=LARGEST_SEED)
    # SHA-256 replaces Python's own hash of a string, which changes from run to run. The words are those of SeedSequence(seed,
    # spawn_key=digest), which takes twice as long.
    words = seed.to_bytes(16, "little") + hashlib.sha256(name.encode()).digest()
    return np.random.PCG64(np.random.SeedSequence(np.frombuffer(words, dtype="<u4")))


class NumberedStreams:
    """Random streams of one name, by number; faster than streams of different names.

    All streams share a generator, which is set to the beginning of the latest requested stream.

    Examples
    --------
    >>> streams = NumberedStreams(0, "a")
    >>> first, second = (int(streams.at(number).integers(2**60)) for number in (1, 2))
    >>> int(streams.at(1).integers(2**60)) == first != second
    True
    """

    def __init__(self, seed: int, name: str) -> None:
        self._bits = _bit_generator(seed, name)
        self._start = self._bits.state
        self._generator = np.random.Generator(self._bits)

    def at(self, number: int) -> np.random.Generator:
        """Return the generator at the beginning of the stream with a number from 0."""
        self._bits.state = self._start
        self._bits.advance(number * STEPS_BETWEEN_STREAMS)
        return self._generator
