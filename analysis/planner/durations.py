"""Predicted durations of clients and server, from measurements of a few messages."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.registry import Entry, Values
from ...design.contracts.task import Task
from ...errors import ConvergenceError

# Largest number of timed coordinates; the time of longer vectors grows in proportion.
MOST_COORDINATES = 2**13
# Divisor of sketch lengths, the usual number of rows.
ROWS = 30
# Timing starts with a single message and continues with as many messages as take about this number of seconds, up to a largest number.
ENOUGH, MOST_MESSAGES = 0.01, 64


@dataclass(frozen=True)
class PredictedDuration:
    """Predicted seconds on a core of this machine, in Python, without secure aggregation.

    Attributes
    ----------
    client : float or None
        Time in seconds to make a message; None if it cannot be measured.
    server : float or None
        Time in seconds to add up the messages of all clients, and to decode the sum.
    """

    client: float | None = None
    server: float | None = None


def predict_duration(entry: Entry, task: Task, values: Values, mechanism: Mechanism, inputs: NDArray[Any]) -> PredictedDuration:
    """Measure a mechanism on some inputs and return its predicted durations for a task."""
    factor = 1.0
    if isinstance(task.domain, NormBall) and task.domain.dimension > MOST_COORDINATES:
        factor = task.domain.dimension / MOST_COORDINATES
        shorter = replace(task, domain=replace(task.domain, dimension=MOST_COORDINATES))
        # A sketch keeps its ratio to the vector's length, in whole rows.
        lengths = {option.name for option in entry.options if option.unit == "coordinates"}
        scaled = {name: _shortened(value, factor) if name in lengths and value else value for name, value in values.items()}
        inputs = inputs[:, :MOST_COORDINATES]
        try:
            mechanism = entry.mechanism_for(shorter, scaled)
        except (ValueError, ConvergenceError):
            return PredictedDuration()
    words = np.random.default_rng(0)
    try:
        _, first = _timed(lambda: mechanism.encode(inputs[:1], words))
        number = int(min(len(inputs), MOST_MESSAGES, max(1, ENOUGH // max(first, 1e-9))))
        messages, encoding = _timed(lambda: mechanism.encode(inputs[:number], words))
        aggregate, adding = _timed(lambda: mechanism.aggregate(messages))
        # Decoding may need all clients that the mechanism is made for; its duration does not depend on their messages.
        counted = entry.trust_model == "shuffled" and not isinstance(mechanism, SecureSumMechanism)
        clients = number if counted else mechanism.joint_clients or number
        _, decoding = _timed(lambda: mechanism.decode(aggregate, clients))
    except (ValueError, ConvergenceError):
        return PredictedDuration()
    return PredictedDuration(factor * encoding / number, factor * (adding / number * task.clients + decoding))


def _shortened(length: int, factor: float) -> int:
    short = max(1, int(length / factor))
    return short // ROWS * ROWS or short


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start
