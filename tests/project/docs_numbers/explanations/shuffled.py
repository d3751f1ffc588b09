"""Numbers of docs/explanations/shuffled.md."""

import itertools
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

import quietbits
from quietbits.design.tables.randomised_response import generalised_randomised_response
from quietbits.solvers.divergences.shuffled_letters import ShuffledLetters, clones_epsilon, largest_clones_epsilon, positive_part_bound

CLIENTS, DELTA = 10_000, 1e-6


@cache
def mechanism(name: str, epsilon: float, **options: int) -> Any:
    domain = quietbits.Categories(100) if "frequency" in name or name == "subset-selection" else quietbits.Interval()
    delta = DELTA if "shuffled" in name else 0.0
    task = quietbits.Task(domain, clients=CLIENTS, epsilon=epsilon, delta=delta, adjacency="replace-one")
    return quietbits.build_mechanism(name, task, options)


def error(name: str, epsilon: float, **options: int) -> str:
    value, exponent = f"{mechanism(name, epsilon, **options).error().of_mean(CLIENTS):.1e}".split("e")
    return f"{value}e{int(exponent)}"


def both(name: str, **options: int) -> list[str]:
    return [error(name, epsilon, **options) for epsilon in (0.25, 1.0)]


def bought_rows() -> Iterator[list[object]]:
    """Return errors of shuffled letters beside those of local and central mechanisms."""
    yield ["MVU, 3 bits in, 4 out, delta = 0", "local", "4", *both("mvu", bits_in=3, bits_out=4)]
    for out in (1, 2, 4):
        bits = f"{out} bit{'s' if out > 1 else ''} out"
        yield [f"`shuffled-mvu`, {bits}", "shuffled", str(out), *both("shuffled-mvu", bits_in=3, bits_out=out)]
    yield ["`shuffled-randomised-response`, 3 bits", "shuffled", "3", *both("shuffled-randomised-response", bits=3)]
    for domain, title in ((quietbits.Interval(), "Gaussian noise"), (quietbits.Categories(100), "Gaussian noise on the frequencies")):
        if title != "Gaussian noise":
            lengths = [mechanism("subset-selection", epsilon).bits_per_client for epsilon in (0.25, 1.0)]
            errors = [mechanism("subset-selection", epsilon).error().of_mean(CLIENTS) for epsilon in (0.25, 1.0)]
            yield [
                "subset selection, delta = 0",
                "local",
                ", ".join(f"{bits:.0f}" for bits in lengths),
                f"{errors[0]:.2f}",
                f"{errors[1]:.3f}",
            ]
            name = "shuffled-frequency-randomised-response"
            yield [f"`{name}`", "shuffled", f"{mechanism(name, 1.0).bits_per_client:.1f}", *both(name)]
        yield [title, "central", "", *(central(domain, epsilon) for epsilon in (0.25, 1.0))]


def central(domain: Any, epsilon: float) -> str:
    least = quietbits.central_gaussian_error(domain.ball("replace-one"), CLIENTS, epsilon, DELTA, "replace-one")
    value, exponent = f"{least:.1e}".split("e")
    return f"{value}e{int(exponent)}"


def letter_epsilon(epsilon: float) -> float:
    """Return the local epsilon of `shuffled-mvu` with 4 bits out."""
    return mechanism("shuffled-mvu", epsilon, bits_in=3, bits_out=4).table.epsilon


def account_rows() -> Iterator[list[str]]:
    """Return epsilon of the blanket, of the closed form, and of equal other clients."""
    tables = [
        (title, local, generalised_randomised_response(float(local), bits).weights)
        for title, local, bits in (
            ("randomised response, 2 letters", 3, 1),
            ("4 letters", 1, 2),
            ("4 letters", 3, 2),
            ("4 letters", 5, 2),
            ("16 letters", 3, 4),
        )
    ]
    tables.append(("MVU, 3 bits in and out", 3, quietbits.design_mvu(3.0, bits_in=3, bits_out=3).weights))
    for title, local, weights in tables:
        cells = [title, str(local)]
        for clients in (1000, 10_000, 100_000):
            blanket = ShuffledLetters(weights, clients).epsilon(DELTA)
            cells.append(rounded_up(blanket))
            if clients < 100_000:
                cells.append(f"{math.floor(1000 * realised(weights, clients, blanket)) / 1000:.3f}")
            if clients > 1000:
                cells.append(
                    rounded_up(clones_epsilon(local, clients, DELTA)) if local <= largest_clones_epsilon(clients, DELTA) else "none"
                )
        yield cells


def rounded_up(epsilon: float) -> str:
    return f"{math.ceil(1000 * epsilon) / 1000:.3f}"


def realised(weights: Any, clients: int, bound: float) -> float:
    """Return a lower bound on epsilon if all other clients hold the worst common input."""
    shares = np.asarray(weights, dtype=float) / np.sum(weights[0])
    shares = np.unique(shares[:, shares.max(axis=0) > 0], axis=0)

    def divergence(epsilon: float, triple: tuple[int, ...], count: int, accuracy: float) -> float:
        row, other, held = triple
        values = (shares[row] - math.exp(epsilon) * shares[other]) / shares[held]
        # The bound exceeds the divergence by a relative error of at most twice the accuracy.
        return positive_part_bound(values, shares[held], 0.0, count, accuracy) / (1 + 2 * accuracy)

    # Randomised response is the same for all triples of different inputs. The worst triple of few clients is also that of many.
    inputs = range(min(len(shares), 3)) if len(np.unique(shares)) == 2 else range(len(shares))
    triples = [triple for triple in itertools.product(inputs, repeat=3) if triple[0] != triple[1]]
    worst = max(triples, key=lambda triple: divergence(0.5, triple, 1000, 1e-2))

    def excess(epsilon: float) -> float:
        return math.log(max(divergence(epsilon, worst, clients, 1e-4), 1e-300) / DELTA)

    return float(brentq(excess, 0.5 * bound, 1.001 * bound, xtol=1e-5))
