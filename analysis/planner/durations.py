"""How long clients and server will take: measured on one or a few messages, and scaled."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.registry import Entry, Values
from ...design.contracts.task import Task
from ...errors import ConvergenceError

# Vectors with more coordinates are timed with this many, and take longer in proportion.
MOST_COORDINATES = 2**13
# What a sketch's length is a multiple of, for the usual number of rows.
ROWS = 30
# Messages that are timed: one, and then as many as take about this many seconds, up to this number.
ENOUGH, MOST_MESSAGES = 0.01, 64


@dataclass(frozen=True)
class PredictedDuration:
    """Seconds on one core of this machine, in Python; secure aggregation's own work is not in it.

    Attributes
    ----------
    client : float or None
        To make one message; None where it cannot be measured.
    server : float or None
        To add up the messages of all clients, and to decode.
    """

    client: float | None = None
    server: float | None = None


def predict_duration(entry: Entry, task: Task, values: Values, mechanism: Mechanism, inputs: NDArray[Any]) -> PredictedDuration:
    """Return the durations of a mechanism that an entry built for a task with these design choices, measured on some inputs."""
    factor = 1.0
    if isinstance(task.domain, NormBall) and task.domain.dimension > MOST_COORDINATES:
        factor = task.domain.dimension / MOST_COORDINATES
        shorter = replace(task, domain=replace(task.domain, dimension=MOST_COORDINATES))
        # A sketch keeps its share of the coordinates, in whole rows.
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
        # A sum may have to be of all clients that a mechanism is made for; how long that takes does not depend on what they sent.
        clients = number if entry.trust_model == "shuffled" else mechanism.joint_clients or number
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
