"""A small federation on scikit-learn's digits."""

from collections.abc import Callable
from typing import Any

import pytest

from quietbits.analysis.training.federation import Federation
from quietbits.analysis.training.setting import TrainingSetting
from quietbits.analysis.training.task import TrainedMechanism, TrainingTask

USUAL: dict[str, Any] = {"clients": 200, "clients_per_round": 40, "rounds": 5, "delta": 1e-5, "adjacency": "replace-one"}


@pytest.fixture
def setting() -> Callable[..., TrainingSetting]:
    """Return a function that makes a setting from some of its fields."""
    return lambda **fields: TrainingSetting(**(USUAL | fields))


@pytest.fixture
def task() -> Callable[..., TrainingTask]:
    """Return a function that makes a task from a mechanism and fields of the setting."""

    def make(name: str, options: dict[str, Any] | None = None, *, seed: int = 0, **fields: Any) -> TrainingTask:
        return TrainingTask(TrainingSetting(**(USUAL | fields)), TrainedMechanism(name, tuple((options or {}).items())), seed)

    return make


@pytest.fixture
def federation() -> Callable[[TrainingTask], Federation]:
    """Return a function that makes an unstarted federation from a task."""

    def make(task: TrainingTask) -> Federation:
        return Federation(task.training, task.prepare(None), task.training.federated_data(task.seed), task.seed, task.stream)

    return make
