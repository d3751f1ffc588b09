"""Speed of encoding 10 000 vectors of 128 coordinates, beside Gaussian noise of the same shape, and of their bounds, on one core.

Encoding with seeded words is compared with NumPy's seeded generator; with secure words also with OpenDP, whose randomness is secure.
"""

import math
from functools import partial

import numpy as np
from shared.growth import exponent
from shared.opendp_noise import gaussian as opendp_gaussian
from shared.opendp_noise import load_opendp
from shared.processor_time import seconds

from quietbits.arrays import FloatArray
from quietbits.design.contracts.mechanism import VectorMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.sqkr import sqkr_mechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.noise.random_words import WordsLike, secure_words, word_source
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.solvers.divergences.dithered_norm import rounded_norm_bound
from quietbits.solvers.divergences.vector_composition import vector_divergences
from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard

CLIENTS, DIMENSION = 10_000, 128
# Coordinates that OpenDP adds noise to.
OTHER_COORDINATES = 10_000
SIZES = (CLIENTS // 16, CLIENTS // 4, CLIENTS)


def show(name: str, duration: float, gaussian: float, more: str = "") -> None:
    """Print one line: the time, and the ratio to Gaussian noise."""
    print(f"{name:<46} {duration:7.3f} s, {duration / gaussian:6.2f} x Gaussian noise{more}")


def show_encoding(name: str, mechanism: VectorMechanism, vectors: FloatArray, words: WordsLike, gaussian: float, limit: float) -> None:
    """Print one line, with the physical limit and the growth with the number of clients."""
    duration = seconds(partial(mechanism.encode, vectors, words))
    power = exponent(lambda clients: partial(mechanism.encode, vectors[:clients], words), SIZES, 3)
    show(f"encode {name}", duration, gaussian, f"; {duration / limit:5.1f} x its words and a copy, grows with the {power:.2f}th power")


def main() -> None:
    """Print seconds for encoding, counting and decoding, and for the bounds that guarantees are made of.

    The physical limit of encoding is to draw the words that are needed, of a table two for each coordinate and of SQKR two for each
    client's coordinate sent and two more, and to read and write the vectors once.
    """
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((CLIENTS, DIMENSION))
    gaussian = seconds(lambda: vectors + rng.standard_normal((CLIENTS, DIMENSION)))
    show("numpy Gaussian noise, seeded", gaussian, gaussian)
    copied = seconds(vectors.copy)
    seeded_limit, secure_limit = (seconds(partial(word_source(words), 2 * CLIENTS * DIMENSION)) + copied for words in (rng, secure_words))
    dp = load_opendp()
    secure_gaussian = gaussian
    if dp is not None:
        secure_gaussian = seconds(opendp_gaussian(dp, 1.0, OTHER_COORDINATES)) / OTHER_COORDINATES * CLIENTS * DIMENSION
        show("OpenDP's Gaussian noise, secure", secure_gaussian, gaussian)
    for norm in (1.0, 2.0, math.inf):
        unit = vectors / np.linalg.norm(vectors, ord=norm, axis=1, keepdims=True)
        for bits in (3, 9):
            mechanism = VectorTableMechanism(generalised_randomised_response(1.0, bits), NormBall(DIMENSION, norm))
            show_encoding(f"p = {norm:g}, {bits} bits, seeded", mechanism, unit, rng, gaussian, seeded_limit)
        show_encoding(f"p = {norm:g}, {bits} bits, secure", mechanism, unit, secure_words, gaussian, secure_limit)
        if dp is not None:
            print(
                f"    {secure_gaussian / seconds(partial(mechanism.encode, unit, secure_words)):.0f} x as fast as OpenDP's Gaussian noise"
            )
        messages = mechanism.encode(unit, rng)
        show(f"aggregate, p = {norm:g}, {bits} bits", seconds(partial(mechanism.aggregate, messages)), gaussian)
    table = generalised_randomised_response(1.0, 9)
    rejecting = VectorTableMechanism(table, NormBall(DIMENSION, 2.0), dithering="rejection")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    show_encoding("with rejection, p = 2, 9 bits, seeded", rejecting, unit, rng, gaussian, seeded_limit)
    kashin = sqkr_mechanism(3.0, NormBall(DIMENSION, 2.0))
    few_words = seconds(partial(word_source(rng), (2 * kashin.bits + 2) * CLIENTS))
    show_encoding(f"SQKR, {kashin.bits} bits for a vector, seeded", kashin, unit, rng, gaussian, few_words + copied)
    transform = seconds(partial(walsh_hadamard, np.zeros((CLIENTS, kashin.frame.size))))
    show("    one transform of its coefficients", transform, gaussian)
    show("bound on the rounded norm, p = 3, 9 bits", seconds(partial(rounded_norm_bound, DIMENSION, 3.0, 255)), gaussian)
    print("bounds of 100 orders, 512 inputs, 128 and 1 000 000 coordinates, p = 1 and 2:")
    orders = np.geomspace(1.05, 500, 100)
    few = bitwise_randomised_response(3.0, 9).probabilities.reshape(512, 8, 64).sum(axis=2)
    for dimension in (DIMENSION, 10**6):
        for norm in (1.0, 2.0):
            run = partial(vector_divergences, few, orders, dimension, norm, 1.0)
            show(f"  d = {dimension}, p = {norm:g}, 8 letters", seconds(run, repetitions=1), gaussian)


if __name__ == "__main__":
    main()
