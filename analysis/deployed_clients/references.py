"""Reference errors beside a deployment's estimate."""

from dataclasses import dataclass

from ...design.contracts.task import Task
from ...design.deployment.deployment import Deployment
from ..catalogue.registry import REGISTRY
from ..planner.stated_error import stated_error


@dataclass(frozen=True)
class ReferenceErrors:
    """Squared L2 errors of the mean of one round for the worst inputs, in squared units of the inputs.

    Attributes
    ----------
    worst : float
        Largest expected squared error of the mechanism.
    central : float or None
        Least error of a trusted server's noise with the clients' budget; None where no such noise is known.
    lower_bound : float or None
        Proven lower bound on the worst error of all mechanisms with the clients' budget; None if none applies.
    """

    worst: float
    central: float | None
    lower_bound: float | None


def reference_errors(deployment: Deployment, clients: int) -> ReferenceErrors:
    """Return the mechanism's worst error for a number of clients, with references for the same budget.

    Examples
    --------
    >>> from quietbits.analysis.deployed_clients.deploy import deploy
    >>> errors = reference_errors(deploy("cldp", epsilon=1.0), clients=10_000)
    >>> errors.lower_bound <= errors.worst
    True
    """
    mechanism = deployment.mechanism if deployment.mechanism.joint_clients is None else deployment.mechanism.for_clients(clients)
    worst = mechanism.error().of_mean(clients)
    entry = REGISTRY.get(deployment.mechanism_name)
    if entry is None:
        return ReferenceErrors(worst, None, None)
    try:
        task = Task(mechanism.domain, clients, deployment.epsilon, deployment.delta, mechanism.adjacency, deployment.rounds)
    except ValueError:
        # The task's range of epsilon is narrower than a deployment's.
        return ReferenceErrors(worst, None, None)
    stated = stated_error(entry, task, mechanism)
    return ReferenceErrors(worst, stated.central_squared_error, stated.lower_bound)
