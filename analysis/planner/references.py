"""References of a plan: the answer zero, and a trusted server's Gaussian noise."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.task import Task
from ..simulation.mean import central_squared_error
from .population import PopulationSample, input_scale

ANSWER_ZERO, CENTRAL_GAUSSIAN = "answer-zero", "central-gaussian"


@dataclass(frozen=True)
class Reference:
    """An estimate outside the registry; errors are squared L2 errors.

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
        Relative errors, as in `PlannedMechanism`.
    bits_per_client : float
        Number of bits of a message; an uncompressed coordinate has 64.
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
    bits_per_client: float
    reason: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the reference as a JSON document."""
        return asdict(self)


def references(task: Task, sample: PopulationSample) -> tuple[Reference, Reference]:
    """Return the answer zero and the central Gaussian."""
    zero = sample.zero_error
    bits = 64.0 * task.dimension
    asked = Guarantee(task.epsilon, task.adjacency, "central", delta=task.delta)
    central = None if task.sampling is not None else central_squared_error(task.domain, task.clients, asked, task.rounds)
    reason = None
    if central is None:
        reason = "delta must be above 0, clients not sampled, and epsilon from 0.001 to 100, for this Gaussian noise"
    averaged = None if central is None else central / task.rounds
    worst = _worst_zero(task.domain)
    return (
        Reference(ANSWER_ZERO, _zero_title(task.domain), None, zero, zero, worst, *root_errors(zero, task.domain), 0.0),
        Reference(
            CENTRAL_GAUSSIAN,
            "Gaussian noise that a trusted server adds",
            "central",
            central,
            averaged,
            central,
            None if central is None else root_errors(central, task.domain)[0],
            None if central is None else root_errors(central, task.domain)[1],
            bits,
            reason,
        ),
    )


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
