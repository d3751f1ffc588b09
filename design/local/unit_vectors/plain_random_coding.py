"""PrivUnitG by plain minimal random coding: a public candidate by its density, which is biased and costs up to twice the epsilon.

Havasi, Peharz, Hernández-Lobato 2019, *Minimal random code learning*, for local privacy by Shah, Chen, Balle, Kairouz, Theis 2021, *Optimal
compression of locally differentially private mechanisms*.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ....arguments import check_integer, check_real
from ....arrays import FloatArray
from ....solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW
from ....solvers.divergences.candidate_coding_privacy import minimal_random_coding_epsilon
from ....solvers.numerics.bisection import bisect
from ....solvers.numerics.rounding import SHORT_SLACK
from ...contracts.accounts import pure_privacy
from ...contracts.norm_ball import NormBall, check_ball
from ...contracts.privacy import Privacy
from .candidate_coding import MOST_BITS, CandidateCodingMechanism, mean_projection
from .privunit_g import PrivUnitGMechanism

# Of the number of candidates in the cap, in standard deviations; there are always some numbers about the mean.
REACH = 40
# Thresholds that are tried before the best is refined.
THRESHOLDS = 128
HALVINGS = 100


@dataclass(frozen=True)
class PlainRandomCodingMechanism(CandidateCodingMechanism):
    """Every client sends the number of a public Gaussian candidate, with probability in proportion to PrivUnitG's density.

    Of K = 2**b candidates, n in the cap, one in the cap has the probability e^coded / (n e^coded + K - n), another one 1 / (n e^coded +
    K - n). The sum depends on the vector: given the candidates, which are public, two vectors' probabilities differ by up to `epsilon`,
    nearly twice `coded_epsilon`. The published decoder divides by the mean of PrivUnitG itself: it estimates a share `shrinking` of the
    vector. `MinimalRandomCodingMechanism` has neither fault.

    Attributes
    ----------
    coded_epsilon : float
        Privacy parameter of the PrivUnitG that is coded, 0.0001 to 20.
    message_bits : int
        log2 of the number of candidates, which is also the length b of a message, 1 to 20.
    ball : NormBall
        L2 ball of the vectors.
    unbiased : bool
        Whether to divide by the mean over seeds and indices instead, with the threshold that then has the least variance.

    Examples
    --------
    >>> mechanism = PlainRandomCodingMechanism(4.0, 8, NormBall(dimension=200, norm=2.0))
    >>> round(mechanism.epsilon, 3), round(mechanism.shrinking, 3), round(mechanism.worst_variance, 1)
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
        """Pure privacy parameter that is proven; errs upward."""
        return minimal_random_coding_epsilon(self.coded_epsilon, self.candidates) * (1 + SHORT_SLACK)

    @cached_property
    def coded(self) -> PrivUnitGMechanism:
        """The mechanism that is coded."""
        return PrivUnitGMechanism(max(self.coded_epsilon, EPSILON_LOW), self.ball)

    @cached_property
    def threshold(self) -> float:
        """That of the mechanism that is coded; without bias, the one that minimises the variance, as far as a search finds it."""
        if not self.unbiased:
            return self.coded.threshold

        def log_variance(threshold: float) -> float:
            mean = self._projection_mean(threshold)
            return math.log(self.ball.dimension + threshold * mean) - 2 * math.log(mean) if mean > 0 else math.inf

        reach = math.sqrt(2 * self.coded_epsilon) + 3
        grid = np.linspace(-reach, reach, THRESHOLDS)
        best = int(np.clip(np.argmin([log_variance(threshold) for threshold in grid.tolist()]), 1, THRESHOLDS - 2))
        bounds = grid[best - 1], grid[best + 1]
        return float(scipy.optimize.minimize_scalar(log_variance, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x)

    @cached_property
    def projection_mean(self) -> float:
        """Mean of <z, v>, over seeds and indices."""
        return self._projection_mean(self.threshold)

    @property
    def scale(self) -> float:
        """Mean of PrivUnitG with `coded_epsilon`, or the mean itself."""
        if self.unbiased:
            return self.projection_mean
        cap = self.cap_probability
        return mean_projection(self.threshold, cap / (cap + math.exp(-self.coded_epsilon) * (1 - cap)))

    @property
    def shrinking(self) -> float:
        """Share of a client's vector that is its decoded message's mean."""
        return self.projection_mean / self.scale

    @property
    def bias_bound(self) -> float:
        """``(1 - shrinking) clip_norm``: that of vectors on the sphere which all point the same way."""
        return (1 - self.shrinking) * self.ball.clip_norm

    def known_bias(self, vectors: ArrayLike) -> FloatArray:
        """Return ``(shrinking - 1) x`` for each vector."""
        return np.asarray((self.shrinking - 1) * self.ball.clip(vectors))

    def facts(self) -> dict[str, float]:
        """Return the proven epsilon of one message."""
        return {"epsilon_per_round": self.epsilon}

    def privacy(self) -> Privacy:
        """Pure local privacy, for every seed and whatever the candidates."""
        return pure_privacy(self.epsilon)

    @property
    def worst_variance(self) -> float:
        """Variance at the centre of the ball, the largest."""
        # <z, v>**2 has the mean 1 + threshold m, other squares have the mean 1.
        return self.ball.clip_norm**2 * (self.ball.dimension + self.threshold * self.projection_mean) / self.scale**2

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``worst_variance - shrinking**2 ||x||**2`` for each vector: exact, over seeds and indices."""
        return np.asarray(self.worst_variance - self.shrinking**2 * np.square(self.ball.clip(vectors)).sum(axis=1))

    def outside_probability(self, inside: int) -> float:
        """Return the probability of a candidate outside the cap, with `inside` candidates in it."""
        outside = self.candidates - inside
        return outside / (inside * math.exp(self.coded_epsilon) + outside)

    def _projection_mean(self, threshold: float) -> float:
        cap, count = float(scipy.special.ndtr(-threshold)), self.candidates
        log_cap, log_rest = float(scipy.special.log_ndtr(-threshold)), float(scipy.special.log_ndtr(threshold))
        spread = REACH * math.sqrt(count * cap * (1 - cap)) + REACH
        inside = np.arange(max(0, math.floor(count * cap - spread)), min(count, math.ceil(count * cap + spread)) + 1)
        logs = -scipy.special.betaln(inside + 1, count - inside + 1) + inside * log_cap + (count - inside) * log_rest
        weights = np.exp(logs - logs.max())
        chosen = inside / (inside + math.exp(-self.coded_epsilon) * (count - inside))
        return mean_projection(threshold, float(weights @ chosen / weights.sum()))


def plain_random_coding_mechanism(
    epsilon: float, message_bits: int, ball: NormBall, *, unbiased: bool = False
) -> PlainRandomCodingMechanism:
    """Return the mechanism whose proven epsilon, 0.001 to 20, is the given one; errs toward more privacy.

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
