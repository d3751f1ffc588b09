"""Messages that are the number of one of some public Gaussian candidates, the likelier the better it points to the client's vector."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ....arguments import MOST_CLIENTS, check_integer
from ....arrays import FloatArray
from ...contracts.mechanism import VectorMechanism
from ...noise.random_words import WordsLike, WordSource, word_source
from ...relative_entropy.coding import log_importance_weights
from ...relative_entropy.shared_randomness import SEED_BITS, check_numbered, vectors_of_seeds
from .client_chunks import client_chunks
from .random_direction import checked_direction, random_directions

MOST_BITS = 20
# Numbers of candidates of several clients that are made at a time: they fit into caches.
BATCH = 2**18


class CandidateCodingMechanism(VectorMechanism):
    """Every client sends the number of a candidate that lies in its vector's cap, <z, v> >= threshold, or of one that does not.

    The K = 2**b candidates of a client come from a public seed. Those in the cap are equally likely, and so are the others.
    """

    message_bits: int

    @property
    @abstractmethod
    def threshold(self) -> float:
        """Threshold of <z, v>."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """What the decoder divides <z, v> by."""

    @abstractmethod
    def outside_probability(self, inside: int) -> float:
        """Return the probability of a candidate outside the cap, with `inside` candidates in it."""

    @property
    def candidates(self) -> int:
        """Their number K."""
        return 1 << self.message_bits

    @property
    def cap_probability(self) -> float:
        """Probability q with which a candidate lies in a cap."""
        return float(scipy.special.ndtr(-self.threshold))

    @property
    def bits_per_client(self) -> float:
        """Length of the index; the seed is public randomness, which server and client share, and costs nothing."""
        return float(self.message_bits)

    def encode(self, vectors: ArrayLike, words: WordsLike) -> NDArray[np.uint64]:
        """Draw the seed, which is public, and an index for each client, shape (clients, 2); costs 2**b candidates each."""
        words = word_source(words)
        directions = random_directions(self.ball, vectors, words)
        seeds = words(len(directions))
        indices = [self._draw(in_cap, words) for in_cap in self._in_caps(directions, seeds.tolist())]
        return np.column_stack([seeds, np.array(indices, dtype=np.uint64)])

    def index_probabilities(self, direction: ArrayLike, seed: int) -> FloatArray:
        """Return the distribution of the index for a unit vector, given the public seed: what an adversary sees; shape (2**b,)."""
        seed = check_integer("seed", seed, low=0, high=2**SEED_BITS - 1)
        (in_cap,) = self._in_caps(checked_direction(self.ball, direction), [seed])
        inside = int(np.count_nonzero(in_cap))
        outside = self.outside_probability(inside)
        return np.where(in_cap, (1 - outside) / max(inside, 1), outside / max(self.candidates - inside, 1))

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the candidates that were sent, shape (dimension,); no others are generated."""
        check_numbered(messages, self.candidates, "indices")
        indices = messages[:, 1]
        total = np.zeros(self.ball.dimension)
        for part in client_chunks(len(messages), self.ball.dimension, BATCH):
            total += vectors_of_seeds(messages[part, 0].tolist(), self.ball.dimension, first=indices[part].tolist()).sum(
                axis=(0, 1), dtype=float
            )
        return total

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the vectors that the candidates stand for; it may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray(aggregate * (self.ball.clip_norm / (self.scale * clients)))

    def _in_caps(self, directions: FloatArray, seeds: list[int]) -> Iterator[NDArray[np.bool_]]:
        """Yield for each client which candidates its cap holds, shape (candidates,)."""
        numbers = self.candidates * self.ball.dimension
        if numbers > BATCH:
            for direction, seed in zip(directions, seeds, strict=True):
                # The logarithm of a density ratio at distance one is <z, v> - 1/2.
                yield np.asarray(log_importance_weights(direction, self.message_bits, seed) + 0.5 >= self.threshold)
            return
        for part in client_chunks(len(seeds), numbers, BATCH):
            candidates = vectors_of_seeds(seeds[part], self.ball.dimension, self.candidates)
            yield from (candidates @ directions[part, :, None].astype(np.float32))[:, :, 0].astype(float) >= self.threshold

    def _draw(self, in_cap: NDArray[np.bool_], words: WordSource) -> int:
        # A uniform number of 53 bits is below a probability at least as often as it should be.
        outside = words.uniforms(()) < self.outside_probability(int(np.count_nonzero(in_cap)))
        candidates = np.flatnonzero(~in_cap if outside else in_cap)
        return int(candidates[words.integers(len(candidates), ())])


def mean_projection(threshold: float, inside: float) -> float:
    """Return the mean of <z, v> where z lies in the cap with probability `inside`."""
    cap, beyond = float(scipy.special.ndtr(-threshold)), float(scipy.special.ndtr(threshold))
    # Means of a normal number above and below the threshold, phi / cap and -phi / (1 - cap).
    return float(math.exp(-(threshold**2) / 2) / math.sqrt(2 * math.pi) * (inside - cap) / (cap * beyond)) if cap * beyond > 0 else 0.0
