"""Errors that a mechanism states for a task, beside a plan's references."""

from dataclasses import asdict, dataclass

from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.privacy import Scalar
from ...design.contracts.registry import Entry
from ...design.contracts.task import LARGEST_TARGET, Task
from ..catalogue.central_reference import central_squared_error
from .bound import ProvenBound, proven_bound


@dataclass(frozen=True)
class StatedError:
    """Squared L2 errors of the mean of one round, in squared units of the inputs.

    Attributes
    ----------
    bits_per_client : float
        Number of bits of a message.
    worst_squared_error : float
        Largest expected error, with bias, over the domain, or over the entry's populations.
    central_squared_error : float or None
        Least error of a trusted server's noise, for the task's budget; None where no such noise exists.
    lower_bound : float or None
        Largest proven lower bound on the worst error; None if no bound applies to the mechanism.
    bound_reason : str or None
        Reason for the absence of a bound.
    """

    bits_per_client: float
    worst_squared_error: float
    central_squared_error: float | None
    lower_bound: float | None
    bound_reason: str | None

    def document(self) -> dict[str, Scalar]:
        """Return the fields as a JSON document."""
        return asdict(self)


def stated_error(entry: Entry, task: Task, mechanism: Mechanism) -> StatedError:
    """Return the stated errors of a mechanism built for a task, with references and lower bound."""
    central, bound = None, ProvenBound(None, "no proven bound: none is known for this guarantee")
    if entry.private and mechanism.guarantee.epsilon <= LARGEST_TARGET:
        asked = Guarantee(task.epsilon, task.adjacency, "central", delta=task.delta)
        central = None if task.sampling is not None else central_squared_error(task.domain, task.clients, asked, task.rounds)
        bound = proven_bound(entry, task, mechanism, central)
    worst = mechanism.error().of_mean(task.clients)
    return StatedError(mechanism.bits_per_client, worst, central, bound.value, bound.reason)
