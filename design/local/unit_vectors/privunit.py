"""PrivUnit with its best cap: the unbiased, purely private message of least variance.

`BestCap` is the cap of the sphere around the client's vector that gives a private message the least variance. `CapPrivacy` accounts for
messages that are e^epsilon times as likely in the input's cap as outside it: the messages of PrivUnit and PrivUnitG.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ....arrays import FloatArray
from ....solvers.accounting.composed_losses import LossPair
from ....solvers.accounting.pure_composition import MOST_COMPOSED_ROUNDS, composed_pure_epsilon
from ....solvers.accounting.pure_privacy import check_orders, pure_renyi_divergences
from ....solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ....solvers.accounting.sampling import Sampling
from ....solvers.limits.prior_risk import ROUNDING
from ....solvers.limits.private_posterior import posterior_odds
from ....solvers.numerics.rounding import SLACK
from ...contracts.accounts import composed_loss, loss_account, pure_account, renyi_account, repeated_losses
from ...contracts.error import VarianceParts
from ...contracts.mechanism import check_vector_epsilon
from ...contracts.norm_ball import NormBall, check_ball
from ...contracts.privacy import Privacy
from ...noise.random_words import WordsLike, WordSource
from ..uncompressed_vector import UncompressedVectorMechanism
from .random_direction import direction_variance, random_directions

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

# Factor on a loss distribution's step that covers errors of about ten units in its masses. The smallest epsilons leave less room, but then
# `composed_loss` takes more than these units from delta.
GRID_MARGIN = 1 + SLACK

# Share of the normal numbers that remains after the projection, below which digits have cancelled.
CANCELLED = 0.01


@dataclass(frozen=True)
class CapPrivacy:
    """Randomised response that is revealed with a given probability.

    Its outputs dominate the messages of any two inputs.

    The result of randomised response is revealed with probability `revealing`, and otherwise not at all. The densities of two unit vectors
    have the ratio e^epsilon on the first vector's cap without the second's, e^-epsilon on the second's without the first's, and 1
    elsewhere. With w the measure of either region, under the law that does not depend on the input, every f-divergence is w times a
    non-negative number that depends on epsilon only. So the pair with the largest w dominates all others, and mixtures of both directions
    (joint convexity): opposite vectors, with w the smaller of the measures of a cap and of its complement. A message then lies in exactly
    one of the two caps with probability (e^epsilon + 1) w / Z.

    Attributes
    ----------
    epsilon : float
        Pure privacy parameter.
    revealing : float
        Probability (e^epsilon + 1) w / Z of revealing the message, at most 1.
    """

    epsilon: float
    revealing: float

    @classmethod
    def of_cap(cls, epsilon: float, log_cap: float, log_rest: float) -> "CapPrivacy":
        """Return the privacy of a cap and its complement, given the logarithms of their measures."""
        log_constant = np.logaddexp(epsilon + log_cap, log_rest)
        return cls(epsilon, min(1.0, math.exp(float(np.logaddexp(epsilon, 0.0) + min(log_cap, log_rest) - log_constant))))

    def privacy(self) -> Privacy:
        """Return the pure local privacy of the real-valued mechanism.

        The accounts of several rounds use the exact `loss`, and are better than the account of randomised response.
        """

        def curve() -> RenyiCurve:
            return RenyiCurve(np.array(DEFAULT_ORDERS), self.renyi_divergences(DEFAULT_ORDERS))

        def by_loss(rounds: int, delta: float) -> float | None:
            # Losses above 700, whose exponentials underflow, go to randomised response, which dominates.
            own = composed_loss(self.loss(), rounds, delta)
            pure = composed_pure_epsilon(self.epsilon, rounds, delta) if rounds <= MOST_COMPOSED_ROUNDS else None
            return min((epsilon for epsilon in (own, pure) if epsilon is not None), default=None)

        def losses(delta: float, rounds: int, sampling: Sampling | None) -> LossPair | None:
            return repeated_losses(self.loss(), rounds, delta) if sampling is None else None

        by_losses = loss_account("pld", by_loss, "replace-one", losses=losses)
        accounts = (pure_account(self.epsilon), renyi_account(curve, "replace-one"), by_losses)
        return Privacy("local", accounts)

    def loss(self) -> "PrivacyLossDistribution":
        """Return the loss distribution of two opposite vectors: -epsilon, 0 and epsilon.

        The pair dominates every two vectors. The grid's step is epsilon, slightly enlarged: a round adds two places, while a fine grid
        takes seconds to compose hundreds of rounds.
        """
        from dp_accounting.pld.pld_pmf import SparsePLDPmf
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

        step = self.epsilon * GRID_MARGIN
        flipped = self.revealing / (math.exp(step) + 1)
        losses = {-1: flipped, 0: 1 - self.revealing, 1: self.revealing - flipped}
        return PrivacyLossDistribution(SparsePLDPmf(losses, step, 0.0, pessimistic_estimate=True))

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return the exact Rényi divergence of two opposite vectors, in nats, per order above 1."""
        array = check_orders(orders)
        finite = np.where(np.isinf(array), 2.0, array)
        # e^((a - 1) r) = 1 - revealing + revealing e^((a - 1) r'), with r' the divergence of randomised response.
        exponents = (finite - 1) * pure_renyi_divergences(self.epsilon, finite)
        small = exponents < 300
        direct = np.log1p(self.revealing * np.expm1(np.where(small, exponents, 0.0)))
        divergences = np.where(small, direct, exponents + math.log(self.revealing)) / (finite - 1)
        return np.asarray(np.where(np.isinf(array), self.epsilon, divergences))


