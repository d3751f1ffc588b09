"""An audit of any mechanism, which tests the guarantee on a server's view of two neighbours."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arguments import check_choice
from ...arrays import FloatArray
from ...design.contracts.domains import Interval
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import Scalar
from ...design.transforms.dithering import finite_values
from ...progress import OnStep, notebook_progress
from ..simulation.populations import check_drawable
from .privacy_audit import AuditResult, Score, audit_score
from .secure_sum_audit import secure_sum_score

# Largest number of coordinates encoded per batch, over all clients.
BLOCK = 2**20
OTHERS = ("zero", "same")


@dataclass(frozen=True)
class MechanismAudit:
    """A mechanism's claim, and the result of an audit.

    Attributes
    ----------
    claim : Guarantee
        The claimed guarantee, at the audit's delta.
    measured : AuditResult
        The lower bound on epsilon.
    """

    claim: Guarantee
    measured: AuditResult

    @property
    def refuted(self) -> bool:
        """Whether the audit refutes the claim, with its confidence; False is no proof of the claim."""
        return self.measured.refutes(self.claim.epsilon)

    def document(self) -> dict[str, Scalar]:
        """Return the audit as a JSON document."""
        claim = self.claim
        head: dict[str, Scalar] = {
            "claimed_epsilon": claim.epsilon,
            "adjacency": claim.adjacency,
            "trust_model": claim.trust_model,
            "refuted": self.refuted,
        }
        return head | asdict(self.measured)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two neighbouring inputs of a client, or of all clients of a secure sum."""

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
    on_step: OnStep = notebook_progress,
) -> MechanismAudit:
    """Bound a mechanism's epsilon from below by a server's view of two neighbours.

    The server sees a single client's message in the local trust model, the histogram of all letters after a shuffle, the sum of all
    clients' messages modulo M in a secure sum, and a trusted server the noisy sum that it releases. Except for the local trust model, build
    the mechanism for few clients, because each repetition encodes all of them.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    repetitions : int
        Number of runs on each of two neighbours, from 100 to 10**8.
    rng : numpy.random.Generator
        Source of the mechanism's randomness.
    delta : float or None
        Delta of the audit and of the tested guarantee; None for the delta of the mechanism's guarantee. At a small delta, informative
        events are too rare for few repetitions: start with ten over delta repetitions.
    others, direction
        Choice of the neighbours, as in `neighbours`.
    confidence : float
        Probability with which the bound holds, from 0.5 to 1 - 1e-12.
    on_step : callable
        Called as ``on_step(runs, all_runs, text)`` after each batch of runs.

    Examples
    --------
    Two clients, one coordinate, and a claim that would be wrong for half the noise:

    >>> from quietbits.design.secure_sum.distributed_discrete_gaussian import DistributedDiscreteGaussianMechanism
    >>> ball = NormBall(dimension=1, norm=2.0, clip_norm=8.0)
    >>> mechanism = DistributedDiscreteGaussianMechanism(ball, clients=2, bits=10, granularity=1.0, local_sigma=6.0, delta=1e-2)
    >>> result = audit(mechanism, 100_000, np.random.default_rng(0))
    >>> 0.5 * result.claim.epsilon < result.measured.epsilon_lower_bound, result.refuted
    (True, False)
    """
    pair = neighbours(mechanism, others=others, direction=direction)
    claim = mechanism.guarantee if delta is None else mechanism.privacy().guarantee(delta, mechanism.adjacency)
    runs = 0

    def on_runs(count: int) -> None:
        nonlocal runs
        runs += count
        on_step(runs, 2 * repetitions, "running the mechanism on neighbours")

    score = output_score(mechanism, pair.first, pair.second, on_runs)
    return MechanismAudit(claim, audit_score(score, pair.first, pair.second, claim.delta, repetitions, rng, confidence=confidence))


