"""Cryptographic random words in bulk: a keystream of AES-256 in counter mode, keyed by the operating system."""

import secrets

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ...arrays import WordArray

# Made at a time: 64 KiB, which stay in the processor's cache. Calls for more than an eighth of it don't use the buffer.
BUFFER_WORDS = 2**13
# 8 MiB. Counter mode never repeats a block of 16 bytes where random words would: 2**19 of them tell it from random words with
# probability below 2**-90.
WORDS_PER_KEY = 2**20
KEY_BYTES, COUNTER_BYTES = 32, 16
WORD_BYTES = 8
PLAINTEXT = bytes(WORD_BYTES * BUFFER_WORDS)


class KeyStream:
    """Words that are handed out once each; a key makes `WORDS_PER_KEY` of them, and is then replaced by a new one.

    Not to be used by two threads at a time, nor by a process and its fork: `quietbits.design.noise.random_words.SecureWords` sees to that.
    """

    def __init__(self) -> None:
        self._buffer = np.empty(0, dtype=np.uint64)
        self._used = 0
        self._left_of_key = 0

    def take(self, count: int) -> WordArray:
        """Return the next `count` words, in an array of their own."""
        if count > BUFFER_WORDS // 8:
            return self._made(count)
        if count > len(self._buffer) - self._used:
            self._buffer, self._used = self._made(BUFFER_WORDS), 0
        self._used += count
        return self._buffer[self._used - count : self._used].copy()

    def _made(self, count: int) -> WordArray:
        # The cipher asks for room for another block, less one byte, at the end.
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
