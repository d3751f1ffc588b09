"""Speed of secure words, beside asking the operating system for them and beside a seeded generator, on one core."""

import secrets
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from shared.processor_time import seconds

from quietbits.design.noise.random_words import secure_words, seeded_words

COUNT = 2**22
SIZES = (1, 2**5, 2**10, 2**15, 2**20)
# Words of a call at most, and calls.
MOST_CALLS = 2**14


def system_words(count: int) -> NDArray[np.uint64]:
    """Return words of the operating system, in one call."""
    return np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)


def million_per_second(source: Callable[[int], object], size: int) -> float:
    """Return the speed of drawing words, `size` at a time."""
    calls = min(MOST_CALLS, COUNT // size)
    return calls * size / seconds(lambda: [source(size) for _ in range(calls)]) / 1e6


def main() -> None:
    """Print million words per second for calls of several sizes, and million draws of each kind."""
    seeded = seeded_words(np.random.default_rng(0))
    each = million_per_second(system_words, 1)
    for size in SIZES:
        secure, system, pcg = (million_per_second(source, size) for source in (secure_words, system_words, seeded))
        print(
            f"{size:>8} words a call: secure {secure:7.2f} million/s, {secure / system:5.1f} x the operating system asked once a call, "
            f"{secure / each:5.1f} x asked for each word, {secure / pcg:5.2f} x seeded"
        )
    for name in ("uniforms", "normals", "laplace"):
        secure, pcg = (COUNT / seconds(partial(getattr(source, name), COUNT)) / 1e6 for source in (secure_words, seeded))
        print(f"{name:<9} secure {secure:6.1f} million/s, {secure / pcg:5.2f} x seeded")
    secure, pcg = (COUNT / seconds(partial(source.integers, 1000, COUNT)) / 1e6 for source in (secure_words, seeded))
    print(f"{'integers':<9} secure {secure:6.1f} million/s, {secure / pcg:5.2f} x seeded")


if __name__ == "__main__":
    main()
