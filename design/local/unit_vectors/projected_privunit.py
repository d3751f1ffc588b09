"""ProjUnit: PrivUnit of a few random projections of the vector, which public randomness chooses anew for each client.

Asi, Feldman, Nelson, Nguyen, Talwar 2023, *Fast optimal locally private mean estimation via random projections*.
"""

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....arguments import MOST_CLIENTS, check_integer
from ....arrays import FloatArray
from ....solvers.numerics.projected_norm import projected_mean_norm
from ...contracts.mechanism import VectorMechanism, check_vector_epsilon
from ...contracts.norm_ball import check_ball
from ...contracts.privacy import Privacy
from ...contracts.real_numbers import RealNumberMechanism
from ...noise.random_words import WordsLike
from .best_cap import BestCap
from .client_chunks import client_chunks
from .random_direction import SHORTEST, random_directions

# Seeds travel as the first number of a message, exactly.
SEED_BITS = 53


class ProjectedPrivUnitMechanism(RealNumberMechanism, VectorMechanism):
    """Every client projects its unit vector by a public random matrix, and sends PrivUnit's message for the direction of the projection.

    With P the matrix, whose k rows are orthonormal, and x the message, a unit vector of k dimensions, the server averages
    ``P^T x clip_norm / (m c)``: m is the mean of <x, u> for a direction u (`BestCap` in k dimensions), and c that of the norm of k
    coordinates of a uniformly random unit vector of `space` dimensions. A message is as private as PrivUnit's in k dimensions: k 64-bit
    floats, after the public seed, which costs nothing.
    """

    epsilon: float
    projected: int
    delta = 0.0

    @property
    @abstractmethod
    def space(self) -> int:
        """Number of coordinates that are projected, padding included."""

    @abstractmethod
    def _project(self, seeds: list[int], directions: FloatArray) -> FloatArray:
        """Return P v for a chunk of clients, shape (clients, projected)."""

    @abstractmethod
    def _lift(self, seeds: list[int], points: FloatArray) -> FloatArray:
        """Return the sum of P^T x over a chunk of clients, shape (dimension,)."""

    @property
    @abstractmethod
    def _numbers(self) -> int:
        """Numbers that one client's projection takes, of which there are as many at a time as `client_chunks` allows."""

    def _check(self, name: str) -> None:
        object.__setattr__(self, "epsilon", check_vector_epsilon(self.epsilon))
        check_ball(self.ball, name, 2)
        object.__setattr__(self, "projected", check_integer("projected", self.projected, low=1, high=self.space))

    @cached_property
    def cap(self) -> BestCap:
        """The cap of the projected sphere."""
        return BestCap(self.projected, self.epsilon)

    @property
    def scale(self) -> float:
        """M c: mean of <P^T x, v>, for a uniformly random subspace."""
        return self.cap.mean * projected_mean_norm(self.space, self.projected)

    @property
    def bits_per_client(self) -> float:
        """Bits of a double-precision number for each projection; the seed is public randomness and costs nothing."""
        return 64.0 * self.projected

    def privacy(self) -> Privacy:
        """Pure local privacy of the real-valued mechanism, for every seed; over rounds as `CapPrivacy`."""
        return self.stated(self.cap.cap_privacy.privacy())

    def encode(self, vectors: ArrayLike, words: WordsLike) -> FloatArray:
        """Draw the seed, which is public, and a unit vector for each client, shape (clients, 1 + projected)."""
        words = self.checked_words(words)
        directions = random_directions(self.ball, vectors, words)
        messages = np.empty((len(directions), 1 + self.projected))
        messages[:, 0] = words.integers(2**SEED_BITS, len(directions))
        for part in client_chunks(len(directions), self._numbers):
            points = self._project(messages[part, 0].astype(np.int64).tolist(), directions[part])
            norms = np.linalg.norm(points, axis=1)
            points[norms < SHORTEST] = np.eye(1, self.projected)
            messages[part, 1:] = self.cap.draw(points / np.where(norms < SHORTEST, 1.0, norms)[:, None], words)
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
        """Return the average of the vectors that the messages stand for; it may lie outside the ball."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray(aggregate * (self.ball.clip_norm / (self.scale * clients)))
