"""Two random rotations against scipy's orthonormal cosine transform, on one core."""

from functools import partial

import numpy as np
import scipy.fft
from shared.growth import exponent
from shared.physical_limit import beside_limit
from shared.processor_time import seconds

from quietbits.design.transforms.rotation import RandomisedFourier, RandomisedHadamard

# The shapes are a long vector, a batch of a protocol's clients, and a dimension far from the next power of two.
SHAPES = ((1, 2**20), (16, 2**16), (1, 2**20 + 1000))
DIMENSIONS = (2**16, 2**18, 2**20)


def main() -> None:
    """Print milliseconds per rotation, and ratios to the cosine transform and to a copy."""
    rng = np.random.default_rng(0)
    for clients, dimension in SHAPES:
        vectors = rng.standard_normal((clients, dimension))
        cosine, copied = seconds(partial(scipy.fft.dct, vectors, norm="ortho")), seconds(vectors.copy)
        print(f"{clients} x {dimension}: scipy.fft.dct {1e3 * cosine:.2f} ms, physical limit {1e3 * copied:.2f} ms")
        for kind in (RandomisedHadamard, RandomisedFourier):
            rotation = kind(dimension, seed=1)
            for name, rotate, given in (("forward", rotation.forward, vectors), ("inverse", rotation.inverse, rotation.forward(vectors))):
                taken = seconds(partial(rotate, given))
                line = f"    {kind.__name__:<18} {name} {1e3 * taken:7.2f} ms: {taken / cosine:5.2f} x the cosine transform's time"
                print(f"{line}, {beside_limit(taken, copied)}")
    for kind in (RandomisedHadamard, RandomisedFourier):
        power = exponent(lambda dimension, kind=kind: partial(kind(dimension, seed=1).forward, np.ones((1, dimension))), DIMENSIONS)
        print(f"{kind.__name__}: time grows with the {power:.2f}th power of the dimension")


if __name__ == "__main__":
    main()
