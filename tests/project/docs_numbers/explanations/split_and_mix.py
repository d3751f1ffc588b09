"""Numbers of docs/explanations/split-and-mix.md."""

import math
from functools import cache
from typing import Any

import quietbits
from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.mechanism import Mechanism
from quietbits.solvers.divergences.shuffled_shares import messages_for_distance

CLIENTS, DELTA = 10_000, 1e-6
NUMBERS, ITEMS = quietbits.Interval(), quietbits.Categories(100)
VECTORS = (quietbits.NormBall(16, 1.0), quietbits.NormBall(16, 2.0), quietbits.NormBall(256, 2.0))


@cache
def built(name: str, domain: Any, delta: float = DELTA) -> Mechanism:
    options = {"bits_in": 4, "bits_out": 5} if name == "shuffled-mvu" else {}
    return build_mechanism(name, quietbits.Task(domain, CLIENTS, 1.0, delta, "replace-one"), options)


def error(name: str, domain: Any, delta: float = DELTA) -> float:
    return built(name, domain, delta).error().of_mean(CLIENTS)


def bought() -> list[list[str]]:
    held = (
        ("a number", NUMBERS, "shuffled-mvu"),
        ("one of 100 items", ITEMS, "shuffled-frequency-randomised-response"),
        ("a vector of 16 coordinates, L1 norm", VECTORS[0], None),
        ("a vector of 16 coordinates, L2 norm", VECTORS[1], None),
        ("a vector of 256 coordinates, L2 norm", VECTORS[2], None),
    )
    rows = []
    for words, domain, rival in held:
        split: Any = built("split-and-mix", domain)
        times = "" if rival is None else f"{error(rival, domain) / error('split-and-mix', domain):.1f}"
        cells = f"{split.vector_mechanism.messages}", f"{split.bits_per_client:,.0f}", f"{error('split-and-mix', domain):.3g}"
        rows.append([words, *cells, "none" if rival is None else f"`{rival}`", times])
    return rows


def over_secure_sum() -> float:
    return error("split-and-mix", NUMBERS) / error("distributed-discrete-laplace", NUMBERS, 0.0)


def numbers_of_messages() -> list[list[str]]:
    counts = (20, 100, 1000, 10_000, 1_000_000)
    published = [math.ceil((2 * 40 + 32) / (math.log2(clients) - math.log2(math.e)) + 2) for clients in counts]
    ours = [messages_for_distance(clients, 2**32, 2.0**-41) for clients in counts]
    return [[f"{clients:,}", f"{mine}", f"{theirs}"] for clients, mine, theirs in zip(counts, ours, published, strict=True)]
