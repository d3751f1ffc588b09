"""Coding an update of a million parameters, and vectors of 2^16 coordinates, against drawing normal numbers.

The update has ten groups of 128 samples. A vector has 256 candidates, of its own or shared with other clients (minimal random coding).
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from shared.growth import exponent
from shared.peak_memory import peak_mebibytes
from shared.physical_limit import WORDS, beside_limit
from shared.processor_time import seconds

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.unit_vectors.candidate_coding import MinimalRandomCodingMechanism
from quietbits.design.noise.random_words import seeded_words
from quietbits.design.relative_entropy.coding import decode_groups, encode_groups
from quietbits.design.relative_entropy.group_layout import uniform_layout
from quietbits.design.relative_entropy.shared_randomness import SharedNormals

DIMENSION, GROUPS, BITS = 10**6, 10, 7
DIMENSIONS = (DIMENSION // 16, DIMENSION // 4, DIMENSION)
CODED_DIMENSION, CODED_BITS, CODED_CLIENTS = 2**16, 8, (1, 10, 100)


def draw_with_numpy(rng: np.random.Generator) -> None:
    """Draw as many normal numbers as the encoder does, a group's sample at a time."""
    for _ in range(GROUPS << BITS):
        rng.standard_normal(DIMENSION // GROUPS, dtype=np.float32)


def draw_shared() -> None:
    """Draw the encoder's own numbers and discard them."""
    for group in range(GROUPS):
        normals = SharedNormals(seed=1, dimension=DIMENSION // GROUPS, stream=group)
        for index in range(1 << BITS):
            for _ in normals.parts(index):
                pass


def coding(dimension: int) -> dict[str, Callable[[], object]]:
    """Return runs of the encoder and of the decoder, for an update of a dimension."""
    rng = np.random.default_rng(0)
    update = rng.standard_normal(dimension) / np.sqrt(dimension)
    layout, words = uniform_layout(dimension, GROUPS, BITS), seeded_words(rng)
    indices = encode_groups(update, layout, 1, words)
    return {"encode": partial(encode_groups, update, layout, 1, words), "decode": partial(decode_groups, indices, layout, 1)}


def show_candidates(half_word: float) -> None:
    """Print milliseconds of a client of minimal random coding, and ratios for clients that share a seed.

    The physical limit is to draw the words of a seed's candidates once, and to multiply the candidates by the clients' vectors.
    """
    rng, ball, numbers = np.random.default_rng(0), NormBall(CODED_DIMENSION, 2.0), CODED_DIMENSION << CODED_BITS
    vectors = rng.standard_normal((max(CODED_CLIENTS), CODED_DIMENSION)) / np.sqrt(CODED_DIMENSION)
    single = vectors.astype(np.float32)
    candidates = rng.standard_normal((1 << CODED_BITS, CODED_DIMENSION), dtype=np.float32)
    product = seconds(partial(np.matmul, candidates, single[0]))
    print(f"{1 << CODED_BITS} candidates of {CODED_DIMENSION} coordinates; their product with a vector {1e3 * product:.2f} ms")
    own = MinimalRandomCodingMechanism(4.0, CODED_BITS, ball)
    own_taken = seconds(partial(own.encode, vectors[:1], rng))
    print(f"  encode, own seed       {1e3 * own_taken:7.2f} ms a client, {beside_limit(own_taken, half_word * numbers + product)}")
    shared = MinimalRandomCodingMechanism(4.0, CODED_BITS, ball, seed_bits=0)
    for clients in CODED_CLIENTS:
        taken = seconds(partial(shared.encode, vectors[:clients], rng)) / clients
        multiplied = seconds(partial(np.matmul, single[:clients], candidates.T)) / clients
        limit, ratio = half_word * numbers / clients + multiplied, f"{taken / own_taken:.3f} x own seeds, {taken / product:.3g} products"
        print(f"  encode, {clients:3} a seed     {1e3 * taken:7.2f} ms a client, {ratio}, {beside_limit(taken, limit)}")
    for name, mechanism in (("own seeds", own), ("one seed", shared)):
        messages = mechanism.encode(vectors[:1], rng).repeat(1000, axis=0)
        messages[:, 1] = rng.integers(1 << CODED_BITS, size=len(messages))
        taken = seconds(partial(mechanism.aggregate, messages)) / len(messages)
        print(f"  aggregate 1000, {name:<9}{1e3 * taken:5.2f} ms a client, {beside_limit(taken, half_word * CODED_DIMENSION)}")


def main() -> None:
    """Print seconds of encoding and decoding, ratios to numpy's normal numbers, and memory.

    The physical limit is to draw the words of the shared numbers, half a word each: the encoder draws all samples, the decoder draws one.
    """
    rng, philox = np.random.default_rng(0), np.random.Philox(key=1)
    numpy_normals = seconds(partial(draw_with_numpy, rng))
    half_word = seconds(partial(philox.random_raw, WORDS), calls=20) / WORDS / 2
    print(f"numpy float32 standard_normal, {DIMENSION << BITS} numbers: {numpy_normals:.2f} s")
    drawn = seconds(draw_shared)
    ratio = f"{drawn / numpy_normals:6.3f} x numpy's time"
    print(f"{'shared normal numbers alone':<28} {drawn:7.3f} s: {ratio}, {beside_limit(drawn, half_word * (DIMENSION << BITS))}")
    for name, samples in (("encode", 1 << BITS), ("decode", 1)):
        taken, power = seconds(coding(DIMENSION)[name]), exponent(lambda dimension, name=name: coding(dimension)[name], DIMENSIONS, 3)
        ratio = f"{taken / numpy_normals * (1 << BITS) / samples:6.3f} x numpy's time for as many numbers"
        print(f"{name:<28} {taken:7.3f} s: {ratio}, {beside_limit(taken, half_word * DIMENSION * samples, power)}")
    show_candidates(half_word)
    print(f"largest memory of the process: {peak_mebibytes():.0f} MiB")


if __name__ == "__main__":
    main()