@dataclass(frozen=True)
class BestCap:
    """PrivUnit's law on the unit sphere: a cap with a density e^epsilon times that outside.

    The density over the uniform density is e^epsilon / Z where <x, v> is at least the threshold, and 1 / Z elsewhere.

    With X a coordinate of a uniformly random unit vector, the mean of <x, v> is (e^epsilon - 1) E[X; X >= t] / Z, Z = 1 + (e^epsilon - 1)
    P(X >= t). Its derivative in t vanishes where it equals t, its largest value: **the best threshold is the mean itself**, which
    `posterior_odds` computes, and no private message has a longer mean (`docs/proofs/unit-vectors.md`).

    Attributes
    ----------
    dimension : int
        Number of coordinates, at least 1.
    epsilon : float
        Pure privacy parameter, above 0.

    Examples
    --------
    >>> cap = BestCap(128, 5.0)
    >>> round(cap.mean, 4), round(cap.excess, 2), round(cap.keep_probability, 4)
    (0.1628, 36.73, 0.8335)
    """

    dimension: int
    epsilon: float

    @cached_property
    def odds(self) -> float:
        """``mean**2 / (1 - mean**2)``, with a relative error of 1e-9."""
        return float(posterior_odds(self.dimension, self.epsilon))

    @property
    def mean(self) -> float:
        """Mean of <x, v>, which is also the threshold."""
        return math.sqrt(self.odds / (1 + self.odds)) if math.isfinite(self.odds) else 1.0

    @property
    def excess(self) -> float:
        """Variance of ``x / mean`` for a unit vector, ``1 / mean**2 - 1``, rounded up.

        No unbiased private message has a smaller variance.
        """
        return (1 + 2 * ROUNDING) / self.odds

    @cached_property
    def probability(self) -> float:
        """Probability that a uniformly random unit vector lies in the cap; at most 1/2."""
        if self.dimension == 1:
            return 0.5
        return float(scipy.special.betainc((self.dimension - 1) / 2, 0.5, 1 / (1 + self.odds))) / 2

    @property
    def keep_probability(self) -> float:
        """Probability that a message lies in the cap."""
        return 1 / (1 + math.exp(-self.epsilon) * (1 - self.probability) / self.probability)

    @property
    def density(self) -> float:
        """Density e^epsilon / Z of a message in the cap, over the uniform density."""
        return self.keep_probability / self.probability

    @property
    def cap_privacy(self) -> CapPrivacy:
        """Privacy of a message."""
        return CapPrivacy.of_cap(self.epsilon, math.log(self.probability), math.log1p(-self.probability))

    def draw(self, directions: FloatArray, random_words: WordSource) -> FloatArray:
        """Draw a message for each unit vector, shape (clients, dimension)."""
        clients = len(directions)
        kept = random_words.uniforms(clients) < self.keep_probability
        uniforms = 1 - random_words.uniforms(clients)
        if self.dimension == 1:
            return np.where(kept, 1.0, -1.0)[:, None] * directions
        # X follows from the mass of the tail beyond it, on its own side, and 1 - X**2 from that mass without cancellation.
        below = uniforms * (1 - self.probability)
        negative = ~kept & (below <= 0.5)
        tail = np.where(kept, uniforms * self.probability, np.where(negative, below, 1 - below))
        rest = scipy.special.betaincinv((self.dimension - 1) / 2, 0.5, np.minimum(2 * tail, 1.0))
        edge = 1 / (1 + self.odds)
        rest = np.where(kept, np.minimum(rest, edge), np.where(negative, rest, np.maximum(rest, edge)))
        along = np.where(negative, -1.0, 1.0) * np.sqrt(1 - rest)
        across = random_words.normals(directions.shape)
        _project_off(across, directions)
        lengths = np.linalg.norm(across, axis=1)
        # If the normal numbers point nearly along the vector, rounding errors keep their remainder from being orthogonal to the vector.
        short = np.flatnonzero(lengths < CANCELLED * np.sqrt(self.dimension))
        if short.size:
            again = across[short]
            _project_off(again, directions[short])
            across[short], lengths[short] = again, np.linalg.norm(again, axis=1)
        if not lengths.all():
            raise ValueError("words must be random, got normal numbers that point exactly where a client's vector does")
        across *= (np.sqrt(rest) / lengths)[:, None]
        across += along[:, None] * directions
        return across


