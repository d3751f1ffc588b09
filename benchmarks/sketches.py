"""Count-mean sketches of a large model, against reading their memory."""

from collections.abc import Callable
from functools import partial

import numpy as np
from shared.growth import exponent
from shared.peak_memory import peak_mebibytes
from shared.physical_limit import beside_limit
from shared.processor_time import seconds

from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch

DIMENSION, ROWS, RATE = 4_000_000, 15, 10
DIMENSIONS = (DIMENSION // 16, DIMENSION // 4, DIMENSION)
HUGE = 10_000_000


def sketching(dimension: int) -> dict[str, Callable[[], object]]:
    """Return runs of the encoder and of the decoders, for a dimension."""
    vector = np.random.default_rng(0).standard_normal(dimension)
    sketch = CountMeanSketch(dimension, ROWS, dimension // RATE // ROWS, seed=1)
    encoded = sketch.encode(vector)
    return {
        "encode": partial(sketch.encode, vector),
        "decode": partial(sketch.decode, encoded),
        "decode by medians": partial(sketch.decode_median, encoded),
    }


def main() -> None:
    """Print times and ratios.

    The physical limit of a sketch without stored hashes is to draw the hashed words, and to copy the vector for each row; the limit of a
    Hadamard transform is to copy the vector once.
    """
    vector = np.random.default_rng(0).standard_normal(DIMENSION)
    target = np.empty_like(vector)
    copied = seconds(lambda: np.copyto(target, vector))
    hashes = seconds(lambda: [np.random.Philox(key=1, counter=(row + 1) << 192).random_raw(DIMENSION // 2) for row in range(ROWS)])
    limit = ROWS * copied + hashes
    print(f"d = {DIMENSION:,}, {ROWS} rows: physical limit {limit:.3f} s, of which drawing the hashed words {hashes:.3f} s")
    for name, run in sketching(DIMENSION).items():
        taken = seconds(run)
        power = exponent(lambda dimension, name=name: sketching(dimension)[name], DIMENSIONS, 3)
        print(f"{name:18} {taken:.3f} s, {1e9 * taken / DIMENSION / ROWS:.2f} ns a coordinate and row, {beside_limit(taken, limit, power)}")
    several = np.stack([vector] * 4)
    sketch = CountMeanSketch(DIMENSION, ROWS, DIMENSION // RATE // ROWS, seed=1)
    together = seconds(lambda: sketch.encode(several)) / 4
    print(f"encode, 4 clients at a time: {together:.3f} s each, {beside_limit(together, ROWS * copied + hashes / 4)}, hashed once")
    hadamard = HadamardSketch(DIMENSION, DIMENSION // RATE, seed=1)
    taken = seconds(lambda: hadamard.encode(vector))
    power = exponent(lambda size: partial(HadamardSketch(size, size // RATE, seed=1).encode, vector[:size]), DIMENSIONS, 3)
    print(f"subsampled Hadamard of the same size, encode: {taken:.3f} s, {beside_limit(taken, copied, power)}")
    before = peak_mebibytes()
    huge = CountMeanSketch(HUGE, ROWS, HUGE // RATE // ROWS, seed=1)
    huge.decode(huge.encode(np.ones(HUGE)))
    grown = peak_mebibytes() - before
    print(f"d = {HUGE:,}: encoding and decoding takes {grown:.0f} MiB more than the above, vectors of {8 * HUGE / 2**20:.0f} MiB included")


if __name__ == "__main__":
    main()
