"""The exact samplers on one core, against OpenDP and plain Python, all with secure words."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from random import SystemRandom

import numpy as np
from shared.growth import exponent
from shared.opendp_noise import discrete_gaussian, load_opendp
from shared.physical_limit import beside_limit, drawing_and_copying
from shared.processor_time import seconds

from quietbits.design.noise.binomial_noise import sample_binomial
from quietbits.design.noise.discrete_gaussian import sample_discrete_gaussian
from quietbits.design.noise.discrete_laplace import sample_discrete_laplace
from quietbits.design.noise.random_words import WordSource, secure_words
from quietbits.design.noise.skellam_noise import sample_skellam

SAMPLES, OTHER_SAMPLES, PLAIN_SAMPLES = 4 * 10**6, 30_000, 1000
SIZES = (SAMPLES // 16, SAMPLES // 4, SAMPLES)
SIGMAS = (0.5, 1.0, 10.0, 100.0, 1e3, 1e4)
RANDOM = SystemRandom()


def plain_bernoulli(exponent: Fraction) -> bool:
    """Return True with probability exp(-exponent): algorithm 1 of Canonne, Kamath, Steinke 2020."""
    while exponent > 1:
        if not plain_bernoulli(Fraction(1)):
            return False
        exponent -= 1
    count = 1
    while RANDOM.randrange(exponent.denominator * count) < exponent.numerator:
        count += 1
    return count % 2 == 1


def plain_laplace(scale: int) -> int:
    """Return a discrete Laplace number of an integer scale (algorithm 2)."""
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


def show(name: str, sample: Callable[[int, WordSource], object], others: dict[str, float]) -> None:
    """Print nanoseconds per number, and ratios to other samplers and to the physical limit.

    The limit is the words drawn, and the numbers copied.
    """
    taken = seconds(partial(sample, SAMPLES, secure_words))
    limit = drawing_and_copying(partial(sample, SAMPLES), secure_words, np.zeros(SAMPLES))
    power = exponent(lambda count: partial(sample, count, secure_words), SIZES, 3)
    ratios = "".join(f", {1e9 * taken / SAMPLES / other:.2g} x {whose} time" for whose, other in others.items())
    print(f"{name:<32} {1e9 * taken / SAMPLES:6.1f} ns a number{ratios}, {beside_limit(taken, limit, power)}")


def main() -> None:
    """Print times and ratios."""
    dp = load_opendp()
    for sigma in SIGMAS:
        exact = Fraction(sigma)
        plain = seconds(lambda exact=exact: [plain_gaussian(exact) for _ in range(PLAIN_SAMPLES)])
        others = {"plain Python's": 1e9 / PLAIN_SAMPLES * plain}
        if dp is not None:
            others["OpenDP's"] = 1e9 / OTHER_SAMPLES * seconds(discrete_gaussian(dp, sigma, OTHER_SAMPLES))
        show(f"discrete Gaussian, sigma {sigma:g}", partial(sample_discrete_gaussian, sigma), others)
    samplers: dict[str, Callable[[int, WordSource], object]] = {
        "discrete Laplace, scale 10": partial(sample_discrete_laplace, 10.0),
        "discrete Laplace, scale 1e4": partial(sample_discrete_laplace, 1e4),
        "Skellam, variance 100": partial(sample_skellam, 100.0),
        "Skellam, variance 1e6": partial(sample_skellam, 1e6),
        "Binomial, 64 fair trials": partial(sample_binomial, 64, 0.5),
        "Binomial, 1e6 fair trials": partial(sample_binomial, 10**6, 0.5),
        "Binomial, 1e4 trials of 1/3": partial(sample_binomial, 10**4, Fraction(1, 3)),
    }
    for name, sample in samplers.items():
        show(name, sample, {})


if __name__ == "__main__":
    main()
