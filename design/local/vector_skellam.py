"""The local Skellam mechanism: rounded vectors with Skellam noise, modulo a power of two.

Agarwal, Kairouz, Liu 2021, *The Skellam mechanism for differentially private federated learning*.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import FloatArray
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve, check_delta
from ...solvers.divergences.dithered_norm import LARGEST_RADIUS, rounded_norm_bound
from ...solvers.divergences.skellam_divergence import skellam_renyi_divergences, skellam_tail, skellam_variance
from ...solvers.numerics.bisection import bisect
from ...solvers.numerics.rounding import SLACK
from ..contracts.accounts import renyi_account
from ..contracts.error import VarianceParts
from ..contracts.guarantee import TRUST_MODELS
from ..contracts.mechanism import VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Privacy
from ..noise.random_words import WordsLike, word_source
from ..noise.skellam_noise import LARGEST_RATE, LEAST_RATE, sample_skellam
from ..transforms.vector_dithering import bounded_rounding
from .message_checks import checked_messages

FEWEST_BITS, MOST_BITS = 2, 32
# Range of the noise's variance, in squared steps, that is sampled exactly.
LEAST_VARIANCE, LARGEST_VARIANCE = 2 * LEAST_RATE, 2 * LARGEST_RATE
HALVINGS = 64


def skellam_privacy(variance: float, l1_sensitivity: float, l2_sensitivity: float, trust_model: str = "local") -> Privacy:
    """Return the privacy of Skellam noise on whole numbers.

    The accounts use Rényi divergences, as no dominating pair is known in several dimensions.

    Parameters
    ----------
    variance : float
        Variance of a coordinate's noise, of all clients together, in squared steps; above 0.
    l1_sensitivity, l2_sensitivity : float
        Largest L1 and L2 distance, in steps, of two vectors of whole numbers; above 0.
    trust_model : str
        Trust model of the guarantee.
    """
    check_choice("trust_model", trust_model, TRUST_MODELS)
    if l1_sensitivity < l2_sensitivity:
        raise ValueError(f"l1_sensitivity must be at least l2_sensitivity, {l2_sensitivity!r}, as L1 norms are, got {l1_sensitivity!r}")

    def curve() -> RenyiCurve:
        orders = np.array(DEFAULT_ORDERS[:-1])
        return RenyiCurve(orders, skellam_renyi_divergences(variance, l1_sensitivity, l2_sensitivity, orders))

    return Privacy(trust_model, (renyi_account(curve, "replace-one"),))


@dataclass(frozen=True)
class SkellamMechanism(VectorMechanism):
    """Every client rounds its vector, adds Skellam noise, and sends numbers modulo 2**bits.

    The client clips its vector, divides it by the granularity, and rounds it without bias by systematic rounding, whose result has an L2
    norm below a bound with certainty. It adds to each coordinate the difference of two Poisson numbers of mean variance / 2. Here each
    client adds all the noise that its privacy needs (local trust model). `quietbits.design.secure_sum.distributed_skellam` shares it among
    clients.

    A coordinate that leaves [-2**(bits - 1), 2**(bits - 1)) wraps around to the other end, which the stated variances omit. Privacy does
    not depend on wrapping. Noise is drawn exactly.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    bits : int
        Number of bits per coordinate, 2 to 32.
    granularity : float
        Length of a step of the whole numbers, in the vectors' units; from clip_norm / 2**20 to clip_norm * 2**20.
    noise_variance : float
        Variance of a coordinate's noise, in squared steps; from 2e-6 to 2 * 10**10. The time of a draw grows with the variance from 2**26
        on.
    delta : float
        Failure probability of the stated guarantee, above 0 and below 1.

    Examples
    --------
    >>> mechanism = skellam_mechanism(1.0, 1e-5, NormBall(dimension=128, norm=2.0), bits=16)
    >>> print(mechanism.guarantee)
    epsilon = 1, delta = 1e-05, replace-one adjacency, local trust model
    >>> mechanism.bits_per_client, mechanism.wrap_probability < 1e-5
    (2048.0, True)
    """

    ball: NormBall
    bits: int
    granularity: float
    noise_variance: float
    delta: float

    def __post_init__(self) -> None:
        """Check the fields, and that the bits hold the largest coordinate without noise."""
        check_ball(self.ball, "Skellam noise", 2)
        clip_norm = self.ball.clip_norm
        object.__setattr__(self, "bits", check_integer("bits", self.bits, low=FEWEST_BITS, high=MOST_BITS))
        granularity = check_real("granularity", self.granularity, low=clip_norm / LARGEST_RADIUS, high=clip_norm * LARGEST_RADIUS)
        object.__setattr__(self, "granularity", granularity)
        variance = check_real("noise_variance", self.noise_variance, low=LEAST_VARIANCE, high=LARGEST_VARIANCE)
        object.__setattr__(self, "noise_variance", variance)
        object.__setattr__(self, "delta", check_delta(self.delta))
        if self._largest_coordinate >= 2 ** (self.bits - 1):
            fewest = self._largest_coordinate.bit_length() + 1
            raise ValueError(f"bits must be at least {fewest} to hold coordinates up to {self._largest_coordinate}, got {self.bits!r}")

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message, ``bits * dimension``."""
        return float(self.bits * self.ball.dimension)

    def facts(self) -> dict[str, Any]:
        """Return the bits of a coordinate and the length of a step."""
        return {"bits": self.bits, "granularity": self.granularity}

    def privacy(self) -> Privacy:
        """Return the local privacy, by Rényi divergences."""
        return skellam_privacy(self.noise_variance, self.l1_sensitivity, self.l2_sensitivity)

    @property
    def norm_bound(self) -> float:
        """Certain upper bound on the L2 norm of a rounded vector, in steps."""
        radius = min(self.ball.clip_norm / self.granularity, LARGEST_RADIUS)
        return rounded_norm_bound(self.ball.dimension, 2.0, radius)

    @property
    def l2_sensitivity(self) -> float:
        """Upper bound on the L2 distance of two clients' rounded vectors, in steps."""
        # `vector_dithering.inside` checks the norm of rounded vectors up to less than a tenth of SLACK.
        return 2 * self.norm_bound * (1 + SLACK)

    @property
    def l1_sensitivity(self) -> float:
        """Upper bound on the L1 distance of two clients' rounded vectors, in steps.

        Whole numbers have ``|k| <= k**2``.
        """
        return _l1_sensitivity(self.ball.dimension, self.l2_sensitivity)

    @property
    def wrap_probability(self) -> float:
        """Bound on the probability that any coordinate of one message wraps.

        The bound is Chernoff's for the noise, with a union over coordinates.
        """
        tails = skellam_tail(self.noise_variance, self._room) + skellam_tail(self.noise_variance, self._room + 1)
        return min(1.0, self.ball.dimension * tails)

    @property
    def bias_bound(self) -> float:
        """Upper bound on the L2 norm of the bias from wrapping, in the vectors' units.

        Noise of at least room + j 2**bits wraps a coordinate j + 1 times, each time by 2**bits steps. The exponent of Chernoff's bound is
        convex with slope -asinh(room / mu), so that a geometric series bounds its sum. Wrapping up and wrapping down have opposite effects,
        so the likelier direction bounds both. No coordinate moves further than from one end of the range to the largest coordinate at the
        other end.
        """
        wraps = skellam_tail(self.noise_variance, self._room) / -math.expm1(
            -(2.0**self.bits) * math.asinh(self._room / self.noise_variance)
        )
        steps = min(2.0**self.bits * wraps, 2.0 ** (self.bits - 1) + self._largest_coordinate)
        return math.sqrt(self.ball.dimension) * self.granularity * steps

    @property
    def variance_bound(self) -> float:
        """Bound on the largest variance over the ball, without wrapping.

        The term f (1 - f) is at most 1/4, and at most the distance to zero.
        """
        dimension = self.ball.dimension
        rounding = min(dimension / 4, math.sqrt(dimension) * self.ball.clip_norm / self.granularity)
        return self.granularity**2 * (dimension * self.noise_variance + rounding)

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return rounded vectors with noise, wrapped to int8, int16 or int32.

        Results lie in [-2**(bits - 1), 2**(bits - 1)).
        """
        random_words = word_source(random_words)
        positions = self.ball.clip(vectors) / self.granularity
        noisy = bounded_rounding(positions, random_words.uniforms(len(positions)), 2.0, self.norm_bound)
        noisy += sample_skellam(self.noise_variance, noisy.shape, random_words)
        half = 1 << (self.bits - 1)
        # The mask gives the remainder modulo a power of two, also of negative numbers.
        wrapped = ((noisy + half) & (2 * half - 1)) - half
        return wrapped.astype(np.int8 if self.bits <= 8 else np.int16 if self.bits <= 16 else np.int32)

    def aggregate(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        """Return the sum of the messages, in steps, shape (dimension,)."""
        half = 1 << (self.bits - 1)
        return np.asarray(checked_messages(messages, -half, half - 1, self.ball.dimension).sum(axis=0, dtype=np.int64))

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the average of the messages, in the vectors' units."""
        clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
        return np.asarray(aggregate, dtype=float) * (self.granularity / clients)

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return ``granularity**2 (dimension * noise_variance + sum f (1 - f))`` for each vector.

        The fractional parts f are in steps. The variance is exact except for wrapping, as systematic rounding keeps each coordinate's own
        distribution.
        """
        positions = np.abs(self.ball.clip(vectors)) / self.granularity
        fractions = positions - np.floor(positions)
        noise = self.ball.dimension * self.noise_variance
        return np.asarray(self.granularity**2 * (noise + np.sum(fractions * (1 - fractions), axis=1)))

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector by noise and rounding."""
        variance = self.variance(vectors)
        return VarianceParts.split(variance, rounding=variance - self.granularity**2 * self.ball.dimension * self.noise_variance)

    @property
    def _largest_coordinate(self) -> int:
        return math.floor(self.norm_bound * (1 + SLACK))

    @property
    def _room(self) -> int:
        """Least noise, in steps, that wraps the largest coordinate."""
        return (1 << (self.bits - 1)) - self._largest_coordinate


