"""Encoding 10 000 vectors of 128 coordinates, against Gaussian noise.

Encoding with seeded words is compared with NumPy's seeded generator; encoding with secure words also with OpenDP, whose randomness is
secure.
"""

import math
from functools import partial

import numpy as np
from shared.growth import exponent, slope
from shared.opendp_noise import gaussian as opendp_gaussian
from shared.opendp_noise import load_opendp
from shared.physical_limit import beside_limit, drawing_and_copying
from shared.processor_time import seconds

from quietbits.arrays import FloatArray
from quietbits.design.contracts.mechanism import VectorMechanism
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.sqkr import sqkr_mechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.noise.random_words import WordSource, secure_words, seeded_words
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.solvers.divergences.dithered_norm import rounded_norm_bound
from quietbits.solvers.divergences.vector_composition import vector_divergences
from quietbits.solvers.numerics.walsh_hadamard import walsh_hadamard

CLIENTS, DIMENSION = 10_000, 128
# OpenDP adds noise to this many coordinates.
OTHER_COORDINATES = 10_000
SIZES = (CLIENTS // 16, CLIENTS // 4, CLIENTS)
# Tables of these numbers of inputs give the growth of the bounds' time.
INPUTS = (128, 256, 512)


def show(name: str, duration: float, gaussian: float, more: str = "") -> None:
    """Print a line with the time and the ratio to Gaussian noise."""
    print(f"{name:<46} {duration:7.3f} s, {duration / gaussian:6.2f} x numpy's Gaussian noise{more}")


def show_encoding(name: str, mechanism: VectorMechanism, vectors: FloatArray, random_words: WordSource, gaussian: float) -> float:
    """Print the encoding's time, limit and growth with the number of clients; return the time."""
    duration = seconds(partial(mechanism.encode, vectors, random_words))
    limit = drawing_and_copying(partial(mechanism.encode, vectors), random_words, vectors)
    power = exponent(lambda clients: partial(mechanism.encode, vectors[:clients], random_words), SIZES, 3)
    show(f"encode {name}", duration, gaussian, f", {beside_limit(duration, limit, power)}")
    return duration


def main() -> None:
    """Print seconds for encoding, counting and decoding, and for the guarantees' bounds.

    The physical limit of encoding is to draw the necessary words and to copy the vectors; of counting, to copy the messages; of the bounds,
    a product of a table with its transpose for each order.
    """
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((CLIENTS, DIMENSION))
    gaussian = seconds(lambda: vectors + rng.standard_normal((CLIENTS, DIMENSION)))
    show("numpy Gaussian noise, seeded", gaussian, gaussian)
    seeded = seeded_words(rng)
    dp = load_opendp()
    secure_gaussian = gaussian
    if dp is not None:
        secure_gaussian = seconds(opendp_gaussian(dp, 1.0, OTHER_COORDINATES)) / OTHER_COORDINATES * CLIENTS * DIMENSION
        show("OpenDP's Gaussian noise, secure", secure_gaussian, gaussian)
    for norm in (1.0, 2.0, math.inf):
        unit = vectors / np.linalg.norm(vectors, ord=norm, axis=1, keepdims=True)
        for bits in (3, 9):
            mechanism = VectorTableMechanism(generalised_randomised_response(1.0, bits), NormBall(DIMENSION, norm))
            show_encoding(f"p = {norm:g}, {bits} bits, seeded", mechanism, unit, seeded, gaussian)
        secure = show_encoding(f"p = {norm:g}, {bits} bits, secure", mechanism, unit, secure_words, gaussian)
        if dp is not None:
            print(f"    {secure / secure_gaussian:.3g} x OpenDP's Gaussian noise")
        messages = mechanism.encode(unit, rng)
        taken, copied = seconds(partial(mechanism.aggregate, messages)), seconds(messages.copy)
        power = exponent(lambda clients, mechanism=mechanism, sent=messages: partial(mechanism.aggregate, sent[:clients]), SIZES, 3)
        show(f"aggregate, p = {norm:g}, {bits} bits", taken, gaussian, f", {beside_limit(taken, copied, power)}")
    table = generalised_randomised_response(1.0, 9)
    rejecting = VectorTableMechanism(table, NormBall(DIMENSION, 2.0), dithering="rejection")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    show_encoding("with rejection, p = 2, 9 bits, seeded", rejecting, unit, seeded, gaussian)
    kashin = sqkr_mechanism(3.0, NormBall(DIMENSION, 2.0))
    show_encoding(f"SQKR, {kashin.message_bits} bits for a vector, seeded", kashin, unit, seeded, gaussian)
    transform = seconds(partial(walsh_hadamard, np.zeros((CLIENTS, kashin.frame.size))))
    show("    one transform of its coefficients", transform, gaussian)
    show("bound on the rounded norm, p = 3, 9 bits", seconds(partial(rounded_norm_bound, DIMENSION, 3.0, 255)), gaussian)
    print("bounds of 100 orders, 512 inputs, 128 and 1 000 000 coordinates, p = 1 and 2:")
    orders = np.geomspace(1.05, 500, 100)
    few = bitwise_randomised_response(3.0, 9).probabilities.reshape(512, 8, 64).sum(axis=2)
    products = len(orders) * seconds(partial(np.matmul, few, few.T))
    for dimension in (DIMENSION, 10**6):
        for norm in (1.0, 2.0):
            times = [seconds(partial(vector_divergences, few[:size], orders, dimension, norm, 1.0), 1) for size in INPUTS]
            show(
                f"  d = {dimension}, p = {norm:g}, 8 letters",
                times[-1],
                gaussian,
                f", {beside_limit(times[-1], products, slope(INPUTS, times))}",
            )


if __name__ == "__main__":
    main()
