"""PrivUnitG in a few bits: which of some public candidates the client points at, by modified minimal random coding (MMRC).

Shah, Chen, Balle, Kairouz, Theis 2021, *Optimal compression of locally differentially private mechanisms*.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ....arguments import check_integer, check_real
from ....arrays import FloatArray
from ....errors import InfeasibleError
from ....solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ....solvers.numerics.rounding import SHORT_SLACK
from ...contracts.accounts import pure_privacy
from ...contracts.norm_ball import NormBall, check_ball
from ...contracts.privacy import Privacy
from .candidate_coding import MOST_BITS, CandidateCodingMechanism, mean_projection
from .privunit_g import PrivUnitGMechanism

# Thresholds that are tried before the best is refined.
THRESHOLDS = 128


@dataclass(frozen=True)
class MinimalRandomCodingMechanism(CandidateCodingMechanism):
    """Every client sends the number of a public Gaussian candidate that lies in its vector's cap more often than by chance.

    PrivUnitG (`PrivUnitGMechanism`) has a density over the normal one of e^epsilon / Z in the cap, where <z, v> is at least the threshold,
    and of 1 / Z outside. Here K = 2**b candidates z are shared, from a public seed, anew for each client. If a share s of them lies in
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
    message_bits : int
        log2 of the number of candidates, which is also the length b of a message, 1 to 20.
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
    message_bits: int
    ball: NormBall
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_real("epsilon", self.epsilon, low=EPSILON_LOW, high=EPSILON_HIGH))
        object.__setattr__(self, "message_bits", check_integer("message_bits", self.message_bits, low=1, high=MOST_BITS))
        check_ball(self.ball, "minimal random coding", 2)

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
    def projection_mean(self) -> float:
        """Mean m of <z, v>, over seeds and indices."""
        return self._projection_mean(self.threshold)

    @property
    def scale(self) -> float:
        """The mean."""
        return self.projection_mean

    def privacy(self) -> Privacy:
        """Pure local privacy."""
        return pure_privacy(self.epsilon)

    @property
    def worst_variance(self) -> float:
        """Variance at the centre of the ball, the largest: ``clip_norm**2 (dimension + threshold m) / m**2``."""
        return self.ball.clip_norm**2 * math.exp(self._log_variance(self.threshold))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``worst_variance - ||x||**2`` for each vector: exact, over seeds and indices."""
        return np.asarray(self.worst_variance - np.square(self.ball.clip(vectors)).sum(axis=1))

    def outside_probability(self, inside: int) -> float:
        """Return the probability of a candidate outside the cap, with `inside` candidates in it; rounded upward, which errs toward privacy.

        The larger of (1 - s) / Z and 1 - s e^epsilon / Z, written so that nothing cancels.
        """
        share, cap = inside / self.candidates, self.cap_probability
        part = 1 - share if share > cap else 1 - cap + math.exp(self.epsilon) * (cap - share)
        return min(1.0, part / self._constant(cap) * (1 + SHORT_SLACK))

    def _constant(self, cap: float) -> float:
        """Return Z for a cap of this probability."""
        return math.exp(self.epsilon) * cap + 1 - cap

    def _projection_mean(self, threshold: float) -> float:
        cap = float(scipy.special.ndtr(-threshold))
        low, expected_count = 1 / self._constant(cap), math.floor(self.candidates * cap)
        # E[min(s high, 1 - (1 - s) low)] for K s binomial; the first is the smaller one up to s = cap, and E[s; K s <= n] is cap times a
        # probability of one trial less.
        few = scipy.special.bdtr(expected_count, self.candidates, cap)
        others = cap * scipy.special.bdtr(expected_count - 1, self.candidates - 1, cap) if expected_count > 0 else 0.0
        inside = math.exp(self.epsilon) * low * others + (1 - low) * (1 - few) + low * (cap - others)
        return mean_projection(threshold, inside)

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
    >>> [minimal_random_coding_mechanism(epsilon, ball).message_bits for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0)]
    [6, 6, 7, 8, 12]
    """
    excess = check_real("excess", excess, low=1e-3, high=1e3)
    epsilon = check_real("epsilon", epsilon, low=EPSILON_LOW, high=EPSILON_HIGH)
    least = PrivUnitGMechanism(epsilon, ball).worst_variance
    for bits in range(1, MOST_BITS + 1):
        mechanism = MinimalRandomCodingMechanism(epsilon, bits, ball)
        if mechanism.worst_variance <= (1 + excess) * least:
            return mechanism
    found = mechanism.worst_variance / least - 1
    raise InfeasibleError(f"excess must be at least {found:.3g} for epsilon {epsilon:g} and {MOST_BITS} bits, got {excess:g}")