def neighbours(mechanism: Mechanism, *, others: str = "zero", direction: ArrayLike | None = None) -> Neighbours:
    """Return two inputs that differ in a client, as far as the guarantee's adjacency allows.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    others : str
        Vectors of the other clients of a sum: ``"zero"``, or ``"same"`` as the first client's vector in the first population. For shuffled
        letters and sums of numbers, zero stands for the middle of the domain. If clients add noise, the choice hardly matters, and zero is
        rounded without randomness. If the message is drawn at random around the vector, as in the Poisson-binomial mechanism, vectors at
        the edge of the ball have the least noise.
    direction : array_like of shape (dimension,) or None
        Direction of the client's vector; None for the first coordinate, or for a corner of the L-infinity ball.

    Returns
    -------
    Neighbours
        Two inputs. In the first input the client holds a vector of norm clip_norm, or the upper end of the interval. In the second input it
        holds the opposite vector or end for replace-one adjacency, and zero or the middle for add-or-remove-one. Items are the first and
        the last item, or for add-or-remove-one the first item and one client fewer.
    """
    check_choice("others", others, OTHERS)
    domain, clients = mechanism.domain, mechanism.joint_clients
    check_drawable(domain)
    replaces = mechanism.guarantee.adjacency == "replace-one"
    same = others == "same"
    if clients is None and same:
        raise ValueError(f"others must be zero where a message is private by itself, got {others!r}: no other clients take part")
    if isinstance(domain, NormBall):
        edge = _edge(domain, direction)
        absent = np.zeros_like(edge)
        return _neighbours(clients, edge, -edge if replaces else absent, edge if same else absent)
    _no_direction(direction)
    if isinstance(domain, Interval):
        middle = np.array(domain.middle)
        return _neighbours(
            clients, np.array(domain.high), np.array(domain.low) if replaces else middle, np.array(domain.high) if same else middle
        )
    first, last = np.array(0), np.array(domain.size - 1)
    if clients is None or not (isinstance(mechanism, SecureSumMechanism) or mechanism.guarantee.trust_model == "central"):
        if not replaces:
            raise ValueError(f"adjacency must be replace-one for items whose messages are seen, got {mechanism.guarantee.adjacency!r}")
        return _neighbours(clients, first, last, first if same else np.array(domain.size // 2))
    # No item represents an absent input, so the other clients hold the first item in both populations.
    held = np.zeros(clients, dtype=np.int64)
    return Neighbours(held, np.append(held[1:], last) if replaces else held[1:])


def _neighbours(clients: int | None, first: NDArray[Any], second: NDArray[Any], background: NDArray[Any]) -> Neighbours:
    """Return neighbouring inputs; all clients of a round except the first hold the background."""
    if clients is None:
        return Neighbours(first, second)
    others = [background] * (clients - 1)
    return Neighbours(np.stack([first, *others]), np.stack([second, *others]))


def output_score(mechanism: Mechanism, first: NDArray[Any], second: NDArray[Any], on_runs: Callable[[int], None]) -> Score:
    """Return a score of a server's view: large for the first input, small for the second.

    Every function of the output makes a valid audit. A mechanism defines a score of its messages (`Mechanism.message_score`), and a secure
    sum the weights of its sum (`SecureSumMechanism.sum_weights`). `on_runs` is called with the number of runs of each batch.
    """
    if isinstance(mechanism, SecureSumMechanism):
        return secure_sum_score(mechanism, first, second, on_runs)
    clients, score = mechanism.joint_clients, mechanism.message_score(first, second)

    def scores(value: ArrayLike, count: int, rng: np.random.Generator) -> FloatArray:
        held = np.asarray(value) if clients else np.asarray(value)[None]
        # An item is a single number, whatever the length of its message.
        size = max(1, held.size, len(held) * mechanism.bits_per_client / 64)
        at_once = max(1, int(BLOCK // size))
        parts = []
        for start in range(0, count, at_once):
            rounds = min(at_once, count - start)
            messages = mechanism.encode(np.tile(held, (rounds, *[1] * (held.ndim - 1))), rng)
            parts.append(score(messages.reshape(rounds, len(held), *messages.shape[1:]) if clients else messages))
            on_runs(rounds)
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
