"""Limits of a routine's time: random words, copies, and linear programs."""

from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import highspy
import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from quietbits.arrays import WordArray
from quietbits.design.noise.random_words import WordSource, seeded_words

from .processor_time import Result, seconds, timed

# Words are drawn in batches small enough for the processor's caches.
WORDS = 2**14
WORD_BYTES = 8


class CountedWords(WordSource):
    """Seeded words with a count of the words drawn."""

    def __init__(self) -> None:
        self._seeded = seeded_words(np.random.default_rng(0))
        self.count = 0

    def __call__(self, count: int) -> WordArray:
        """Return the next words."""
        self.count += count
        return self._seeded(count)


def drawing_and_copying(run: Callable[[WordSource], object], random_words: WordSource, numbers: np.ndarray) -> float:
    """Return the seconds for drawing a run's random words, and for copying its numbers."""
    counted = CountedWords()
    run(counted)
    return counted.count / WORDS * seconds(partial(random_words, WORDS), calls=20) + seconds(numbers.copy)


def keystream_seconds() -> float:
    """Return the seconds per word of AES-256-CTR in a cached buffer: the limit of secret words."""
    block, places = bytes(WORD_BYTES * WORDS), bytearray(WORD_BYTES * WORDS + 16)
    encryptor = Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))).encryptor()
    return seconds(partial(encryptor.update_into, block, places), calls=500) / WORDS


def with_linear_programs(run: Callable[[], Result]) -> tuple[Result, float, float]:
    """Return a call's result, its seconds, and its seconds in HiGHS's linear programs."""
    solve, solving = highspy.Highs.run, []

    def solve_timed(highs: highspy.Highs) -> object:
        status, taken = timed(partial(solve, highs))
        solving.append(taken)
        return status

    with patch.object(highspy.Highs, "run", solve_timed):
        result, taken = timed(run)
    return result, taken, sum(solving)


def beside_limit(taken: float, limit: float, power: float | None = None) -> str:
    """Return a text that compares a time with its limit and states its power of growth."""
    beside = f"{taken / limit:.3g} x the physical limit"
    return beside if power is None else f"{beside}, grows with the {power:.2f}th power"
