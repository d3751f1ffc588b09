"""PrivUnit with its best cap: the least variance that an unbiased, purely private message can have."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ....arrays import FloatArray
from ...contracts.mechanism import check_vector_epsilon
from ...contracts.norm_ball import NormBall, check_ball
from ...contracts.privacy import Privacy
from ...noise.random_words import WordsLike
from ..uncompressed_vector import UncompressedVectorMechanism
from .best_cap import BestCap
from .random_direction import random_directions


@dataclass(frozen=True)
class PrivUnitMechanism(UncompressedVectorMechanism):
    """Every client sends a unit vector, which lies in the cap around its own vector more often than by chance (`BestCap`).

    Bhowmick, Duchi, Freudiger, Kapoor, Rogers 2018, *Protection against reconstruction and its applications in private federated
    learning*, with the parameters that are optimal (Asi, Feldman, Talwar 2022). On the sphere its variance is the proven bound for every
    unbiased mechanism (`unbiased_local_bound`). A vector inside the ball is first replaced by clip_norm times its direction or the
    opposite one, at random and without bias. Messages are 64-bit floats, a reference for comparisons as those of `PrivUnitGMechanism`.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    ball : NormBall
        L2 ball of the vectors.

    Examples
    --------
    PrivUnitG's is 38.37.

    >>> mechanism = PrivUnitMechanism(5.0, NormBall(dimension=128, norm=2.0))
    >>> round(mechanism.worst_variance, 2)
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
        """The cap, whose threshold is the mean of <x, v>."""
        return BestCap(self.ball.dimension, self.epsilon)

    def privacy(self) -> Privacy:
        """Pure local privacy of the real-valued mechanism; over rounds, less than that of randomised response (`CapPrivacy`)."""
        return self.stated(self.cap.cap_privacy.privacy())

    @property
    def worst_variance(self) -> float:
        """Variance at the centre of the ball, the largest: ``clip_norm**2 / mean**2``; on the sphere it is clip_norm**2 less."""
        return self.ball.clip_norm**2 * (1 + self.cap.excess)

    def encode(self, vectors: ArrayLike, words: WordsLike) -> FloatArray:
        """Draw one unit vector per vector."""
        words = self.checked_words(words)
        return self.cap.draw(random_directions(self.ball, vectors, words), words)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``worst_variance - ||x||**2`` for each vector: exact."""
        inside = np.square(self.ball.clip_norm) - np.square(self.ball.clip(vectors)).sum(axis=1)
        return np.asarray(self.ball.clip_norm**2 * self.cap.excess + np.maximum(inside, 0.0))

    @property
    def _message_unit(self) -> float:
        return self.ball.clip_norm / self.cap.mean
