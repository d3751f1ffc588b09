"""DP-REC: clients' updates as relative entropy codes, with the accounts of a training.

Triastcyn, Reisser, Louizos 2021, *DP-REC: Private & Communication-Efficient Federated Learning*. A message is the seed that a client has
drawn and an index for each group, packed without gaps.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import ArrayLike, NDArray

from ...arguments import MOST_CLIENTS, check_integer, check_real
from ...arrays import FloatArray
from ...solvers.accounting.renyi_curve import DEFAULT_ORDERS, MOST_ROUNDS, RenyiCurve, check_delta
from ...solvers.accounting.sampling import (
    SMALLEST_PROBABILITY,
    FixedSizeSampling,
    Sampling,
    fixed_size_sampled_curve,
    likely_participations,
)
from ...solvers.divergences.dp_rec_privacy import (
    LARGEST_CLIP_RATIO,
    LARGEST_POPULATION,
    MOST_BITS,
    SMALLEST_CLIP_RATIO,
    VARIANTS,
    dp_rec_epsilon,
    fewest_dp_rec_bits,
    index_epsilon,
    lost_delta,
    message_divergences,
)
from ...solvers.divergences.importance_resampling import LARGEST_SHIFT, resampled_moments
from ..contracts.accounts import amplified_rounds, needing_delta, renyi_account
from ..contracts.error import MessageLaw
from ..contracts.mechanism import MessageScore, VectorMechanism
from ..contracts.norm_ball import NormBall, check_ball
from ..contracts.privacy import Account, Bound, EpsilonBound, Privacy, participation_bound
from ..contracts.registry import AccountReport, AccountSubject, usual_adjacency
from ..noise.random_words import WordsLike, word_source
from .coding import check_indices, decode_groups, encode_groups
from .group_layout import GroupLayout
from .shared_randomness import SEED_BITS, vectors_of_seeds

SMALLEST_MESSAGE_RATIO = 1e-3
# Number of coordinates of shared samples that an audit makes per batch.
NUMBERS_PER_CHUNK = 2**20
# Degree of the interpolation of moments, which are analytic in the shift. For shifts of at most 3, the interpolation is as exact as the
# moments.
DEGREE = 28
ANY_BITS, ANY_CLIENTS, MESSAGE = "any-bits", "any-clients", "message"
DP_REC_ACCOUNTS = (*VARIANTS, ANY_BITS, ANY_CLIENTS, MESSAGE)
# Adjacencies of the accounts. The first adjacency, the usual choice, has an account that is proven without an assumption about other
# clients.
DP_REC_ADJACENCIES = ("replace-one", "add-or-remove-one")
# Largest number of clients of a round, who are drawn with replacement and may exceed the population.
MOST_CLIENTS_PER_ROUND = 10**6
# The unproven assumption of the accounts for add-or-remove-one adjacency and of the theorem.
ASSUMPTION = "the other clients' messages count as samples of the prior"
THEOREM_ASSUMPTION = f"{ASSUMPTION}, all groups as one list of 2**bits samples, and the paper's bound on what coding costs of delta holds"


def message_account(clip_ratio: float) -> Account:
    """Return the account of a client's messages for any two vectors (`message_divergences`)."""
    return renyi_account(lambda: _message_curve(clip_ratio), "replace-one", name=MESSAGE)


def _message_curve(clip_ratio: float) -> RenyiCurve:
    orders = np.array(DEFAULT_ORDERS[:-1])
    return RenyiCurve(orders, message_divergences(clip_ratio, orders))


@dataclass(frozen=True)
class MomentCurves:
    """Bias and squared error of a sample along its vector, by the shift in units of sigma."""

    bias: Chebyshev
    squared_error: Chebyshev


