"""PrivUnitG in a few bits: which of some public candidates the client points at, by modified minimal random coding (MMRC).

Shah, Chen, Balle, Kairouz, Theis 2021, *Optimal compression of locally differentially private mechanisms*.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...errors import InfeasibleError
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ..contracts.accounts import pure_privacy
from ..contracts.mechanism import MOST_CLIENTS, VectorMechanism
from ..contracts.norm_ball import NormBall
from ..contracts.privacy import Privacy
from ..noise.random_words import WordsLike, WordSource, word_source
from ..relative_entropy.coding import decode_relative_entropy, log_importance_weights
from .privunit import PrivUnitMechanism
from .random_direction import random_directions

MOST_BITS = 20
# Thresholds that are tried before the best is refined.
THRESHOLDS = 128


@dataclass(frozen=True)
class MinimalRandomCodingMechanism(VectorMechanism):
    """Every client sends the number of a public Gaussian candidate that lies in its vector's cap more often than by chance.

    PrivUnitG (`PrivUnitMechanism`) has a density over the normal one of e^epsilon / Z in the cap, where <z, v> is at least the threshold,
    and of 1 / Z outside. Here K = 2**bits candidates z are shared, from a public seed, anew for each client. If a share s of them lies in
    the cap, of probability q, the candidate that is sent lies there with probability min(s e^epsilon / Z, 1 - (1 - s) / Z), and is a
    uniformly random one there, or outside. As Z is e^epsilon q + 1 - q, every candidate has a probability from 1 / (K Z) to
    e^epsilon / (K Z): **pure epsilon privacy for every seed**, whoever chose it, and whatever the candidates. Weights in proportion
    to the densities, minimal random coding without the modification, would lose up to twice that.

    With m the mean of <z, v>, ``z clip_norm / m`` is an unbiased estimate of clip_norm v. Both m and the variance are exact for every
    K; the threshold is the one that minimises the variance for this K.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    bits : int
        log2 of the number of candidates, which is also the length of a message, 1 to 20.
    ball : NormBall
        L2 ball of the vectors.

    Examples
    --------
    PrivUnitG, uncompressed, has the worst variance 38.37.

    >>> ball = NormBall(dimension=128, norm=2.0)
    >>> [round(MinimalRandomCodingMechanism(5.0, bits, ball).worst_variance, 2) for bits in (4, 8, 12)]
    [104.85, 50.33, 41.11]
    """

    epsilon: float
    bits: int
    ball: NormBall
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=EPSILON_HIGH))
        object.__setattr__(self, "bits", check_integer("bits", self.bits, low=1, high=MOST_BITS))
        if self.ball.norm != 2:
            raise ValueError(f"ball must be of norm 2 for minimal random coding, got norm {self.ball.norm:g}")

    @property
    def candidates(self) -> int:
        """Their number K."""
        return 1 << self.bits

    @cached_property
    def threshold(self) -> float:
        """The threshold of <z, v> that minimises the variance, as far as a search finds it; privacy does not depend on it."""
        reach = math.sqrt(2 * self.epsilon) + 3
        # Where K q is a whole number the variance has a kink, and often its minimum.
        grid = np.sort(np.concatenate([np.linspace(-reach, reach, THRESHOLDS), self._kinks(-reach, reach)]))
        best = int(np.clip(np.argmin(self._log_variances(grid)), 1, len(grid) - 2))
        low, high = grid[best - 1], grid[best + 1]

        found = scipy.optimize.minimize_scalar(self._log_variance, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
        near = np.concatenate([[found.x, grid[best]], self._kinks(low, high)])
        return float(near[np.argmin(self._log_variances(near))])

    @property
    def cap_probability(self) -> float:
        """Probability q with which a candidate lies in a cap."""
        return float(scipy.special.ndtr(-self.threshold))

    @property
    def projection_mean(self) -> float:
        """Mean m of <z, v>, over seeds and indices."""
        return self._projection_mean(self.threshold)

    @property
    def bits_per_client(self) -> float:
        """Length of the index; the seed is public randomness, which server and client share, and costs nothing."""
        return float(self.bits)

    def privacy(self) -> Privacy:
        """Pure local privacy."""
        return pure_privacy(self.epsilon)

    @property
    def worst_variance(self) -> float:
        """Variance at the centre of the ball, the largest: ``clip_norm**2 (dimension + threshold m) / m**2``."""
        return self.ball.clip_norm**2 * math.exp(self._log_variance(self.threshold))

    def encode(self, vectors: ArrayLike, words: WordsLike) -> NDArray[np.uint64]:
        """Draw the seed, which is public, and an index for each client, shape (clients, 2); costs 2**bits candidates each."""
        words = word_source(words)
        directions = random_directions(self.ball, vectors, words)
        seeds = words(len(directions))
        indices = [self._draw(self._in_cap(direction, seed), words) for direction, seed in zip(directions, seeds.tolist(), strict=True)]
        return np.column_stack([seeds, np.array(indices, dtype=np.uint64)])

    def index_probabilities(self, direction: ArrayLike, seed: int) -> FloatArray:
        """Return the distribution of the index for a unit vector, given the public seed: what an adversary sees.

        Shape (2**bits,); the probabilities of two vectors differ by at most a factor of e^epsilon.
        """
        in_cap = self._in_cap(self.ball.check(np.asarray(direction)[None])[0], seed)
        inside = int(np.count_nonzero(in_cap))
        outside = self._outside_probability(inside)
        return np.where(in_cap, (1 - outside) / max(inside, 1), outside / max(self.candidates - inside, 1))

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the candidates that were sent, shape (dimension,); no others are generated."""
        if messages.ndim != 2 or messages.shape[1] != 2:
            raise ValueError(f"messages must have the shape (clients, 2), got {messages.shape}")
        total = np.zeros(self.ball.dimension)
        for seed, index in messages.tolist():
            total += decode_relative_entropy(check_integer("index", index, low=0, high=self.candidates - 1), self.ball.dimension, seed)
        return total

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the vectors that the candidates stand for; it may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray(aggregate * (self.ball.clip_norm / (self.projection_mean * clients)))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``worst_variance - ||x||**2`` for each vector: exact, over seeds and indices."""
        return np.asarray(self.worst_variance - np.square(self.ball.clip(vectors)).sum(axis=1))

    def _in_cap(self, direction: FloatArray, seed: int) -> NDArray[np.bool_]:
        # The logarithm of a density ratio at distance one is <z, v> - 1/2.
        return np.asarray(log_importance_weights(direction, self.bits, seed) + 0.5 >= self.threshold)

    def _outside_probability(self, inside: int) -> float:
        """Return the probability of a candidate outside the cap, with `inside` candidates in it; rounded upward, which errs toward privacy.

        The larger of (1 - s) / Z and 1 - s e^epsilon / Z, written so that nothing cancels.
        """
        share, cap = inside / self.candidates, self.cap_probability
        part = 1 - share if share > cap else 1 - cap + math.exp(self.epsilon) * (cap - share)
        return min(1.0, part / self._constant(cap) * (1 + 1e-14))

    def _draw(self, in_cap: NDArray[np.bool_], words: WordSource) -> int:
        # A uniform number of 53 bits is below a probability at least as often as it should be.
        outside = words.uniforms(()) < self._outside_probability(int(np.count_nonzero(in_cap)))
        candidates = np.flatnonzero(~in_cap if outside else in_cap)
        return int(candidates[words.integers(len(candidates), ())])

    def _constant(self, cap: float) -> float:
        """Return Z for a cap of this probability."""
        return math.exp(self.epsilon) * cap + 1 - cap

    def _projection_mean(self, threshold: float) -> float:
        cap, beyond = float(scipy.special.ndtr(-threshold)), float(scipy.special.ndtr(threshold))
        low, expected_count = 1 / self._constant(cap), math.floor(self.candidates * cap)
        # E[min(s high, 1 - (1 - s) low)] for K s binomial; the first is the smaller one up to s = cap, and E[s; K s <= n] is cap times a
        # probability of one trial less.
        few = scipy.special.bdtr(expected_count, self.candidates, cap)
        others = cap * scipy.special.bdtr(expected_count - 1, self.candidates - 1, cap) if expected_count > 0 else 0.0
        inside = math.exp(self.epsilon) * low * others + (1 - low) * (1 - few) + low * (cap - others)
        # Means of a normal number above and below the threshold, phi / cap and -phi / (1 - cap).
        return float(math.exp(-(threshold**2) / 2) / math.sqrt(2 * math.pi) * (inside - cap) / (cap * beyond))

    def _kinks(self, low: float, high: float) -> FloatArray:
        """Return thresholds from low to high where K q is a whole number, evenly thinned out where there are too many."""
        first, last = math.ceil(self.candidates * scipy.special.ndtr(-high)), math.floor(self.candidates * scipy.special.ndtr(-low))
        counts = np.arange(max(first, 1), min(last, self.candidates - 1) + 1, max(1, (last - first) // THRESHOLDS))
        return np.asarray(-scipy.special.ndtri(counts / self.candidates))

    def _log_variances(self, thresholds: FloatArray) -> list[float]:
        return [self._log_variance(threshold) for threshold in thresholds.tolist()]

    def _log_variance(self, threshold: float) -> float:
        """Return the logarithm of the second moment of z / m: <z, v>**2 has the mean 1 + threshold m, other squares have the mean 1."""
        mean = self._projection_mean(threshold)
        return math.log(self.ball.dimension + threshold * mean) - 2 * math.log(mean) if mean > 0 else math.inf


def minimal_random_coding_mechanism(epsilon: float, ball: NormBall, excess: float = 0.25) -> MinimalRandomCodingMechanism:
    """Return the mechanism with the fewest bits whose worst variance comes close to that of PrivUnitG.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    ball : NormBall
        L2 ball of the vectors.
    excess : float
        By how much its worst variance may exceed that of PrivUnitG, as a share of the latter, 0.001 to 1000.

    Raises
    ------
    InfeasibleError
        If 20 bits are too few; the message says which excess they have.

    Examples
    --------
    >>> ball = NormBall(dimension=200, norm=2.0)
    >>> [minimal_random_coding_mechanism(epsilon, ball).bits for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
    [6, 6, 7, 8, 12]
    """
    excess = check_real("excess", excess, low=1e-3, high=1e3)
    epsilon = check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH)
    least = PrivUnitMechanism(epsilon, ball).worst_variance
    for bits in range(1, MOST_BITS + 1):
        mechanism = MinimalRandomCodingMechanism(epsilon, bits, ball)
        if mechanism.worst_variance <= (1 + excess) * least:
            return mechanism
    found = mechanism.worst_variance / least - 1
    raise InfeasibleError(f"excess must be at least {found:.3g} for epsilon {epsilon:g} and {MOST_BITS} bits, got {excess:g}")
