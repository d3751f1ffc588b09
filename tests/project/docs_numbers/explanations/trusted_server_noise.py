"""Numbers of docs/explanations/trusted-server-noise.md."""

from collections.abc import Iterator

import quietbits
from quietbits.analysis.catalogue.registry import build_mechanism

CLIENTS = 10_000


def error(name: str, domain: quietbits.Interval | quietbits.Categories, epsilon: float, delta: float) -> float:
    return build_mechanism(name, quietbits.Task(domain, CLIENTS, epsilon, delta, "replace-one")).error().of_mean(CLIENTS)


def error_rows() -> Iterator[list[str]]:
    """Return the errors of Laplace and Gaussian noise over that of the staircase, by epsilon."""
    for epsilon in (0.1, 1.0, 5.0, 10.0):
        numbers = quietbits.Interval()
        staircase, laplace = (error(name, numbers, epsilon, 0.0) for name in ("central-staircase", "central-laplace"))
        gaussian = error("central-gaussian", numbers, epsilon, 1e-6)
        yield [f"{epsilon:g}", f"{laplace / staircase:#.5g}", f"{gaussian / staircase:.3g}"]


def histogram() -> float:
    return error("central-discrete-laplace", quietbits.Categories(100), 1.0, 0.0)


def histogram_with_delta() -> float:
    return error("central-gaussian", quietbits.Categories(100), 1.0, 1e-6)
