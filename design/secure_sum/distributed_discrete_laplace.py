"""The distributed discrete Laplace mechanism: a secure sum with pure privacy.

Each client adds Pólya noise, the difference of two negative binomial numbers of shape 1 / n; all of it together is discrete Laplace noise
(Goryczka, Xiong 2017, *A comprehensive comparison of multiparty secure additions with differential privacy*).
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION, check_choice, check_integer
from ...arrays import FloatArray, IntegerArray, WordArray
from ...errors import InfeasibleError
from ...solvers.divergences.discrete_gaussian_divergence import MOST_BITS
from ...solvers.divergences.polya_divergence import polya_epsilon
from ...solvers.numerics.bisection import first_true
from ...solvers.numerics.rounding import SLACK
from ..contracts.error import VarianceParts
from ..contracts.guarantee import ADJACENCIES
from ..contracts.joint_messages import SURVIVORS
from ..contracts.mechanism import SecureSumMechanism, VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.options import Declared, check_parameters, parameter, parts
from ..contracts.privacy import Privacy
from ..noise.discrete_laplace import LARGEST_SCALE, LEAST_SCALE
from ..noise.discrete_laplace_privacy import RADII, discrete_laplace_privacy
from ..noise.polya_noise import polya_variance, sample_polya
from ..noise.random_words import WordsLike, WordSource, word_source
from ..transforms.l1_rounding import MOST_STEPS, largest_rounding_variance, rounded_within, rounding_variance
from .modular_arithmetic import aggregate_residues, centred_representatives, messages_in_parts, summed_messages
from .rounded_secure_sum import BITS, CLIENTS

# Bound on the probability that any coordinate of a sum wraps, in calibrated mechanisms.
WRAP_PROBABILITY = 1e-9
# Largest worst variance of the rounding over that of the noise, if the number of bits is free.
ROUNDING_SHARE = 0.01
STEPS: Declared = {"help": "Steps of the clip norm: the L1 norm of a vector of whole numbers.", "low": 1, "high": MOST_STEPS}
SCALE: Declared = {"help": "Scale of the sum's discrete Laplace noise.", "low": LEAST_SCALE, "high": LARGEST_SCALE, "unit": "steps"}


@dataclass(frozen=True)
class DistributedDiscreteLaplaceMechanism(SecureSumMechanism, VectorMechanism):
    """Clients round vectors of the L1 ball and add shares of discrete Laplace noise, modulo 2**bits.

    A vector is clipped, divided by the granularity, and rounded to whole numbers without bias and without raising the bound on its L1 norm
    (`l1_rounding`). The shares of `survivors` clients, or of all by default, add up to discrete Laplace noise: the guarantee is pure, and
    the same for any larger number of clients, whose further noise only processes the sum. With fewer clients, shares are missing. The loss
    then is subadditive, so that epsilon is that of the worst split of the sensitivity among coordinates (`polya_epsilon`). A client that
    subtracts its own share sees the noise of the others: `facts` states that epsilon.

    A sum outside [-2**(bits - 1), 2**(bits - 1)) wraps around, which costs error and no privacy.

    Attributes
    ----------
    ball : NormBall
        L1 ball of the vectors.
    clients : int
        Number of clients that add noise, from 1 to 10**9.
    bits : int
        Bits per coordinate of the sum and of a message, from 1 to 62.
    steps : int
        Steps of the clip norm, from 1 to 2**40.
    scale : float
        Scale of the noise of `sharers` clients, in steps, from 1e-6 to 10**12.
    survivors : int or None
        Number of clients whose shares add up to discrete Laplace noise; None for all clients.
    adjacency : str
        ``"replace-one"``, or ``"add-or-remove-one"``: a client's vector is present or zero, with the noise of all clients either way.

    Examples
    --------
    >>> ball = NormBall(dimension=3, norm=1.0)
    >>> mechanism = DistributedDiscreteLaplaceMechanism(ball, clients=1000, bits=20, steps=100, scale=200.0)
    >>> print(mechanism.guarantee)
    epsilon = 1, replace-one adjacency, secure-sum trust model
    >>> messages = mechanism.encode(np.tile([0.6, 0.0, -0.4], (1000, 1)), np.random.default_rng(0))
    >>> messages.dtype, mechanism.decode(mechanism.aggregate(messages), 1000).round(1).tolist()
    (dtype('uint32'), [0.6, -0.0, -0.4])
    >>> print(mechanism.for_clients(900).guarantee)
    epsilon = 1.34159, replace-one adjacency, secure-sum trust model
    """

    ball: NormBall = parts(NormBall, dimension={"high": LARGEST_DIMENSION})
    clients: int = parameter(**CLIENTS)
    bits: int = parameter(**BITS)
    steps: int = parameter(**STEPS)
    scale: float = parameter(**SCALE)
    survivors: int | None = parameter(**{**SURVIVORS, "help": "Clients whose shares add up to discrete Laplace noise; all by default."})
    adjacency: str = "replace-one"
    delta = 0.0

    def __post_init__(self) -> None:
        """Check the fields."""
        check_ball(self.ball, "discrete Laplace noise", 1)
        check_parameters(self)
        check_choice("adjacency", self.adjacency, ADJACENCIES)

    @property
    def sharers(self) -> int:
        """Number of clients whose shares add up to discrete Laplace noise."""
        return self.clients if self.survivors is None else self.survivors

    def privacy_of(self, clients: int) -> Privacy:
        """Return the privacy of one sum of a number of clients (`discrete_laplace_privacy`)."""
        return discrete_laplace_privacy(
            self.steps, self.scale, self.adjacency, "secure-sum", dimension=self.padded_dimension, shape=clients / self.sharers
        )

    def facts(self) -> dict[str, Any]:
        """Return the error, the wrap probability, and epsilon against a client that knows its own share."""
        others = (self.fewest_clients - 1) / self.sharers
        sensitivity = RADII[self.adjacency] * self.steps
        insider = polya_epsilon(others, self.scale, sensitivity, self.padded_dimension) if others else None
        return {
            "worst_squared_error": self.error().of_mean(self.clients),
            "wrap_probability": self.wrap_probability,
            "epsilon_to_a_client": insider,
        }

    @property
    def modulus(self) -> int:
        """The modulus ``2**bits``."""
        return 1 << self.bits

    @property
    def padded_dimension(self) -> int:
        """Number of coordinates; nothing is padded."""
        return self.ball.dimension

    @property
    def granularity(self) -> float:
        """Length of a step, in the vectors' units."""
        return self.ball.clip_norm / self.steps

    @property
    def coordinate_wrap_probability(self) -> float:
        """Upper bound on the probability that a coordinate of the sum wraps, for any vectors."""
        room = (1 << (self.bits - 1)) - self.clients * self.steps
        return _tail(self.clients / self.sharers, self.scale, room)

    @property
    def wrap_probability(self) -> float:
        """Upper bound on the probability that any coordinate wraps, by a union bound."""
        return min(1.0, self.padded_dimension * self.coordinate_wrap_probability)

    @property
    def variance_bound(self) -> float:
        """Upper bound on the variance of rounding and noise over the ball, without wrap-around."""
        return self.granularity**2 * (self._noise_variance + largest_rounding_variance(self.ball.dimension, self.steps))

    @property
    def _noise_variance(self) -> float:
        """Variance of one client's noise on all coordinates, in squared steps."""
        return self.padded_dimension * polya_variance(Fraction(1, self.sharers), self.scale)

    def for_clients(self, clients: int) -> Self:
        """Return the mechanism for another number of clients, whose shares stay the same."""
        return replace(self, clients=clients, survivors=self.sharers)

    def noisy_steps(self, vectors: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return rounded vectors with noise; encode in chunks."""
        array, random_words = self.ball.check(vectors), word_source(random_words)
        return self._rounded(array, random_words) + self.noise_steps(len(array), random_words)

    def noise_steps(self, count: int, random_words: WordsLike) -> IntegerArray:
        """Return the noise of a number of clients, in steps, shape (count, dimension)."""
        return sample_polya(Fraction(1, self.sharers), self.scale, (count, self.padded_dimension), random_words)

    def summed_steps(self, vectors: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Draw the sum of `noisy_steps`, the noise of all clients together."""
        array, random_words = self.ball.check(vectors), word_source(random_words)
        noise = sample_polya(Fraction(len(array), self.sharers), self.scale, self.padded_dimension, random_words) if len(array) else 0
        return np.asarray(self._rounded(array, random_words).sum(axis=0) + noise)

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return `noisy_steps` modulo 2**bits, a few clients at a time."""
        array, random_words = self.ball.check(vectors), word_source(random_words)

        def write(part: FloatArray, messages: NDArray[Any]) -> None:
            messages[...] = self.noisy_steps(part, random_words)

        return messages_in_parts(array, self.padded_dimension, self.modulus, write)

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of the messages modulo 2**bits; sums of chunks need not be reduced."""
        return summed_messages(messages, self.padded_dimension, self.modulus)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sum's representatives nearest to zero."""
        return centred_representatives(aggregate_residues(aggregate, self.padded_dimension, self.modulus), self.modulus)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the mean of the vectors of the clients whose messages arrived."""
        return np.asarray(self.recovered_steps(aggregate) * (self.granularity / self.check_arrived(clients)), dtype=float)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the variance of each vector, from noise and rounding, without wrap-around."""
        return self.granularity**2 * (self._noise_variance + rounding_variance(self._in_steps(self.ball.check(vectors))))

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector by noise and rounding."""
        variance = self.variance(vectors)
        return VarianceParts.split(variance, rounding=variance - self.granularity**2 * self._noise_variance)

    def _rounded(self, vectors: FloatArray, random_words: WordSource) -> IntegerArray:
        return rounded_within(self._in_steps(vectors), self.steps, random_words)

    def _in_steps(self, vectors: FloatArray) -> FloatArray:
        return self.ball.clip(vectors) * (self.steps / self.ball.clip_norm)


def calibrate_distributed_discrete_laplace(
    ball: NormBall,
    clients: int,
    bits: int | None,
    epsilon: float,
    adjacency: str,
    *,
    survivors: int | None = None,
    whole: bool = False,
) -> DistributedDiscreteLaplaceMechanism:
    """Return the mechanism of least error with a pure epsilon of one sum.

    Parameters
    ----------
    ball : NormBall
        L1 ball of the vectors.
    clients : int
        Number of clients.
    bits : int or None
        Bits of a coordinate at most; None for the fewest with which rounding adds at most 1 % to the variance.
    epsilon : float
        Epsilon of one sum.
    adjacency : str
        Adjacency of the guarantee.
    survivors : int or None
        Clients that the guarantee needs, at most `clients`; None for all.
    whole : bool
        Whether vectors are whole multiples of the clip norm, such as items: one step suffices, in the fewest bits.

    Raises
    ------
    InfeasibleError
        If the bits are too few; the message states the necessary number.

    Examples
    --------
    >>> mechanism = calibrate_distributed_discrete_laplace(NormBall(1, 1.0), 1000, None, 1.0, "replace-one")
    >>> mechanism.bits, mechanism.steps, round(mechanism.guarantee.epsilon, 9)
    (17, 62, 1.0)
    """
    remaining = survivors and check_integer("survivors", survivors, low=1, high=clients)

    def fitting(width: int, steps: int) -> DistributedDiscreteLaplaceMechanism:
        # The factor exceeds the rounding that `polya_epsilon` adds.
        scale = max(LEAST_SCALE, RADII[adjacency] * steps / epsilon * (1 + 16 * np.finfo(float).eps))
        return DistributedDiscreteLaplaceMechanism(ball, clients, width, steps, scale, remaining, adjacency)

    def fits(width: int, steps: int) -> bool:
        return RADII[adjacency] * steps <= LARGEST_SCALE / 2 * epsilon and fitting(width, steps).wrap_probability <= WRAP_PROBABILITY

    fewest = first_true(1, MOST_BITS + 1, lambda width: fits(width, 1))
    most = MOST_BITS if bits is None else check_integer("bits", bits, low=1, high=MOST_BITS)
    if fewest > most:
        raise InfeasibleError(f"bits must be at least {fewest} for {clients} clients and epsilon = {epsilon:g}, got {bits}")
    if whole:
        return fitting(fewest, 1)
    for width in range(fewest, most + 1) if bits is None else (most,):
        steps = first_true(2, MOST_STEPS + 1, lambda count, width=width: not fits(width, count)) - 1  # type: ignore[misc]
        mechanism = fitting(width, steps)
        rounding = largest_rounding_variance(ball.dimension, steps)
        if rounding <= ROUNDING_SHARE * mechanism._noise_variance:
            break
    return mechanism


def _tail(shape: float, scale: float, room: int) -> float:
    """Return an upper bound on the probability that Pólya noise is outside (-room, room)."""
    if room <= 0:
        return 1.0
    rate = 1 / scale
    if shape == 1:
        return min(1.0, 2 * math.exp(-rate * room) / (1 + math.exp(-rate)) * (1 + SLACK))
    # Chernoff's bound exp(log_moment - t room) holds for every t below the rate; this one is the best for a large scale.
    spread = shape / (rate * room)
    t = rate / (spread + math.hypot(1, spread))
    log_moment = shape * (2 * math.log(-math.expm1(-rate)) - math.log(-math.expm1(t - rate)) - math.log(-math.expm1(-t - rate)))
    return min(1.0, 2 * math.exp(log_moment - t * room) * (1 + SLACK))
