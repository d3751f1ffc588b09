"""Numbers of docs/explanations/frequency-oracles.md."""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binom, norm

import quietbits
from quietbits.design.frequencies.hadamard_response import HadamardResponse, hadamard_response, published_blocks

CATEGORIES = 100_000
NAMES = (
    "frequency-randomised-response",
    "unary-encoding",
    "subset-selection",
    "projective-geometry-response",
    "hadamard-response",
    "recursive-hadamard-response",
)


@cache
def mechanism(name: str, epsilon: float) -> Any:
    task = quietbits.Task(quietbits.Categories(CATEGORIES), clients=1, epsilon=epsilon, delta=0.0, adjacency="replace-one")
    return quietbits.build_mechanism(name, task, {})


def variance(name: str, epsilon: float) -> float:
    """Return the worst variance over k 4E/(E - 1)²."""
    power = math.exp(epsilon)
    return mechanism(name, epsilon).variance_bound / (CATEGORIES * 4 * power / (power - 1) ** 2)


def bits(name: str, epsilon: float) -> str:
    number = mechanism(name, epsilon).bits_per_client
    return f"{number:.1f}" if number < 1000 else f"{number:.0f}" if number < 10_000 else f"{number:,.0f}".replace(",", " ")


def published_variance(epsilon: float) -> float:
    """Return Hadamard response's worst variance with the paper's blocks, over k 4E/(E - 1)²."""
    power = math.exp(epsilon)
    published = HadamardResponse(epsilon, CATEGORIES, published_blocks(epsilon, CATEGORIES))
    return published.variance_bound / (CATEGORIES * 4 * power / (power - 1) ** 2)


def projective_loss() -> float:
    """Return projective geometry response's largest excess variance, in percent."""
    epsilons = (0.5, 1.0, 2.0, 5.0)
    return 100 * (
        max(variance("projective-geometry-response", epsilon) / variance("subset-selection", epsilon) for epsilon in epsilons) - 1
    )


def largest_single_bit() -> float:
    """Return the largest epsilon at which a single block has the least variance."""
    return max(epsilon for epsilon in np.arange(1.0, 2.0, 0.05).tolist() if hadamard_response(epsilon, CATEGORIES).blocks == 1)


def false_positives() -> float:
    """Return the ratio of randomised response's false positive rate to the stated 0.001."""
    clients = categories = 1000
    task = quietbits.Task(quietbits.Categories(categories), clients=clients, epsilon=1.0, delta=0.0, adjacency="replace-one")
    built = quietbits.build_mechanism("frequency-randomised-response", task, {})
    threshold = norm.isf(0.001) * math.sqrt(built.other_variance / clients)
    counts = np.arange(clients + 1)
    # Each client reports an item without holders with the same probability.
    decoded = np.array([built.decode(np.full(categories, count), clients)[0] for count in counts])
    masses = binom.pmf(counts, clients, 1 / (math.e + categories - 1))
    return float(masses[decoded > threshold].sum()) / 0.001


def winner_rows() -> Iterator[list[object]]:
    """Return variances and bits of the best local mechanisms."""
    for epsilon in (0.5, 1.0, 2.0, 5.0, 10.0):
        own = variance("frequency-randomised-response", epsilon)
        shown = f"{own:.3f}" if own < 10 else f"{own:.0f}" if own < 10_000 else f"{own:,.0f}".replace(",", " ")
        cells = [f"{shown}; {bits('frequency-randomised-response', epsilon)}"]
        middle = ("unary-encoding", "subset-selection", "projective-geometry-response")
        cells += [f"{variance(name, epsilon):.3f}; {bits(name, epsilon)}" for name in middle]
        lengths = [mechanism(name, epsilon).bits_per_client for name in ("hadamard-response", "recursive-hadamard-response")]
        cells.append(f"{variance('hadamard-response', epsilon):.3f}; {lengths[0]:.0f} ({lengths[1]:.0f})")
        yield [f"{epsilon:g}", *cells, f"{published_variance(epsilon):.3f}"]
