"""DP-REC: clients' updates as relative entropy codes, a few bits for each tensor, whose randomness is the privacy.

Triastcyn, Reisser, Louizos 2021, *DP-REC: Private & Communication-Efficient Federated Learning*.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer, check_real
from ...arrays import FloatArray
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve, check_delta
from ...solvers.divergences.dp_rec_privacy import message_divergences
from ...solvers.divergences.importance_resampling import LARGEST_SHIFT, resampled_moments
from ..contracts.accounts import renyi_account
from ..contracts.mechanism import MessageLaw, MessageScore, VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Account, Privacy
from ..noise.random_words import WordsLike, word_source
from .coding import decode_groups, encode_groups
from .group_layout import GroupLayout
from .message import DpRecMessage, message_bytes
from .shared_randomness import vectors_of_seeds

SMALLEST_CLIP_RATIO = 1e-3
# Numbers of shared samples that an audit makes at a time.
NUMBERS_PER_CHUNK = 2**20
# Moments are analytic in the shift: up to the largest, 3, interpolation of this degree is as exact as they are.
DEGREE = 28


def message_account(clip_ratio: float) -> Account:
    """Return the account of a client's messages by their Rényi divergences for any two vectors (`message_divergences`)."""

    def curve() -> RenyiCurve:
        orders = np.array(DEFAULT_ORDERS[:-1])
        return RenyiCurve(orders, message_divergences(clip_ratio, orders))

    return renyi_account(curve, "replace-one", name="message")


@dataclass(frozen=True)
class MomentCurves:
    """Bias and mean squared error of a sample along its group's vector, as functions of the shift, in units of sigma."""

    bias: Chebyshev
    squared_error: Chebyshev


@lru_cache(maxsize=256)
def moment_curves(largest_shift: float, bits: int) -> MomentCurves:
    """Interpolate `resampled_moments` over shifts from 0 to the largest one."""
    shifts = (np.polynomial.chebyshev.chebpts1(DEGREE + 1) + 1) / 2 * largest_shift
    laws = [resampled_moments(shift, 1 << bits) for shift in shifts.tolist()]
    bias = [law.mean - shift for law, shift in zip(laws, shifts.tolist(), strict=True)]
    return MomentCurves(
        bias=Chebyshev.fit(shifts, bias, DEGREE, domain=[0, largest_shift]),
        squared_error=Chebyshev.fit(shifts, [law.squared_error for law in laws], DEGREE, domain=[0, largest_shift]),
    )


def unit_directions(vectors: FloatArray, lengths: FloatArray) -> FloatArray:
    """Return vectors of length one, from vectors and their lengths; zeros where the length is 0."""
    return np.divide(vectors, lengths[:, None], out=np.zeros_like(vectors), where=lengths[:, None] > 0)