@lru_cache(maxsize=256)
def moment_curves(largest_shift: float, bits: int) -> MomentCurves:
    """Return interpolated `resampled_moments` for shifts from 0 to a largest shift."""
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
    """DP-REC: a client sends the number of a shared Gaussian sample for each group.

    The client clips its vector to the ball, draws a seed, and codes one sample of N(vector, sigma^2 I) relative to N(0, sigma^2 I), the
    groups independently. The server makes the samples with these numbers, and no others, and averages over clients.

    **The client draws the seed.** A server that could choose the seed would search for a seed whose samples give the vector away (section
    4.3 of the paper), so no argument passes a seed.

    `guarantee` is that of one message against an untrusted server. The privacy of a training against observers of its models depends on
    rounds and on the sampling of clients, and has its own account (`dp_rec_account`). The estimate is biased towards zero, by nearly a
    share exp(||x_g||^2 / sigma^2) / 2**bits of each group x_g: `expected` is exact.

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
        """Check the fields, and that they fit each other."""
        check_ball(self.ball, "DP-REC", 2)
        object.__setattr__(self, "clip_ratio", check_real("clip_ratio", self.clip_ratio, low=SMALLEST_MESSAGE_RATIO, high=LARGEST_SHIFT))
        object.__setattr__(self, "delta", check_delta(self.delta))
        if self.layout.dimension != self.ball.dimension:
            raise ValueError(f"layout must have the ball's dimension, {self.ball.dimension}, got {self.layout.dimension}")

    @property
    def sigma(self) -> float:
        """Standard deviation of samples, in the vectors' units."""
        return self.ball.clip_norm / self.clip_ratio

    @property
    def bits_per_client(self) -> float:
        """Number of bits of a message with the seed, the indices, and the padding of the last byte."""
        return 8.0 * message_bytes(self.layout)

    def privacy(self) -> Privacy:
        """Return the local privacy of messages, for any two vectors and for any bits and groups."""
        return Privacy("local", (message_account(self.clip_ratio),))

    @property
    def bias_bound(self) -> float:
        """Largest norm of the bias: that of the longest vector in the group of fewest bits."""
        kept = resampled_moments(self.clip_ratio, 1 << min(self.layout.group_bits)).mean / self.clip_ratio
        return self.ball.clip_norm * max(0.0, 1 - kept)

    @property
    def variance_bound(self) -> float:
        """Upper bound on `variance`, ``dimension sigma**2 + clip_norm**2``.

        For a group's vector of length m standard deviations, Stein's lemma gives in its direction a squared error of 1 + m**2 (2 E[sum of
        w_k**3] - E[sum of w_k**2]) variances, with w the weights, which sum to 1: at most 1 + m**2.
        """
        return self.layout.dimension * self.sigma**2 + self.ball.clip_norm**2

    def encode(self, vectors: ArrayLike, random_words: WordsLike) -> NDArray[np.uint8]:
        """Return packed messages with a seed and indices, shape (clients, message_bytes).

        `DpRecMessage.to_bytes` packs them. Weights and Gumbel noise are floating-point numbers: indices have the stated probabilities to
        within about 1e-6 of each. Shared samples come from Philox, which the seed, public in the paper, makes public.
        """
        random_words = word_source(random_words)
        clipped = self.ball.clip(vectors)
        messages = np.empty((len(clipped), message_bytes(self.layout)), dtype=np.uint8)
        for row, vector in zip(messages, clipped, strict=True):
            seed = int(random_words(1)[0])
            message = DpRecMessage(seed, encode_groups(vector, self.layout, seed, random_words, self.sigma))
            row[:] = np.frombuffer(message.to_bytes(self.layout), dtype=np.uint8)
        return messages

    def aggregate(self, messages: NDArray[np.uint8]) -> FloatArray:
        """Return the sum of decoded messages, shape (dimension,), from one sample for each group."""
        total = np.zeros(self.ball.dimension)
        for packed in messages:
            message = DpRecMessage.from_bytes(packed.tobytes(), self.layout)
            total += decode_groups(message.indices, self.layout, message.seed, self.sigma)
        return total

    def decode(self, aggregate: FloatArray, clients: int) -> FloatArray:
        """Return the mean of decoded messages."""
        return aggregate / check_integer("clients", clients, low=1, high=MOST_CLIENTS)

    def expected(self, vectors: ArrayLike) -> FloatArray:
        """Return the expectation of each decoded message over seeds and indices.

        The bias shortens each group of a vector.
        """
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
        """Return the variance of each decoded message, close to ``dimension * sigma**2``.

        Across the direction of a group's vector, a chosen sample is as good as any other, and adds sigma**2 per dimension.
        `resampled_moments` gives the variance along the direction.
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
        """Return bias and variance to within 1e-6 in units of sigma, quickly by interpolation.

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
            # Rounding may leave a clipped vector longer than the ball's radius by a last digit.
            shifts_in_range = np.minimum(shifts, self.clip_ratio)
            along = curves.bias(shifts_in_range)
            bias[:, part] = unit_directions(units[:, part], shifts) * along[:, None]
            variance += curves.squared_error(shifts_in_range) - along**2
        return MessageLaw(bias=bias * self.sigma, variance=variance * self.sigma**2)

    def message_score(self, first: NDArray[Any], second: NDArray[Any]) -> MessageScore:
        """Return the log-likelihood ratio of all groups' indices, given the message's seed.

        No score is stronger (Neyman and Pearson). The call makes all samples of a group again.
        """
        # The import is local because only audits need it, and it takes longer than the import of this module.
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
        # Rounding may leave a clipped vector longer than the ball's radius by a last digit.
        return min(self.clip_ratio, float(np.linalg.norm(group / self.sigma)))


