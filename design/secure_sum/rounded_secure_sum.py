"""Secure sums of vectors that clients rotate, round to whole numbers and add noise to.

The steps are those of Kairouz, Liu, Steinke 2021, *The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure
Aggregation*; only the noise differs between mechanisms.
"""

import math
from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import LARGEST_DIMENSION as LARGEST_ROTATED
from ...arguments import check_choice
from ...arrays import FloatArray, IntegerArray, WordArray
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.divergences.discrete_gaussian_divergence import MOST_BITS, MOST_CLIENTS, rounded_norm
from ...solvers.numerics.rounding import SLACK
from ..contracts.error import MessageLaw, VarianceParts
from ..contracts.guarantee import ADJACENCIES
from ..contracts.mechanism import SecureSumMechanism, VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.options import Declared, check_parameters
from ..deployment.client_program import ClientProgram
from ..deployment.clients.sums import noisy_residues
from ..deployment.translation.printer import Constant
from ..noise.random_words import WordsLike, WordSource, word_source
from ..noise.threshold_table import SymmetricCurve, threshold_table
from ..transforms.conditional_rounding import ConditionalRounding
from ..transforms.rotation import LARGEST_SEED, ROTATIONS, RandomisedHadamard, Rotation, rotated_blocks, rotation_of
from .modular_arithmetic import aggregate_residues, centred_representatives, messages_in_parts, summed_messages

# Parameters of every sum of rounded vectors.
BALL: Declared = {"dimension": {"high": LARGEST_ROTATED, "help": "Number of coordinates of a vector; the rotation pads them."}}
CLIENTS: Declared = {
    "help": "Number of clients whose messages are added up.",
    "low": 1,
    "high": MOST_CLIENTS,
    "unit": "clients",
    "at_most": "population",
}
BITS: Declared = {
    "help": "Bits of a coordinate of the sum, which is taken modulo 2**bits.",
    "low": 1,
    "high": MOST_BITS,
    "usual": 16,
    "unit": "bits",
}
GRANULARITY: Declared = {"help": "Length that a whole number stands for, in the vectors' units.", "low": 1e-100, "high": 1e100}
ROTATION_SEED: Declared = {"help": "Public seed of the random rotation.", "low": 0, "high": LARGEST_SEED, "default": 0}
ROTATION: Declared = {
    "help": "Public rotation: hadamard pads to a power of two, fourier to an even number.",
    "default": "hadamard",
    "choices": ROTATIONS,
}


