"""Secure sums of numbers through mechanisms for vectors."""

from collections.abc import Callable
from dataclasses import replace

from ...design.contracts.domains import Interval
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.registry import Values
from ...design.contracts.task import Task
from ...design.secure_sum.delegated_sum import NumberSum
from ...design.secure_sum.rounded_secure_sum import RoundedSecureSum

# Margin of the ball beyond the interval, in steps, because calibration ends close to the longest steps with varying accuracy.
STEP = 1.01


def serve_numbers(calibrate: Callable[[Task, Values], SecureSumMechanism]) -> Callable[[Task, Values], Mechanism]:
    """Extend a calibration for vectors to intervals by a `NumberSum`."""

    def calibrated(task: Task, values: Values) -> Mechanism:
        if not isinstance(task.domain, Interval):
            return calibrate(task, values)
        ball = task.domain.ball(task.adjacency)
        inner = calibrate(replace(task, domain=ball), values)
        if isinstance(inner, RoundedSecureSum) and STEP * inner.granularity < ball.clip_norm / 2:
            # Widen the ball by a step; steps lengthen in proportion to the ball.
            wider = ball.clip_norm / (1 - STEP * inner.granularity / ball.clip_norm)
            inner = calibrate(replace(task, domain=replace(ball, clip_norm=wider)), values)
        return NumberSum(inner, (task.domain.low, task.domain.high))

    return calibrated
