"""Numbers of docs/explanations/distributed-noise.md."""

from collections.abc import Iterator
from functools import cache

import quietbits
from quietbits import Budget
from quietbits.design.secure_sum.poisson_binomial_mechanism import PoissonBinomialMechanism, calibrate_poisson_binomial, calibrate_theta
from quietbits.design.transforms.kashin import KASHIN_CONSTANT as KASHIN_CONSTANT
from quietbits.design.transforms.vector_dithering import rejection_bias_bound as rejection_bias_bound

CLIENTS, BALL, DELTA = 1000, quietbits.NormBall(1024, 2.0), 1e-5


def few_clients_cost() -> float:
    """Return the variance of two trials over one trial's, for two clients in one dimension."""
    single, double = (1 / (trials * calibrate_theta(2, trials, 2, Budget(1.0, DELTA, "replace-one")) ** 2) for trials in (1, 2))
    return double / single


def central_error() -> float:
    return quietbits.central_gaussian_error(BALL, CLIENTS, 1.0, DELTA, "replace-one")


@cache
def tosses(bits: int, method: str | None) -> PoissonBinomialMechanism:
    return calibrate_poisson_binomial(BALL, CLIENTS, bits, Budget(1.0, DELTA, "replace-one", method=method))


def biased() -> PoissonBinomialMechanism:
    """Return a mechanism of the table, all of which have the same bias."""
    return PoissonBinomialMechanism(BALL, CLIENTS, trials=1, theta=0.03, delta=DELTA)


def cost_rows() -> Iterator[list[str]]:
    """Return worst errors by bits per coordinate, and variances of coin tosses."""
    task = quietbits.Task(BALL, clients=CLIENTS, epsilon=1.0, delta=DELTA, adjacency="replace-one")
    lengths = (10, 11, 12, 13, 14, 16, 20)
    for title, name in (
        ("discrete Gaussian, 1024 coordinates", "distributed-discrete-gaussian"),
        ("Skellam, 1024 coordinates", "distributed-skellam"),
    ):
        errors = [quietbits.build_mechanism(name, task, {"bits": bits}).error().of_mean(CLIENTS) for bits in lengths]
        digits = (1, 3, 4, 4, 4, 4, 4)
        yield [title, *(f"{error:.{places}f}" for error, places in zip(errors, digits, strict=True))]
    for title, method in (("Poisson-binomial, 2048 coordinates", None), ("the same by `rdp-extremes`, not proven", "rdp-extremes")):
        yield [title, *(f"{tosses(bits, method).variance_bound / CLIENTS:.4f}" for bits in lengths)]
