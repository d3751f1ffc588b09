"""Numbers of docs/dp-rec-accounting.md."""

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import quietbits

# Data, N, B, T, clip ratio and epsilon of the paper, bits of all groups.
SETTINGS = (
    ("MNIST", 100, 10, 1000, 0.545, 3, 56),
    ("MNIST", 100, 10, 1000, 0.87, 6, 56),
    ("FEMNIST", 3500, 100, 4000, 0.77, 1, 56),
    ("FEMNIST", 3500, 100, 4000, 1.41, 3, 56),
    ("FEMNIST", 3500, 100, 4000, 1.745, 6, 56),
    ("Shakespeare", 660, 66, 200, 1.435, 3, 63),
    ("StackOverflow", 342_477, 60, 1500, 1.227, 1, 42),
)


def training(population: int, drawn: int, rounds: int, bits: int) -> dict[str, Any]:
    return {"population": population, "clients_per_round": drawn, "rounds": rounds, "index_bits": bits, "delta": population**-1.1}


@cache
def accounts(setting: int) -> dict[str, Any]:
    """Return what all accounts say of a setting of the paper."""
    _, population, drawn, rounds, ratio, _, bits = SETTINGS[setting]
    return quietbits.account("dp-rec", clip_ratio=ratio, **training(population, drawn, rounds, bits)).document()["accounts"]


def shown(epsilon: float | None) -> str:
    """Return an epsilon rounded up."""
    if epsilon is None:
        return "∞"
    digits = 3 if epsilon < 10 else 2
    return f"{math.ceil(epsilon * 10**digits) / 10**digits:.{digits}f}"


def paper_rows() -> Iterator[list[str]]:
    """Return the paper's settings and what the accounts for its adjacency say."""
    for index, (data, population, drawn, rounds, ratio, epsilon, _) in enumerate(SETTINGS):
        by = accounts(index)
        size = f"{population:,}".replace(",", " ") if population >= 10_000 else str(population)
        numbers = [shown(by[name]["epsilon"]) for name in ("published", "conservative")]
        rest = [str(by["published"]["minimum_bits"]), shown(by["any-bits"]["epsilon"])]
        yield [data, size, str(drawn), str(rounds), f"{ratio:g}", str(epsilon), *numbers, *rest]


def proven_rows() -> Iterator[list[str]]:
    """Return what is proven of the paper's settings, and the clip ratio that its epsilon takes."""
    yield ["c of the paper", *(f"{setting[4]:g}" for setting in SETTINGS)]
    yield ["paper's ε", *(str(setting[5]) for setting in SETTINGS)]
    epsilons = [accounts(index)["any-clients"]["epsilon"] for index in range(len(SETTINGS))]
    digits = [3 if epsilon < 100 else 1 for epsilon in epsilons]
    yield [
        "`any-clients` ε",
        *(f"{math.ceil(one * 10**places) / 10**places:.{places}f}" for one, places in zip(epsilons, digits, strict=True)),
    ]
    ratios = [
        quietbits.calibrate("dp-rec", epsilon=float(epsilon), **training(population, drawn, rounds, bits))["clip_ratio"]
        for _, population, drawn, rounds, _, epsilon, bits in SETTINGS
    ]
    yield ["c for the paper's ε", *(f"{math.floor(ratio * 1000) / 1000:.3f}" for ratio in ratios)]
