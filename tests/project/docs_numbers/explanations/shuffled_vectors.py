"""Numbers of docs/explanations/shuffled-vectors.md."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import quietbits

DELTA = 1e-6
SIMPLEX, CODING = "shuffled-rotating-simplex", "shuffled-random-coding"


@cache
def built(name: str, dimension: int, clients: int, epsilon: float, **options: int) -> Any:
    ball = quietbits.NormBall(dimension, 2.0)
    delta = DELTA if "shuffled" in name else 0.0
    return quietbits.build_mechanism(name, quietbits.Task(ball, clients, epsilon, delta, "replace-one"), options)


def error(name: str, dimension: int, clients: int, epsilon: float, **options: int) -> float:
    return float(built(name, dimension, clients, epsilon, **options).error().of_mean(clients))


def share(dimension: int, clients: int) -> float:
    """Return the error of random coding over that of the simplex at epsilon 1."""
    return error(CODING, dimension, clients, 1.0) / error(SIMPLEX, dimension, clients, 1.0)


def short(value: float) -> str:
    return f"{value:.3g}"


def bits_rows() -> Iterator[list[str]]:
    """Return the division of messages between codebook and letter."""
    for bits in (8, 12, 16, 20, 24, None):
        options = {} if bits is None else {"message_bits": bits}
        mechanism = built(SIMPLEX, 256, 10_000, 1.0, **options)
        typed = f"{mechanism.bits_per_client:.0f}" + (" (default)" if bits is None else "")
        yield [typed, str(mechanism.seed_bits), str(mechanism.letter_bits), short(mechanism.error().of_mean(10_000))]


def bought_rows() -> Iterator[list[str]]:
    """Return errors of vectors by trust model."""
    for clients, dimension, epsilon in ((1000, 256, 1.0), (10_000, 256, 0.25), (10_000, 256, 1.0), (100_000, 256, 1.0), (10_000, 16, 1.0)):
        local, simplex, coding = (error(name, dimension, clients, epsilon) for name in ("rotating-simplex", SIMPLEX, CODING))
        central = quietbits.central_gaussian_error(quietbits.NormBall(dimension, 2.0), clients, epsilon, DELTA, "replace-one")
        size = [f"{clients:,}".replace(",", " "), str(dimension), f"{epsilon:g}"]
        yield [*size, *(short(value) for value in (local, simplex, coding, central)), f"{local / simplex:.1f}"]