@dataclass(frozen=True)
class PrivUnitMechanism(UncompressedVectorMechanism):
    """Every client sends a unit vector, which often lies in the cap around its own vector.

    The message lies in the cap, that of `BestCap`, more often than by chance.

    Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018, *Protection against reconstruction and its applications in private federated learning*,
    with the optimal parameters (Asi, Feldman, Talwar 2022). On the sphere its variance is the proven bound for every unbiased mechanism
    (`unbiased_local_bound`). A vector inside the ball is first replaced by clip_norm times its direction or the opposite direction, at
    random and without bias. Messages are 64-bit floats: like `PrivUnitGMechanism`, the mechanism is a reference for comparisons.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    ball : NormBall
        L2 ball of the vectors.

    Examples
    --------
    PrivUnitG's worst variance is 38.37.

    >>> mechanism = PrivUnitMechanism(5.0, NormBall(dimension=128, norm=2.0))
    >>> round(mechanism.variance_bound, 2)
    37.73
    """

    epsilon: float
    ball: NormBall
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))
        check_ball(self.ball, "PrivUnit", 2)

    @cached_property
    def cap(self) -> BestCap:
        """Cap whose threshold is the mean of <x, v>."""
        return BestCap(self.ball.dimension, self.epsilon)

    def privacy(self) -> Privacy:
        """Return the pure local privacy of the real-valued mechanism.

        Over rounds the account is better than that of randomised response (`CapPrivacy`).
        """
        return self.stated(self.cap.cap_privacy.privacy())

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of the ball's centre: ``clip_norm**2 / mean**2``.

        The variance on the sphere is smaller by clip_norm**2.
        """
        return self.ball.clip_norm**2 * (1 + self.cap.excess)

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> FloatArray:
        """Draw a unit vector for each vector."""
        random_words = self.checked_words(random_words)
        return self.cap.draw(random_directions(self.ball, vectors, random_words), random_words)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the exact variance ``variance_bound - ||x||**2`` for each vector."""
        inside = np.square(self.ball.clip_norm) - np.square(self.ball.clip(vectors)).sum(axis=1)
        return np.asarray(self.ball.clip_norm**2 * self.cap.excess + np.maximum(inside, 0.0))

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance by rounding to the sphere, ``clip_norm**2 - ||x||**2``, and noise."""
        return VarianceParts.split(self.variance(vectors), rounding=direction_variance(self.ball, vectors))

    @property
    def _message_unit(self) -> float:
        return self.ball.clip_norm / self.cap.mean


def _project_off(vectors: FloatArray, directions: FloatArray) -> None:
    """Subtract each vector's projection on a unit vector, in place."""
    vectors -= np.einsum("ij,ij->i", vectors, directions)[:, None] * directions
