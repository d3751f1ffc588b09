"""Speed of the Walsh-Hadamard transform beside scipy's orthonormal cosine transform of the same lengths, on one core."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.fft

from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard

# One long vector, the target; long ones; and the frame's coefficients of 10 000 vectors of 128 coordinates (SQKR).
SHAPES = ((1, 2**20), (1, 2**22), (64, 2**14), (10_000, 256))
REPETITIONS = 20


def seconds(run: Callable[[], object]) -> float:
    """Return the shortest of several runs, after one to warm up."""
    run()
    durations = []
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        run()
        durations.append(time.perf_counter() - started)
    return min(durations)


def main() -> None:
    """Print milliseconds of both transforms, and their ratio, for each shape."""
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        vectors = rng.standard_normal(shape)
        ours = seconds(partial(walsh_hadamard, vectors))
        cosine = seconds(partial(scipy.fft.dct, vectors, norm="ortho"))
        name = f"{shape[0]} x {shape[1]}"
        print(f"{name:<16} walsh_hadamard {1e3 * ours:7.2f} ms, scipy.fft.dct {1e3 * cosine:7.2f} ms: {ours / cosine:5.2f} x")


if __name__ == "__main__":
    main()
