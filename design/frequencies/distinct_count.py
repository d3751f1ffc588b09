"""The number of different items that clients hold, by a noisy secure sum modulo 2.

The server counts empty buckets (Whang, Vander-Zanden, Taylor 1990, *A linear-time probabilistic counting algorithm*); a client sends a fair
bit for its own bucket, so that the sum modulo 2 shows whether the bucket has any client, but not how many.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_ITEMS, check_choice, check_integer, check_probability, check_real
from ...arrays import FloatArray, IntegerArray, WordArray
from ..contracts.accounts import pure_privacy
from ..contracts.domains import Categories
from ..contracts.guarantee import ADJACENCIES
from ..contracts.privacy import Privacy
from ..noise.random_words import WordsLike, word_source
from ..secure_sum.modular_arithmetic import aggregate_residues, summed_messages
from .item_sketch import ItemSketch

MOST_CLIENTS = 10**7
MOST_BUCKETS = 2**24
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-4, 20.0
WORD = 2.0**64


@dataclass(frozen=True)
class DistinctEstimate:
    """The estimates from a noisy count of empty buckets.

    Attributes
    ----------
    empty_buckets : float
        Unbiased estimate of the number of buckets without any client's item; it may be negative.
    distinct_items : float
        Number of different items with an expected number of empty buckets of `empty_buckets`, from 0 to the largest value of `upper`.
    upper : int
        Upper bound on the number of held items, except with the failure probability, over noise and hashes.
    """

    empty_buckets: float
    distinct_items: float
    upper: int


@dataclass(frozen=True)
class DistinctCount:
    """A mechanism whose clients send a bit per bucket, and a fair bit for their item's bucket.

    Bits of other buckets are rarely 1. The server sees the sum modulo 2. Its bit of a bucket with items is fair, whatever their number. Its
    bit of an empty bucket is 1 with probability (1 - b) / 2, where b = (1 - 2 p)^n for n clients and the probability p of a rare 1. Bits
    are independent. Replacing an item changes at most two buckets, of which one becomes empty and the other ceases to be empty:
    probabilities change by a factor of at most (1 + b) / (1 - b), which is e^epsilon. Removing an item changes one bucket, and
    probabilities by at most 1 / (1 - b).

    Attributes
    ----------
    categories : int
        Number of items.
    clients : int
        Number n of clients, from 1 to 10**7; the guarantee counts the bits of all of them.
    buckets : int
        Number of buckets, from 2 to 2**24; with at least `categories` buckets, each item has its own.
    epsilon : float
        Pure privacy parameter, from 1e-4 to 20.
    seed : int
        Public seed of the hash, which items must not depend on.
    adjacency : str
        ``"replace-one"``, or ``"add-or-remove-one"``: a client has an item or none, and sends rare bits either way.

    Examples
    --------
    >>> count = DistinctCount(categories=10_000, clients=1000, buckets=512, epsilon=2.0, seed=1)
    >>> items = np.repeat(np.arange(100) * 50, 10)
    >>> messages = count.encode(items, np.random.default_rng(0))
    >>> estimate = count.estimate(count.aggregate(messages))
    >>> round(count.contrast, 3), round(estimate.distinct_items), estimate.upper
    (0.762, 144, 305)
    """

    categories: int
    clients: int
    buckets: int
    epsilon: float
    seed: int = 0
    adjacency: str = "replace-one"

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "categories", check_integer("categories", self.categories, low=2, high=MOST_ITEMS))
        object.__setattr__(self, "clients", check_integer("clients", self.clients, low=1, high=MOST_CLIENTS))
        object.__setattr__(self, "buckets", check_integer("buckets", self.buckets, low=2, high=MOST_BUCKETS))
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=SMALLEST_EPSILON, high=LARGEST_EPSILON))
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        self._hash()

    @property
    def bits_per_client(self) -> int:
        """Number of bits of a message, one bit for each bucket."""
        return self.buckets

    @property
    def rare_words(self) -> int:
        """Number of the 2**64 words that make a rare 1, rounded up so that the noise suffices."""
        contrast = math.tanh(self.epsilon / 2) if self.adjacency == "replace-one" else -math.expm1(-self.epsilon)
        # Roundings of the logarithm, of n times its share and of the exponential are far below 1e-12 of p.
        return min(2**63, math.ceil(-math.expm1(math.log(contrast) / self.clients) / 2 * (1 + 1e-12) * WORD) + 1)

    @property
    def contrast(self) -> float:
        """The contrast b, twice the excess of a fair bit's probability of 1 over an empty bucket's."""
        return math.exp(self.clients * math.log1p(-2 * self.rare_words / WORD)) if self.rare_words < 2**63 else 0.0

    def encode(self, items: ArrayLike, random_words: WordsLike) -> NDArray[np.uint8]:
        """Return clients' bits, shape (clients, buckets).

        Each bit takes a word of randomness. Encode the messages of many clients in chunks.
        """
        random_words = word_source(random_words)
        held = Categories(self.categories).clip(items)
        bits = (random_words(len(held) * self.buckets) < np.uint64(self.rare_words)).astype(np.uint8).reshape(len(held), self.buckets)
        bits[np.arange(len(held)), self._hash().buckets(held)[:, 0]] = random_words(len(held)) & np.uint64(1)
        return bits

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of clients' bits modulo 2, shape (buckets,)."""
        return summed_messages(messages, self.buckets, 2)

    def simulated_sum(self, counts: IntegerArray, random_words: WordsLike) -> WordArray:
        """Draw the sum modulo 2 of clients with given items, in time independent of their number.

        `counts` has the number of clients that hold each item.
        """
        held = np.flatnonzero(np.asarray(counts))
        ones = np.full(self.buckets, (1 - self.contrast) / 2)
        ones[self._hash().buckets(held)[:, 0]] = 0.5
        return (word_source(random_words).uniforms((self.buckets,)) < ones).astype(np.uint64)

    def estimate(self, aggregate: ArrayLike, failure: float = 0.05) -> DistinctEstimate:
        """Return the estimates from the sum of all clients' bits.

        `upper` allows for noise by Hoeffding's inequality, and for the hash by McDiarmid's, as another item changes the number of empty
        buckets by at most one; each may fail with half of the probability.
        """
        failure = check_probability("failure", failure)
        ones = float(aggregate_residues(aggregate, self.buckets, 2).sum())
        most = min(self.clients, self.categories)
        if self.contrast == 0:
            return DistinctEstimate(math.nan, math.nan, most)
        empty = (self.buckets - 2 * ones) / self.contrast
        noise = math.sqrt(2 * self.buckets * math.log(2 / failure)) / self.contrast
        numbers = np.arange(most + 1)
        expected = self._expected_empty(numbers)
        # Hashing adds no randomness if every item has its own bucket.
        hashed = 0.0 if self._hash().direct else np.sqrt(numbers * math.log(2 / failure) / 2)
        possible = np.flatnonzero(expected + hashed >= empty - noise)
        distinct = float(np.interp(-empty, -expected, numbers))
        return DistinctEstimate(empty, distinct, int(possible[-1]) if possible.size else 0)

    def privacy(self) -> Privacy:
        """Return the pure privacy of the sum."""
        return pure_privacy(self.epsilon, "secure-sum", self.adjacency)

    def _expected_empty(self, numbers: IntegerArray) -> FloatArray:
        """Return the expected number of empty buckets for each number of different items."""
        if self._hash().direct:
            return self.buckets - numbers.astype(float)
        return np.asarray(self.buckets * np.exp(numbers * math.log1p(-1 / self.buckets)))

    def _hash(self) -> ItemSketch:
        return ItemSketch(self.categories, 1, self.buckets, 0 if self.buckets >= self.categories else self.seed, signed=False)
