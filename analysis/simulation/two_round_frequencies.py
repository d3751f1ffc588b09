"""Two rounds: a private count of the different items that are held, then a sketch of the length that this number needs."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_integer, check_probability
from ...design.contracts.domains import Categories
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import FrequencyEstimate
from ...design.contracts.task import Budget
from ...design.frequencies.distinct_count import MOST_BUCKETS, DistinctCount, DistinctEstimate
from ...design.frequencies.sparse_frequencies import SparseFrequencies, calibrate_sparse_frequencies
from ..random_streams import named_stream

LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, eq=False)
class TwoRoundFrequencies:
    """What two rounds have estimated.

    Attributes
    ----------
    count : DistinctCount
        Round one.
    counted : DistinctEstimate
        What it said.
    mechanism : SparseFrequencies
        Round two, for at most `counted.upper` different items.
    estimate : FrequencyEstimate
        Estimate of every item's frequency.
    """

    count: DistinctCount
    counted: DistinctEstimate
    mechanism: SparseFrequencies
    estimate: FrequencyEstimate

    @property
    def guarantee(self) -> Guarantee:
        """Of both rounds: their epsilons added up, which holds although the second depends on what the first has shown.

        Dwork, Roth 2014, *The algorithmic foundations of differential privacy*, theorem B.1: whatever the first round shows, the second
        has the same epsilon and delta.
        """
        second = self.mechanism.guarantee
        return Guarantee(self.count.epsilon + second.epsilon, second.adjacency, second.trust_model, delta=second.delta)

    @property
    def bits_per_client(self) -> float:
        """Of both messages."""
        return self.count.bits_per_client + self.mechanism.bits_per_client


def count_buckets(categories: int, clients: int) -> int:
    """Return how many buckets tell well whether a sketch is worth while, a power of two.

    Up to half of the number of items from which on a sketch is no shorter than a histogram: with more there is more noise, with fewer
    all of them are full where many items are held.

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
    count_share: float = 0.2,
    failure: float = 0.05,
    seed: int = 0,
) -> TwoRoundFrequencies:
    """Let clients count the different items that they hold, then estimate frequencies by a sketch for no more than that.

    A simulation: sums are drawn by their law. The count has `count_share` of epsilon, and is purely private; the sketch has the rest, and
    delta.

    Parameters
    ----------
    items : array_like of int, shape (clients,)
        One item for each client; the same clients are there in both rounds.
    categories : int
        Number of items.
    epsilon, delta : float
        Budget of both rounds together.
    adjacency : str
        Which data sets are neighbours.
    count_share : float
        Share of epsilon for the count, above 0 and below 1.
    failure : float
        Probability that more items are held than round two reckons with.
    seed : int
        Root seed, of hashes, too.

    Raises
    ------
    ValueError
        If an argument is out of range.
    InfeasibleError
        If the budget is out of reach.

    Examples
    --------
    >>> items = np.random.default_rng(0).choice(100, 50_000) * 1000
    >>> found = two_round_frequencies(items, 100_000, 1.0, 1e-5)
    >>> 100 <= found.counted.upper < 5000, 0 <= 1 - found.guarantee.epsilon <= 1e-6
    (True, True)
    >>> bool(np.sum((found.estimate.decoded - np.bincount(items, minlength=100_000) / 50_000) ** 2) < 1e-5)
    True
    """
    held = Categories(categories).clip(items)
    clients, share = check_integer("clients", len(held), low=1, high=2**53), check_probability("count_share", count_share)
    counts = np.bincount(held, minlength=categories)
    public, first, second = (named_stream(seed, f"two rounds: {part}") for part in ("hashes", "count", "sketch"))
    hashes = [int(public.integers(LARGEST_SEED)) for _ in range(2)]
    count = DistinctCount(categories, clients, count_buckets(categories, clients), share * epsilon, hashes[0], adjacency)
    counted = count.estimate(count.simulated_sum(counts, first), failure)
    budget = Budget(epsilon - count.epsilon, delta, adjacency)
    mechanism = calibrate_sparse_frequencies(categories, clients, budget, max(1, counted.upper), seed=hashes[1])
    aggregate = np.mod(mechanism.simulated_sum(counts, second), mechanism.modulus)
    return TwoRoundFrequencies(count, counted, mechanism, mechanism.estimate(aggregate, clients))
