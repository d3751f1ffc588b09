"""The distributed discrete Gaussian mechanism: clients share the noise that makes a secure sum of vectors private.

Kairouz, Liu, Steinke 2021, *The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure Aggregation*.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import check_real
from ...arrays import FloatArray, IntegerArray
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve
from ...solvers.divergences.discrete_gaussian_divergence import SMALLEST_SIGMA, discrete_gaussian_renyi
from ...solvers.divergences.discrete_gaussian_smoothing import smoothed_gaussian_epsilon
from ..contracts.guarantee import Guarantee
from ..contracts.norm_ball import NormBall
from ..noise.discrete_gaussian import LARGEST_SIGMA, discrete_gaussian_variance, sample_discrete_gaussian
from ..noise.random_words import WordSource
from .rounded_secure_sum import RoundedSecureSum


@dataclass(frozen=True)
class DistributedDiscreteGaussianMechanism(RoundedSecureSum):
    """Clients rotate, round, and add a little discrete Gaussian noise each; the server sees the sum modulo 2**bits only.

    A vector is clipped, rotated by a public random rotation, divided by the granularity, and rounded to whole numbers under a bound on
    their norm. The guarantee is that of the noise of all `clients` together: a client that drops out takes its noise with it, and `decode`
    refuses a sum over another number of clients. Vectors must not depend on the seed of the rotation.

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
    local_sigma : float
        Parameter of each client's discrete Gaussian noise, in the vectors' units; from 0.001 to 10**12 steps.
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
    >>> mechanism = DistributedDiscreteGaussianMechanism(ball, clients=1000, bits=20, granularity=0.01, local_sigma=0.2, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.564371, delta = 1e-05, add-or-remove-one adjacency, secure-sum trust model
    >>> messages = mechanism.encode(np.tile([0.6, 0.0, -0.8], (1000, 1)), np.random.default_rng(0))
    >>> messages.dtype, mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    (dtype('uint32'), [0.6, 0.0, -0.8])
    """

    ball: NormBall
    clients: int
    bits: int
    granularity: float
    local_sigma: float
    delta: float
    rotation_seed: int = 0
    rotation: str = "hadamard"
    adjacency: str = "add-or-remove-one"

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        self._check_fields("discrete Gaussian")
        object.__setattr__(self, "local_sigma", check_real("local_sigma", self.local_sigma, low=1e-100, high=1e100))
        check_real("local_sigma in steps of the granularity", self._sigma, low=SMALLEST_SIGMA, high=LARGEST_SIGMA)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) privacy of one sum, for neighbours of the stated adjacency.

        The smaller one of what the Rényi curve proves, and of what Gaussian noise does which the sum nearly is a rounding of
        (`quietbits.solvers.divergences.discrete_gaussian_smoothing`).
        """
        epsilon = RenyiCurve(np.array(DEFAULT_ORDERS), self.renyi_divergences(DEFAULT_ORDERS)).epsilon(self.delta).epsilon
        smoothed = smoothed_gaussian_epsilon(self.clients, self._sigma, self._sensitivity, self.padded_dimension, self.delta)
        epsilon = epsilon if smoothed is None else min(epsilon, smoothed)
        return Guarantee(epsilon, adjacency=self.adjacency, trust_model="secure-sum", delta=self.delta)

    def renyi_divergences(self, orders: ArrayLike) -> FloatArray:
        """Return bounds on the Rényi divergence of two neighbours' sums.

        Parameters
        ----------
        orders : array_like of shape (orders,)
            Rényi orders above 1; infinity gives infinity.

        Returns
        -------
        ndarray of float64, shape (orders,)
            Divergences in nats (corollary 12 of the paper; the sensitivity is the bound on the norm, and twice that for replace-one); err
            upward.

        Raises
        ------
        ValueError
            If an order is not above 1.
        """
        return discrete_gaussian_renyi(self.clients, self._sigma, self._sensitivity, self.padded_dimension, orders)

    @property
    def _sigma(self) -> float:
        """Parameter of one client's noise in steps: the number that is drawn from and accounted for."""
        return self.local_sigma / self.granularity

    @property
    def _step_noise_variance(self) -> float:
        return discrete_gaussian_variance(self._sigma)

    def _noise(self, shape: tuple[int, ...], words: WordSource) -> IntegerArray:
        return sample_discrete_gaussian(self._sigma, shape, words)

    def _tail_exponent(self, room: float, variance: float) -> float:
        # Discrete Gaussian noise is sub-Gaussian with its parameter (Canonne, Kamath, Steinke 2020, *The discrete Gaussian for
        # differential privacy*).
        return room**2 / (2 * (variance + self.clients * self._sigma**2))
