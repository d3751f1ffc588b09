"""A client's program in Python: sources of words, and messages of many inputs."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays import IntegerArray, WordArray
from ..noise.random_words import WordSource
from .client_program import ClientProgram

# Number of words taken from a source at a time.
WORDS_AT_A_TIME = 2**12


class SourceOfWords:
    """The words of a word source, one at a time."""

    def __init__(self, random_words: WordSource) -> None:
        self._words = self._drawn(random_words)

    def next(self) -> int:
        """Return the next word."""
        return next(self._words)

    @staticmethod
    def _drawn(random_words: WordSource) -> Iterator[int]:
        while True:
            yield from random_words(WORDS_AT_A_TIME).tolist()


class GivenWords:
    """Words that are given beforehand, one at a time.

    Attributes
    ----------
    used : int
        Number of words that were taken.
    """

    def __init__(self, words: WordArray) -> None:
        self._words, self.used = words.tolist(), 0

    def next(self) -> int:
        """Return the next word."""
        self.used += 1
        return int(self._words[self.used - 1])


def client_fields(program: ClientProgram, inputs: Any, source: SourceOfWords | GivenWords, public: WordArray) -> IntegerArray:
    """Return the fields of each client's message, shape (clients, fields), by the program itself.

    Parameters
    ----------
    program : ClientProgram
        The program.
    inputs : sequence
        Each client's number, item, or row of numbers.
    source : SourceOfWords or GivenWords
        Random words, which the clients take one after the other.
    public : ndarray of uint64, shape (clients, public_words)
        Public words of each client.
    """
    fields = np.empty((len(inputs), program.fields), dtype=np.int64)
    for row, (value, own) in enumerate(zip(inputs, public, strict=True)):
        written = [0] * program.fields
        sources = (source, GivenWords(own)) if program.public_words else (source,)
        program.client(value, *sources, written, **program.constants)
        fields[row] = written
    return fields
