"""Base class of mechanisms for frequencies by sketches of items in a secure sum."""

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, IntegerArray, WordArray
from ...errors import ConvergenceError
from ..contracts.mechanism import FrequencyEstimate, FrequencyMechanism, SecureSumMechanism, check_frequencies
from ..noise.random_words import WordsLike
from ..secure_sum.modular_arithmetic import messages_modulo, summed_messages
from ..transforms.linear_sketch import LARGEST_SEED
from .item_sketch import ItemSketch
from .worst_pair import worst_pair

# Largest number of seeds that `renewed` tries.
MOST_SEEDS = 1000


class SketchedFrequencies(SecureSumMechanism, FrequencyMechanism):
    """A mechanism whose clients send noisy sketches of their items by a secure sum.

    Items must not depend on the sketch's public seed. The error of collisions is common to all clients of a round, for any number of
    clients; the noise is the same for every item. The guarantee is that of the worst pair of items of the sketch (`worst_pair`), and so
    holds for every sketch without signs.

    A frozen dataclass that derives from this class has the fields below.

    Attributes
    ----------
    sketch : ItemSketch
        The sketch.
    clients : int
        Number of clients: the guarantee counts the noise of `survivors`, or of all of them by default, and `decode` refuses a sum over
        fewer.
    delta : float
        Failure probability of the guarantee, above 0 and below 1.
    """

    sketch: ItemSketch
    clients: int
    delta: float

    def facts(self) -> dict[str, Any]:
        """Return the size of the sketch, and the noise of an estimated frequency."""
        return {
            "histogram": self.sketch.direct,
            "row_excess": self.row_excess,
            "modulus": self.modulus,
            "noise_deviation": math.sqrt(self.item_variance / self.clients),
        }

    @property
    def categories(self) -> int:  # type: ignore[override]
        """Number of items in the domain."""
        return self.sketch.categories

    @property
    @abstractmethod
    def item_variance(self) -> float:
        """Variance of one client's decoded frequency of any item, given the sketch."""

    @property
    def holder_variance(self) -> float:
        """Variance of one client's decoded frequency of its own item, without collisions."""
        return self.item_variance

    @property
    def other_variance(self) -> float:
        """Variance of one client's decoded frequency of another item, without collisions."""
        return self.item_variance

    @property
    def seed_bias_bound(self) -> float:
        """Upper bound on the bias for any seed; 0.0 without hashing.

        In the worst case all clients hold the same item, and every other item has the same buckets.
        """
        return 0.0 if self.sketch.direct else math.sqrt(self.categories - 1)

    @property
    def worst_shared_variance(self) -> float:
        """Variance of collisions for clients that all hold the same item."""
        return self.sketch.collision_share * (self.categories - 1)

    def shared_variance(self, mean: FloatArray) -> float:
        """Return the variance of collisions over the sketch's seed."""
        return self.sketch.collision_share * (self.categories - 1) * float(np.sum(np.square(mean)))

    def renewed(self, seed: int) -> Self:
        """Return the mechanism with another sketch of the same size that keeps the guarantee.

        The worst pair of items of the new sketch is at most as far apart. The method skips seeds until a sketch fits, which hardly changes
        the law of a large sketch's collisions.
        """
        for further in range(MOST_SEEDS):
            sketch = self.sketch.renewed((seed + (further << 64)) % (LARGEST_SEED + 1))
            if worst_pair(sketch).excess <= self.row_excess:
                fields: dict[str, Any] = {"sketch": sketch}
                return replace(self, **fields)  # type: ignore[type-var]
        raise ConvergenceError(
            f"sketch: none of {MOST_SEEDS} seeds from {seed} on keeps an excess of {self.row_excess} rows; sign no items"
        )

    def standard_errors(self, frequencies: ArrayLike, clients: int) -> FloatArray:
        """Return the standard error of each frequency over noise and sketch, for true frequencies."""
        squares = check_frequencies(frequencies) ** 2
        return np.asarray(np.sqrt(self.item_variance / clients + self.sketch.collision_share * (squares.sum() - squares)))

    def estimate(self, aggregate: NDArray[Any], clients: int) -> FrequencyEstimate:
        """Return unbiased frequencies with standard errors, from the sum of the squared buckets.

        The squares of a row's buckets (around their mean for sketches without signs), less the noise's variance, add up to an unbiased
        estimate, over the seed, of the sum of squared frequencies (Alon, Matias, Szegedy 1999, *The space complexity of approximating the
        frequency moments*). All items have the same standard error. It is an upper bound for the heaviest items, whose own squares cause no
        collision; but an item that collides with a heavy item looks as heavy.
        """
        decoded, sketch = self.decode(aggregate, clients), self.sketch
        buckets = self.bucket_counts(aggregate, clients) / clients
        if not (sketch.signed or sketch.direct):
            buckets = (buckets - buckets.mean(axis=1, keepdims=True)) * math.sqrt(sketch.width / (sketch.width - 1))
        noise = sketch.width * self.item_variance / (sketch.noise_share * clients)
        total = float(np.square(buckets).sum(axis=1).mean()) - noise
        within = min(max(total, 1 / self.categories), 1.0)
        error = math.sqrt(self.item_variance / clients + sketch.collision_share * within)
        return FrequencyEstimate(decoded, np.full(self.categories, error), decoded)

    def encode(self, items: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return `noisy_steps` modulo M, in the narrowest words."""
        return messages_modulo(self.noisy_steps(items, random_words), self.modulus)

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of the messages modulo M; sums of chunks need not be reduced."""
        return summed_messages(messages, self.padded_dimension, self.modulus)

    def summed_steps(self, items: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return `simulated_sum` of the items' counts."""
        return self.simulated_sum(self.domain.total(self.domain.clip(items)).astype(np.int64), random_words)

    @abstractmethod
    def simulated_sum(self, counts: IntegerArray, random_words: WordsLike) -> IntegerArray:
        """Draw the sum of `noisy_steps` of clients, in time independent of their number.

        `counts` has the number of clients that hold each item. In simulations, the draw has the law of the sum of messages, up to
        floating-point errors.
        """

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return unbiased frequencies, the mean over rows.

        `clients` is the number of clients whose messages arrived, from `fewest_clients` to all.
        """
        return self.sketch.decoded(self.bucket_counts(aggregate, clients)) / clients

    def decode_median(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the median over rows, which is biased and robust to heavy items, as in the paper.

        The median needs signs. `variance` and `shared_variance` do not describe it: with noise alone, the median has up to pi/2 times the
        variance of the mean.
        """
        return self.sketch.medians(self.bucket_counts(aggregate, clients)) / clients

    @abstractmethod
    def bucket_counts(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return unbiased estimates of the sketch of the items of clients whose messages arrived, shape (rows, width)."""

    @property
    def row_excess(self) -> int:
        """Excess of the worst pair of items (`worst_pair`)."""
        return worst_pair(self.sketch).excess
