"""References of a plan: answering zero, and the registry's mechanisms of a trusted server."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.task import Task
from ..catalogue.central_reference import CentralReference, central_references
from .population import PopulationSample, input_scale

ANSWER_ZERO = "answer-zero"


@dataclass(frozen=True)
class Reference:
    """An estimate that others are compared with; errors are squared L2 errors.

    Attributes
    ----------
    name, title : str
        Name for programs, and title in words.
    trust_model : str or None
        Trust model of the guarantee; None if clients send nothing.
    predicted_error : float or None
        Expected error of one round, for the population; None without such an estimate.
    predicted_error_of_rounds : float or None
        Expected error of the average over all rounds; an unbiased estimate's error falls with the number of rounds.
    worst_error : float or None
        Largest expected error over the domain.
    error_per_coordinate, relative_error : float or None
        As for `PlannedMechanism`.
    bits_per_client : float or None
        Bits of a message; None where there is no such estimate.
    reason : str or None
        Reason for the absence of such an estimate.
    """

    name: str
    title: str
    trust_model: str | None
    predicted_error: float | None
    predicted_error_of_rounds: float | None
    worst_error: float | None
    error_per_coordinate: float | None
    relative_error: float | None
    bits_per_client: float | None
    reason: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the reference as a JSON document."""
        return asdict(self)


def references(task: Task, sample: PopulationSample) -> tuple[Reference, ...]:
    """Return the answer zero, and the mechanisms of a trusted server, the least error first.

    The mechanisms may send messages of any length.
    """
    zero = sample.zero_error
    worst = _worst_zero(task.domain)
    answered = Reference(ANSWER_ZERO, _zero_title(task.domain), None, zero, zero, worst, *root_errors(zero, task.domain), 0.0)
    asked = Guarantee(task.epsilon, task.adjacency, "central", delta=task.delta)
    return answered, *(_central(task, reference) for reference in central_references(task.domain, task.clients, asked, task.rounds))


def least_central_error(every: Iterable[Reference]) -> float | None:
    """Return the least predicted error of the mechanisms of a trusted server."""
    return min((reference.predicted_error for reference in every if reference.trust_model and reference.predicted_error), default=None)


def _central(task: Task, reference: CentralReference) -> Reference:
    if reference.mechanism is None or reference.error is None or task.sampling is not None:
        reason = reference.reason if task.sampling is None else "clients must not be sampled for this reference"
        return Reference(reference.name, reference.title, "central", None, None, None, None, None, None, reason)
    error = reference.error
    shown = root_errors(error, task.domain)
    bits = reference.mechanism.bits_per_client
    return Reference(reference.name, reference.title, "central", error, error / task.rounds, error, *shown, bits)


def root_errors(squared_error: float, domain: Domain) -> tuple[float, float]:
    """Return the root mean squared error per coordinate, and the relative error.

    The relative error is the root of the squared error of all coordinates over `input_scale`.
    """
    return math.sqrt(squared_error / domain.dimension), math.sqrt(squared_error) / input_scale(domain)


def _zero_title(domain: Domain) -> str:
    match domain:
        case Interval():
            return "answer the middle of the interval: no messages"
        case Categories():
            return "answer that all items are equally frequent: no messages"
        case _:
            return "answer zero: no messages"


def _worst_zero(domain: Domain) -> float:
    return 1 - 1 / domain.size if isinstance(domain, Categories) else input_scale(domain) ** 2
