"""Two rounds: a private count of different items, then a sketch of sufficient length."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import MOST_CLIENTS, check_integer, check_probability
from ...design.contracts.domains import Categories
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import FrequencyEstimate, FrequencyMechanism
from ...design.contracts.registry import Entry
from ...design.contracts.task import Task
from ...design.frequencies.distinct_count import MOST_BUCKETS, DistinctCount, DistinctEstimate
from ..catalogue.frequency_sums import SPARSE_FREQUENCIES
from ..random_streams import named_stream
from .mean import aggregate_once

LARGEST_SEED = 2**63 - 1
# Name of the option that a count of different items sets, and suffix of options for public randomness.
SIZED_BY, SEED = "distinct_items", "_seed"


@dataclass(frozen=True, eq=False)
class TwoRoundFrequencies:
    """Results of both rounds.

    Attributes
    ----------
    count : DistinctCount
        Mechanism of the first round.
    counted : DistinctEstimate
        Estimate of the first round.
    mechanism : FrequencyMechanism
        Mechanism of the second round, for at most `counted.upper` different items.
    estimate : FrequencyEstimate
        Estimate of every item's frequency.
    """

    count: DistinctCount
    counted: DistinctEstimate
    mechanism: FrequencyMechanism
    estimate: FrequencyEstimate

    @property
    def distinct_items(self) -> int:
        """Largest number of different items that the second round is made for."""
        return min(max(1, self.counted.upper), self.count.categories, self.count.clients)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of both rounds, with the sum of their epsilons.

        The second round depends on the first round's result. For every result of the first round, the second round has the same epsilon and
        delta, so that both add up (Dwork, Roth 2014, *The algorithmic foundations of differential privacy*, theorem B.1).
        """
        second = self.mechanism.guarantee
        return Guarantee(self.count.epsilon + second.epsilon, second.adjacency, second.trust_model, delta=second.delta)

    @property
    def bits_per_client(self) -> float:
        """Number of bits of both messages."""
        return self.count.bits_per_client + self.mechanism.bits_per_client


def sized_by_count(entry: Entry) -> bool:
    """Return whether the size of a mechanism depends on a count of different items."""
    return SIZED_BY in entry.planned_with


def count_buckets(categories: int, clients: int) -> int:
    """Return the number of buckets, a power of two, to decide whether a sketch pays off.

    The number is at most half of the number of held items from which on a sketch is no shorter than a histogram. More buckets have more
    noise, and fewer buckets may all be full if clients hold many items.

    Examples
    --------
    >>> count_buckets(100_000, 50_000)
    8192
    """
    numbers = np.arange(1, min(categories, clients) + 1)
    shorter = 2 * numbers * (1 + np.log(categories / numbers)) < categories
    return int(min(MOST_BUCKETS, 2 ** int(math.log2(max(2, np.count_nonzero(shorter) / 2)))))


def two_round_frequencies(
    items: ArrayLike,
    categories: int,
    epsilon: float,
    delta: float,
    *,
    adjacency: str = "replace-one",
    entry: Entry = SPARSE_FREQUENCIES,
    count_share: float = 0.2,
    failure: float = 0.05,
    seed: int = 0,
) -> TwoRoundFrequencies:
    """Count different items privately, then estimate frequencies by a sketch of fitting size.

    The function is a simulation, which draws sums from their law. The count has `count_share` of epsilon and is purely private; the sketch
    has the rest of epsilon, and delta.

    Parameters
    ----------
    items : array_like of int, shape (clients,)
        One item for each client; both rounds have the same clients.
    categories : int
        Number of items.
    epsilon, delta : float
        Budget of both rounds together.
    adjacency : str
        Adjacency of the guarantee.
    entry : Entry
        Mechanism of the second round, for which `sized_by_count` is true.
    count_share : float
        Share of epsilon for the count, above 0 and below 1.
    failure : float
        Probability that clients hold more items than the second round allows.
    seed : int
        Root seed, also of hashes.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If no mechanism keeps the budget.

    Examples
    --------
    >>> items = np.random.default_rng(0).choice(100, 50_000) * 1000
    >>> result = two_round_frequencies(items, 100_000, 1.0, 1e-5)
    >>> 100 <= result.counted.upper < 5000, 0 <= 1 - result.guarantee.epsilon <= 1e-6
    (True, True)
    >>> bool(np.sum((result.estimate.decoded - np.bincount(items, minlength=100_000) / 50_000) ** 2) < 1e-5)
    True
    """
    held = Categories(categories).clip(items)
    clients, share = check_integer("clients", len(held), low=1, high=MOST_CLIENTS), check_probability("count_share", count_share)
    counts = np.bincount(held, minlength=categories)
    public, first, second = (named_stream(seed, f"two rounds: {part}") for part in ("hashes", "count", "sketch"))
    hashes = [int(public.integers(LARGEST_SEED)) for _ in range(2)]
    count = DistinctCount(categories, clients, count_buckets(categories, clients), share * epsilon, hashes[0], adjacency)
    counted = count.estimate(count.simulated_sum(counts, first), failure)
    seeds = {option.name: hashes[1] for option in entry.options if option.name.endswith(SEED)}
    task = Task(Categories(categories), clients, epsilon - count.epsilon, delta, adjacency)
    mechanism = entry.mechanism_for(task, {SIZED_BY: max(1, counted.upper), **seeds})
    assert isinstance(mechanism, FrequencyMechanism)  # noqa: S101 - what entries for items build
    return TwoRoundFrequencies(count, counted, mechanism, mechanism.estimate(aggregate_once(mechanism, held, second), clients))
