"""The distributed Skellam mechanism: clients share the Skellam noise that makes a secure sum of vectors private.

Agarwal, Kairouz, Liu 2021, *The Skellam Mechanism for Differentially Private Federated Learning*.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_real
from ...arrays import FloatArray, IntegerArray
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.divergences.near_gaussian_noise import skellam_near_gaussian_epsilon
from ...solvers.divergences.skellam_divergence import skellam_renyi_divergences
from ..contracts.guarantee import Guarantee
from ..contracts.norm_ball import NormBall
from ..noise.poisson_noise import LARGEST_RATE, LEAST_RATE
from ..noise.random_words import WordSource
from ..noise.skellam_noise import sample_skellam
from .rounded_secure_sum import RoundedSecureSum

# Of one client's noise, in squared steps: what is sampled exactly.
LEAST_VARIANCE, LARGEST_VARIANCE = 2 * LEAST_RATE, 2 * LARGEST_RATE
BISECTIONS = 64


@dataclass(frozen=True)
class DistributedSkellamMechanism(RoundedSecureSum):
    """Clients rotate, round, and add a little Skellam noise each; the server sees the sum modulo 2**bits only.

    A vector is clipped, rotated by a public random rotation, divided by the granularity, and rounded to whole numbers under a bound on
    their norm. Skellam numbers add up to Skellam numbers, so that the sum's noise is known exactly, whatever the number of clients. The
    guarantee is that of the noise of all `clients` together: a client that drops out takes its noise with it, and `decode` refuses a sum
    over another number of clients. Vectors must not depend on the seed of the rotation.

    Rounding under a bound on the norm has a bias, which `bias_bound` bounds. A sum outside [-2**(bits - 1), 2**(bits - 1)) comes back
    at the other end; `wrap_probability` bounds how often, and the stated variances leave it out. Privacy is not touched by it.

    Noise is drawn exactly.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients that add noise, from 1 to 10**9.
    bits : int
        Bits per coordinate of the sum and of a message, from 1 to 62.
    granularity : float
        What one step of the whole numbers stands for, in the vectors' units; above 0.
    local_variance : float
        Variance of each client's noise on each coordinate, in squared units of the vectors; from 2e-6 to 2 * 10**10 squared steps.
    delta : float
        Failure probability that the guarantee is stated for, above 0 and below 1.
    rotation_seed : int
        Public seed of the rotation, from 0 to 2**128 - 1.
    rotation : str
        ``"hadamard"``, which pads to a power of two, or ``"fourier"``, which pads by one coordinate at most.
    adjacency : str
        Which neighbours the guarantee is for. ``"add-or-remove-one"``, as in the paper: a client's vector is there or is zero, with the
        noise of all clients either way. ``"replace-one"``: another vector is in its place, which doubles the sensitivity.

    Raises
    ------
    ValueError
        If a field is out of its range.

    Examples
    --------
    >>> ball = NormBall(dimension=3, norm=2.0)
    >>> mechanism = DistributedSkellamMechanism(ball, clients=1000, bits=20, granularity=0.01, local_variance=0.04, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.564745, delta = 1e-05, add-or-remove-one adjacency, secure-sum trust model
    >>> messages = mechanism.encode(np.tile([0.6, 0.2, -0.7], (1000, 1)), np.random.default_rng(0))
    >>> messages.dtype, mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    (dtype('uint32'), [0.6, 0.2, -0.7])
    """

    ball: NormBall
    clients: int
    bits: int
    granularity: float
    local_variance: float
    delta: float
    rotation_seed: int = 0
    rotation: str = "hadamard"
    adjacency: str = "add-or-remove-one"

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        self._check_fields("Skellam")
        object.__setattr__(self, "local_variance", check_real("local_variance", self.local_variance, low=1e-100, high=1e100))
        check_real("local_variance in squared steps", self._step_noise_variance, low=LEAST_VARIANCE, high=LARGEST_VARIANCE)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) privacy of one sum, for neighbours of the stated adjacency.

        The smaller one of what the Rényi curve proves, and of what Gaussian noise does which the sum nearly is
        (`quietbits.solvers.divergences.near_gaussian_noise`).
        """
        epsilon = RenyiCurve(np.array(DEFAULT_ORDERS), self.renyi_divergences(DEFAULT_ORDERS)).epsilon(self.delta).epsilon
        variance = self._sum_variance * (1 - 1e-15)
        gaussian = skellam_near_gaussian_epsilon(variance, self._sensitivity, self.padded_dimension, self.delta)
        return Guarantee(
            epsilon if gaussian is None else min(epsilon, gaussian),
            adjacency=self.adjacency,
            trust_model="secure-sum",
            delta=self.delta,
        )

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return bounds on the Rényi divergence of two neighbours' sums.

        Parameters
        ----------
        orders : array_like of shape (orders,)
            Rényi orders above 1; infinity gives infinity.

        Returns
        -------
        ndarray of float64, shape (orders,)
            Divergences in nats; err upward: the paper's theorem for noise of `clients` times the local variance and, as sensitivities,
            the bound S on the L2 norm of a rounded vector and ``min(sqrt(D) S, S**2)`` for its L1 norm, in steps; twice both for
            replace-one.

        Raises
        ------
        ValueError
            If an order is not above 1.
        """
        # Squares of whole numbers are not below their absolute values.
        squared_norm = float(self._vectors_moved * self._rounding.largest_squared_norm)
        l1_sensitivity = min(math.sqrt(self.padded_dimension) * self._sensitivity, squared_norm)
        return skellam_renyi_divergences(self._sum_variance * (1 - 1e-15), l1_sensitivity, self._sensitivity, orders)

    @property
    def _step_noise_variance(self) -> float:
        """Variance of one client's noise in squared steps: the number that is drawn from and accounted for."""
        return self.local_variance / self.granularity**2

    @property
    def _sum_variance(self) -> float:
        return self.clients * self._step_noise_variance

    def _noise(self, shape: tuple[int, ...], words: WordSource) -> IntegerArray:
        return sample_skellam(self._step_noise_variance, shape, words)

    def _tail_exponent(self, room: float, variance: float) -> float:
        """Return the largest t room - variance t**2 / 2 - mu (cosh t - 1), mu the variance of the sum's noise.

        Skellam noise has the cumulant generating function mu (cosh t - 1), above that of a Gaussian. Every t gives a bound; the best one
        is where the derivative is zero, found by bisection.
        """
        mu = self._sum_variance
        low, high = 0.0, math.asinh(room / mu)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            if variance * middle + mu * math.sinh(middle) <= room:
                low = middle
            else:
                high = middle
        return low * room - variance * low**2 / 2 - 2 * mu * math.sinh(low / 2) ** 2
