"""Speed of encoding 10 000 vectors of 128 coordinates, beside Gaussian noise of the same shape, and of their bounds, on one core."""

import math
from functools import partial

import numpy as np
from shared.processor_time import seconds

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.local.sqkr import sqkr_mechanism
from quietbits.design.local.vector_table import VectorTableMechanism
from quietbits.design.noise.random_words import secure_words
from quietbits.design.tables.randomised_response import bitwise_randomised_response, generalised_randomised_response
from quietbits.solvers.divergences.dithered_norm import rounded_norm_bound
from quietbits.solvers.divergences.vector_composition import vector_divergences

CLIENTS, DIMENSION = 10_000, 128


def show(name: str, duration: float, gaussian: float) -> None:
    """Print one line: the time, and the ratio to Gaussian noise."""
    print(f"{name:<46} {duration:7.3f} s, {duration / gaussian:6.2f} x Gaussian noise")


def main() -> None:
    """Print seconds for encoding, counting and decoding, and for the bounds that guarantees are made of."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((CLIENTS, DIMENSION))
    gaussian = seconds(lambda: vectors + rng.standard_normal((CLIENTS, DIMENSION)))
    show("numpy Gaussian noise", gaussian, gaussian)
    for norm in (1.0, 2.0, math.inf):
        unit = vectors / np.linalg.norm(vectors, ord=norm, axis=1, keepdims=True)
        for bits in (3, 9):
            mechanism = VectorTableMechanism(generalised_randomised_response(1.0, bits), NormBall(DIMENSION, norm))
            show(f"encode, p = {norm:g}, {bits} bits", seconds(partial(mechanism.encode, unit, rng)), gaussian)
        show(f"encode, secure, p = {norm:g}, {bits} bits", seconds(partial(mechanism.encode, unit, secure_words)), gaussian)
        messages = mechanism.encode(unit, rng)
        show(f"aggregate, p = {norm:g}, {bits} bits", seconds(partial(mechanism.aggregate, messages)), gaussian)
    table = generalised_randomised_response(1.0, 9)
    rejecting = VectorTableMechanism(table, NormBall(DIMENSION, 2.0), dithering="rejection")
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    show("encode with rejection, p = 2, 9 bits", seconds(partial(rejecting.encode, unit, rng)), gaussian)
    kashin = sqkr_mechanism(3.0, NormBall(DIMENSION, 2.0))
    show(f"encode SQKR, {kashin.bits} bits for the whole vector", seconds(partial(kashin.encode, unit, rng)), gaussian)
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
