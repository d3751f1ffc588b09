"""What no mechanism for a mean can do better than, beside the error of a trusted server's Gaussian noise."""

from dataclasses import dataclass

from ....arguments import check_real
from ....design.contracts.gaussian import central_gaussian_error, l2_radius
from ....design.contracts.task import Task
from ....solvers.limits.compression import necessary_bits
from ...catalogue.lower_bounds import (
    central_lower_bound,
    inscribed_radius,
    local_lower_bound,
    unbiased_central_lower_bound,
    unbiased_local_lower_bound,
)


@dataclass(frozen=True)
class MeanLimits:
    """Limits of a task in one trust model; squared L2 errors of the mean.

    Attributes
    ----------
    gaussian_error : float
        Where a trusted server adds Gaussian noise; errs upward.
    zero_error : float
        Of the estimate zero, in the worst case: biased, private and free.
    private_error, unbiased_private_error : float or None
        What privacy alone makes necessary, of every mechanism and of every unbiased one; None where nothing is known. Errs downward.
    necessary_bits, necessary_unbiased_bits : float
        Bits of a message without which no mechanism, private or not, has an error of `slack` times `gaussian_error`; errs downward.
    """

    gaussian_error: float
    zero_error: float
    private_error: float | None
    unbiased_private_error: float | None
    necessary_bits: float
    necessary_unbiased_bits: float


def mean_limits(task: Task, trust_model: str, slack: float = 2.0) -> MeanLimits:
    """Return the limits of a task for vectors of a ball.

    Parameters
    ----------
    task : Task
        One round in which all clients take part.
    trust_model : str
        ``"secure-sum"``: the server sees one sum, in as many bits as a message; ``"local"``: every message, which is private by itself;
        ``"central"``: every message.
    slack : float
        How many times the error of Gaussian noise is aimed at, above 0.

    Examples
    --------
    >>> from quietbits.design.contracts.norm_ball import NormBall
    >>> task = Task(NormBall(2**14, 2.0), clients=10_000, epsilon=1.0, delta=1e-5, adjacency="replace-one")
    >>> limits = mean_limits(task, "secure-sum")
    >>> round(limits.gaussian_error, 5), round(limits.unbiased_private_error, 6), round(limits.necessary_unbiased_bits)
    (0.00912, 0.000368, 47534)
    """
    ball = task.ball("limits")
    if task.rounds > 1 or task.sampling is not None:
        raise ValueError(f"task must be one round in which all clients take part, got {task.rounds} rounds, sampling {task.sampling}")
    gaussian = central_gaussian_error(ball, task.clients, task.epsilon, task.delta, task.adjacency)
    target = check_real("slack", slack, low=1e-6, high=1e6) * gaussian
    size = (ball.dimension, task.clients, trust_model)
    bits = [necessary_bits(target, *size, unbiased=unbiased, radius=inscribed_radius(ball)) for unbiased in (False, True)]
    biased, unbiased = (
        (local_lower_bound, unbiased_local_lower_bound) if trust_model == "local" else (central_lower_bound, unbiased_central_lower_bound)
    )
    return MeanLimits(gaussian, l2_radius(ball) ** 2, biased(task), unbiased(task), *bits)
