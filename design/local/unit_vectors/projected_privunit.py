"""ProjUnit: PrivUnit of a few public random projections of each client's vector.

Asi, Feldman, Nelson, Nguyen, Talwar 2023, *Fast optimal locally private mean estimation via random projections*. ProjUnit has uniformly
random subspaces, FastProjUnit random rows of a Hadamard matrix whose columns have random signs.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....arguments import MOST_CLIENTS, check_integer
from ....arrays import FloatArray
from ....solvers.numerics.projected_norm import hadamard_bias, projected_mean_norm
from ....solvers.numerics.walsh_hadamard import padded_dimension, walsh_hadamard
from ...contracts.mechanism import VectorMechanism, check_vector_epsilon
from ...contracts.norm_ball import NormBall, check_ball
from ...contracts.privacy import Privacy
from ...contracts.real_numbers import RealNumberMechanism
from ...noise.random_words import WordsLike
from ...relative_entropy.shared_randomness import philox_words
from .privunit import BestCap
from .random_direction import SHORTEST, random_directions
from .shared_frames import client_chunks, frame_coordinates, frame_sum

WORD_BITS = 64

# Number of bits of a seed, which a float, the type of a message's first number, holds exactly.
SEED_BITS = 53


class ProjectedPrivUnitMechanism(RealNumberMechanism, VectorMechanism):
    """Every client sends PrivUnit's message for a public random projection of its vector.

    A client projects its unit vector, and PrivUnit randomises the direction of the projection. Let P be the matrix, whose k rows are
    orthonormal, and x the message, a unit vector of k dimensions. The server averages ``P^T x clip_norm / (m c)``, where m is the mean of
    <x, u> for a direction u (`BestCap` in k dimensions), and c the mean norm of k coordinates of a uniformly random unit vector of `space`
    dimensions. A message is as private as PrivUnit's in k dimensions. It consists of the public seed, which costs nothing, and k 64-bit
    floats.
    """

    epsilon: float
    projected: int
    delta = 0.0

    @property
    @abstractmethod
    def space(self) -> int:
        """Number of projected coordinates, padding included."""

    @abstractmethod
    def _project(self, seeds: list[int], directions: FloatArray) -> FloatArray:
        """Return P v for a chunk of clients, shape (clients, projected)."""

    @abstractmethod
    def _lift(self, seeds: list[int], points: FloatArray) -> FloatArray:
        """Return the sum of P^T x over a chunk of clients, shape (dimension,)."""

    @property
    @abstractmethod
    def _numbers(self) -> int:
        """Number of numbers in a client's projection, for `client_chunks`."""

    def _check(self, name: str) -> None:
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))
        check_ball(self.ball, name, 2)
        object.__setattr__(self, "projected", check_integer("projected", self.projected, low=1, high=self.space))

    @cached_property
    def cap(self) -> BestCap:
        """Cap of the projected sphere."""
        return BestCap(self.projected, self.epsilon)

    @property
    def scale(self) -> float:
        """Mean of <P^T x, v>, ``m c``, for a uniformly random subspace."""
        return self.cap.mean * projected_mean_norm(self.space, self.projected)

    @property
    def bits_per_client(self) -> float:
        """Number of bits of the projections, a double-precision number each.

        The seed is public randomness and costs nothing.
        """
        return 64.0 * self.projected

    def privacy(self) -> Privacy:
        """Return the pure local privacy of the real-valued mechanism, for every seed.

        Over rounds the account is that of `CapPrivacy`.
        """
        return self.stated(self.cap.cap_privacy.privacy())

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> FloatArray:
        """Draw the public seed and a unit vector for each client, shape (clients, 1 + projected)."""
        random_words = self.checked_words(random_words)
        directions = random_directions(self.ball, vectors, random_words)
        messages = np.empty((len(directions), 1 + self.projected))
        messages[:, 0] = random_words.integers(2**SEED_BITS, len(directions))
        for part in client_chunks(len(directions), self._numbers):
            points = self._project(messages[part, 0].astype(np.int64).tolist(), directions[part])
            norms = np.linalg.norm(points, axis=1)
            points[norms < SHORTEST] = np.eye(1, self.projected)
            messages[part, 1:] = self.cap.draw(points / np.where(norms < SHORTEST, 1.0, norms)[:, None], random_words)
        return messages

    def aggregate(self, messages: NDArray[Any]) -> FloatArray:
        """Return the sum of P^T x, shape (dimension,)."""
        if messages.ndim != 2 or messages.shape[1] != 1 + self.projected:
            raise ValueError(f"messages must have the shape (clients, {1 + self.projected}), got {messages.shape}")
        seeds = messages[:, 0]
        wrong = seeds[~((seeds >= 0) & (seeds < 2.0**SEED_BITS) & (np.floor(seeds) == seeds))]
        if wrong.size:
            raise ValueError(f"messages must begin with a seed, a whole number from 0 to {2**SEED_BITS - 1}, got {wrong[0]}")
        total = np.zeros(self.ball.dimension)
        for part in client_chunks(len(messages), self._numbers):
            total += self._lift(seeds[part].astype(np.int64).tolist(), messages[part, 1:])
        return total

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the decoded messages, which may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray(aggregate * (self.ball.clip_norm / (self.scale * clients)))


