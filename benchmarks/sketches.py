"""Count-mean sketches of a large model, beside the memory that they read and what drawing their hashes takes."""

import resource

import numpy as np
from shared.processor_time import seconds

from quietbits.design.transforms.count_sketch import CountMeanSketch
from quietbits.design.transforms.hadamard_sketch import HadamardSketch

DIMENSION, ROWS, RATE = 4_000_000, 15, 10
HUGE = 10_000_000


def main() -> None:
    """Print times and ratios."""
    vector = np.random.default_rng(0).standard_normal(DIMENSION)
    sketch = CountMeanSketch(DIMENSION, ROWS, DIMENSION // RATE // ROWS, seed=1)
    encoded = sketch.encode(vector)
    target = np.empty_like(vector)
    # A pass over the vector for each row, read and written, is what memory allows an encoder that keeps no hashes.
    memory = ROWS * seconds(lambda: np.copyto(target, vector))
    hashes = seconds(lambda: [np.random.Philox(key=1, counter=(row + 1) << 192).random_raw(DIMENSION // 2) for row in range(ROWS)])
    times = {
        "encode": seconds(lambda: sketch.encode(vector)),
        "decode": seconds(lambda: sketch.decode(encoded)),
        "decode by medians": seconds(lambda: sketch.decode_median(encoded)),
    }
    print(f"d = {DIMENSION:,}, {ROWS} rows, {sketch.sketch_dimension:,} coordinates; {ROWS} copies of the vector take {memory:.3f} s")
    print(f"drawing the hashed words alone: {hashes:.3f} s, {hashes / memory:.1f} x the copies")
    for name, taken in times.items():
        per_update = 1e9 * taken / DIMENSION / ROWS
        print(f"{name:18} {taken:.3f} s, {per_update:.2f} ns a coordinate and row, {taken / memory:.1f} x the copies")
    several = np.stack([vector] * 4)
    print(f"encode, 4 clients at a time: {seconds(lambda: sketch.encode(several)) / 4:.3f} s each, hashed once")
    hadamard = HadamardSketch(DIMENSION, DIMENSION // RATE, seed=1)
    print(f"subsampled Hadamard, encode: {seconds(lambda: hadamard.encode(vector)):.3f} s, of the same size")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    huge = CountMeanSketch(HUGE, ROWS, HUGE // RATE // ROWS, seed=1)
    huge.decode(huge.encode(np.ones(HUGE)))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"d = {HUGE:,}: encoding and decoding takes {grown:.0f} MiB more than the above, vectors of {8 * HUGE / 2**20:.0f} MiB included")


if __name__ == "__main__":
    main()
