"""Speed of the Walsh-Hadamard transform beside scipy's orthonormal cosine transform of the same lengths, on one core."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.fft

from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard

# Short vectors, a batch of a protocol's clients, long ones; and the frame's coefficients of 10 000 vectors of 128 coordinates (SQKR).
SHAPES = ((1, 2**6), (1, 2**10), (1, 2**12), (16, 2**10), (16, 2**16), (64, 2**14), (10_000, 256), (1, 2**18), (1, 2**20), (1, 2**22))
REPETITIONS, LEAST_NUMBERS = 20, 2**17


def seconds(run: Callable[[], object], repetitions: int) -> float:
    """Return the processor's time for one run, the shortest of several means, after one run to warm up."""
    run()
    durations = []
    for _ in range(REPETITIONS):
        started = time.process_time()
        for _ in range(repetitions):
            run()
        durations.append((time.process_time() - started) / repetitions)
    return min(durations)


def main() -> None:
    """Print times of both transforms, their ratio, the physical limit, and the exponent of growth with a vector's length."""
    rng = np.random.default_rng(0)
    lengths, times = [], []
    for shape in SHAPES:
        vectors = rng.standard_normal(shape)
        repetitions = max(1, LEAST_NUMBERS // vectors.size)
        ours, cosine, single, copy = (
            1e6 * seconds(run, repetitions)
            for run in (
                partial(walsh_hadamard, vectors),
                partial(scipy.fft.dct, vectors, norm="ortho"),
                partial(walsh_hadamard, vectors.astype(np.float32)),
                vectors.copy,
            )
        )
        name = f"{shape[0]} x {shape[1]}"
        print(
            f"{name:<16} walsh_hadamard {ours:9.1f} us, scipy.fft.dct {cosine:9.1f} us: {ours / cosine:5.2f} x; "
            f"float32 {single / ours:.2f} x; {ours / copy:5.1f} x copying"
        )
        if shape[0] == 1 and shape[1] >= LEAST_NUMBERS // 2**5:
            lengths.append(shape[1])
            times.append(ours)
    print(f"time grows with the {np.polyfit(np.log(lengths), np.log(times), 1)[0]:.2f}th power of the length")


if __name__ == "__main__":
    main()
