"""The distributed Skellam mechanism: a secure sum with noise shared among clients.

Agarwal, Kairouz, Liu 2021, *The Skellam Mechanism for Differentially Private Federated Learning*.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from ...arguments import check_choice, check_integer, check_real
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, LazyRenyiCurve
from ...solvers.divergences.discrete_gaussian_divergence import MOST_CLIENTS, rounded_norm
from ...solvers.divergences.near_gaussian_noise import GaussianEpsilon, skellam_near_gaussian_epsilon
from ...solvers.divergences.skellam_divergence import least_skellam_divergences
from ...solvers.numerics.bisection import bisect
from ..contracts.accounts import renyi_account
from ..contracts.gaussian import near_gaussian_account
from ..contracts.guarantee import ADJACENCIES
from ..contracts.joint_messages import SURVIVORS
from ..contracts.norm_ball import NormBall
from ..contracts.options import budgeted, parameter, parts
from ..contracts.privacy import NearGaussianNoise, Privacy
from ..noise.random_words import WordSource
from ..noise.skellam_noise import LARGEST_RATE, LEAST_RATE, SkellamCurve, add_skellam
from .rounded_secure_sum import BALL, BITS, CLIENTS, GRANULARITY, ROTATION, ROTATION_SEED, RoundedSecureSum

# Range of one client's noise variance in squared steps, within which sampling is exact.
LEAST_VARIANCE, LARGEST_VARIANCE = 2 * LEAST_RATE, 2 * LARGEST_RATE
HALVINGS = 64


def distributed_skellam_privacy(
    clients: int, dimension: int, clip_norm: float, local_variance: float, granularity: float, adjacency: str = "add-or-remove-one"
) -> Privacy:
    """Return the privacy of a sum of rounded vectors with Skellam noise from every client.

    Accounts are ``"rdp"``, the theorem of Agarwal, Kairouz, Liu 2021 for noise of `clients` times the local variance; and
    ``"near-gaussian"``, the privacy loss of Gaussian noise, which the sum nearly is (`near_gaussian_noise`). The L2 sensitivity is
    `rounded_norm` in steps. The L1 sensitivity of vectors of whole numbers is the smaller of its square and sqrt(dimension) times it, as
    squares of whole numbers are not below their absolute values.

    Parameters
    ----------
    clients, dimension, clip_norm, granularity, adjacency
        Clients, coordinates, clip norm, step and adjacency, as in `discrete_gaussian_privacy`.
    local_variance : float
        Variance of each client's Skellam noise on a coordinate, in squared units of the vectors; from 2e-6 to 2 * 10**10 squared steps.

    Examples
    --------
    >>> privacy = distributed_skellam_privacy(1000, 1024, 1.0, 0.04, 0.001)
    >>> round(privacy.epsilon(1e-5), 4), privacy.trust_model
    (0.5617, 'secure-sum')
    """
    check_choice("adjacency", adjacency, ADJACENCIES)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    norm = rounded_norm(clip_norm, granularity, dimension) / granularity
    local_variance = check_real("local_variance", local_variance, low=1e-100, high=1e100)
    of_one = check_real("local_variance in squared steps", local_variance / granularity**2, low=LEAST_VARIANCE, high=LARGEST_VARIANCE)
    variance = clients * of_one * (1 - 1e-15)
    vectors = 2 if adjacency == "replace-one" else 1
    l1, l2 = vectors * min(math.sqrt(dimension) * norm, norm**2), vectors * norm

    def curve() -> LazyRenyiCurve:
        return LazyRenyiCurve(lambda orders: least_skellam_divergences(variance, l1, l2, orders), DEFAULT_ORDERS[:-1])

    def by_gaussian(delta: float, rounds: int, sampled: GaussianEpsilon | None) -> float | None:
        return skellam_near_gaussian_epsilon(variance, l2, dimension, delta, rounds, sampled)

    too_little = "local_variance must be larger for the noise to be nearly Gaussian"
    accounts = renyi_account(curve, adjacency), near_gaussian_account(NearGaussianNoise(by_gaussian), adjacency, too_little)
    return Privacy("secure-sum", accounts)


@dataclass(frozen=True)
class DistributedSkellamMechanism(RoundedSecureSum):
    """Clients rotate, round and add Skellam noise; the server sees the sum modulo 2**bits.

    The sum of independent Skellam numbers is a Skellam number, so that the law of the sum's noise is known exactly, for any number of
    clients.

    Attributes
    ----------
    local_variance : float
        Variance of each client's noise on each coordinate, in squared units of the vectors; from 2e-6 to 2 * 10**10 squared steps.
        `RoundedSecureSum` describes the other fields and the basis of the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> ball = NormBall(dimension=3, norm=2.0)
    >>> mechanism = DistributedSkellamMechanism(ball, clients=1000, bits=20, granularity=0.01, local_variance=0.04, delta=1e-5)
    >>> print(mechanism.guarantee)
    epsilon = 0.564778, delta = 1e-05, add-or-remove-one adjacency, secure-sum trust model
    >>> messages = mechanism.encode(np.tile([0.6, 0.2, -0.7], (1000, 1)), np.random.default_rng(0))
    >>> messages.dtype, mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    (dtype('uint32'), [0.6, 0.2, -0.7])
    """

    ball: NormBall = parts(NormBall, **BALL)
    clients: int = parameter(**CLIENTS)
    bits: int = parameter(**BITS)
    granularity: float = parameter(**GRANULARITY)
    local_variance: float = parameter("Variance of each client's noise on a coordinate.", 1e-100, 1e100, unit="squared vectors' units")
    delta: float = budgeted()
    rotation_seed: int = parameter(**ROTATION_SEED)
    rotation: str = parameter(**ROTATION)
    adjacency: str = "add-or-remove-one"
    survivors: int | None = parameter(**SURVIVORS)

    def __post_init__(self) -> None:
        """Check the fields."""
        self._check_fields("Skellam")
        check_real("local_variance in squared steps", self._step_noise_variance, low=LEAST_VARIANCE, high=LARGEST_VARIANCE)

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of one sum of a number of clients (`distributed_skellam_privacy`)."""
        return distributed_skellam_privacy(
            clients, self.padded_dimension, self.ball.clip_norm, self.local_variance, self.granularity, self.adjacency
        )

    @property
    def _step_noise_variance(self) -> float:
        """Variance of one client's noise in squared steps, as drawn and as accounted for."""
        return self.local_variance / self.granularity**2

    @property
    def _sum_variance(self) -> float:
        return self.clients * self._step_noise_variance

    def _noise_curve(self) -> SkellamCurve:
        return SkellamCurve(Fraction(self._step_noise_variance))

    def _add_noise(self, steps: NDArray[Any], random_words: WordSource) -> None:
        add_skellam(steps, self._step_noise_variance, random_words)

    def _tail_exponent(self, room: float, variance: float) -> float:
        """Return the largest t room - variance t**2 / 2 - mu (cosh t - 1), mu the sum's variance.

        Skellam noise has the cumulant generating function mu (cosh t - 1), above that of a Gaussian. Every t gives a bound; bisection finds
        the best t, at which the derivative is zero.
        """
        mu = self._sum_variance
        low = bisect(lambda t: variance * t + mu * math.sinh(t) <= room, 0.0, math.asinh(room / mu), HALVINGS).holds
        return low * room - variance * low**2 / 2 - 2 * mu * math.sinh(low / 2) ** 2
