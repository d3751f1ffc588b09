"""Sources of uniformly random 64-bit words: repeatable ones for experiments, the operating system's for releases."""

import secrets
from collections.abc import Callable

import numpy as np

from ...arrays import WordArray

WordSource = Callable[[int], WordArray]
"""Returns as many independent, uniformly random 64-bit words as asked for."""


def seeded_words(rng: np.random.Generator) -> WordSource:
    """Return the words of a seeded generator: for experiments and simulations that others can repeat.

    Whoever knows the seed knows the noise: a release must use `secure_words`.

    Parameters
    ----------
    rng : numpy.random.Generator
        The generator; it advances with every word.

    Returns
    -------
    WordSource
        The source.

    Raises
    ------
    ValueError
        If `rng` is not a generator.

    Examples
    --------
    >>> words = seeded_words(np.random.default_rng(0))
    >>> words(2).dtype, len(words(3))
    (dtype('uint64'), 3)
    """
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng must be a numpy.random.Generator, such as numpy.random.default_rng(seed), got {rng!r}")
    return lambda count: rng.integers(0, 2**64, size=count, dtype=np.uint64)


def secure_words(count: int) -> WordArray:
    """Return words of the operating system's cryptographic randomness: the source for releases.

    Parameters
    ----------
    count : int
        How many.

    Returns
    -------
    ndarray of uint64, shape (count,)
        The words.

    Examples
    --------
    >>> secure_words(4).shape
    (4,)
    """
    return np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)
