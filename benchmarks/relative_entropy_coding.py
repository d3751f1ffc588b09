"""Speed of coding an update of a million parameters in ten groups of 128 samples, beside drawing as many normal numbers, on one core."""

import resource
from collections.abc import Callable
from functools import partial

import numpy as np
from shared.processor_time import seconds

from quietbits.design.noise.random_words import seeded_words
from quietbits.design.relative_entropy.coding import decode_groups, encode_groups
from quietbits.design.relative_entropy.group_layout import uniform_layout
from quietbits.design.relative_entropy.shared_randomness import SharedNormals

DIMENSION, GROUPS, BITS = 10**6, 10, 7


def draw_with_numpy(rng: np.random.Generator) -> None:
    """Draw as many normal numbers as the encoder does, a group's sample at a time."""
    for _ in range(GROUPS << BITS):
        rng.standard_normal(DIMENSION // GROUPS, dtype=np.float32)


def draw_shared() -> None:
    """Draw the encoder's own numbers, and do nothing with them."""
    for group in range(GROUPS):
        normals = SharedNormals(seed=1, dimension=DIMENSION // GROUPS, stream=group)
        for index in range(1 << BITS):
            for _ in normals.parts(index):
                pass


def main() -> None:
    """Print seconds of encoding and decoding, ratios to numpy's normal numbers, and the process's largest memory."""
    rng = np.random.default_rng(0)
    update = rng.standard_normal(DIMENSION) / np.sqrt(DIMENSION)
    layout = uniform_layout(DIMENSION, GROUPS, BITS)
    words = seeded_words(rng)
    indices = encode_groups(update, layout, 1, words)
    numpy_normals = seconds(partial(draw_with_numpy, rng))
    runs: dict[str, Callable[[], object]] = {
        "shared normal numbers alone": draw_shared,
        "encode": partial(encode_groups, update, layout, 1, words),
        "decode": partial(decode_groups, indices, layout, 1),
    }
    print(f"numpy float32 standard_normal, {DIMENSION << BITS} numbers: {numpy_normals:.2f} s")
    for name, run in runs.items():
        duration = seconds(run)
        print(f"{name:<28} {duration:7.3f} s: {duration / numpy_normals:6.3f} x")
    print(f"largest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
