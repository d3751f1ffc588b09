"""Minimal random coding: PrivUnitG by the index of a public Gaussian candidate.

Candidates in the cap of the client's vector are likelier than other candidates.

Modified minimal random coding (MMRC; Shah, Chen, Balle, Kairouz, Theis 2021, *Optimal compression of locally differentially private
mechanisms*) is unbiased and keeps epsilon. Plain minimal random coding (Havasi, Peharz, Hernández-Lobato 2019, *Minimal random code
learning*, for local privacy by Shah et al.) draws a candidate by its density: it is biased, and costs up to twice the epsilon.

Clients may share public seeds (`seed_bits`): their candidates are drawn once, at the price of an error that clients have in common.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ....arguments import MOST_CLIENTS, check_integer, check_real
from ....arrays import FloatArray
from ....errors import InfeasibleError
from ....solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ....solvers.divergences.candidate_coding_privacy import minimal_random_coding_epsilon
from ....solvers.numerics.bisection import bisect
from ....solvers.numerics.rounding import SHORT_SLACK
from ...contracts.accounts import pure_privacy
from ...contracts.mechanism import VectorMechanism
from ...contracts.norm_ball import NormBall, check_ball
from ...contracts.privacy import Privacy
from ...noise.random_words import WordsLike, WordSource, word_source
from ...relative_entropy.coding import log_importance_weights
from ...relative_entropy.shared_randomness import (
    MOST_SEED_BITS,
    SEED_BITS,
    check_numbered,
    pieces_of_vectors,
    seeds_of_round,
    vectors_of_seeds,
)
from ...transforms.kashin import LARGEST_SEED
from .privunit_g import PrivUnitGMechanism
from .random_direction import checked_direction, random_directions
from .shared_frames import client_chunks

# Reach of the sum over the number of candidates in the cap, in standard deviations; numbers close to the mean are always included.
REACH = 40
HALVINGS = 100

# Number of thresholds in the grid that precedes the refined search.
THRESHOLDS = 128

MOST_BITS = 20
# Size of a batch of clients' candidates, which fits into caches.
BATCH = 2**18
# Coordinates of a piece of a shared seed's candidates. Products of longer pieces wait for memory, shorter pieces for generators' states.
PIECE = 2**12
# Number of clients of a seed from which on their inner products take longer than the seed's candidates.
CLIENTS_PER_SEED = 64
# Largest number of inner products in memory, for clients that share a seed.
MOST_PRODUCTS = 2**22


class CandidateCodingMechanism(VectorMechanism):
    """Every client sends the number of a public candidate, inside its vector's cap or outside.

    A candidate z lies in the cap if <z, v> >= threshold. The K = 2**b candidates of a client come from a public seed. Candidates in the cap
    are equally likely, and so are the others.
    """

    message_bits: int
    # The seeds of a round, if clients share them (`MinimalRandomCodingMechanism`).
    seed_bits: int | None = None
    public_seed: int = 0

    @property
    @abstractmethod
    def threshold(self) -> float:
        """Threshold of <z, v>."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Divisor of the decoder, which is the mean of <z, v> that it assumes."""

    @abstractmethod
    def outside_probability(self, inside: int) -> float:
        """Return the probability of a candidate outside a cap that holds `inside` candidates."""

    @property
    def candidates(self) -> int:
        """Number K of candidates."""
        return 1 << self.message_bits

    @property
    def cap_probability(self) -> float:
        """Probability q with which a candidate lies in a cap."""
        return float(scipy.special.ndtr(-self.threshold))

    @property
    def bits_per_client(self) -> float:
        """Length of the index.

        The seed costs nothing: it is public randomness, which server and client share.
        """
        return float(self.message_bits)

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[np.uint64]:
        """Draw the public seed and an index for each client, shape (clients, 2).

        Each client computes 2**b candidates. Clients with the same seed compute them once.
        """
        random_words = word_source(random_words)
        directions = random_directions(self.ball, vectors, random_words)
        indices = np.empty(len(directions), dtype=np.uint64)
        if self.seed_bits is None:
            seeds = random_words(len(directions))
            indices[:] = [self._draw(in_cap, random_words) for in_cap in self._in_caps(directions, seeds.tolist())]
            return np.column_stack([seeds, indices])
        drawn = random_words.integers(1 << self.seed_bits, len(directions))
        kinds, kind, counts = np.unique(drawn, return_inverse=True, return_counts=True)
        seeds = seeds_of_round(self.public_seed, kinds.tolist())
        of_seeds = np.split(np.argsort(kind, kind="stable"), np.cumsum(counts))[:-1]
        for seed, clients in zip(seeds.tolist(), of_seeds, strict=True):
            for part in client_chunks(len(clients), self.candidates, MOST_PRODUCTS):
                in_caps = self._in_caps_of_seed(directions, clients[part], seed)
                indices[clients[part]] = [self._draw(in_cap, random_words) for in_cap in in_caps]
        return np.column_stack([seeds[kind], indices])

    def index_probabilities(self, direction: ArrayLike, seed: int) -> FloatArray:
        """Return the distribution of the index for a unit vector and a public seed, shape (2**b,).

        An adversary sees this distribution.
        """
        seed = check_integer("seed", seed, low=0, high=2**SEED_BITS - 1)
        (in_cap,) = self._in_caps(checked_direction(self.ball, direction), [seed])
        inside = int(np.count_nonzero(in_cap))
        outside = self.outside_probability(inside)
        return np.where(in_cap, (1 - outside) / max(inside, 1), outside / max(self.candidates - inside, 1))

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of the candidates that were sent, shape (dimension,).

        The server generates no other candidates.
        """
        check_numbered(messages, self.candidates, "indices")
        counts = None
        if self.seed_bits is not None:
            messages, counts = np.unique(messages, axis=0, return_counts=True)
        indices = messages[:, 1]
        total = np.zeros(self.ball.dimension)
        for part in client_chunks(len(messages), self.ball.dimension, BATCH):
            sent = vectors_of_seeds(messages[part, 0].tolist(), self.ball.dimension, first=indices[part].tolist())
            total += sent.sum(axis=(0, 1), dtype=float) if counts is None else counts[part] @ sent[:, 0].astype(float)
        return total

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the decoded candidates, which may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray(aggregate * (self.ball.clip_norm / (self.scale * clients)))

    @abstractmethod
    def _projection_mean(self, threshold: float) -> float:
        """Return the mean m of <z, v> for a threshold, over seeds and indices."""

    def _log_variances(self, thresholds: FloatArray) -> list[float]:
        return [self._log_variance(threshold) for threshold in thresholds.tolist()]

    def _log_variance(self, threshold: float) -> float:
        """Return the logarithm of the second moment of z / m.

        The mean of <z, v>**2 is 1 + threshold m, and that of the other squares is 1.
        """
        mean = self._projection_mean(threshold)
        return math.log(self.ball.dimension + threshold * mean) - 2 * math.log(mean) if mean > 0 else math.inf

    def _in_caps(self, directions: FloatArray, seeds: list[int]) -> Iterator[NDArray[np.bool_]]:
        """Yield for each client the indicators of the candidates in its cap, shape (candidates,)."""
        numbers = self.candidates * self.ball.dimension
        if numbers > BATCH:
            for direction, seed in zip(directions, seeds, strict=True):
                # The logarithm of the density ratio at distance 1 is <z, v> - 1/2.
                yield np.asarray(log_importance_weights(direction, self.message_bits, seed) + 0.5 >= self.threshold)
            return
        for part in client_chunks(len(seeds), numbers, BATCH):
            candidates = vectors_of_seeds(seeds[part], self.ball.dimension, self.candidates)
            yield from (candidates @ directions[part, :, None].astype(np.float32))[:, :, 0].astype(float) >= self.threshold

    def _in_caps_of_seed(self, directions: FloatArray, clients: NDArray[np.intp], seed: int) -> NDArray[np.bool_]:
        """Return indicators of a seed's candidates in the caps of some clients' directions, shape (clients, candidates).

        Candidates are made in pieces and multiplied by all of these directions, in float32; sums over pieces are in float64.
        """
        products = np.zeros((len(clients), self.candidates))
        for start in range(0, self.ball.dimension, PIECE):
            piece = directions[clients, start : start + PIECE].astype(np.float32)
            for rows in client_chunks(self.candidates, piece.shape[1], BATCH):
                numbers = range(self.candidates)[rows]
                products[:, rows] += piece @ pieces_of_vectors(seed, self.ball.dimension, numbers, start, piece.shape[1]).T
        return np.asarray(products >= self.threshold)

    def _draw(self, in_cap: NDArray[np.bool_], random_words: WordSource) -> int:
        # A uniform number of 53 bits falls below a probability at least as often as that probability states.
        outside = random_words.uniforms(()) < self.outside_probability(int(np.count_nonzero(in_cap)))
        candidates = np.flatnonzero(~in_cap if outside else in_cap)
        return int(candidates[random_words.integers(len(candidates), ())])


def mean_projection(threshold: float, inside: float) -> float:
    """Return the mean of <z, v> if z lies in the cap with probability `inside`."""
    cap, beyond = float(scipy.special.ndtr(-threshold)), float(scipy.special.ndtr(threshold))
    # Means of a normal number above and below the threshold, phi / cap and -phi / (1 - cap).
    return float(math.exp(-(threshold**2) / 2) / math.sqrt(2 * math.pi) * (inside - cap) / (cap * beyond)) if cap * beyond > 0 else 0.0


def counts_in_cap(candidates: int, threshold: float) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the numbers of candidates that a cap may hold, and weights in proportion to their probabilities."""
    cap = float(scipy.special.ndtr(-threshold))
    log_cap, log_rest = float(scipy.special.log_ndtr(-threshold)), float(scipy.special.log_ndtr(threshold))
    spread = REACH * math.sqrt(candidates * cap * (1 - cap)) + REACH
    first, last = max(0, math.floor(candidates * cap - spread)), min(candidates, math.ceil(candidates * cap + spread))
    inside = np.arange(first, last + 1, dtype=np.int64)
    logs = -scipy.special.betaln(inside + 1, candidates - inside + 1) + inside * log_cap + (candidates - inside) * log_rest
    return inside, np.asarray(np.exp(logs - logs.max()))


