"""Sources of random words and of the draws that mechanisms make from them.

Seeded sources repeat their draws for experiments, and secure sources serve releases. A `KeyStream` makes cryptographic random words in bulk
by AES-256 in counter mode, keyed by the operating system.
"""

import math
import os
import secrets
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import scipy
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ...arguments import check_integer
from ...arrays import FloatArray, IntegerArray, WordArray
from .redraws import Redraws

# Number of words made at a time: 64 KiB, which stay in the processor's cache. Calls for more than an eighth of this number do not use the
# buffer.
BUFFER_WORDS = 2**13
# A key serves 8 MiB. Counter mode never repeats a block of 16 bytes, unlike random words: 2**19 blocks distinguish the two with
# probability below 2**-90.
WORDS_PER_KEY = 2**20
KEY_BYTES, COUNTER_BYTES = 32, 16
WORD_BYTES = 8
PLAINTEXT = bytes(WORD_BYTES * BUFFER_WORDS)

MOST_WORDS = 2**48
LARGEST_HIGH = 2**63
# Largest number of redraws of an order with two equal words: among 2**31 words, two are equal with a probability of 1/8.
MOST_COLLISIONS = 200
# Bit generators whose raw output consists of words of 64 bits.
GENERATORS_OF_WORDS = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)


class WordSource(ABC):
    """A source of independent, uniform 64-bit words; ``words(count)`` returns `count` of them.

    Mechanisms draw from a source by the methods below. A class with only `__call__` is a complete source; its other draws then come from
    words as this docstring describes. The argument `shape` is a length or a tuple of lengths.
    """

    @abstractmethod
    def __call__(self, count: int) -> WordArray:
        """Return the next words, shape (count,), which the caller may overwrite."""

    def uniforms(self, shape: int | tuple[int, ...]) -> FloatArray:
        """Draw multiples of 2**-53 in [0, 1), all equally likely, from the upper 53 bits of words."""
        out = np.empty(shape)
        self.fill_uniforms(out)
        return out

    def fill_uniforms(self, out: FloatArray) -> None:
        """Write the numbers of `uniforms` into a contiguous array."""
        words = self._words(out.shape)
        words >>= np.uint64(11)
        # Signed numbers convert to floats faster than unsigned numbers.
        np.copyto(out, words.view(np.int64))
        out *= 2.0**-53

    def normals(self, shape: int | tuple[int, ...]) -> FloatArray:
        """Draw standard normal numbers by the inverse of the distribution function.

        One bit is the sign; 63 bits choose one of the cells of probability 2**-64 that half of the distribution is cut into, and the
        result is the quantile at the middle of the cell. The result is an exact normal number moved within its cell, up to
        the rounding of floating point: every union of cells has its exact probability. The outermost cells, beyond 9.08 standard
        deviations, have the total probability 2**-63; the largest result is 9.16 in absolute value, which a normal number
        exceeds with probability 2**-64.
        """
        words = self._words(shape)
        return np.asarray(np.where(words & np.uint64(1), -1.0, 1.0) * -scipy.special.ndtri(_cell_middles(words) * 2.0**-64))

    def laplace(self, shape: int | tuple[int, ...]) -> FloatArray:
        """Draw Laplace numbers of scale 1 by the inverse distribution function, as in `normals`.

        The largest result is 64 ln 2, about 44.4, in absolute value, which a Laplace number exceeds with probability 2**-64.
        """
        words = self._words(shape)
        return np.asarray(np.where(words & np.uint64(1), -1.0, 1.0) * -np.log(_cell_middles(words) * 2.0**-63))

    def integers(self, high: int, shape: int | tuple[int, ...]) -> IntegerArray:
        """Draw whole numbers from 0 to high - 1, all exactly equally likely.

        The argument `high` is at most 2**63; surplus words are drawn again.
        """
        high = check_integer("high", high, low=1, high=LARGEST_HIGH)
        words = self._words(shape)
        drawn = words.ravel()
        largest = np.uint64((1 << 64) - (1 << 64) % high - 1)
        surplus = np.flatnonzero(drawn > largest)
        redraws = Redraws()
        while surplus.size:
            redraws.another()
            drawn[surplus] = self(surplus.size)
            surplus = surplus[drawn[surplus] > largest]
        return (drawn % np.uint64(high)).astype(np.int64).reshape(words.shape)

    def permutation(self, count: int) -> IntegerArray:
        """Draw an order of the numbers 0 to count - 1, all exactly equally likely.

        The order is the sorting order of distinct random words.
        """
        redraws = Redraws(MOST_COLLISIONS)
        while True:
            redraws.another()
            words = self(count)
            order = np.argsort(words)
            ascending = words[order]
            if (ascending[1:] != ascending[:-1]).all():
                return order.astype(np.int64)

    def random_bytes(self, count: int) -> bytes:
        """Draw bytes, for keys."""
        return self(-(-count // 8)).tobytes()[:count]

    def _words(self, shape: int | tuple[int, ...]) -> WordArray:
        lengths = shape if isinstance(shape, tuple) else (shape,)
        return self(math.prod(lengths)).reshape(lengths)


WordsLike = WordSource | np.random.Generator
"""Arguments that `word_source` accepts."""


@dataclass(frozen=True, eq=False)
class SeededWords(WordSource):
    """Word source whose draws are those of a numpy generator; `seeded_words` makes it."""

    rng: np.random.Generator

    def __post_init__(self) -> None:
        """Refuse any argument that is not a generator."""
        if not isinstance(self.rng, np.random.Generator):
            raise ValueError(f"rng must be a numpy.random.Generator, such as numpy.random.default_rng(seed), got {self.rng!r}")

    def __call__(self, count: int) -> WordArray:
        """Return the next words."""
        if type(self.rng.bit_generator) in GENERATORS_OF_WORDS:
            # The raw generator returns the same words in less time.
            return np.asarray(self.rng.bit_generator.random_raw(count), dtype=np.uint64)
        return self.rng.integers(0, 2**64, size=count, dtype=np.uint64)

    def uniforms(self, shape: int | tuple[int, ...]) -> FloatArray:
        """Return numbers of the generator's ``random``."""
        return self.rng.random(shape)

    def fill_uniforms(self, out: FloatArray) -> None:
        """Write numbers of the generator's ``random`` into a contiguous array."""
        self.rng.random(out=out)

    def normals(self, shape: int | tuple[int, ...]) -> FloatArray:
        """Draw by the generator's ``standard_normal``."""
        return self.rng.standard_normal(shape)

    def laplace(self, shape: int | tuple[int, ...]) -> FloatArray:
        """Draw by the generator's ``laplace``."""
        return self.rng.laplace(size=shape)

    def integers(self, high: int, shape: int | tuple[int, ...]) -> IntegerArray:
        """Draw by the generator's ``integers``."""
        return self.rng.integers(0, high, size=shape)

    def permutation(self, count: int) -> IntegerArray:
        """Draw by the generator's ``permutation``."""
        return self.rng.permutation(count)

    def random_bytes(self, count: int) -> bytes:
        """Draw by the generator's ``bytes``."""
        return self.rng.bytes(count)

    def __reduce__(self) -> NoReturn:
        """Refuse copies and transfers to another process, which would repeat draws."""
        raise TypeError(
            "seeded words must not be pickled or copied: workers that get copies of one generator draw the same numbers; derive a stream "
            "for each from a name, by quietbits.analysis.random_streams.named_stream(seed, name)"
        )


def seeded_words(rng: np.random.Generator) -> SeededWords:
    """Return the words of a seeded generator, for experiments that others can repeat.

    Anyone who knows the seed knows the noise: a release must use `secure_words`. Two workers with copies of the same generator draw the
    same noise: the source refuses to be pickled or copied, although a generator does not. Derive a stream for each task from its name, as
    `quietbits.analysis.random_streams.named_stream` does.

    Parameters
    ----------
    rng : numpy.random.Generator
        The generator; it advances with every draw.

    Returns
    -------
    SeededWords
        The source.

    Raises
    ------
    ValueError
        If `rng` is not a generator.

    Examples
    --------
    >>> words = seeded_words(np.random.default_rng(0))
    >>> words(2).dtype, words.integers(10, (3, 2)).shape
    (dtype('uint64'), (3, 2))
    """
    return SeededWords(rng)


class SecureWords(WordSource):
    """Cryptographic random words for releases: AES-256 in counter mode under system keys.

    Every thread, and every process after a fork, has its own stream, so no word is used twice. Keys come from the operating system and are
    replaced every 8 MiB (`KeyStream`): a reader of the process's memory can compute the words of the present key, and a copy of a running
    virtual machine continues its words. A pickled source becomes a new source at its destination.

    Examples
    --------
    >>> secure_words(4).shape
    (4,)
    """

    def __init__(self) -> None:
        self._own = _OwnStream()

    def __call__(self, count: int) -> WordArray:
        """Return new random words, which no earlier call has returned.

        Parameters
        ----------
        count : int
            Number of words.

        Returns
        -------
        ndarray of uint64, shape (count,)
            Random words.

        Raises
        ------
        ValueError
            If `count` is not a whole number from 0 to 2**48.
        """
        count = check_integer("count", count, low=0, high=MOST_WORDS)
        while True:
            process = _this_process()
            # The stream is removed from its place while in use, so a signal handler that draws words meanwhile gets another stream.
            stream, self._own.stream = self._own.stream, None
            if stream is None or self._own.process != process:
                stream = KeyStream()
            words = stream.take(count)
            self._own.stream, self._own.process = stream, process
            # A signal handler may have forked the process meanwhile.
            if process == _this_process():
                return words

    def __repr__(self) -> str:
        """Return the name of the shared source, which signatures show as a default."""
        return "secure_words"

    def __reduce__(self) -> tuple[type["SecureWords"], tuple[()]]:
        """Replace every copy by a new source."""
        return SecureWords, ()


class KeyStream:
    """A stream of words, each used once, under keys that are replaced.

    A key makes `WORDS_PER_KEY` words and is then replaced by a new key. Two threads, or a process and its fork, must not use a stream at
    the same time: `SecureWords` prevents it.
    """

    def __init__(self) -> None:
        self._buffer = np.empty(0, dtype=np.uint64)
        self._used = 0
        self._left_of_key = 0

    def take(self, count: int) -> WordArray:
        """Return the next `count` words in a new array."""
        if count > BUFFER_WORDS // 8:
            return self._made(count)
        if count > len(self._buffer) - self._used:
            self._buffer, self._used = self._made(BUFFER_WORDS), 0
        self._used += count
        return self._buffer[self._used - count : self._used].copy()

    def _made(self, count: int) -> WordArray:
        # The cipher's output buffer must be longer than the words by a block less one byte.
        words = np.empty(count + COUNTER_BYTES // WORD_BYTES, dtype=np.uint64)
        places = words.data.cast("B")
        for start in range(0, count, BUFFER_WORDS):
            part = min(BUFFER_WORDS, count - start)
            if part > self._left_of_key:
                # The counter may start at zero: no key is used twice.
                cipher = Cipher(algorithms.AES(secrets.token_bytes(KEY_BYTES)), modes.CTR(bytes(COUNTER_BYTES)))
                self._encryptor, self._left_of_key = cipher.encryptor(), WORDS_PER_KEY
            self._left_of_key -= part
            self._encryptor.update_into(PLAINTEXT[: WORD_BYTES * part], places[WORD_BYTES * start :])
        return words[:count]


class _OwnStream(threading.local):
    """Stream of a thread, and the process in which it was keyed."""

    stream: KeyStream | None = None
    process: tuple[int, int] | None = None


_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


# Only systems on which processes fork have this registration.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def _this_process() -> tuple[int, int]:
    """Return an identifier that differs between a process and its forks.

    A late fork may have the process number of an early process that has ended. Only the number distinguishes forks made without Python's
    knowledge.
    """
    return os.getpid(), _forks


secure_words = SecureWords()


def word_source(random_words: WordsLike) -> WordSource:
    """Return the word source of an argument, as every ``encode`` does.

    Parameters
    ----------
    random_words : WordSource or numpy.random.Generator
        A source; a generator counts as ``seeded_words(generator)``.

    Returns
    -------
    WordSource
        The source.

    Raises
    ------
    ValueError
        If `random_words` is neither a source nor a generator.
    """
    if isinstance(random_words, WordSource):
        return random_words
    if isinstance(random_words, np.random.Generator):
        return SeededWords(random_words)
    raise ValueError(
        "random_words must be quietbits.secure_words, for releases, or a numpy.random.Generator such as numpy.random.default_rng(seed), or "
        f"seeded_words of one, for experiments, got {random_words!r}"
    )


def _cell_middles(words: WordArray) -> FloatArray:
    """Return the upper 63 bits of words as floats from 1/2 to 2**63."""
    return np.asarray((words >> np.uint64(1)) + 0.5, dtype=np.float64)


class KeyedWords(WordSource):
    """Words that a key of four words determines, by AES-256 in counter mode.

    Words of a secret, uniform key are as good as those of `secure_words`. The same key makes the same words.

    Examples
    --------
    >>> key = np.arange(4, dtype=np.uint64)
    >>> bool((KeyedWords(key)(3) == KeyedWords(key)(3)).all()), len(set(KeyedWords(key)(1000).tolist()))
    (True, 1000)
    """

    def __init__(self, key: WordArray) -> None:
        """Take a key, shape (4,)."""
        self._encryptor = Cipher(algorithms.AES(np.asarray(key, dtype="<u8").tobytes()), modes.CTR(bytes(COUNTER_BYTES))).encryptor()

    def __call__(self, count: int) -> WordArray:
        """Return the next words."""
        count = check_integer("count", count, low=0, high=MOST_WORDS)
        return np.frombuffer(bytearray(self._encryptor.update(bytes(WORD_BYTES * count))), dtype=np.uint64)