@dataclass(frozen=True)
class DpRecMechanism(VectorMechanism):
    """Every client sends the number of a shared Gaussian sample that could have come from its vector, for each group of coordinates.

    The client clips its vector to the ball, draws a seed, and codes one sample of N(vector, sigma^2 I) relative to N(0, sigma^2 I), the
    groups independently. The server makes the samples with these numbers, and no others, and averages over clients.

    **The client draws the seed.** A server that may choose it looks for one whose samples give the vector away (section 4.3 of the paper);
    there is no argument by which it could pass one.

    `guarantee` is what one message promises against a server that is not trusted. What a training costs against those who see
    its models depends on rounds and on the sampling of clients, and is accounted elsewhere (`dp_rec_account`). The estimate is biased
    towards zero, by a share exp(||x_g||^2 / sigma^2) / 2**bits of each group x_g, nearly: `expected` is exact.

    Attributes
    ----------
    ball : NormBall
        L2 ball of the vectors.
    clip_ratio : float
        Largest norm of a vector over sigma, c = C / sigma in the paper, 0.001 to 3.
    layout : GroupLayout
        The groups, and the bits of each; of the ball's dimension.
    delta : float
        Failure probability at which `guarantee` states epsilon, above 0 and below 1; the mechanism does not depend on it.

    Examples
    --------
    >>> mechanism = DpRecMechanism(NormBall(dimension=3, norm=2.0), clip_ratio=0.5, layout=GroupLayout(sizes=(2, 1), group_bits=(7, 7)))
    >>> messages = mechanism.encode([[0.5, 0.5, 0.1], [0.4, 0.5, 0.3]], np.random.default_rng(0))
    >>> messages.shape, mechanism.decode(mechanism.aggregate(messages), clients=2).shape, mechanism.bits_per_client
    ((2, 10), (3,), 80.0)
    """

    ball: NormBall
    clip_ratio: float
    layout: GroupLayout
    delta: float = 1e-5

    def __post_init__(self) -> None:
        """Check the fields, and that they go together."""
        check_ball(self.ball, "DP-REC", 2)
        object.__setattr__(self, "clip_ratio", check_real("clip_ratio", self.clip_ratio, low=SMALLEST_CLIP_RATIO, high=LARGEST_SHIFT))
        object.__setattr__(self, "delta", check_delta(self.delta))
        if self.layout.dimension != self.ball.dimension:
            raise ValueError(f"layout must have the ball's dimension, {self.ball.dimension}, got {self.layout.dimension}")

    @property
    def sigma(self) -> float:
        """Standard deviation of samples, in the vectors' units."""
        return self.ball.clip_norm / self.clip_ratio

    @property
    def bits_per_client(self) -> float:
        """Length of a message as it is sent: the seed, the indices, and the padding of the last byte."""
        return 8.0 * message_bytes(self.layout)

    def privacy(self) -> Privacy:
        """Local privacy of messages, for any two vectors, whatever the bits and the groups (`message_account`)."""
        return Privacy("local", (message_account(self.clip_ratio),))

    @property
    def bias_bound(self) -> float:
        """Largest norm by which an expectation falls short of its vector: that of the longest vector, in the group of fewest bits."""
        kept = resampled_moments(self.clip_ratio, 1 << min(self.layout.group_bits)).mean / self.clip_ratio
        return self.ball.clip_norm * max(0.0, 1 - kept)

    @property
    def worst_variance(self) -> float:
        """Bound on `variance`, ``dimension sigma**2 + clip_norm**2``, which errs upward.

        Along a group's vector, of m standard deviations, Stein's lemma gives a squared error of 1 + m**2 (2 E[sum of w_k**3] - E[sum of
        w_k**2]) variances, with w the weights, which sum to 1: at most 1 + m**2.
        """
        return self.layout.dimension * self.sigma**2 + self.ball.clip_norm**2

    def encode(self, vectors: ArrayLike, words: WordsLike) -> NDArray[np.uint8]:
        """Draw a seed and code a vector for each client, packed by `DpRecMessage.to_bytes`: shape (clients, message_bytes).

        Weights and Gumbel noise are floating-point numbers: what is sent has the stated probabilities to within about 1e-6 of each. Shared
        samples come from Philox, which the seed, public in the paper, makes public.
        """
        words = word_source(words)
        clipped = self.ball.clip(vectors)
        messages = np.empty((len(clipped), message_bytes(self.layout)), dtype=np.uint8)
        for row, vector in zip(messages, clipped, strict=True):
            seed = int(words(1)[0])
            message = DpRecMessage(seed, encode_groups(vector, self.layout, seed, words, self.sigma))
            row[:] = np.frombuffer(message.to_bytes(self.layout), dtype=np.uint8)
        return messages

    def aggregate(self, messages: NDArray[np.uint8]) -> FloatArray:
        """Return the sum of decoded messages, shape (dimension,); makes one sample for each group, whatever the number of bits."""
        total = np.zeros(self.ball.dimension)
        for packed in messages:
            message = DpRecMessage.from_bytes(packed.tobytes(), self.layout)
            total += decode_groups(message.indices, self.layout, message.seed, self.sigma)
        return total

    def decode(self, aggregate: FloatArray, clients: int) -> FloatArray:
        """Return the mean of decoded messages."""
        return aggregate / check_integer("clients", clients, low=1, high=MOST_CLIENTS)

    def expected(self, vectors: ArrayLike) -> FloatArray:
        """Return the expectation of each decoded message over seeds and indices: shorter than the vector, group by group."""
        expected = self.ball.clip(vectors)
        for part, bits in zip(self.layout.slices(), self.layout.group_bits, strict=True):
            for row in expected[:, part]:
                shift = self._shift(row)
                row *= resampled_moments(shift, 1 << bits).mean / shift if shift > 0 else 0.0
        return expected

    def known_bias(self, vectors: ArrayLike) -> FloatArray:
        """Return `expected` less the clipped vectors."""
        return np.asarray(self.expected(vectors) - self.ball.clip(vectors))

    def variance(self, vectors: ArrayLike) -> FloatArray:
        """Return the expected squared distance of each decoded message from its expectation: close to ``dimension * sigma**2``.

        Across the direction of a group's vector, a chosen sample is as good as any other, and adds sigma**2 per dimension; along it,
        see `resampled_moments`.
        """
        clipped = self.ball.clip(vectors)
        total = np.full(len(clipped), float(self.layout.dimension - self.layout.groups))
        for part, bits in zip(self.layout.slices(), self.layout.group_bits, strict=True):
            for client, row in enumerate(clipped[:, part]):
                shift = self._shift(row)
                law = resampled_moments(shift, 1 << bits)
                total[client] += law.squared_error - (law.mean - shift) ** 2
        return total * self.sigma**2

    def law(self, vectors: ArrayLike) -> MessageLaw:
        """Return `known_bias` and `variance` to within 1e-6 in units of sigma, in a small part of the time.

        Examples
        --------
        >>> mechanism = DpRecMechanism(NormBall(dimension=4, norm=2.0), clip_ratio=1.0, layout=GroupLayout((4,), group_bits=(7,)))
        >>> law = mechanism.law([[1.0, 0.0, 0.0, 0.0]])
        >>> round(float(law.bias[0, 0]), 4), law.variance.round(2).tolist()
        (-0.0202, [3.98])
        """
        units = self.ball.clip(vectors) / self.sigma
        bias = np.zeros_like(units)
        variance = np.full(len(units), float(self.layout.dimension - self.layout.groups))
        for part, bits in zip(self.layout.slices(), self.layout.group_bits, strict=True):
            shifts = np.linalg.norm(units[:, part], axis=1)
            curves = moment_curves(self.clip_ratio, bits)
            # Rounding may leave a clipped vector longer than the ball by a last digit.
            shifts_in_range = np.minimum(shifts, self.clip_ratio)
            along = curves.bias(shifts_in_range)
            bias[:, part] = unit_directions(units[:, part], shifts) * along[:, None]
            variance += curves.squared_error(shifts_in_range) - along**2
        return MessageLaw(bias=bias * self.sigma, variance=variance * self.sigma**2)

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the log-likelihood ratio of each group's index, given the message's seed.

        No score finds more (Neyman and Pearson). It makes all samples of a group again.
        """
        # Only audits need it, and its import takes longer than this module's.
        from scipy.special import log_softmax

        targets = self.ball.clip(np.stack([first, second])) / self.sigma

        def ratios(messages: NDArray[np.uint8]) -> FloatArray:
            read = [DpRecMessage.from_bytes(packed.tobytes(), self.layout) for packed in messages]
            seeds, indices = [message.seed for message in read], np.array([message.indices for message in read])
            total = np.zeros(len(read))
            parts = zip(self.layout.slices(), self.layout.sizes, self.layout.group_bits, strict=True)
            for group, (part, size, bits) in enumerate(parts):
                at_once = max(1, NUMBERS_PER_CHUNK // (size << bits))
                for start in range(0, len(read), at_once):
                    some = slice(start, start + at_once)
                    weights = log_softmax(_projections(seeds[some], targets[:, part], 1 << bits, group), axis=1)
                    sent = np.take_along_axis(weights, indices[some, group, None, None], axis=1)[:, 0]
                    total[some] += sent[:, 0] - sent[:, 1]
            return total

        return ratios

    def _shift(self, group: FloatArray) -> float:
        # Rounding may leave a clipped vector longer than the ball by a last digit.
        return min(self.clip_ratio, float(np.linalg.norm(group / self.sigma)))


def _projections(seeds: list[int], targets: FloatArray, samples: int, group: int) -> FloatArray:
    """Return the inner products of each seed's samples with the targets, shape (seeds, samples, targets)."""
    dimension = targets.shape[1]
    rows = max(1, NUMBERS_PER_CHUNK // (len(seeds) * dimension))
    parts = ((first, min(rows, samples - first)) for first in range(0, samples, rows))
    drawn = (vectors_of_seeds(seeds, dimension, count, [first] * len(seeds), group) for first, count in parts)
    # In float32, as the samples are: errors are as in `log_importance_weights`.
    return np.concatenate([vectors @ targets.T.astype(np.float32) for vectors in drawn], axis=1).astype(float)
