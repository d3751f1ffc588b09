"""Speed of the two random rotations, there and back, beside scipy's orthonormal cosine transform of the same lengths, on one core."""

from functools import partial

import numpy as np
import scipy.fft
from shared.processor_time import seconds

from quietbits.design.transforms.rotation import RandomisedFourier, RandomisedHadamard

# One long vector; a batch of a protocol's clients; and a dimension that is far from the next power of two.
SHAPES = ((1, 2**20), (16, 2**16), (1, 2**20 + 1000))


def main() -> None:
    """Print milliseconds of each rotation and its ratio to the cosine transform, for each shape."""
    rng = np.random.default_rng(0)
    for clients, dimension in SHAPES:
        vectors = rng.standard_normal((clients, dimension))
        cosine = seconds(partial(scipy.fft.dct, vectors, norm="ortho"))
        print(f"{clients} x {dimension}: scipy.fft.dct {1e3 * cosine:.2f} ms")
        for rotation in (RandomisedHadamard(dimension, seed=1), RandomisedFourier(dimension, seed=1)):
            forward = seconds(partial(rotation.forward, vectors))
            inverse = seconds(partial(rotation.inverse, rotation.forward(vectors)))
            name = type(rotation).__name__
            print(
                f"    {name:<18} forward {1e3 * forward:7.2f} ms: {forward / cosine:5.2f} x,"
                f" inverse {1e3 * inverse:7.2f} ms: {inverse / cosine:5.2f} x"
            )


if __name__ == "__main__":
    main()
