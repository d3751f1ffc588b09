"""DP-REC: clients' updates as relative entropy codes, a few bits for each tensor, whose randomness is the privacy.

Triastcyn, Reisser, Louizos 2021, *DP-REC: Private & Communication-Efficient Federated Learning*. A message is the seed that a client has
drawn and an index for each group, packed without gaps.
"""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_integer, check_real
from ...arrays import FloatArray
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, RenyiCurve, check_delta
from ...solvers.divergences.dp_rec_privacy import message_divergences
from ...solvers.divergences.importance_resampling import LARGEST_SHIFT, resampled_moments
from ..contracts.accounts import renyi_account
from ..contracts.mechanism import MOST_CLIENTS, VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Account, Privacy
from ..noise.random_words import WordsLike, word_source
from .coding import check_indices, decode_groups, encode_groups
from .group_layout import GroupLayout
from .shared_randomness import SEED_BITS

SMALLEST_CLIP_RATIO = 1e-3


def message_account(clip_ratio: float) -> Account:
    """Return the account of a client's messages by their Rényi divergences for any two vectors (`message_divergences`)."""

    def curve() -> RenyiCurve:
        orders = np.array(DEFAULT_ORDERS[:-1])
        return RenyiCurve(orders, message_divergences(clip_ratio, orders))

    return renyi_account(curve, "replace-one", name="message")


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

    def _shift(self, group: FloatArray) -> float:
        # Rounding may leave a clipped vector longer than the ball by a last digit.
        return min(self.clip_ratio, float(np.linalg.norm(group / self.sigma)))


def message_bytes(layout: GroupLayout) -> int:
    """Return the length of a message in bytes: 64 bits of seed and the groups' bits, padded to whole bytes.

    Examples
    --------
    >>> message_bytes(GroupLayout(sizes=(2, 1), group_bits=(7, 4)))
    10
    """
    return -(-(SEED_BITS + layout.total_bits) // 8)


@dataclass(frozen=True)
class DpRecMessage:
    """One client's message (Triastcyn, Reisser, Louizos 2021, algorithm 3): a seed from 0 to 2**64 - 1, and an index for each group.

    Examples
    --------
    >>> layout = GroupLayout(sizes=(2, 1), group_bits=(7, 4))
    >>> packed = DpRecMessage(seed=258, indices=(5, 3)).to_bytes(layout)
    >>> packed.hex(), DpRecMessage.from_bytes(packed, layout)
    ('00000000000001020a60', DpRecMessage(seed=258, indices=(5, 3)))
    """

    seed: int
    indices: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the seed's range."""
        object.__setattr__(self, "seed", check_integer("seed", self.seed, low=0, high=2**SEED_BITS - 1))

    def to_bytes(self, layout: GroupLayout) -> bytes:
        """Return the message as it is sent: the seed, then the indices, the most significant bit first, and zeros up to a whole byte."""
        check_indices(self.indices, layout)
        length = message_bytes(layout)
        fields = [
            format(self.seed, f"0{SEED_BITS}b"),
            *(format(i, f"0{bits}b") for i, bits in zip(self.indices, layout.group_bits, strict=True)),
        ]
        return int("".join(fields).ljust(8 * length, "0"), 2).to_bytes(length, "big")

    @classmethod
    def from_bytes(cls, data: bytes, layout: GroupLayout) -> "DpRecMessage":
        """Return the message that `to_bytes` has packed.

        ``ValueError`` if the length is wrong or a bit is set after the last index. Other damage cannot be detected: every seed and every
        index is valid.
        """
        length = message_bytes(layout)
        if len(data) != length:
            raise ValueError(f"data must have {length} bytes for this layout, got {len(data)}")
        digits = format(int.from_bytes(data, "big"), f"0{8 * length}b")
        used = SEED_BITS + layout.total_bits
        if "1" in digits[used:]:
            raise ValueError(f"data must end in {8 * length - used} zero bits for this layout, got {digits[used:]}")
        ends = accumulate(layout.group_bits, initial=SEED_BITS)
        indices = tuple(int(digits[start : start + bits], 2) for start, bits in zip(ends, layout.group_bits, strict=False))
        return cls(seed=int(digits[:SEED_BITS], 2), indices=indices)
