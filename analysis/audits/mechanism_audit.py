"""An audit of any mechanism: its messages, or the sum of them, for two neighbours, against what it promises."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_choice
from ...arrays import FloatArray
from ...design.central.central_sketch import CentralSketchMechanism
from ...design.contracts.domains import Categories, Interval
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import FrequencyMechanism, Mechanism, SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import Scalar
from ...design.frequencies.exact_histogram import ExactHistogramMechanism
from ...design.frequencies.sparse_frequencies import SparseFrequencies
from ...design.frequencies.support import SupportMechanism
from ...design.local.laplace import LaplaceMechanism
from ...design.local.uncompressed_vector import UncompressedVectorMechanism
from ...design.relative_entropy.dp_rec import DpRecMechanism
from ...design.secure_sum.sparse_sum import SparseSum
from ...design.shuffled.shuffled_mechanism import ShuffledMechanism
from ...design.tables.table_mean import TableMeanMechanism
from ...design.transforms.dithering import finite_values
from ..simulation.input_populations import check_drawable
from .dp_rec_audit import dp_rec_score
from .privacy_audit import AuditResult, Score, audit_score
from .secure_sum_audit import exact_sum_score, secure_sum_score
from .shuffled_audit import shuffled_population, shuffled_score

# Numbers that are encoded at a time, of all clients and coordinates together.
BLOCK = 2**20
OTHERS = ("zero", "same")


@dataclass(frozen=True)
class MechanismAudit:
    """What a mechanism promises, and what an audit found.

    Attributes
    ----------
    claim : Guarantee
        The promise, at the audit's delta.
    found : AuditResult
        The bound from below.
    """

    claim: Guarantee
    found: AuditResult

    @property
    def refuted(self) -> bool:
        """Whether the promise is wrong, with the audit's confidence. False does not say that it is right."""
        return self.found.refutes(self.claim.epsilon)

    def document(self) -> dict[str, Scalar]:
        """Return the audit as JSON holds it."""
        claim = self.claim
        head: dict[str, Scalar] = {
            "claimed_epsilon": claim.epsilon,
            "adjacency": claim.adjacency,
            "trust_model": claim.trust_model,
            "refuted": self.refuted,
        }
        return head | asdict(self.found)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two neighbouring inputs: of one client, or of all clients of a secure sum."""

    first: NDArray[Any]
    second: NDArray[Any]


def audit(
    mechanism: Mechanism,
    repetitions: int,
    rng: np.random.Generator,
    *,
    delta: float | None = None,
    others: str = "zero",
    direction: ArrayLike | None = None,
    confidence: float = 0.999,
) -> MechanismAudit:
    """Bound a mechanism's epsilon from below, for one pair of neighbours, by what a server sees.

    That is one client's message in the local trust model, the histogram of all letters where they are shuffled, the sum of all clients'
    messages modulo M in a secure sum, and the noisy sum that a trusted server releases; for all but the first the mechanism should be made
    for few clients, since each repetition encodes all of them.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    repetitions : int
        How often it is run on each of two neighbours, from 100 to 10**8.
    rng : numpy.random.Generator
        Source of the mechanism's randomness.
    delta : float or None
        Delta of the audit, and of the promise; None for that of the mechanism's guarantee. Events that tell much at a small delta are too
        rare to be counted in few repetitions: ten over delta of them are a beginning.
    others, direction
        As in `neighbours`.
    confidence : float
        Probability with which the bound holds, from 0.5 to 1 - 1e-12.

    Examples
    --------
    Two clients, one coordinate, and a claim that would be wrong for half the noise:

    >>> from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
    >>> ball = NormBall(dimension=1, norm=2.0, clip_norm=8.0)
    >>> mechanism = DistributedDiscreteGaussianMechanism(ball, clients=2, bits=10, granularity=1.0, local_sigma=6.0, delta=1e-2)
    >>> result = audit(mechanism, 100_000, np.random.default_rng(0))
    >>> 0.5 * result.claim.epsilon < result.found.epsilon_lower_bound, result.refuted
    (True, False)
    """
    pair = neighbours(mechanism, others=others, direction=direction)
    claim = mechanism.guarantee if delta is None else mechanism.privacy().guarantee(delta, mechanism.adjacency)
    score = output_score(mechanism, pair.first, pair.second)
    return MechanismAudit(claim, audit_score(score, pair.first, pair.second, claim.delta, repetitions, rng, confidence=confidence))


def neighbours(mechanism: Mechanism, *, others: str = "zero", direction: ArrayLike | None = None) -> Neighbours:
    """Return two inputs that differ in one client, as far as the adjacency of the mechanism's guarantee lets them.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    others : str
        For sums, what the other clients' vectors are: ``"zero"``, or ``"same"`` as the first client's in the first population. Where
        letters are shuffled, or numbers are added up, zero stands for the middle of the domain.
        Where clients add noise of their own it hardly matters, and zero is rounded without randomness; where the message itself is drawn at
        random around the vector, as in the Poisson-binomial mechanism, vectors at the edge of the ball leave the least noise.
    direction : array_like of shape (dimension,) or None
        Where the client's vector points to; None for the first coordinate, or for a corner of the L-infinity ball.

    Returns
    -------
    Neighbours
        In the first input the client holds a vector of norm clip_norm, or the upper end of the interval; in the second one the opposite of
        that, for replace-one adjacency, or zero, the middle, for add-or-remove-one. Of items, the first and the last, or none: one client
        fewer.
    """
    check_choice("others", others, OTHERS)
    domain = mechanism.domain
    check_drawable(domain)
    if isinstance(mechanism, SecureSumMechanism | CentralSketchMechanism) and isinstance(domain, NormBall):
        edge = _edge(domain, direction)
        first = np.zeros((mechanism.clients, domain.dimension))
        first[0 if others == "zero" else slice(None)] = edge
        second = first.copy()
        second[0] = -edge if mechanism.guarantee.adjacency == "replace-one" else 0.0
        return Neighbours(first, second)
    if isinstance(mechanism, SecureSumMechanism) and isinstance(domain, Interval):
        _no_direction(direction)
        numbers = np.full(mechanism.clients, domain.high if others == "same" else domain.middle)
        numbers[0] = domain.high
        replaced = numbers.copy()
        replaced[0] = domain.low if mechanism.guarantee.adjacency == "replace-one" else domain.middle
        return Neighbours(numbers, replaced)
    if isinstance(mechanism, SecureSumMechanism) and isinstance(domain, Categories):
        _no_direction(direction)
        # No item stands for holding nothing: the others hold the first one either way.
        held: NDArray[Any] = np.zeros(mechanism.clients, dtype=np.int64)
        moved = np.append(held[1:], domain.size - 1)
        return Neighbours(held, moved if mechanism.guarantee.adjacency == "replace-one" else held[1:])
    if isinstance(mechanism, ShuffledMechanism):
        _no_direction(direction)
        return Neighbours(*(shuffled_population(mechanism, first=first, others=others) for first in (True, False)))
    if others != "zero":
        raise ValueError(f"others must be zero where a message is private by itself, got {others!r}: no other clients take part")
    if not isinstance(domain, NormBall):
        _no_direction(direction)
    if isinstance(domain, Categories):
        return Neighbours(np.array(0), np.array(domain.size - 1))
    if isinstance(domain, Interval):
        return Neighbours(np.array(domain.high), np.array(domain.low))
    edge = _edge(domain, direction)
    return Neighbours(edge, -edge if mechanism.guarantee.adjacency == "replace-one" else np.zeros_like(edge))


@singledispatch
def output_score(mechanism: Mechanism, first: FloatArray, second: FloatArray) -> Score:
    """Return a score of what a server sees: large where it speaks for the first input, small where it speaks for the second.

    Every function of the output makes a valid audit. This one, the projection of each decoded message on the difference of the two inputs,
    serves every local mechanism; those registered for others find more, or find it faster.
    """
    domain = mechanism.domain
    difference = np.atleast_1d(domain.total(first[None]) - domain.total(second[None]))

    def decoded(messages: NDArray[Any]) -> FloatArray:
        # Short messages repeat: each is decoded once.
        kinds, kind = np.unique(messages, axis=0, return_inverse=True)
        estimates = [mechanism.decode(mechanism.aggregate(kinds[place : place + 1]), 1) for place in range(len(kinds))]
        return np.asarray(np.reshape(estimates, (len(kinds), -1)) @ difference)[kind.ravel()]

    return _message_score(mechanism, decoded)


@output_score.register
def _(mechanism: SecureSumMechanism, first: FloatArray, second: FloatArray) -> Score:
    return secure_sum_score(mechanism, first, second)


@output_score.register
def _(mechanism: ExactHistogramMechanism, first: FloatArray, second: FloatArray) -> Score:
    # What is decoded is not linear in the sum.
    return exact_sum_score(mechanism, first, second)


@output_score.register
def _(mechanism: SparseFrequencies, first: FloatArray, second: FloatArray) -> Score:
    # Nor here; the same messages can be decoded so that it is.
    return secure_sum_score(mechanism.dense, first, second)


@output_score.register
def _(mechanism: SparseSum, first: FloatArray, second: FloatArray) -> Score:
    # What is decoded is not linear in the sum; the sum of sketches is, and says no less.
    score = secure_sum_score(mechanism.inner, mechanism.sketched(first), mechanism.sketched(second))
    return lambda vectors, count, rng: score(mechanism.sketched(vectors), count, rng)


@output_score.register
def _(mechanism: CentralSketchMechanism, first: FloatArray, second: FloatArray) -> Score:
    # The sum of messages on the sketch of what the neighbours' sums differ by.
    direction = mechanism.sketched(first.sum(axis=0, keepdims=True) - second.sum(axis=0, keepdims=True))[0]

    def rounds(messages: NDArray[Any]) -> FloatArray:
        return np.asarray(messages.reshape(-1, mechanism.clients, mechanism.sketch_dimension).sum(axis=1) @ direction)

    return lambda vectors, count, rng: rounds(mechanism.encode(np.tile(np.asarray(vectors, dtype=float), (count, 1)), rng))


@output_score.register
def _(mechanism: DpRecMechanism, first: FloatArray, second: FloatArray) -> Score:
    return _message_score(mechanism, dp_rec_score(mechanism, first, second))


@output_score.register
def _(mechanism: TableMeanMechanism, first: FloatArray, second: FloatArray) -> Score:
    # At an end of the interval nothing is dithered: a letter's probabilities are those of the table's first or last row.
    weights = np.array(mechanism.table.weights, dtype=float)
    rows = [weights[-1] if value == mechanism.interval[1] else weights[0] for value in (first, second)]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.nan_to_num(np.log(rows[0]) - np.log(rows[1]), nan=0.0)
    return _message_score(mechanism, lambda letters: log_ratios[letters])


@output_score.register
def _(mechanism: ShuffledMechanism, first: FloatArray, second: FloatArray) -> Score:
    return shuffled_score(mechanism, first, second)


@output_score.register
def _(mechanism: SupportMechanism, first: FloatArray, second: FloatArray) -> Score:
    # The logarithm of the likelihood ratio, in units of epsilon.
    items = int(first), int(second)
    return _message_score(mechanism, lambda messages: np.subtract(*(mechanism.supports(messages, item).astype(float) for item in items)))


@output_score.register(LaplaceMechanism)
@output_score.register(UncompressedVectorMechanism)
def _(mechanism: LaplaceMechanism | UncompressedVectorMechanism, first: FloatArray, second: FloatArray) -> Score:
    # Messages are estimates already, except for their unit.
    difference = np.atleast_1d(first - second)
    return _message_score(mechanism, lambda messages: np.asarray(messages.reshape(len(messages), -1) @ difference))


def _message_score(mechanism: Mechanism, score: Callable[[NDArray[Any]], FloatArray]) -> Score:
    """Return the score of a mechanism's output from that of messages: clients that all hold one input encode it, several at a time."""

    def scores(value: ArrayLike, count: int, rng: np.random.Generator) -> FloatArray:
        held = np.asarray(value)
        # An item is one number, whatever the length of its message.
        size = mechanism.bits_per_client / 64 if isinstance(mechanism, FrequencyMechanism) else held.size
        at_once = max(1, int(BLOCK // max(1, size)))
        parts = []
        for start in range(0, count, at_once):
            inputs = np.broadcast_to(held, (min(at_once, count - start), *held.shape))
            parts.append(score(mechanism.encode(inputs, rng)))
        return np.concatenate(parts)

    return scores


def _no_direction(direction: ArrayLike | None) -> None:
    if direction is not None:
        raise ValueError(f"direction must be left out for numbers and items, got {direction!r}")


def _edge(ball: NormBall, direction: ArrayLike | None) -> FloatArray:
    """Return the vector of norm clip_norm in a direction."""
    if direction is None:
        toward = np.ones(ball.dimension) if np.isinf(ball.norm) else np.eye(1, ball.dimension)[0]
    else:
        toward = finite_values("direction", direction)
    if toward.shape != (ball.dimension,):
        raise ValueError(f"direction must have the shape ({ball.dimension},), got {toward.shape}")
    norm = ball.norms(toward[None])[0]
    if norm == 0:
        raise ValueError("direction must not be zero: neighbours would be the same")
    return np.asarray(toward * (ball.clip_norm / norm))
