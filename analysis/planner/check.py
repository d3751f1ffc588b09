"""Checks of a plan by simulations of its recommended and its best-ranked mechanisms.

A check flags predicted errors that are off by over a tenth.
"""

import math

from ...arguments import check_integer
from ...design.contracts.mechanism import Mechanism
from ...progress import OnStep, notebook_progress, silent
from ..simulation.repeated_means import repeat_mean, summarise_means
from .population import draw_sample
from .prediction import predict_error
from .record import CheckedError, Plan, PlannedMechanism

FIRST = 3
# Largest relative error of a prediction that a check accepts.
OFF = 0.1
# Relative standard error of the average over rounds at which a simulation ends, and largest number of rounds.
PRECISION, MOST_REPETITIONS = 0.025, 5000
# Largest number of seconds for the clients' work; beyond it fewer clients report, but at least the second number.
MOST_SECONDS, FEWEST_CLIENTS = 20.0, 100


def check_plan(plan: Plan, *, first: int = FIRST, seed: int = 0, on_step: OnStep = notebook_progress) -> Plan:
    """Simulate a plan's best mechanisms, and return the plan with their errors.

    Recommended mechanisms and those of least predicted error are simulated.

    Parameters
    ----------
    plan : Plan
        The plan.
    first : int
        Number of simulated mechanisms of least predicted error, over all trust models.
    seed : int
        Root seed of inputs and noise.
    on_step : callable
        Called as ``on_step(done, total, name)`` after each mechanism.
    """
    least = plan.best[: check_integer("first", first, low=1, high=10**6)]
    chosen = [*least, *(planned for planned in plan.feasible if planned.recommended and planned not in least)]
    checks = dict[str, CheckedError]()
    for done, planned in enumerate(chosen, start=1):
        checks[planned.name] = check_mechanism(plan, planned, seed=seed)
        on_step(done, len(chosen), planned.name)
    return plan.checked(checks)


def check_mechanism(plan: Plan, planned: PlannedMechanism, *, seed: int = 0) -> CheckedError:
    """Simulate rounds of a planned mechanism, and compare the error with its prediction."""
    task = plan.task
    mechanism = planned.mechanism
    if mechanism is None:
        raise ValueError(f"planned must be a feasible mechanism of the plan, got {planned.name}")
    # The sum of d squared normal errors has a relative standard deviation of sqrt(2 / d).
    wanted = max(2, min(MOST_REPETITIONS, math.ceil(2 / (task.dimension * PRECISION**2))))
    clients = _clients(mechanism, task.clients, wanted * (planned.client_seconds or 0.0))
    summary = summarise_means(
        repeat_mean(mechanism, plan.population, wanted, clients=clients, nonzero=plan.nonzero, seed=seed, on_step=silent)
    )
    sample = draw_sample(plan.population, task.domain, clients, seed, plan.nonzero)
    predicted = predict_error(mechanism, sample, task.rounds).of_population
    excess = summary.squared_error / predicted - 1
    return CheckedError(
        squared_error=summary.squared_error,
        standard_error=summary.standard_error or 0.0,
        predicted_error=predicted,
        clients=clients,
        repetitions=wanted,
        excess=excess,
        off=abs(excess) > OFF,
    )


def _clients(mechanism: Mechanism, clients: int, seconds: float) -> int:
    """Return the number of clients per simulated round, all clients if the mechanism needs them."""
    if mechanism.joint_clients is not None or clients * seconds <= MOST_SECONDS:
        return clients
    return min(clients, max(FEWEST_CLIENTS, int(MOST_SECONDS / seconds)))
