"""Numbers of docs/proofs/mixed-shares.md."""

import itertools
import math
from collections import Counter

from quietbits.solvers.divergences.shuffled_shares import shuffled_shares_distance

CASES = ((2, 2, 2), (2, 3, 3), (2, 4, 4), (3, 3, 3), (3, 4, 4), (4, 3, 3), (4, 4, 4))
Law = dict[tuple[int, ...], float]


def mixed(numbers: tuple[int, ...], messages: int, modulus: int) -> Law:
    """Return the law of the numbers of shares of each value."""
    law: Law = {(0,) * modulus: 1.0}
    for number in numbers:
        added: Counter[tuple[int, ...]] = Counter()
        for drawn in itertools.product(range(modulus), repeat=messages - 1):
            shares = Counter((*drawn, (number - sum(drawn)) % modulus))
            for others, chance in law.items():
                added[tuple(count + shares[value] for value, count in enumerate(others))] += chance / modulus ** (messages - 1)  # type: ignore[assignment]
        law = dict(added)
    return law


def exact_distance(modulus: int, clients: int, messages: int) -> float:
    """Return the largest distance of mixed shares from uniform shares of the same sum."""
    shares, worst = clients * messages, 0.0
    for numbers in itertools.combinations_with_replacement(range(modulus), clients):
        law = mixed(numbers, messages, modulus)
        excess = 0.0
        for counts, chance in law.items():
            uniform = math.factorial(shares) / math.prod(map(math.factorial, counts)) / modulus ** (shares - 1)
            excess += max(0.0, chance - uniform)
        worst = max(worst, excess)
    return worst


def enumerated() -> list[list[str]]:
    rows = []
    for modulus, clients, messages in CASES:
        published = math.sqrt(modulus * (math.e / clients) ** (messages - 2))
        cells = exact_distance(modulus, clients, messages), shuffled_shares_distance(clients, messages, modulus), published
        rows.append([f"{modulus}", f"{clients}", f"{messages}", *(f"{cell:.4f}" for cell in cells)])
    return rows
