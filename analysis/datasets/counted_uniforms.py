"""Random numbers of any client, without those of the clients before it: a function of a seed, a purpose, the client and a count."""

import numpy as np

from ...arrays import FloatArray, IntegerArray, WordArray
from ..random_streams import named_stream

# SplitMix64 (Steele, Lea, Flood 2014, *Fast splittable pseudorandom number generators*): the step, and the mixing function's constants.
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def counted_uniforms(seed: int, purpose: str, clients: IntegerArray, count: int) -> FloatArray:
    """Return `count` uniform numbers above 0 and below 1 for each client, shape (clients, count); for data, not for privacy.

    Examples
    --------
    >>> whole = counted_uniforms(0, "angles", np.arange(1000), 3)
    >>> bool((counted_uniforms(0, "angles", np.array([998]), 3) == whole[998]).all())
    True
    """
    key = named_stream(seed, purpose).integers(0, 2**64, dtype=np.uint64)
    starts = _mixed(_mixed(clients.astype(np.uint64) * STEP) ^ key)
    words = _mixed(starts[:, None] + np.arange(1, count + 1, dtype=np.uint64) * STEP)
    return ((words >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52


def _mixed(words: WordArray) -> WordArray:
    words = (words ^ (words >> np.uint64(30))) * FIRST
    words = (words ^ (words >> np.uint64(27))) * SECOND
    return words ^ (words >> np.uint64(31))
