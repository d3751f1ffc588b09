"""Lower bounds on the error of every mechanism for the mean of a task's vectors."""

import math
from dataclasses import replace
from typing import Protocol

from ...arguments import LARGEST_EXACT_INTEGER, MOST_CLIENTS
from ...design.contracts.domains import Categories, Interval
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.task import Task
from ...solvers.limits.frequency_privacy import frequency_bound
from ...solvers.limits.mean_privacy import (
    LARGEST_EPSILON,
    SMALLEST_EPSILON,
    central_bound,
    local_bound,
    unbiased_central_bound,
    unbiased_local_bound,
)


class Bound(Protocol):
    """A bound on the squared error of a mean, such as `central_bound`."""

    def __call__(self, dimension: int, clients: int, epsilon: float, delta: float, *, radius: float) -> float:
        """Return the bound for vectors of the L2 ball of a radius."""


def inscribed_radius(ball: NormBall) -> float:
    """Return the radius of the largest L2 ball inside a ball.

    A mechanism for the ball is a mechanism for the L2 ball, too, so lower bounds for the L2 ball hold for the ball.
    """
    return ball.clip_norm * math.pow(ball.dimension, min(0.0, 0.5 - 1 / ball.norm))


def unbiased_local_lower_bound(task: Task) -> float | None:
    """Bound the squared error of unbiased mechanisms with private messages from below.

    Without delta, all rounds are assumed to have the same pure epsilon.
    """
    return _vector_bound(task, unbiased_local_bound, task.epsilon if task.delta > 0 else task.epsilon / task.rounds, task.delta)


def local_lower_bound(task: Task) -> float | None:
    """Return a lower bound on the squared error of all mechanisms with private messages.

    The bound holds for biased and unbiased mechanisms.
    """
    return _vector_bound(task, local_bound, task.epsilon if task.delta > 0 else task.epsilon / task.rounds, task.delta)


def central_lower_bound(task: Task) -> float | None:
    """Return a lower bound on the squared error of every mechanism with a private estimate.

    The bound also holds under a secure sum, and for shuffled messages. The domain has vectors, or numbers, which are vectors of one
    coordinate. The bound includes biased mechanisms, such as the estimate zero. A mechanism that keeps a budget over all rounds keeps it in
    each round.
    """
    return _central(task, central_bound)


def unbiased_central_lower_bound(task: Task) -> float | None:
    """Return a lower bound on the squared error of unbiased mechanisms with a private estimate."""
    return _central(task, unbiased_central_bound)


def _central(task: Task, bound: Bound) -> float | None:
    if isinstance(task.domain, Interval):
        task = replace(task, domain=task.domain.ball(task.adjacency))
    if task.adjacency == "replace-one":
        return _vector_bound(task, bound, task.epsilon, task.delta)
    # A replacement is a removal and an addition.
    delta = task.delta * (1 + math.exp(min(task.epsilon, 700.0)))
    return _vector_bound(task, bound, 2 * task.epsilon, delta) if delta < 1 else None


def _vector_bound(task: Task, bound: Bound, epsilon: float, delta: float) -> float | None:
    if not isinstance(task.domain, NormBall) or task.sampling is not None or not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        return None
    return bound(task.domain.dimension, task.clients, epsilon, delta, radius=inscribed_radius(task.domain))


def frequency_lower_bound(task: Task, trust_model: str, *, unbiased: bool) -> float | None:
    """Bound the squared L2 error of estimated frequencies in a trust model from below.

    The result is None for sampled clients, and outside the bound's range.
    """
    if not isinstance(task.domain, Categories) or task.sampling is not None:
        return None
    epsilon, delta = task.epsilon, task.delta
    if trust_model == "local" and delta == 0:
        # All rounds are assumed to have the same pure epsilon.
        epsilon = epsilon / task.rounds
    if task.adjacency == "add-or-remove-one":
        # A replacement is a removal and an addition.
        epsilon, delta = 2 * epsilon, delta * (1 + math.exp(min(epsilon, 700.0)))
    if (
        not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON
        or delta >= 1
        or task.clients > MOST_CLIENTS
        or task.domain.size > LARGEST_EXACT_INTEGER
    ):
        return None
    return frequency_bound(task.domain.size, task.clients, epsilon, delta, trust_model, unbiased=unbiased)