def skellam_mechanism(epsilon: float, delta: float, ball: NormBall, bits: int = 16, deviations: float = 6.0) -> SkellamMechanism:
    """Return the Skellam mechanism with the finest granularity and the least noise.

    A finer granularity makes larger whole numbers, which need more noise. The function chooses both together, such that

        2**(bits - 1) >= largest coordinate + deviations * sqrt(noise_variance)

    and the variance is at most 2 * 10**10 squared steps, the sampler's largest variance, which is the tighter limit from about 20 bits on.
    The granularity is from clip_norm / 2**20 to clip_norm; the mechanism's epsilon is at most the given epsilon.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, from 0.001 to 1000.
    delta : float
        Failure probability, above 0 and below 1.
    ball : NormBall
        L2 ball of the vectors.
    bits : int
        Number of bits per coordinate, 2 to 32.
    deviations : float
        Number of standard deviations of noise between the largest coordinate and the end of the range, 1 to 40. Bias from wrapping falls
        about as exp(-deviations**2 / 2).

    Raises
    ------
    InfeasibleError
        If the bits are too few even for a granularity of clip_norm (the message states the necessary number), or if that granularity needs
        more noise than the sampler supports.

    Examples
    --------
    >>> ball = NormBall(dimension=128, norm=2.0)
    >>> [round(skellam_mechanism(2.0, 1e-5, ball, bits).variance_bound, 1) for bits in (8, 12, 16)]
    [15847.3, 2442.1, 2369.9]
    """
    check_ball(ball, "Skellam noise", 2)
    bits = check_integer("bits", bits, low=FEWEST_BITS, high=MOST_BITS)
    deviations = check_real("deviations", deviations, low=1.0, high=40.0)

    def variance_and_range(radius: float) -> tuple[float, float]:
        bound = rounded_norm_bound(ball.dimension, 2.0, radius) * (1 + SLACK)
        variance = skellam_variance(epsilon, delta, _l1_sensitivity(ball.dimension, 2 * bound), 2 * bound)
        return variance, math.floor(bound) + deviations * math.sqrt(variance)

    def feasible(radius: float) -> bool:
        variance, largest = variance_and_range(radius)
        return largest <= 2.0 ** (bits - 1) and variance <= LARGEST_VARIANCE

    coarse, fine = 1.0, LARGEST_RADIUS
    least_variance, least_range = variance_and_range(coarse)
    if least_variance > LARGEST_VARIANCE:
        raise InfeasibleError(
            f"epsilon must be larger than {epsilon:g}, or delta than {delta:g}, for Skellam noise in {ball.dimension} dimensions: it would "
            f"need a variance of {least_variance:.3g} squared steps, and {LARGEST_VARIANCE:g} is the largest that is sampled"
        )
    if not feasible(coarse):
        needed = math.ceil(math.log2(least_range)) + 1
        raise InfeasibleError(
            f"bits must be at least {needed} for Skellam noise with epsilon = {epsilon:g}, delta = {delta:g} in {ball.dimension} "
            f"dimensions and room for {deviations:g} standard deviations, got {bits}"
        )
    if feasible(fine):
        coarse = fine
    # The largest coordinate and the noise grow with the radius; `coarse` is always feasible.
    coarse = bisect(feasible, coarse, fine, HALVINGS, geometric=True).holds
    # The radius that the mechanism computes back from its granularity must not be the next larger float.
    granularity = ball.clip_norm / coarse
    while ball.clip_norm / granularity > coarse:
        granularity = math.nextafter(granularity, math.inf)
    return SkellamMechanism(ball, bits, granularity, variance_and_range(coarse)[0], delta)


def _l1_sensitivity(dimension: int, l2_sensitivity: float) -> float:
    """Return the largest L1 norm of a vector of whole numbers with the given L2 norm."""
    return min(math.sqrt(dimension) * l2_sensitivity, l2_sensitivity**2)
