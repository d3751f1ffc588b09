"""Subset selection: each client sends a set of items that is likelier to contain its own.

Ye, Barg 2018, *Optimal schemes for discrete distribution estimation under locally differential privacy*; Wang, Huang, Wang, Nie, Xu, Yang,
Li, Qiao 2016, *Mutual information optimally local private discrete distribution estimation*.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer
from ...arrays import IntegerArray
from ...solvers.numerics.rounding import SHORT_SLACK
from ..local.message_checks import checked_messages
from ..noise.packed_bits import bits_at, packed_bytes, sum_of_bits
from ..noise.random_subsets import listed_subsets, packed_subsets
from ..noise.random_words import WordsLike, word_source
from .support import SupportCounts

# Lists of items for subsets of less than that part of all items, else bits.
LISTED_SHARE = 1 / 128
# Largest number of items whose subsets are counted exactly.
COUNTED_ITEMS = 2**12


@dataclass(frozen=True)
class SubsetSelection(SupportCounts):
    """A message is a set of w of the k items, E = exp(epsilon) times as likely if the client's own is one of them.

    So it is one of them with probability ``p = w E / (w E + k - w)``, and each other item with ``q = (w - p) / (k - 1)``. With
    w = k / (E + 1) no mechanism has a smaller largest variance, to first order in 1/k (Ye, Barg 2018).

    Attributes
    ----------
    epsilon, categories
        As in `SupportMechanism`.
    subset_size : int
        w, from 1 to ``categories - 1``; `subset_selection` chooses it.

    Examples
    --------
    >>> mechanism = subset_selection(1.0, categories=8)
    >>> messages = mechanism.encode(np.array([0, 0, 0, 1] * 10_000), np.random.default_rng(0))
    >>> mechanism.subset_size, mechanism.decode(mechanism.aggregate(messages), 40_000).round(2)[:4].tolist()
    (2, [0.75, 0.24, -0.01, -0.01])
    """

    epsilon: float
    categories: int
    subset_size: int

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        size = check_integer("subset_size", self.subset_size, low=1, high=self.categories - 1)
        object.__setattr__(self, "subset_size", size)

    @property
    def bits_per_client(self) -> float:
        """Logarithm of the number of subsets, which an enumerative code takes, rounded up to a whole bit (Cover 1973).

        `encode` returns the subset itself, which takes more.
        """
        size, items = self.subset_size, self.categories
        if items <= COUNTED_ITEMS:
            return math.log2(math.comb(items, size))
        return float(
            scipy.special.gammaln(items + 1) - scipy.special.gammaln(size + 1) - scipy.special.gammaln(items - size + 1)
        ) / math.log(2)

    @property
    def held_denial(self) -> float:
        """Probability 1 - p."""
        return math.exp(-self.epsilon) * (self.categories - self.subset_size) / self._weight

    @property
    def other_support(self) -> float:
        """Probability q."""
        return (self.subset_size - 1 + self.held_denial) / (self.categories - 1)

    @property
    def contrast(self) -> float:
        """Difference p - q."""
        size, items = self.subset_size, self.categories
        return -math.expm1(-self.epsilon) * size * (items - size) / ((items - 1) * self._weight)

    @property
    def is_listed(self) -> bool:
        """Whether `encode` returns lists of items, in ascending order; otherwise rows of bits, eight to a byte."""
        return self.subset_size == 1 or self.subset_size < LISTED_SHARE * self.categories

    def encode(self, items: ArrayLike, words: WordsLike) -> NDArray[Any]:
        """Return each client's subset, shape (clients, subset_size) or (clients, bytes): see `is_listed`."""
        words, held = word_source(words), self.domain.clip(items)
        # A uniform number of 53 bits is below a probability at least as often as it should be: rounding errs toward privacy.
        included = words.uniforms(held.shape) >= self.held_denial * (1 + SHORT_SLACK)
        draw = listed_subsets if self.is_listed else packed_subsets
        return draw(held, included, self.subset_size, self.categories, words)

    def aggregate(self, messages: NDArray[Any]) -> IntegerArray:
        """Return how many subsets each item is in, shape (categories,)."""
        if self.is_listed:
            return np.bincount(checked_messages(messages, 0, self.categories - 1, self.subset_size).ravel(), minlength=self.categories)
        return sum_of_bits(checked_messages(messages, 0, 255, packed_bytes(self.categories)).astype(np.uint8, copy=False), self.categories)

    def supports(self, messages: NDArray[Any], item: int) -> NDArray[np.bool_]:
        """Whether the item is in the subset."""
        if self.is_listed:
            return np.asarray((messages == item).any(axis=1))
        return np.asarray(bits_at(messages, np.full(len(messages), item)) == 1)

    @property
    def _weight(self) -> float:
        """``(w E + k - w) / E``."""
        return self.subset_size + math.exp(-self.epsilon) * (self.categories - self.subset_size)


def subset_selection(epsilon: float, categories: int) -> SubsetSelection:
    """Return subset selection with the size, one of the two next to ``categories / (E + 1)``, whose worst variance is less.

    Examples
    --------
    >>> [subset_selection(epsilon, 1000).subset_size for epsilon in (0.5, 1.0, 5.0, 10.0)]
    [378, 269, 7, 1]
    """
    best = SubsetSelection(epsilon, categories, 1)
    share = best.categories * math.exp(-best.epsilon) / (1 + math.exp(-best.epsilon))
    for size in {math.floor(share), math.ceil(share)} - {0, 1, categories}:
        best = min(best, SubsetSelection(epsilon, categories, size), key=lambda one: one.worst_variance)
    return best
