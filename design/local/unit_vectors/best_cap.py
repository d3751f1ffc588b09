"""The cap of the sphere around the client's vector with which a private message has the least variance."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from ....arrays import FloatArray
from ....solvers.limits.prior_risk import ROUNDING
from ....solvers.limits.private_posterior import posterior_odds
from ...noise.random_words import WordSource
from .cap_privacy import CapPrivacy

# Where less than this share of normal numbers is left beside a vector, digits have cancelled.
CANCELLED = 0.01


@dataclass(frozen=True)
class BestCap:
    """PrivUnit's law on the unit sphere: uniform, times e^epsilon / Z where <x, v> is at least the threshold, and 1 / Z elsewhere.

    With X a coordinate of a uniformly random unit vector, the mean of <x, v> is (e^epsilon - 1) E[X; X >= t] / Z, Z = 1 + (e^epsilon - 1)
    P(X >= t). Its derivative in t vanishes where it equals t, its largest value: **the best threshold is the mean itself**, which
    `posterior_odds` finds, and no private message has a longer one (`docs/theory.md`, Unit vectors).

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
        """``mean**2 / (1 - mean**2)``, to a share of 1e-9."""
        return float(posterior_odds(self.dimension, self.epsilon))

    @property
    def mean(self) -> float:
        """Mean of <x, v>, and the threshold."""
        return math.sqrt(self.odds / (1 + self.odds)) if math.isfinite(self.odds) else 1.0

    @property
    def excess(self) -> float:
        """``1 / mean**2 - 1``: variance of ``x / mean`` for a unit vector, the least of all unbiased private messages; errs upward."""
        return (1 + 2 * ROUNDING) / self.odds

    @cached_property
    def probability(self) -> float:
        """Probability P(X >= t) with which a uniformly random unit vector lies in the cap; at most 1/2."""
        if self.dimension == 1:
            return 0.5
        return float(scipy.special.betainc((self.dimension - 1) / 2, 0.5, 1 / (1 + self.odds))) / 2

    @property
    def keep_probability(self) -> float:
        """Probability with which a message lies in the cap."""
        return 1 / (1 + math.exp(-self.epsilon) * (1 - self.probability) / self.probability)

    @property
    def density(self) -> float:
        """e^epsilon / Z: density of a message in the cap, over the uniform one."""
        return self.keep_probability / self.probability

    @property
    def cap_privacy(self) -> CapPrivacy:
        """What a message reveals."""
        return CapPrivacy.of_cap(self.epsilon, math.log(self.probability), math.log1p(-self.probability))

    def draw(self, directions: FloatArray, words: WordSource) -> FloatArray:
        """Draw a message for each unit vector, shape (clients, dimension)."""
        clients = len(directions)
        kept = words.uniforms(clients) < self.keep_probability
        uniforms = 1 - words.uniforms(clients)
        if self.dimension == 1:
            return np.where(kept, 1.0, -1.0)[:, None] * directions
        # By the mass of the tail beyond X, on its own side; 1 - X**2 is found from it without cancellation.
        below = uniforms * (1 - self.probability)
        negative = ~kept & (below <= 0.5)
        tail = np.where(kept, uniforms * self.probability, np.where(negative, below, 1 - below))
        rest = scipy.special.betaincinv((self.dimension - 1) / 2, 0.5, np.minimum(2 * tail, 1.0))
        edge = 1 / (1 + self.odds)
        rest = np.where(kept, np.minimum(rest, edge), np.where(negative, rest, np.maximum(rest, edge)))
        along = np.where(negative, -1.0, 1.0) * np.sqrt(1 - rest)
        across = words.normals(directions.shape)
        _project_off(across, directions)
        lengths = np.linalg.norm(across, axis=1)
        # What is left of numbers that point nearly where the vector does is not yet at right angles to it: rounding.
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


def _project_off(vectors: FloatArray, directions: FloatArray) -> None:
    """Subtract from each vector, in place, its projection on a unit vector."""
    vectors -= np.einsum("ij,ij->i", vectors, directions)[:, None] * directions
