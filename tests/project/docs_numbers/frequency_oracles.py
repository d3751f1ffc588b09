"""Numbers of docs/frequency-oracles.md."""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import quietbits

CATEGORIES = 100_000


@cache
def mechanism(name: str, epsilon: float) -> Any:
    task = quietbits.Task(quietbits.Categories(CATEGORIES), clients=1, epsilon=epsilon, delta=0.0, adjacency="replace-one")
    return quietbits.build_mechanism(name, task, {})


def variance(name: str, epsilon: float) -> float:
    """Return the worst variance over k 4E/(E - 1)²."""
    power = math.exp(epsilon)
    return mechanism(name, epsilon).worst_variance / (CATEGORIES * 4 * power / (power - 1) ** 2)


def bits(name: str, epsilon: float) -> str:
    number = mechanism(name, epsilon).bits_per_client
    return f"{number:.1f}" if number < 1000 else f"{number:.0f}" if number < 10_000 else f"{number:,.0f}".replace(",", " ")


def winner_rows() -> Iterator[list[object]]:
    """Return variances and bits; the last column is of a design that no command offers."""
    for epsilon in (0.5, 1.0, 2.0, 5.0, 10.0):
        own = variance("frequency-randomised-response", epsilon)
        shown = f"{own:.3f}" if own < 10 else f"{own:.0f}" if own < 10_000 else f"{own:,.0f}".replace(",", " ")
        cells = [f"{shown}; {bits('frequency-randomised-response', epsilon)}"]
        middle = ("unary-encoding", "subset-selection", "projective-geometry-response")
        cells += [f"{variance(name, epsilon):.3f}; {bits(name, epsilon)}" for name in middle]
        lengths = [mechanism(name, epsilon).bits_per_client for name in ("hadamard-response", "recursive-hadamard-response")]
        cells.append(f"{variance('hadamard-response', epsilon):.3f}; {lengths[0]:.0f} ({lengths[1]:.0f})")
        yield [f"{epsilon:g}", *cells, ...]
