"""Project and perturb: a trusted server adds Gaussian noise to the sum of sketches.

The mechanism is that of lemma 5.1 of Chen, Choquette-Choo, Kairouz, Suresh 2022, *The Fundamental Price of Secure Aggregation in
Differentially Private Federated Learning*. It has the error of compression without the rounding and wrapping of a secure sum. It is a
reference for comparisons, not for releases: its noise is in floating point.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...solvers.accounting.gaussian_privacy import SMALLEST_MULTIPLIER
from ...solvers.accounting.renyi_curve import check_delta
from ..contracts.error import VarianceParts
from ..contracts.gaussian import LARGEST_MULTIPLIER, gaussian_privacy
from ..contracts.guarantee import ADJACENCIES
from ..contracts.mechanism import MessageScore
from ..contracts.norm_ball import NormBall
from ..contracts.privacy import Privacy
from ..contracts.real_numbers import RealNumberMechanism
from ..contracts.sketched_mechanism import SketchedMechanism
from ..noise.random_words import WordsLike
from ..transforms.linear_sketch import LinearSketch

FLOAT_BITS = 64


@dataclass(frozen=True)
class CentralSketchMechanism(RealNumberMechanism, SketchedMechanism):
    """A mechanism whose trusted server adds Gaussian noise to the sum of clients' sketches.

    Vectors are clipped and sketched, and sketches are clipped and sent as 64-bit floats. The noise is drawn in equal shares, one with each
    client's message: the sum has the law of the server's noise. `decode` refuses a sum over another number of clients.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    sketch : LinearSketch
        The sketch, which keeps lengths on average.
    clients : int
        Number of clients.
    sketch_clip : float
        L2 norm to which sketches are clipped.
    noise_multiplier : float
        Standard deviation of the sum's noise, over its sensitivity: `sketch_clip`, or twice that for ``"replace-one"``.
    delta : float
        Failure probability of the guarantee.
    adjacency : str
        Adjacency of the guarantee.

    Examples
    --------
    >>> from quietbits.design.transforms.count_sketch import CountMeanSketch
    >>> sketch = CountMeanSketch(1000, rows=5, width=20, seed=1)
    >>> mechanism = CentralSketchMechanism(NormBall(1000, 2.0), sketch, clients=100, sketch_clip=1.1, noise_multiplier=4.0, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.926342, delta = 1e-05, add-or-remove-one adjacency, central trust model
    """

    ball: NormBall
    sketch: LinearSketch
    clients: int
    sketch_clip: float
    noise_multiplier: float
    delta: float
    adjacency: str = "add-or-remove-one"

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_sketch()
        object.__setattr__(self, "clients", check_integer("clients", self.clients, low=1, high=MOST_CLIENTS))
        object.__setattr__(self, "sketch_clip", check_real("sketch_clip", self.sketch_clip, low=1e-100, high=1e100))
        multiplier = check_real("noise_multiplier", self.noise_multiplier, low=SMALLEST_MULTIPLIER, high=LARGEST_MULTIPLIER)
        object.__setattr__(self, "noise_multiplier", multiplier)
        object.__setattr__(self, "delta", check_delta(self.delta))
        check_choice("adjacency", self.adjacency, ADJACENCIES)

    @property
    def joint_clients(self) -> int:
        """Number of clients, as the server releases only the noisy sum."""
        return self.clients

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism for another number of clients, with the same noise on their sum."""
        return replace(self, clients=clients)

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the projection of the noisy sum on the sketch of the inputs' difference."""
        direction = self.sketched(first.sum(axis=0, keepdims=True) - second.sum(axis=0, keepdims=True))[0]
        return lambda messages: np.asarray(messages.sum(axis=1) @ direction)

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, 64 for each coordinate of a sketch."""
        return float(FLOAT_BITS * self.sketch_dimension)

    @property
    def noise_deviation(self) -> float:
        """Standard deviation of a coordinate of the sum's noise."""
        return self.noise_multiplier * self.sketch_clip * (2 if self.adjacency == "replace-one" else 1)

    @property
    def variance_bound(self) -> float:
        """The variance, which is the same for all vectors."""
        return self.ball.dimension * self.noise_deviation**2 / self.clients / self.sketch.length_factor**2

    def privacy(self) -> Privacy:
        """Return the privacy of Gaussian noise on the sum of sketches."""
        return self.stated(gaussian_privacy(self.noise_multiplier, self.adjacency, "central"))

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> FloatArray:
        """Return sketches, each with its share of the noise."""
        sketches = self._sketch_ball.clip(self.sketched(vectors))
        return sketches + self.noise_deviation / math.sqrt(self.clients) * self.checked_words(random_words).normals(sketches.shape)

    def aggregate(self, messages: FloatArray) -> FloatArray:
        """Return the sum of the messages, shape (sketch_dimension,)."""
        return np.asarray(np.asarray(messages, dtype=float).sum(axis=0))

    def decode(self, aggregate: FloatArray, clients: int) -> FloatArray:
        """Return ``S^T`` times the mean of the sketches, an unbiased estimate of the mean."""
        if clients != self.clients:
            raise ValueError(f"clients must be {self.clients}, for whose noise the guarantee is stated, got {clients!r}")
        return self.sketch.decode(np.asarray(aggregate) / self.clients)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the dimension times the variance of a client's share of the noise, for each vector."""
        return np.full(len(self.ball.check(vectors)), self.variance_bound)

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector as noise; `shared_variance` is that of compression."""
        return VarianceParts.split(self.variance(vectors))

    @cached_property
    def _sketch_ball(self) -> NormBall:
        return NormBall(self.sketch_dimension, 2.0, self.sketch_clip)
