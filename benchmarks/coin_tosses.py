"""Tosses of coins with different biases, as the Poisson-binomial mechanism sends them, against NumPy's binomial numbers."""

from functools import partial

import numpy as np
from shared.growth import slope
from shared.physical_limit import beside_limit, drawing_and_copying
from shared.processor_time import seconds

from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.noise.binomial_noise import count_successes
from quietbits.design.noise.random_words import secure_words, seeded_words
from quietbits.design.secure_sum.poisson_binomial_mechanism import PoissonBinomialMechanism

COINS, TRIALS = 2**19, (1, 2, 4, 8, 16, 32, 64)
CLIENTS, DIMENSION, THETA = 100, 1000, 0.2


def main() -> None:
    """Print times of a coin and of a coefficient, and the growth with the number of trials.

    The physical limit is to draw the words and to copy the biases.
    """
    rng = np.random.default_rng(0)
    biases, times = rng.uniform(-0.25, 0.25, COINS), []
    for trials in TRIALS:
        numpy = seconds(partial(rng.binomial, trials, 0.5 + biases), 3)
        taken = seconds(partial(count_successes, biases, trials, seeded_words(rng)), 3)
        secure = seconds(partial(count_successes, biases, trials, secure_words), 3)
        limit = drawing_and_copying(partial(count_successes, biases, trials), seeded_words(rng), biases)
        times.append(taken)
        print(
            f"{trials:2} tosses: seeded {1e9 * taken / COINS:5.1f} ns a coin, {taken / numpy:.2f} x numpy's binomial, "
            f"{beside_limit(taken, limit)}; secure {1e9 * secure / COINS:5.1f} ns"
        )
    print(f"time grows with the {slope(TRIALS[2:], times[2:]):.2f}th power of the tosses from 4 on")
    vectors = rng.standard_normal((CLIENTS, DIMENSION))
    for trials in (1, 64):
        mechanism = PoissonBinomialMechanism(NormBall(DIMENSION, 2.0), 1000, trials, THETA, 1e-5)
        size = CLIENTS * mechanism.padded_dimension
        drawn = seconds(partial(rng.binomial, trials, rng.uniform(0.3, 0.7, size)), 3)
        encoded = seconds(partial(mechanism.encode, vectors, rng), 3)
        print(
            f"encode, {trials} tosses a coefficient: {1e9 * encoded / size:.1f} ns a coefficient, {encoded / drawn:.2f} x numpy's binomial"
        )


if __name__ == "__main__":
    main()
