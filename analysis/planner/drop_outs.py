"""Epsilon and error of a planned mechanism when clients drop out."""

from dataclasses import dataclass, replace

from ...design.contracts.guarantee import JOINT_MODELS
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.task import Task
from ...errors import InfeasibleError
from .population import PopulationSample
from .prediction import predict_error


@dataclass(frozen=True)
class DropOuts:
    """Numbers of a mechanism with fewer clients; None where they do not apply.

    Attributes
    ----------
    survivors : int or None
        Smallest number of clients with whose messages the stated epsilon holds; None if it does not depend on the clients.
    epsilon_one_fewer, epsilon_half : float or None
        Epsilon of all rounds if one client fewer than `survivors` remains, and if half of `survivors`, rounded up, remain.
    predicted_error : float or None
        Expected error of one round with the task's smallest number of clients; None if the task plans no drop-outs, or decoding is not
        linear.
    """

    survivors: int | None = None
    epsilon_one_fewer: float | None = None
    epsilon_half: float | None = None
    predicted_error: float | None = None


def drop_outs(mechanism: Mechanism, trust_model: str, task: Task, sample: PopulationSample) -> DropOuts:
    """Return the numbers of a mechanism for a task's drop-outs, and beyond them."""
    error = None
    if task.dropout and mechanism.decodes_linearly:
        # Clients of a joint mechanism send the same messages; a trusted server adds the same noise.
        remaining = mechanism if trust_model in JOINT_MODELS else mechanism.for_clients(task.survivors)
        error = predict_error(remaining, replace(sample, clients=task.survivors)).of_population
    if trust_model not in JOINT_MODELS:
        return DropOuts(predicted_error=error)
    survivors = mechanism.fewest_clients
    half = epsilon_of_clients(mechanism, task, -(-survivors // 2))
    return DropOuts(survivors, epsilon_of_clients(mechanism, task, survivors - 1), half, error)


def epsilon_of_clients(mechanism: Mechanism, task: Task, clients: int) -> float | None:
    """Return epsilon of all rounds if a given number of clients remain; None for no clients, or without an account."""
    if clients < 1:
        return None
    try:
        return mechanism.privacy_of(clients).epsilon(task.delta, task.adjacency, task.rounds, task.sampling)
    except InfeasibleError:
        # Messages of some mechanisms of other packages depend on the number of clients.
        return None
