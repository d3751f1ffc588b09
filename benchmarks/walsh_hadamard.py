"""The Walsh-Hadamard transform against scipy's orthonormal cosine transform, on one core."""

from functools import partial

import numpy as np
import scipy.fft
from shared.growth import slope
from shared.linear_algebra import kernels
from shared.physical_limit import beside_limit
from shared.processor_time import seconds

from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard

# The shapes are short vectors, a batch of a protocol's clients, long vectors, and the frame's coefficients of 10 000 vectors of 128
# coordinates (SQKR).
SHAPES = ((1, 2**6), (1, 2**10), (1, 2**12), (16, 2**10), (16, 2**16), (64, 2**14), (10_000, 256), (1, 2**18), (1, 2**20), (1, 2**22))
REPETITIONS, LEAST_NUMBERS = 20, 2**17


def main() -> None:
    """Print times of both transforms, their ratio, the ratio to a copy, and the growth.

    The transform consists of matrix products: its speed depends on the kernels of linear algebra.
    """
    print(f"kernels of the linear algebra: {kernels()}")
    rng = np.random.default_rng(0)
    lengths, times = [], []
    for shape in SHAPES:
        vectors = rng.standard_normal(shape)
        calls = max(1, LEAST_NUMBERS // vectors.size)
        ours, cosine, single, copy = (
            1e6 * seconds(run, REPETITIONS, calls)
            for run in (
                partial(walsh_hadamard, vectors),
                partial(scipy.fft.dct, vectors, norm="ortho"),
                partial(walsh_hadamard, vectors.astype(np.float32)),
                vectors.copy,
            )
        )
        name = f"{shape[0]} x {shape[1]}"
        print(
            f"{name:<16} walsh_hadamard {ours:9.1f} us, scipy.fft.dct {cosine:9.1f} us: {ours / cosine:5.2f} x its time; "
            f"float32 {single / ours:.2f} x float64; {beside_limit(ours, copy)}"
        )
        if shape[0] == 1 and shape[1] >= LEAST_NUMBERS // 2**5:
            lengths.append(shape[1])
            times.append(ours)
    print(f"time grows with the {slope(lengths, times):.2f}th power of the length")


if __name__ == "__main__":
    main()