@dataclass(frozen=True)
class ProjUnitMechanism(ProjectedPrivUnitMechanism):
    """ProjUnit with uniformly random orthonormal rows: unbiased, with an exact variance.

    The base class is `ProjectedPrivUnitMechanism`.

    By symmetry the mean of ``P^T P v / |P v|`` is c v. Estimates have the norm clip_norm / (m c). A client takes time in proportion to
    dimension * projected.

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    projected : int
        Number k of projections, from 1 to the dimension.
    ball : NormBall
        L2 ball of the vectors.

    Examples
    --------
    Uncompressed PrivUnit has the worst variance 87.35.

    >>> ball = NormBall(dimension=200, norm=2.0)
    >>> [round(ProjUnitMechanism(4.0, projected, ball).variance_bound, 2) for projected in (16, 64, 200)]
    [93.54, 88.43, 87.35]
    """

    epsilon: float
    projected: int
    ball: NormBall

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check("ProjUnit")

    @property
    def space(self) -> int:
        """Number of coordinates of the vectors that are projected, the dimension."""
        return self.ball.dimension

    @property
    def variance_bound(self) -> float:
        """Largest variance, that of the ball's centre: ``(clip_norm / (m c))**2``."""
        return (self.ball.clip_norm / self.scale) ** 2

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``variance_bound - ||x||**2`` for each vector.

        The variance is exact, over seeds and messages.
        """
        return np.asarray(self.variance_bound - np.square(self.ball.clip(vectors)).sum(axis=1))

    @property
    def _numbers(self) -> int:
        return self.ball.dimension * self.projected

    def _project(self, seeds: list[int], directions: FloatArray) -> FloatArray:
        return frame_coordinates(seeds, directions, self.projected)

    def _lift(self, seeds: list[int], points: FloatArray) -> FloatArray:
        return frame_sum(seeds, points, self.ball.dimension)


@dataclass(frozen=True)
class FastProjUnitMechanism(ProjectedPrivUnitMechanism):
    """ProjUnit by the Walsh-Hadamard transform: random rows of H D, D random signs.

    P consists of k different rows (`ProjectedPrivUnitMechanism`). Vectors are padded with zeros to `space`, a power of two. The server
    assumes the mean of ``P^T P v / |P v|`` over uniformly random subspaces. So the estimate of a single vector may have a bias, which is at
    most the proven `bias_bound` and averages to zero over uniformly random vectors of the padded space. The bias falls with the number of
    projections, and more clients do not lower it. A client takes time in proportion to dimension * log(dimension).

    Attributes
    ----------
    epsilon : float
        Privacy parameter, 1e-3 to 100.
    projected : int
        Number k of projections, from 1 to the padded dimension.
    ball : NormBall
        L2 ball of the vectors.

    Examples
    --------
    Uncompressed PrivUnit has the worst variance 87.35.

    >>> mechanism = FastProjUnitMechanism(4.0, 64, NormBall(dimension=200, norm=2.0))
    >>> round(mechanism.variance_bound, 2), round(mechanism.bias_bound, 3)
    (89.36, 0.053)
    """

    epsilon: float
    projected: int
    ball: NormBall

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check("FastProjUnit")

    @property
    def space(self) -> int:
        """Number of projected coordinates, the dimension or the next power of two."""
        return padded_dimension(self.ball.dimension)

    @property
    def bias_bound(self) -> float:
        """Bound on the bias of every vector, ``hadamard_bias(space, projected) clip_norm``."""
        return hadamard_bias(self.space, self.projected) * self.ball.clip_norm

    @property
    def variance_bound(self) -> float:
        """Bound on the largest variance, that of the ball's centre; exact without padding.

        The mean square of a message along its direction is (1 + (k - 1) m**2) / k, and (1 - m**2) / k across. The estimate omits the part
        of P^T u, of norm 1, on the padding, which the bound includes; the share of P^T P on the vectors' coordinates is d / space by the
        signs of H.
        """
        square, share = self.cap.mean**2, self.ball.dimension / self.space
        return (self.ball.clip_norm / self.scale) ** 2 * (square + (1 - square) * share)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``variance_bound - ||x||**2`` for each vector, its variance if there were no bias.

        A vector's own variance differs by at most ``2 bias_bound ||x|| + bias_bound**2``, and that of uniformly random vectors by
        `bias_bound` squared.
        """
        return np.asarray(self.variance_bound - np.square(self.ball.clip(vectors)).sum(axis=1))

    @property
    def _numbers(self) -> int:
        return self.space

    def _project(self, seeds: list[int], directions: FloatArray) -> FloatArray:
        signs, rows = self._shared(seeds)
        padded = np.zeros((len(seeds), self.space))
        padded[:, : self.ball.dimension] = directions * signs
        return np.asarray(np.take_along_axis(walsh_hadamard(padded), rows, axis=1) / np.sqrt(self.space))

    def _lift(self, seeds: list[int], points: FloatArray) -> FloatArray:
        signs, rows = self._shared(seeds)
        spread = np.zeros((len(seeds), self.space))
        np.put_along_axis(spread, rows, points, axis=1)
        lifted = walsh_hadamard(spread)[:, : self.ball.dimension] * signs
        return np.asarray(lifted.sum(axis=0) / np.sqrt(self.space))

    def _shared(self, seeds: list[int]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """Return the coordinates' signs and the rows of H for each seed.

        Signs and rows come from Philox, which gives the same words on every machine.
        """
        sign_words = -(-self.ball.dimension // WORD_BITS)
        words = philox_words(seeds, sign_words + self.space)
        bits = np.unpackbits(words[:, :sign_words].astype("<u8").view(np.uint8), axis=1)
        signs = 2 * bits[:, : self.ball.dimension].view(np.int8) - 1
        # The rows with the smallest words are a uniformly random subset.
        rows = np.argpartition(words[:, sign_words:], self.projected - 1, axis=1)[:, : self.projected]
        return signs, np.sort(rows, axis=1)