def _projections(seeds: list[int], targets: FloatArray, samples: int, group: int) -> FloatArray:
    """Return inner products of samples with targets, shape (seeds, samples, targets)."""
    dimension = targets.shape[1]
    rows = max(1, NUMBERS_PER_CHUNK // (len(seeds) * dimension))
    parts = ((first, min(rows, samples - first)) for first in range(0, samples, rows))
    drawn = (vectors_of_seeds(seeds, dimension, count, [first] * len(seeds), group) for first, count in parts)
    # Products are in float32, like the samples: errors are as in `log_importance_weights`.
    return np.concatenate([vectors @ targets.T.astype(np.float32) for vectors in drawn], axis=1).astype(float)


@dataclass(frozen=True)
class DpRecTraining:
    """The clients of a training with DP-REC, and their messages.

    Attributes
    ----------
    clip_ratio : float
        Clip norm of a client's update over the standard deviation of the prior, from 1e-6 to 100.
    population : int
        Number of clients.
    clients_per_round : int
        Number of draws of a round, with replacement, from 1 to 10**6.
    index_bits : int
        Number of bits of all groups' indices together, from 1 to 10**6; a message also holds the seed.

    Raises
    ------
    ValueError
        If a field is out of its range.
    """

    clip_ratio: float
    population: int
    clients_per_round: int
    index_bits: int

    def __post_init__(self) -> None:
        """Check the fields."""
        ratio = check_real("clip_ratio", self.clip_ratio, low=SMALLEST_CLIP_RATIO, high=LARGEST_CLIP_RATIO)
        object.__setattr__(self, "clip_ratio", ratio)
        check_integer("population", self.population, low=1, high=LARGEST_POPULATION)
        check_integer("clients_per_round", self.clients_per_round, low=1, high=MOST_CLIENTS_PER_ROUND)
        check_integer("index_bits", self.index_bits, low=1, high=MOST_BITS)

    def privacy(self) -> Privacy:
        """Return the privacy against an observer of all rounds' models.

        The server must keep the choice of clients secret.

        Under add-or-remove-one adjacency, a drawn client codes its own update, or sends a sample of the prior. ``"published"`` is the
        theorem as printed, whose proof adds dependent losses; ``"conservative"`` uses Hölder's inequality there; ``"any-bits"`` follows
        from the normalised weights, and holds for any number of bits and any groups. All three assume that the messages of the other
        clients hide a client as well as samples of the prior would; updates on the other side of the prior hide it less.

        Under replace-one adjacency the accounts need no assumptions. ``"any-clients"`` amplifies the privacy of a message between any two
        updates by the secret choice of one client in every draw, for any updates of the other clients. ``"message"`` is the privacy of the
        client's own messages, one for every draw. A client that sends a sample of the prior has the law of a client with update zero: both
        accounts hold for it, too.
        """
        own = message_account(self.clip_ratio)

        def of_all_draws(delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
            bound = own.bound(delta, self._draws(rounds), None)
            return replace(bound, details={**bound.details, "trust_model": "local"})

        theorem = (
            Account(
                variant,
                "add-or-remove-one",
                _drawn_already(self._published(variant)),
                proven=variant != "published",
                assumes=THEOREM_ASSUMPTION,
            )
            for variant in VARIANTS
        )
        derived = Account(ANY_BITS, "add-or-remove-one", _drawn_already(self._any_bits), assumes=ASSUMPTION)
        unconditional = Account(ANY_CLIENTS, "replace-one", _drawn_already(self._any_clients))
        messages = replace(own, bound=_drawn_already(of_all_draws), curve=self._round_curve)
        return Privacy("central", (*theorem, derived, unconditional, messages))

    def _round_curve(self, sampling: Sampling | None) -> RenyiCurve:
        """Return the divergences of a round in which every draw is the same client."""
        _check_drawn(sampling)
        return _message_curve(self.clip_ratio).composed(self.clients_per_round)

    def _draws(self, rounds: int) -> int:
        """Return the number of draws of all rounds, which accounts compose."""
        if rounds * self.clients_per_round > MOST_ROUNDS:
            raise ValueError(
                f"rounds must be at most {MOST_ROUNDS // self.clients_per_round} for dp-rec with {self.clients_per_round} clients a round, "
                f"got {rounds}: accounts are for {MOST_ROUNDS:g} messages at most"
            )
        return rounds * self.clients_per_round

    def _published(self, variant: str) -> Bound:
        def bound(delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
            draws = self._draws(rounds)
            least = dp_rec_epsilon(self.clip_ratio, self.population, draws, self.index_bits, delta, variant)
            fewest, lost = fewest_dp_rec_bits(self.clip_ratio, draws, delta), lost_delta(self.clip_ratio, draws, self.index_bits)
            details = {"minimum_bits": fewest, "lost_delta": lost}
            if least.order is None:
                reason = (
                    f"index_bits must be at least {fewest} for clip ratio {self.clip_ratio:g} and {draws} draws at delta = {delta:g}, got "
                    f"{self.index_bits}: coding with so few samples costs {lost:.3g} of delta"
                )
                return EpsilonBound(math.inf, reason, details=details)
            return EpsilonBound(least.epsilon, order=least.order, order_at_edge=least.at_edge, details=details)

        return bound

    def _any_bits(self, delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
        least = index_epsilon(self.clip_ratio, self.population, self._draws(rounds), delta)
        return EpsilonBound(least.epsilon, order=least.order, order_at_edge=least.at_edge, details={"minimum_bits": 1, "lost_delta": 0.0})

    def _any_clients(self, delta: float, rounds: int, _: Sampling | None) -> EpsilonBound:
        """Return the least of three bounds.

        The bounds are by Rényi divergences of sampled draws (Wang, Balle, Kasiviswanathan 2019), by (epsilon, delta) amplification, and by
        the number of the client's own draws.
        """
        draws = self._draws(rounds)
        sampled = fixed_size_sampled_curve(_message_curve(self.clip_ratio), max(SMALLEST_PROBABILITY, 1 / self.population))
        by_moments = sampled.composed(draws).epsilon(delta)
        drawn = FixedSizeSampling(self.population, 1)
        own = message_account(self.clip_ratio)
        by_draws = amplified_rounds(lambda delta: own.bound(delta, 1, None), delta, draws, drawn, "replace-one")
        few = likely_participations(1 / self.population, draws, delta / 2)
        return min(
            EpsilonBound(by_draws.epsilon),
            EpsilonBound(by_moments.epsilon, order=by_moments.order, order_at_edge=by_moments.at_edge),
            participation_bound(own.bound, delta / 2, few),
            key=lambda bound: bound.epsilon,
        )


def _drawn_already(bound: Bound) -> Bound:
    """Return a bound that needs a positive delta and refuses a sampling."""

    def checked(delta: float, rounds: int, sampling: Sampling | None) -> EpsilonBound:
        _check_drawn(sampling)
        return needing_delta(bound)(delta, rounds, None)

    return checked


def _check_drawn(sampling: Sampling | None) -> None:
    if sampling is not None:
        raise ValueError(f"sampling must be left out for dp-rec, whose clients are drawn with replacement, got {str(sampling)!r}")


def accounted_dp_rec(training: DpRecTraining, adjacency: str | None = None) -> AccountSubject:
    """Return a training as a subject of accounts, for replace-one adjacency by default.

    The paper's adjacency is add-or-remove-one.
    """
    return AccountSubject(
        mechanism=f"DP-REC, clip ratio {training.clip_ratio:g}, {training.index_bits} bits of indices",
        privacy=training.privacy(),
        adjacency=usual_adjacency(adjacency, None, DP_REC_ADJACENCIES),
        bits_per_client=float(8 * math.ceil((SEED_BITS + training.index_bits) / 8)),
        details={
            "clip_ratio": training.clip_ratio,
            "population": training.population,
            "clients_per_round": training.clients_per_round,
            "index_bits": training.index_bits,
            "drawn": f"{training.clients_per_round} of {training.population} clients drawn with replacement",
        },
    )


def dp_rec_account(
    clip_ratio: float,
    population: int,
    clients_per_round: int,
    rounds: int,
    index_bits: int,
    delta: float,
    adjacency: str | None = None,
) -> AccountReport:
    """Return the privacy of a client of DP-REC after all rounds, by all accounts.

    Parameters
    ----------
    clip_ratio, population, clients_per_round, index_bits
        Clip ratio, number of clients, clients of a round and bits of a message, as in `DpRecTraining`.
    rounds : int
        Number of rounds.
    delta : float
        Failure probability of all rounds together, above 0 and below 1.
    adjacency : str or None
        ``"replace-one"``, the default; or ``"add-or-remove-one"``, the paper's, for which every account needs an assumption.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    The example is MNIST in the paper, which states 3; the proven epsilon holds for any updates of the other clients.

    >>> report = dp_rec_account(0.545, 100, 10, 1000, 42, 100**-1.1)
    >>> published = report.privacy.account("published")
    >>> round(published.bound.epsilon, 3), published.bound.order, published.bound.details["minimum_bits"], round(report.epsilon, 3)
    (3.016, 5, 25, 12.507)
    """
    return accounted_dp_rec(DpRecTraining(clip_ratio, population, clients_per_round, index_bits), adjacency).report(delta, rounds)


def message_bytes(layout: GroupLayout) -> int:
    """Return the length of a message in bytes: seed and groups' bits, padded to whole bytes.

    Examples
    --------
    >>> message_bytes(GroupLayout(sizes=(2, 1), group_bits=(7, 4)))
    10
    """
    return -(-(SEED_BITS + layout.total_bits) // 8)


@dataclass(frozen=True)
class DpRecMessage:
    """A client's message: a seed from 0 to 2**64 - 1, and an index for each group.

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
        """Return the message as bytes: the seed, then the indices, then zero bits to a whole byte.

        The most significant bit is first.
        """
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

        The method raises ``ValueError`` if the length is wrong or a bit is set after the last index. It cannot detect other damage, as
        every seed and every index is valid.
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
