"""Numbers of docs/shuffled.md."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import quietbits

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
