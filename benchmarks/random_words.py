"""Secure words on one core, against the operating system's words and a seeded generator."""

import secrets
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from shared.growth import exponent
from shared.physical_limit import beside_limit, keystream_seconds
from shared.processor_time import seconds

from quietbits.design.noise.random_words import WordSource, secure_words, seeded_words

COUNT = 2**22
SIZES = (1, 2**5, 2**10, 2**15, 2**20)
# A size takes at most this many calls.
MOST_CALLS = 2**14
# Calls of these numbers of words give the exponent of growth.
LARGE_SIZES = (2**16, 2**18, 2**20)


def system_words(count: int) -> NDArray[np.uint64]:
    """Return words of the operating system, from a single call."""
    return np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)


def for_a_word(source: Callable[[int], object], size: int) -> float:
    """Return the seconds per word when words are drawn `size` at a time."""
    return seconds(partial(source, size), calls=min(MOST_CALLS, COUNT // size)) / size


def draws(source: WordSource, kind: str) -> Callable[[int], Callable[[], object]]:
    """Return a function that makes a run for a count of numbers of a kind."""
    draw = partial(source.integers, 1000) if kind == "integers" else getattr(source, kind)
    return partial(partial, draw)


def main() -> None:
    """Print nanoseconds per word for several sizes, per number of each kind, and ratios.

    The physical limit is AES-256 in counter mode for as many words.
    """
    seeded = seeded_words(np.random.default_rng(0))
    limit, each = keystream_seconds(), for_a_word(system_words, 1)
    for size in SIZES:
        secure, system, pcg = (for_a_word(source, size) for source in (secure_words, system_words, seeded))
        print(
            f"{size:>8} words a call: secure {1e9 * secure:7.2f} ns a word, {secure / system:.3g} x the operating system's time asked once "
            f"a call, {secure / each:.2g} x asked for each word, {secure / pcg:.3g} x seeded, {beside_limit(secure, limit)}"
        )
    print(f"time grows with the {exponent(lambda size: partial(secure_words, size), LARGE_SIZES, 20):.2f}th power of the words of a call")
    for name in ("uniforms", "normals", "laplace", "integers"):
        secure, pcg = draws(secure_words, name), draws(seeded, name)
        taken, power = seconds(secure(COUNT)), exponent(secure, LARGE_SIZES)
        ratios = f"{taken / seconds(pcg(COUNT)):.3g} x seeded, {beside_limit(taken, limit * COUNT, power)}"
        print(f"{name:<9} secure {1e9 * taken / COUNT:6.2f} ns a number, {ratios}")


if __name__ == "__main__":
    main()
