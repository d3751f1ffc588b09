"""What an adversary makes of shuffled letters: whether their histogram tells what one client held, if the others' inputs are known."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray
from ...design.contracts.domains import Interval
from ...design.shuffled.shuffled_mechanism import ShuffledMechanism
from .privacy_audit import Score

# Letters that are drawn at a time, of all clients and repetitions together.
BLOCK = 2**20


def shuffled_population(mechanism: ShuffledMechanism, *, first: bool, others: str) -> NDArray[Any]:
    """Return what the clients hold: one of them an end of the domain, which depends on the population, all others the same input.

    That is the middle of the domain (``"zero"``), or the end that the first population's client holds (``"same"``).
    """
    domain = mechanism.domain
    if isinstance(domain, Interval):
        ends, middle = (domain.high, domain.low), domain.middle
    else:
        ends, middle = (0, domain.dimension - 1), domain.dimension // 2
    held = np.full(mechanism.clients, middle if others == "zero" else ends[0])
    held[0] = ends[0] if first else ends[1]
    return held


def shuffled_score(mechanism: ShuffledMechanism, first: ArrayLike, second: ArrayLike) -> Score:
    """Return the logarithm of the likelihood ratio of two populations whose first clients differ and whose others all hold the same.

    With o the law of the others' letters, a histogram has the density mean of a / o over its letters, where a is that of the first client.
    """
    held, replaced = np.asarray(first), np.asarray(second)
    laws = [mechanism.letter_law(value) for value in (held[0], replaced[0], held[-1])]
    ratios = [np.divide(law, laws[2], out=np.zeros_like(law), where=laws[2] > 0) for law in laws[:2]]

    def score(inputs: ArrayLike, count: int, rng: np.random.Generator) -> FloatArray:
        population = np.asarray(inputs)
        at_once = max(1, BLOCK // len(population))
        parts = []
        for start in range(0, count, at_once):
            letters = mechanism.encode(np.tile(population, min(at_once, count - start)), rng).reshape(-1, len(population)).astype(np.intp)
            parts.append(np.subtract(*(np.log(ratio[letters].sum(axis=1)) for ratio in ratios)))
        return np.concatenate(parts)

    return score
