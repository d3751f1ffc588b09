"""Speed of the exact samplers on one core, beside OpenDP's discrete Gaussian and a plain Python one, all three with secure words."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from random import SystemRandom

import numpy as np
from shared.opendp_noise import discrete_gaussian, load_opendp
from shared.processor_time import seconds

from quietbits.design.noise.binomial_noise import sample_binomial
from quietbits.design.noise.discrete_gaussian import sample_discrete_gaussian
from quietbits.design.noise.discrete_laplace import sample_discrete_laplace
from quietbits.design.noise.random_words import secure_words, seeded_words
from quietbits.design.noise.skellam_noise import sample_skellam

SAMPLES, OTHER_SAMPLES, PLAIN_SAMPLES = 4 * 10**6, 30_000, 1000
REPETITIONS = 5
SIGMAS = (0.5, 1.0, 10.0, 100.0, 1e3, 1e4)
RANDOM = SystemRandom()


def million_per_second(run: Callable[[], object], samples: int) -> float:
    """Return the speed of the quickest of several runs, after one to warm up."""
    return samples / seconds(run, REPETITIONS) / 1e6


def plain_bernoulli(exponent: Fraction) -> bool:
    """Return True with probability exp(-exponent) (algorithm 1 of Canonne, Kamath, Steinke 2020)."""
    while exponent > 1:
        if not plain_bernoulli(Fraction(1)):
            return False
        exponent -= 1
    count = 1
    while RANDOM.randrange(exponent.denominator * count) < exponent.numerator:
        count += 1
    return count % 2 == 1


def plain_laplace(scale: int) -> int:
    """Return a discrete Laplace number of whole scale (algorithm 2)."""
    while True:
        low = RANDOM.randrange(scale)
        if not plain_bernoulli(Fraction(low, scale)):
            continue
        high = 0
        while plain_bernoulli(Fraction(1)):
            high += 1
        magnitude, negative = low + scale * high, RANDOM.randrange(2)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def plain_gaussian(sigma: Fraction) -> int:
    """Return a discrete Gaussian number (algorithm 3)."""
    scale = int(sigma) + 1
    while True:
        number = plain_laplace(scale)
        if plain_bernoulli((abs(number) - sigma**2 / scale) ** 2 / (2 * sigma**2)):
            return number


def main() -> None:
    """Print million samples per second, and ratios."""
    words = seeded_words(np.random.default_rng(0))
    dp = load_opendp()
    for sigma in SIGMAS:
        ours = million_per_second(partial(sample_discrete_gaussian, sigma, SAMPLES, words), SAMPLES)
        secure = million_per_second(partial(sample_discrete_gaussian, sigma, SAMPLES, secure_words), SAMPLES)
        exact = Fraction(sigma)
        plain = million_per_second(lambda exact=exact: [plain_gaussian(exact) for _ in range(PLAIN_SAMPLES)], PLAIN_SAMPLES)
        line = f"discrete Gaussian, sigma {sigma:<7g} {ours:6.1f} million/s, secure {secure:5.1f}: {secure / plain:7.0f} x plain Python"
        if dp is not None:
            other = million_per_second(discrete_gaussian(dp, sigma, OTHER_SAMPLES), OTHER_SAMPLES)
            line += f"; {secure / other:5.0f} x OpenDP's {other:.3f}"
        print(line)
    others: dict[str, Callable[[], object]] = {
        "discrete Laplace, scale 10": partial(sample_discrete_laplace, 10.0, SAMPLES, words),
        "discrete Laplace, scale 1e4": partial(sample_discrete_laplace, 1e4, SAMPLES, words),
        "Skellam, variance 100": partial(sample_skellam, 100.0, SAMPLES, words),
        "Skellam, variance 1e6": partial(sample_skellam, 1e6, SAMPLES, words),
        "Binomial, 64 fair trials": partial(sample_binomial, 64, 0.5, SAMPLES, words),
        "Binomial, 1e6 fair trials": partial(sample_binomial, 10**6, 0.5, SAMPLES, words),
        "Binomial, 1e4 trials of 1/3": partial(sample_binomial, 10**4, Fraction(1, 3), SAMPLES, words),
    }
    for name, run in others.items():
        print(f"{name:<32} {million_per_second(run, SAMPLES):6.1f} million/s")


if __name__ == "__main__":
    main()
