"""CLDP: vectors in one index and one bit, for L1, L2 and L-infinity balls.

Girgis, Data, Diggavi, Kairouz, Suresh 2021, *Shuffled model of differential privacy in federated learning*. All three mechanisms send the
sign of one number about the vector, and which number it was: a coordinate, or for L1 an entry of the Walsh-Hadamard transform.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...solvers.numerics.walsh_hadamard import hadamard_entries, padded_dimension, walsh_hadamard
from ..contracts.norm_ball import NormBall, check_ball
from .sampled_sign import SampledSignMechanism

# Signs of the Hadamard matrix that are held in memory at a time.
CHUNK = 2**22
# Beyond it gamma functions overflow.
LARGEST_DIRECT_DIMENSION = 300


@dataclass(frozen=True)
class CLDPLinfMechanism(SampledSignMechanism):
    """CLDP for an L-infinity ball: a coordinate, and a bit for its sign.

    Examples
    --------
    >>> mechanism = CLDPLinfMechanism(5.0, NormBall(dimension=128, norm=math.inf))
    >>> mechanism.bits_per_client, round(mechanism.worst_variance, 1)
    (8.0, 16831.6)
    """

    @property
    def norm(self) -> float:
        """Infinity."""
        return math.inf

    @property
    def message_norm(self) -> float:
        """``dimension * clip_norm / tanh(realised_epsilon / 2)``, along one axis."""
        return self.ball.dimension * self.ball.clip_norm / self._contrast

    def _numbers(self, vectors: FloatArray, indices: NDArray[np.int64]) -> FloatArray:
        return np.asarray(vectors[np.arange(len(vectors)), indices])

    def _combination(self, signed: NDArray[np.int64]) -> FloatArray:
        return np.asarray(self.message_norm * signed, dtype=float)


@dataclass(frozen=True)
class CLDPL2Mechanism(CLDPLinfMechanism):
    """CLDP for an L2 ball: a point z of a sphere, more often than not from the half that the vector points to, quantised to an axis.

    The published mechanism draws z of length M on the vector's side with probability e^epsilon / (e^epsilon + 1) (Duchi, Jordan,
    Wainwright 2018, *Minimax optimal procedures for locally private estimation*), and then sends coordinate i with probability
    ``|z_i| / ||z||_1`` and the sign of z_i, which is flipped with probability ``1/2 - ||z||_1 / (2 M sqrt(dimension))``. So z is met with
    i and sign s with probability ``(|z_i| / ||z||_1 + s z_i / (M sqrt(dimension))) / 2``. The first term does not change under z -> -z, and
    is 1 / dimension on average over either half of the sphere; the second is linear in z, whose mean is the vector x. A message therefore
    has the probability ``1 / (2 dimension) + s x_i / (2 M sqrt(dimension))``, without z: that of a coordinate drawn uniformly and a bit for
    its sign, which is what `encode` draws. M is clip_norm / (kappa tanh(epsilon / 2)), and kappa the mean of ``|u_1|`` on the unit sphere.

    It follows that the message is more private than the point z: see `realised_epsilon`. And `CLDPLinfMechanism`, on the cube around the
    ball, is epsilon private with ``kappa**2 * dimension`` times its worst variance, 2 / pi in high dimension.

    Examples
    --------
    >>> mechanism = CLDPL2Mechanism(5.0, NormBall(dimension=128, norm=2.0))
    >>> mechanism.bits_per_client, round(mechanism.worst_variance, 1), round(mechanism.realised_epsilon, 4)
    (8.0, 26335.9, 2.1362)
    """

    @property
    def norm(self) -> float:
        """2.0."""
        return 2.0

    @property
    def realised_epsilon(self) -> float:
        """Largest log-ratio of a message's probabilities, ``2 artanh(kappa sqrt(dimension) tanh(epsilon / 2))``.

        It is epsilon in one dimension; in more, kappa sqrt(dimension) is below 1, and it stays below 3 for every epsilon.
        """
        dimension = self.ball.dimension
        if dimension == 1:
            return self.epsilon
        # kappa = Gamma(x) / (sqrt(pi) Gamma(x + 1/2)) with x = dimension / 2.
        x = dimension / 2
        if dimension <= LARGEST_DIRECT_DIMENSION:
            ratio = math.sqrt(x) * math.gamma(x) / math.gamma(x + 0.5)
        else:
            # Stirling's series of the ratio, whose next term is below 1e-13.
            ratio = 1 + (1 / 8 + (1 / 128 - (5 / 1024 + (21 / 32768 - 399 / 262144 / x) / x) / x) / x) / x
        return 2 * math.atanh(math.sqrt(2 / math.pi) * ratio * math.tanh(self.epsilon / 2))


@dataclass(frozen=True)
class CLDPL1Mechanism(SampledSignMechanism):
    """CLDP for an L1 ball: an entry of the vector's Walsh-Hadamard transform, and a bit for its sign.

    The vector is padded with zeros to a power of two; entries of H x are at most ``||x||_1``. A decoded message is a column of H, without
    the padding.

    Examples
    --------
    >>> mechanism = CLDPL1Mechanism(5.0, NormBall(dimension=100, norm=1.0))
    >>> mechanism.bits_per_client, round(mechanism.worst_variance, 1)
    (8.0, 102.7)
    """

    @property
    def norm(self) -> float:
        """1.0."""
        return 1.0

    @property
    def indices(self) -> int:
        """The dimension, or the next power of two."""
        return padded_dimension(self.ball.dimension)

    @property
    def message_norm(self) -> float:
        """``sqrt(dimension) * clip_norm / tanh(epsilon / 2)``, each coordinate as large as any other."""
        return math.sqrt(self.ball.dimension) * self.ball.clip_norm / self._contrast

    def _numbers(self, vectors: FloatArray, indices: NDArray[np.int64]) -> FloatArray:
        clients, dimension = vectors.shape
        coordinates = np.arange(dimension)
        numbers = np.empty(clients)
        chunk = max(1, CHUNK // dimension)
        for start in range(0, clients, chunk):
            part = slice(start, start + chunk)
            numbers[part] = np.einsum("ij,ij->i", vectors[part], hadamard_entries(indices[part, None], coordinates))
        return numbers

    def _combination(self, signed: NDArray[np.int64]) -> FloatArray:
        return self.ball.clip_norm / self._contrast * walsh_hadamard(signed)[: self.ball.dimension]


def vector_cldp_mechanism(epsilon: float, ball: NormBall) -> SampledSignMechanism:
    """Return the mechanism of CLDP for a ball of norm 1, 2 or infinity.

    Examples
    --------
    >>> type(vector_cldp_mechanism(1.0, NormBall(dimension=128, norm=1.0))).__name__
    'CLDPL1Mechanism'
    """
    mechanisms: dict[float, Callable[[float, NormBall], SampledSignMechanism]] = {
        1.0: CLDPL1Mechanism,
        2.0: CLDPL2Mechanism,
        math.inf: CLDPLinfMechanism,
    }
    if check_ball(ball, "CLDP").norm not in mechanisms:
        raise ValueError(f"ball must be of norm 1, 2 or infinity for CLDP, got norm {ball.norm:g}")
    return mechanisms[ball.norm](epsilon, ball)