@dataclass(frozen=True)
class MinimalRandomCodingMechanism(CandidateCodingMechanism):
    """Every client sends a candidate's number; candidates in its vector's cap are likelier.

    PrivUnitG (`PrivUnitGMechanism`) has a density over the normal density of e^epsilon / Z in the cap, where <z, v> is at least the
    threshold, and of 1 / Z outside. Here K = 2**b candidates z come from a public seed. If a share s of them lies in
    the cap, of probability q, the sent candidate lies there with probability min(s e^epsilon / Z, 1 - (1 - s) / Z), and is uniformly random
    among the candidates there, or outside. As Z is e^epsilon q + 1 - q, every candidate has a probability from 1 / (K Z) to e^epsilon / (K
    Z): **pure epsilon privacy for every seed**, even if an adversary chose it, and for any candidates. Weights in proportion to the
    densities, minimal random coding without the modification, would lose up to twice that.

    With m the mean of <z, v>, ``z clip_norm / m`` is an unbiased estimate of clip_norm v. Both m and the variance are exact for every
    K; the threshold minimises the variance for this K.

    By default each client has a seed of its own. With `seed_bits`, a client draws one of 2**seed_bits seeds of the round, which derive from
    `public_seed`. Clients with the same seed have the same candidates: `encode` makes them once for all of these clients in a call, and
    `aggregate` makes each sent candidate once. Each message has the same epsilon as before, as this holds for any candidates, and whatever
    the other clients send; messages of several rounds may use the same seeds.

    The estimate has no bias over seeds that are independent of the vectors. Given the seed, the mean of a message differs from the vector.
    Clients with the same seed share this error, so that it falls with the number of seeds and not with the number of clients
    (`worst_shared_variance`).

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    message_bits : int
        Binary logarithm of the number of candidates, which is also the length b of a message, 1 to 20.
    ball : NormBall
        L2 ball of the vectors.
    seed_bits : int or None
        Binary logarithm of the number of public seeds that the clients of a round share, 0 to 48; None for a seed of each client's own.
    public_seed : int
        Public seed of the round, from which the shared seeds derive, from 0 to 2**63 - 1.

    Examples
    --------
    Uncompressed PrivUnitG has the worst variance 38.37.

    >>> ball = NormBall(dimension=128, norm=2.0)
    >>> [round(MinimalRandomCodingMechanism(5.0, bits, ball).variance_bound, 2) for bits in (4, 8, 12)]
    [104.85, 50.33, 41.11]

    A thousand clients share 16 seeds. The larger part of the error is that which clients with equal vectors share.

    >>> mechanism = MinimalRandomCodingMechanism(5.0, 8, ball, seed_bits=4)
    >>> round(mechanism.error().of_mean(1000), 3), round(mechanism.worst_shared_variance, 3)
    (0.212, 0.162)
    """

    epsilon: float
    message_bits: int
    ball: NormBall
    seed_bits: int | None = None
    public_seed: int = 0
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=EPSILON_HIGH))
        object.__setattr__(self, "message_bits", check_integer("message_bits", self.message_bits, low=1, high=MOST_BITS))
        check_ball(self.ball, "minimal random coding", 2)
        if self.seed_bits is not None:
            object.__setattr__(self, "seed_bits", check_integer("seed_bits", self.seed_bits, low=0, high=MOST_SEED_BITS))
        object.__setattr__(self, "public_seed", check_integer("public_seed", self.public_seed, low=0, high=LARGEST_SEED))

    @cached_property
    def threshold(self) -> float:
        """Threshold of <z, v> that minimises the variance, up to the accuracy of a search.

        Privacy does not depend on the threshold.
        """
        reach = math.sqrt(2 * self.epsilon) + 3
        # The variance has a kink, and often its minimum, where K q is a whole number.
        grid = np.sort(np.concatenate([np.linspace(-reach, reach, THRESHOLDS), self._kinks(-reach, reach)]))
        best = int(np.clip(np.argmin(self._log_variances(grid)), 1, len(grid) - 2))
        low, high = grid[best - 1], grid[best + 1]
        minimum = scipy.optimize.minimize_scalar(self._log_variance, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
        near = np.concatenate([[minimum.x, grid[best]], self._kinks(low, high)])
        return float(near[np.argmin(self._log_variances(near))])

    @property
    def projection_mean(self) -> float:
        """Mean m of <z, v>, over seeds and indices."""
        return self._projection_mean(self.threshold)

    @property
    def scale(self) -> float:
        """Mean of the sent candidate's inner product with the unit vector."""
        return self.projection_mean

    def privacy(self) -> Privacy:
        """Return the pure local privacy."""
        return pure_privacy(self.epsilon)

    @property
    def variance_bound(self) -> float:
        """Largest variance, at the ball's centre: ``clip_norm**2 (dimension + threshold m) / m**2``."""
        return self.ball.clip_norm**2 * math.exp(self._log_variance(self.threshold))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``variance_bound - ||x||**2`` for each vector.

        The variance is exact, over seeds and indices.
        """
        return np.asarray(self.variance_bound - np.square(self.ball.clip(vectors)).sum(axis=1))

    @property
    def mean_candidate_square(self) -> float:
        """Mean squared norm of a client's mean candidate, given its seed.

        Given that n candidates lie in the cap, those n have equal probabilities, and so have the others. Their parts across the vector are
        independent normal numbers; their parts along the vector are independent truncated normal numbers.
        """
        inside, weights = counts_in_cap(self.candidates, self.threshold)
        cap, share = self.cap_probability, inside / self.candidates
        low = 1 / self._constant(cap)
        near = np.minimum(share * math.exp(self.epsilon) * low, 1 - (1 - share) * low)
        along, across = np.zeros(len(inside)), np.zeros(len(inside))
        for chance, number, mean in (
            (near, inside, mean_projection(self.threshold, 1.0)),
            (1 - near, self.candidates - inside, mean_projection(self.threshold, 0.0)),
        ):
            # The sum of the squared probabilities of these candidates.
            squares = chance**2 / np.maximum(number, 1)
            along += chance * mean
            across += squares * (self.ball.dimension + self.threshold * mean - mean**2)
        return float(weights @ (along**2 + across) / weights.sum())

    @property
    def worst_shared_variance(self) -> float:
        """Largest squared error that clients with shared seeds have in common, averaged over the seeds.

        Clients with equal vectors of the sphere have this error in common. `variance` includes the part that a client has by itself.
        """
        if self.seed_bits is None:
            return 0.0
        square = self.ball.clip_norm**2 * max(0.0, self.mean_candidate_square / self.projection_mean**2 - 1)
        return square / (1 << self.seed_bits)

    def shared_variance(self, mean: FloatArray) -> float:  # noqa: ARG002
        """Return the largest shared variance, which clients with different vectors may stay below."""
        return self.worst_shared_variance

    def renewed(self, seed: int) -> Self:
        """Return the mechanism with the shared seeds of another round; seeds of clients' own are new in each message."""
        return self if self.seed_bits is None else replace(self, public_seed=seed)

    @property
    def clients_per_call(self) -> int:
        """Number of clients for which drawing candidates takes little time beside their inner products."""
        return 1 if self.seed_bits is None else CLIENTS_PER_SEED << self.seed_bits

    def facts(self) -> dict[str, float]:
        """Return the part of the error that clients share, if they share seeds."""
        return {} if self.seed_bits is None else {"worst_shared_squared_error": self.worst_shared_variance}

    def outside_probability(self, inside: int) -> float:
        """Return a bound on the probability of a candidate outside a cap that holds `inside`.

        Rounding only adds privacy. The probability is the larger of (1 - s) / Z and 1 - s e^epsilon / Z, written so that nothing cancels.
        """
        share, cap = inside / self.candidates, self.cap_probability
        part = 1 - share if share > cap else 1 - cap + math.exp(self.epsilon) * (cap - share)
        return min(1.0, part / self._constant(cap) * (1 + SHORT_SLACK))

    def _constant(self, cap: float) -> float:
        """Return Z for a cap of the given probability."""
        return math.exp(self.epsilon) * cap + 1 - cap

    def _projection_mean(self, threshold: float) -> float:
        cap = float(scipy.special.ndtr(-threshold))
        low, expected_count = 1 / self._constant(cap), math.floor(self.candidates * cap)
        # The mean is E[min(s high, 1 - (1 - s) low)] for K s binomial; the first argument is the smaller up to s = cap, and E[s; K s <= n]
        # is cap times a probability of one trial less.
        few = scipy.special.bdtr(expected_count, self.candidates, cap)
        others = cap * scipy.special.bdtr(expected_count - 1, self.candidates - 1, cap) if expected_count > 0 else 0.0
        inside = math.exp(self.epsilon) * low * others + (1 - low) * (1 - few) + low * (cap - others)
        return mean_projection(threshold, inside)

    def _kinks(self, low: float, high: float) -> FloatArray:
        """Return thresholds from low to high where K q is a whole number, thinned out evenly."""
        first, last = math.ceil(self.candidates * scipy.special.ndtr(-high)), math.floor(self.candidates * scipy.special.ndtr(-low))
        counts = np.arange(max(first, 1), min(last, self.candidates - 1) + 1, max(1, (last - first) // THRESHOLDS))
        return np.asarray(-scipy.special.ndtri(counts / self.candidates))


def minimal_random_coding_mechanism(epsilon: float, ball: NormBall, excess: float = 0.25) -> MinimalRandomCodingMechanism:
    """Return the mechanism with the fewest bits whose variance is close to PrivUnitG's.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, 0.001 to 20.
    ball : NormBall
        L2 ball of the vectors.
    excess : float
        Largest relative excess of the worst variance over PrivUnitG's, 0.001 to 1000.

    Raises
    ------
    InfeasibleError
        If 20 bits are too few; the message gives the excess of 20 bits.

    Examples
    --------
    >>> ball = NormBall(dimension=200, norm=2.0)
    >>> [minimal_random_coding_mechanism(epsilon, ball).message_bits for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
    [6, 6, 7, 8, 12]
    """
    excess = check_real("excess", excess, low=1e-3, high=1e3)
    epsilon = check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH)
    least = PrivUnitGMechanism(epsilon, ball).variance_bound
    for bits in range(1, MOST_BITS + 1):
        mechanism = MinimalRandomCodingMechanism(epsilon, bits, ball)
        if mechanism.variance_bound <= (1 + excess) * least:
            return mechanism
    least_excess = mechanism.variance_bound / least - 1
    raise InfeasibleError(f"excess must be at least {least_excess:.3g} for epsilon {epsilon:g} and {MOST_BITS} bits, got {excess:g}")


@dataclass(frozen=True)
class PlainRandomCodingMechanism(CandidateCodingMechanism):
    """Every client sends a public Gaussian candidate's number, by PrivUnitG's density.

    Let n of the K = 2**b candidates lie in the cap. A candidate in the cap has the probability e^coded / (n e^coded + K - n), any other 1 /
    (n e^coded + K - n). The denominator depends on the vector: given the public candidates, the logarithms of two vectors' probabilities
    differ by up to `epsilon`, nearly twice `coded_epsilon`. The published decoder divides by the mean of PrivUnitG itself: it estimates a
    share `shrinking` of the vector. `MinimalRandomCodingMechanism` has neither fault.

    Attributes
    ----------
    coded_epsilon : float
        Privacy parameter of the coded PrivUnitG, 0.0001 to 20.
    message_bits : int
        Binary logarithm of the number of candidates, which is also the length b of a message, 1 to 20.
    ball : NormBall
        L2 ball of the vectors.
    unbiased : bool
        Whether to divide by the mean over seeds and indices instead, with the threshold of least variance for that divisor.

    Examples
    --------
    >>> mechanism = PlainRandomCodingMechanism(4.0, 8, NormBall(dimension=200, norm=2.0))
    >>> round(mechanism.epsilon, 3), round(mechanism.shrinking, 3), round(mechanism.variance_bound, 1)
    (7.806, 0.989, 88.1)
    """

    coded_epsilon: float
    message_bits: int
    ball: NormBall
    unbiased: bool = False
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "coded_epsilon", check_real("coded_epsilon", self.coded_epsilon, low=1e-4, high=EPSILON_HIGH))
        object.__setattr__(self, "message_bits", check_integer("message_bits", self.message_bits, low=1, high=MOST_BITS))
        check_ball(self.ball, "minimal random coding", 2)

    @property
    def epsilon(self) -> float:
        """Upper bound on the pure privacy parameter."""
        return minimal_random_coding_epsilon(self.coded_epsilon, self.candidates) * (1 + SHORT_SLACK)

    @cached_property
    def coded(self) -> PrivUnitGMechanism:
        """PrivUnitG mechanism that is coded."""
        return PrivUnitGMechanism(max(self.coded_epsilon, EPSILON_LOW), self.ball)

    @cached_property
    def threshold(self) -> float:
        """Threshold of the coded mechanism, or for `unbiased` the threshold of least variance.

        The threshold for `unbiased` minimises the variance up to the accuracy of a search.
        """
        if not self.unbiased:
            return self.coded.threshold

        reach = math.sqrt(2 * self.coded_epsilon) + 3
        grid = np.linspace(-reach, reach, THRESHOLDS)
        best = int(np.clip(np.argmin(self._log_variances(grid)), 1, THRESHOLDS - 2))
        bounds = grid[best - 1], grid[best + 1]
        return float(scipy.optimize.minimize_scalar(self._log_variance, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x)

    @cached_property
    def projection_mean(self) -> float:
        """Mean of <z, v>, over seeds and indices."""
        return self._projection_mean(self.threshold)

    @property
    def scale(self) -> float:
        """Mean of PrivUnitG with `coded_epsilon`, or for `unbiased` the mean of <z, v>."""
        if self.unbiased:
            return self.projection_mean
        cap = self.cap_probability
        return mean_projection(self.threshold, cap / (cap + math.exp(-self.coded_epsilon) * (1 - cap)))

    @property
    def shrinking(self) -> float:
        """Factor between a client's vector and the mean of its decoded message."""
        return self.projection_mean / self.scale

    @property
    def bias_bound(self) -> float:
        """Bound on the bias, ``(1 - shrinking) clip_norm``.

        Equal vectors on the sphere attain the bound.
        """
        return (1 - self.shrinking) * self.ball.clip_norm

    def known_bias(self, vectors: ArrayLike) -> FloatArray:
        """Return ``(shrinking - 1) x`` for each vector."""
        return np.asarray((self.shrinking - 1) * self.ball.clip(vectors))

    def facts(self) -> dict[str, float]:
        """Return the proven epsilon of one message."""
        return {"epsilon_per_round": self.epsilon}

    def privacy(self) -> Privacy:
        """Return the pure local privacy, for every seed and for any candidates."""
        return pure_privacy(self.epsilon)

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of the ball's centre."""
        # The mean of <z, v>**2 is 1 + threshold m, and that of the other squares is 1.
        return self.ball.clip_norm**2 * (self.ball.dimension + self.threshold * self.projection_mean) / self.scale**2

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``variance_bound - shrinking**2 ||x||**2`` for each vector.

        The variance is exact, over seeds and indices.
        """
        return np.asarray(self.variance_bound - self.shrinking**2 * np.square(self.ball.clip(vectors)).sum(axis=1))

    def outside_probability(self, inside: int) -> float:
        """Return the probability of a candidate outside a cap that holds `inside` candidates."""
        outside = self.candidates - inside
        return outside / (inside * math.exp(self.coded_epsilon) + outside)

    def _projection_mean(self, threshold: float) -> float:
        inside, weights = counts_in_cap(self.candidates, threshold)
        chosen = inside / (inside + math.exp(-self.coded_epsilon) * (self.candidates - inside))
        return mean_projection(threshold, float(weights @ chosen / weights.sum()))


def plain_random_coding_mechanism(
    epsilon: float, message_bits: int, ball: NormBall, *, unbiased: bool = False
) -> PlainRandomCodingMechanism:
    """Return the mechanism with at most a given proven epsilon.

    Epsilon is from 0.001 to 20.

    Examples
    --------
    >>> mechanism = plain_random_coding_mechanism(4.0, 8, NormBall(dimension=200, norm=2.0))
    >>> round(mechanism.epsilon, 9), round(mechanism.coded_epsilon, 4)
    (4.0, 2.0142)
    """
    epsilon = check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH)

    def kept(coded_epsilon: float) -> bool:
        return PlainRandomCodingMechanism(coded_epsilon, message_bits, ball).epsilon <= epsilon

    return PlainRandomCodingMechanism(bisect(kept, epsilon / 2 * (1 - 1e-9), epsilon, HALVINGS).holds, message_bits, ball, unbiased)
