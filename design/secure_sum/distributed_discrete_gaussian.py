"""The distributed discrete Gaussian: a secure sum with noise shared among clients.

Kairouz, Liu, Steinke 2021, *The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure Aggregation*.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from ...arguments import check_choice, check_real
from ...solvers.divergences.discrete_gaussian_divergence import LARGEST_SIGMA as LARGEST_ACCOUNTED_SIGMA
from ...solvers.divergences.discrete_gaussian_divergence import SMALLEST_SIGMA, discrete_gaussian_tau, rounded_norm
from ..contracts.guarantee import ADJACENCIES
from ..contracts.joint_messages import SURVIVORS
from ..contracts.norm_ball import NormBall
from ..contracts.options import budgeted, parameter, parts
from ..contracts.privacy import Privacy
from ..noise.discrete_gaussian import LARGEST_SIGMA, GaussianCurve, add_discrete_gaussian, discrete_gaussian_variance
from ..noise.random_words import WordSource
from .noisy_sum import NoisySum, noisy_sum_privacy
from .rounded_secure_sum import BALL, BITS, CLIENTS, GRANULARITY, ROTATION, ROTATION_SEED, RoundedSecureSum


def discrete_gaussian_privacy(
    clients: int, dimension: int, clip_norm: float, local_sigma: float, granularity: float, adjacency: str = "add-or-remove-one"
) -> Privacy:
    """Return the privacy of a sum of rounded vectors with discrete Gaussian noise from clients.

    Accounts are ``"rdp"`` (Kairouz, Liu, Steinke 2021), and ``"near-gaussian"``, by the privacy loss of Gaussian noise, of which the sum is
    nearly a rounding (`quietbits.solvers.divergences.discrete_gaussian_divergence`). With sampled clients both accounts use that Gaussian
    noise. The choice of clients must be secret from the server: all `clients` add noise, and clients that are not sampled add their noise
    to zeros.

    Parameters
    ----------
    clients : int
        Number of clients that add noise, 1 to 10**9. Count only the remaining clients, as the noise of clients that drop out is missing.
    dimension : int
        Number of rounded coordinates, including a rotation's padding.
    clip_norm : float
        L2 norm that vectors are clipped to, before rounding.
    local_sigma : float
        Parameter of each client's discrete Gaussian noise, in the vectors' units.
    granularity : float
        Size of one step of the whole numbers, in the vectors' units.
    adjacency : str
        ``"add-or-remove-one"``, as in the paper: a client's vector is present or zero, and both sums have the noise of `clients` clients.
        ``"replace-one"`` doubles the sensitivity.

    Examples
    --------
    >>> privacy = discrete_gaussian_privacy(1000, 1024, 1.0, 0.2, 0.001)
    >>> round(privacy.epsilon(1e-5), 4), privacy.trust_model
    (0.5617, 'secure-sum')
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    local_sigma = check_real("local_sigma", local_sigma, low=1e-100, high=1e100)
    sensitivity = (2 if adjacency == "replace-one" else 1) * rounded_norm(clip_norm, granularity, dimension) / granularity
    # The limit exceeds a mechanism's limit, because calibration to many bits also evaluates more noise than a mechanism draws.
    sigma = check_real(
        "local_sigma in steps of the granularity", local_sigma / granularity, low=SMALLEST_SIGMA, high=LARGEST_ACCOUNTED_SIGMA
    )
    return noisy_sum_privacy(clients, NoisySum(sigma, sensitivity, dimension), adjacency)


@dataclass(frozen=True)
class DistributedDiscreteGaussianMechanism(RoundedSecureSum):
    """Clients add discrete Gaussian noise to rotated, rounded vectors of a secure sum.

    Attributes
    ----------
    local_sigma : float
        Parameter of each client's discrete Gaussian noise, in the vectors' units; from 0.001 to 10**12 steps. `RoundedSecureSum` describes
        the other fields and the basis of the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> ball = NormBall(dimension=3, norm=2.0)
    >>> mechanism = DistributedDiscreteGaussianMechanism(ball, clients=1000, bits=20, granularity=0.01, local_sigma=0.2, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.564402, delta = 1e-05, add-or-remove-one adjacency, secure-sum trust model
    >>> messages = mechanism.encode(np.tile([0.6, 0.0, -0.8], (1000, 1)), np.random.default_rng(0))
    >>> messages.dtype, mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    (dtype('uint32'), [0.6, 0.0, -0.8])
    """

    ball: NormBall = parts(NormBall, **BALL)
    clients: int = parameter(**CLIENTS)
    bits: int = parameter(**BITS)
    granularity: float = parameter(**GRANULARITY)
    local_sigma: float = parameter("Parameter of each client's noise.", 1e-100, 1e100, unit="vectors' units")
    delta: float = budgeted()
    rotation_seed: int = parameter(**ROTATION_SEED)
    rotation: str = parameter(**ROTATION)
    adjacency: str = "add-or-remove-one"
    survivors: int | None = parameter(**SURVIVORS)

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_fields("discrete Gaussian")
        check_real("local_sigma in steps of the granularity", self._sigma, low=SMALLEST_SIGMA, high=LARGEST_SIGMA)

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of one sum of a number of clients (`discrete_gaussian_privacy`)."""
        return discrete_gaussian_privacy(
            clients, self.padded_dimension, self.ball.clip_norm, self.local_sigma, self.granularity, self.adjacency
        )

    def facts(self) -> dict[str, Any]:
        """Return the facts, with ``tau``, the log-ratio bound of the sum's noise."""
        return {**super().facts(), "tau": discrete_gaussian_tau(self.clients, self._sigma)}

    @property
    def _sigma(self) -> float:
        """Parameter of one client's noise in steps, as drawn and as accounted for."""
        return self.local_sigma / self.granularity

    @property
    def _step_noise_variance(self) -> float:
        return discrete_gaussian_variance(self._sigma)

    def _noise_curve(self) -> GaussianCurve:
        return GaussianCurve(Fraction(self._sigma))

    def _add_noise(self, steps: NDArray[Any], random_words: WordSource) -> None:
        add_discrete_gaussian(steps, self._sigma, random_words)

    def _tail_exponent(self, room: float, variance: float) -> float:
        # Discrete Gaussian noise is sub-Gaussian with its parameter (Canonne, Kamath, Steinke 2020, *The discrete Gaussian for
        # differential privacy*).
        return room**2 / (2 * (variance + self.clients * self._sigma**2))