class RoundedSecureSum(SecureSumMechanism, VectorMechanism):
    """Clients clip, rotate and round vectors and add noise; the server sees their modular sum.

    A vector is clipped, rotated by a public random rotation, divided by the granularity, and rounded to whole numbers under a bound on
    their norm. The guarantee counts the noise of `survivors` clients, or of all `clients` by default. The noise of clients that drop out is
    missing, so `decode` refuses a sum over fewer clients than that. Vectors must not depend on the seed of the rotation. Noise is drawn
    exactly.

    Rounding under a bound on the norm has a bias, which `bias_bound` bounds. A sum outside [-2**(bits - 1), 2**(bits - 1)) wraps around to
    the other end; `wrap_probability` bounds the probability, and the stated variances leave wrap-around out. Privacy does not depend on
    wrap-around.

    A frozen dataclass that derives from this class has the fields below, calls `_check_fields` when it is made, and defines the noise.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clients : int
        Number of clients that add noise, from 1 to 10**9.
    bits : int
        Number of bits per coordinate of the sum and of a message, from 1 to 62.
    granularity : float
        Size of one step of the whole numbers, in the vectors' units; above 0.
    delta : float
        Failure probability of the guarantee, above 0 and below 1.
    rotation_seed : int
        Public seed of the rotation, from 0 to 2**128 - 1.
    rotation : str
        ``"hadamard"``, which pads to a power of two, or ``"fourier"``, which pads by one coordinate at most.
    adjacency : str
        Adjacency of the guarantee. With ``"add-or-remove-one"``, as in the papers, a client's vector is present or zero, with the noise of
        all clients either way. With ``"replace-one"``, another vector replaces the client's vector, which doubles the sensitivity.
    survivors : int or None
        Number of clients whose noise suffices for the guarantee, if others drop out; None for all clients.
    """

    ball: NormBall
    clients: int
    bits: int
    granularity: float
    delta: float
    rotation_seed: int
    rotation: str
    adjacency: str

    @property
    def modulus(self) -> int:
        """The modulus ``2**bits``."""
        return 1 << self.bits

    @property
    def padded_dimension(self) -> int:
        """Number of coordinates of a rotated vector."""
        return self._rotation.padded_dimension

    def facts(self) -> dict[str, Any]:
        """Return the padded dimension, the rounded norm, and bounds on error and bias."""
        return {
            "padded_dimension": self.padded_dimension,
            "rounded_norm": rounded_norm(self.ball.clip_norm, self.granularity, self.padded_dimension),
            "worst_squared_error": self.error().of_mean(self.clients),
            "bias_bound": self.bias_bound,
        }

    @property
    def norm_bound(self) -> float:
        """Upper bound on the L2 norm of one client's rounded vector, in the vectors' units.

        The sum moves at most by this norm when zero replaces a client's vector, and at most by twice this norm when another vector does.
        """
        return self._rounding.norm_bound

    @property
    def bias_bound(self) -> float:
        """Upper bound on the bias of rounding under a bound on the norm."""
        return self._rounding.bias_bound

    @property
    def coordinate_wrap_probability(self) -> float:
        """Upper bound on a coordinate's wrap probability over seed, rounding and noise.

        A coordinate of the sum, in steps, has three parts. The moment generating functions of the first two parts are at most those of
        Gaussians:

        - the rotated sum of n vectors of norm at most r = clip_norm / granularity, with variance ``(n r)**2 / D`` over the seed, D the
          padded dimension (see `quietbits.design.transforms.rotation.flattened_bound`);
        - rounding, given the seed: under the condition on the norm, each client's coordinate still is one of two neighbours, so that
          Hoeffding's lemma gives the variance 1/4 around its mean; the mean is off by at most b = bias_bound / granularity;
        - noise, whose moment generating function the mechanism knows.

        Chernoff's bound for both signs, with room ``t = 2**(bits - 1) - n b``, is twice the exponential of minus `_tail_exponent`. The
        result is the smaller of this bound and the bound for the largest possible coordinates. The bound for the largest possible
        coordinates uses that no rounded coordinate exceeds the bound on the norm, so that only the noise is random.
        """
        clients, radius = self.clients, self.ball.clip_norm / self.granularity
        shift = clients * self._rounding.bias_bound / self.granularity
        random = self._wrap_probability(shift, (clients * radius) ** 2 / self.padded_dimension + clients / 4)
        return min(random, self._certain_wrap_probability)

    @property
    def seed_bias_bound(self) -> float:
        """Upper bound on the bias for any seed, wrapped sums included.

        The bound is `bias_bound`, plus the largest error of a wrapped sum times the root of the probability that the largest coordinates
        wrap.
        """
        wraps = min(1.0, self.padded_dimension * self._certain_wrap_probability)
        reach = math.sqrt(self.padded_dimension) * 2.0 ** (self.bits - 1) * self.granularity / self.clients
        return self.bias_bound + math.sqrt(wraps) * (reach + self.ball.clip_norm)

    @property
    def _certain_wrap_probability(self) -> float:
        """Upper bound on the probability that a coordinate wraps, for any seed and vectors."""
        return self._wrap_probability(self.clients * math.isqrt(self._rounding.largest_squared_norm), 0.0)

    def _wrap_probability(self, shift: float, variance: float) -> float:
        """Return Chernoff's bound for a shifted coordinate with noise and a Gaussian part."""
        exponent = self._tail_exponent(max(0.0, 2.0 ** (self.bits - 1) - shift * (1 + SLACK)), variance)
        # The exponent has rounding errors below 60 units. Skellam's exponent is a difference, of at least half its first term, with errors
        # below 200 units.
        return min(1.0, 2 * math.exp(-exponent * (1 - SLACK)) * (1 + SLACK))

    @property
    def wrap_probability(self) -> float:
        """Upper bound on the wrap probability of any coordinate, by a union bound.

        For many coordinates the bound is often 1.0 although few coordinates wrap, with little effect on the error
        (`coordinate_wrap_probability`).
        """
        return min(1.0, self.padded_dimension * self.coordinate_wrap_probability)

    @property
    def variance_bound(self) -> float:
        """Upper bound on the variance over the ball, with rejected tries and without wrap-around."""
        return self._noise_variance + self._kept * self._rounding.error_bound

    @property
    def largest_directional_variance(self) -> float:
        """Upper bound on a decoded message's variance along any direction, without wrapping.

        Coordinates of the noise are independent. So are coordinates of the rounding before rejection, each with a variance of at most a
        quarter of a squared step. A rotation does not raise the largest variance, and rejection divides it by at least 1 - q.
        """
        rounding = 1 / (4 * (1 - self._rounding.rejection_bound))
        return self.granularity**2 * (self._step_noise_variance + rounding) * (1 + SLACK)

    def for_clients(self, clients: int) -> Self:
        """Return a copy of the mechanism for another number of clients."""
        return replace(self, clients=clients)  # type: ignore[type-var]

    def noisy_steps(self, vectors: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return the sum of `rounded_steps` and `noise_steps`.

        Encode the messages of many clients in chunks.
        """
        return self._noisy(self.ball.check(vectors), word_source(random_words))

    def rounded_steps(self, vectors: ArrayLike, random_words: WordsLike) -> IntegerArray:
        """Return each vector clipped, rotated and rounded, shape (clients, padded_dimension)."""
        array = self.ball.check(vectors)
        steps = np.empty((len(array), self.padded_dimension), dtype=np.int64)
        self._write_rounded(array, steps, word_source(random_words))
        return steps

    def noise_steps(self, count: int, random_words: WordsLike) -> IntegerArray:
        """Return the noise of a number of clients, in steps, shape (count, padded_dimension)."""
        steps = np.zeros((count, self.padded_dimension), dtype=np.int64)
        self._add_noise(steps, word_source(random_words))
        return steps

    def add_steps(self, total: IntegerArray, inputs: ArrayLike, random_words: WordsLike) -> MessageLaw:
        """Add the sum of `noisy_steps` to a total in place, and return the messages' law, from one rotation."""
        array, random_words = self.ball.check(inputs), word_source(random_words)
        errors = np.zeros(len(array))
        total += self._noisy(array, random_words, errors).sum(axis=0)
        return MessageLaw(self.known_bias(array), self._noise_variance + self._kept * errors)

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[Any]:
        """Return `noisy_steps` modulo 2**bits, a few clients at a time."""
        array, random_words = self.ball.check(vectors), word_source(random_words)
        # Sums modulo the range of a message's word determine sums modulo 2**bits.
        return messages_in_parts(
            array, self.padded_dimension, self.modulus, lambda part, messages: self._write_noisy(part, messages, random_words)
        )

    def client_program(self) -> ClientProgram:
        """Return the program: rotate, round, and add noise from a table of thresholds.

        The distance between the table's law and the exact law raises the failure probability (`ClientProgram.distance`).
        """
        if not isinstance(self._rotation, RandomisedHadamard):
            raise InfeasibleError(f"rotation must be hadamard for clients in other languages, got {self.rotation}")
        if self._rounding.largest_squared_norm >= 2**52 or self.modulus > 2**62:
            raise InfeasibleError(f"granularity must be larger for clients in other languages, got {self.granularity!r}")
        table = threshold_table(self._noise_curve())
        constants: dict[str, Constant] = {
            "dimension": self.ball.dimension,
            "padded": self.padded_dimension,
            "clip_norm": float(self.ball.clip_norm),
            "scale": 1 / math.sqrt(self.padded_dimension),
            "granularity": float(self.granularity),
            "largest": self._rounding.largest_squared_norm,
            "mask": self.modulus - 1,
            "points": len(table.thresholds),
            "signs": self._rotation.sign_words(),
            "upper": tuple(threshold >> 63 for threshold in table.thresholds),
            "lower": tuple(threshold & (2**63 - 1) for threshold in table.thresholds),
        }
        return ClientProgram(
            noisy_residues,
            constants,
            self.bits,
            fields=self.padded_dimension,
            messages=lambda fields, _: fields.astype(np.uint64),
            distance=table.distance * self.padded_dimension * self.clients,
        )

    @abstractmethod
    def _noise_curve(self) -> SymmetricCurve:
        """Return the law of a coordinate's noise, up to a factor."""

    def aggregate(self, messages: NDArray[Any]) -> WordArray:
        """Return the sum of the messages modulo 2**bits.

        Sums of chunks need not be reduced, as words overflow modulo 2**64.
        """
        return summed_messages(messages, self.padded_dimension, self.modulus)

    def recovered_steps(self, aggregate: NDArray[Any]) -> IntegerArray:
        """Return the sum's representatives nearest to zero.

        The range is from -2**(bits - 1) to 2**(bits - 1) - 1.
        """
        return centred_representatives(aggregate_residues(aggregate, self.padded_dimension, self.modulus), self.modulus)

    def decode(self, aggregate: NDArray[Any], clients: int) -> FloatArray:
        """Return the mean of the vectors of the clients whose messages arrived.

        The method divides `recovered_steps` by `clients`, from `fewest_clients` to all, and rotates back.
        """
        return self.mean_of_steps(self.recovered_steps(aggregate), self.check_arrived(clients))

    def mean_of_steps(self, steps: IntegerArray, clients: int | None = None) -> FloatArray:
        """Return the mean in the vectors' units from the sum of clients' whole numbers, of all clients by default."""
        return self._rotation.inverse(steps * (self.granularity / (clients or self.clients)))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the variance of each vector, from noise and rounding.

        The variance omits wrap-around and rejected tries. Noise adds the dimension times the variance of a coordinate's noise, without the
        part on the padding. Rounding adds ``granularity**2 sum f (1 - f)`` with f the fractional parts of the rotated vector in steps,
        times dimension / padded_dimension for the Hadamard rotation. The Fourier rotation pads by at most one coordinate, and the variance
        includes the padding's share.
        """
        rotated = self._rotation.forward(self.ball.clip(vectors))
        return self._noise_variance + self._kept * self._rounding.expected_error(rotated)

    def variance_parts(self, vectors: ArrayLike) -> VarianceParts:
        """Return the variance of each vector by noise and rounding."""
        variance = self.variance(vectors)
        return VarianceParts.split(variance, rounding=variance - self._noise_variance)

    def _noisy(self, vectors: FloatArray, random_words: WordSource, expected_errors: FloatArray | None = None) -> IntegerArray:
        steps = np.empty((len(vectors), self.padded_dimension), dtype=np.int64)
        self._write_noisy(vectors, steps, random_words, expected_errors)
        return steps

    def _write_noisy(
        self, vectors: FloatArray, steps: NDArray[Any], random_words: WordSource, expected_errors: FloatArray | None = None
    ) -> None:
        self._write_rounded(vectors, steps, random_words, expected_errors)
        self._add_noise(steps, random_words)

    def _write_rounded(
        self, vectors: FloatArray, steps: NDArray[Any], random_words: WordSource, expected_errors: FloatArray | None = None
    ) -> None:
        """Clip, rotate and round checked vectors into an array, modulo 2**w for numbers of w bits."""
        parts = rotated_blocks(vectors, self.ball, self._rotation)
        self._rounding.round_parts(parts, steps, random_words, expected_errors)

    @abstractmethod
    def _add_noise(self, steps: NDArray[Any], random_words: WordSource) -> None:
        """Add noise of each client to each of its numbers, in steps, modulo 2**w for numbers of w bits."""

    @property
    @abstractmethod
    def _step_noise_variance(self) -> float:
        """Variance of one client's noise on a coordinate, in squared steps."""

    @abstractmethod
    def _tail_exponent(self, room: float, variance: float) -> float:
        """Return minus the log of Chernoff's bound that noise and a Gaussian reach `room` steps."""

    def _check_fields(self, noise: str) -> None:
        """Check the fields; `noise` names the noise in words."""
        check_ball(self.ball, f"{noise} noise", 2)
        check_parameters(self)
        object.__setattr__(self, "delta", check_delta(self.delta))
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        # Making the rotation and the rounding checks the other fields.
        _ = self._rotation, self._rounding

    @property
    def _noise_variance(self) -> float:
        return self.ball.dimension * self.granularity**2 * self._step_noise_variance

    @property
    def _kept(self) -> float:
        """Largest share of squared uncorrelated errors outside the padding.

        The Hadamard rotation keeps d / D.
        """
        return self.ball.dimension / self.padded_dimension if self.rotation == "hadamard" else 1.0

    @cached_property
    def _rotation(self) -> Rotation:
        return rotation_of(self.rotation, self.ball.dimension, self.rotation_seed)

    @cached_property
    def _rounding(self) -> ConditionalRounding:
        return ConditionalRounding(self.padded_dimension, self.granularity, self.ball.clip_norm)
