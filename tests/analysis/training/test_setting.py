"""Settings of a training: fields, random streams, and refusals."""

from collections.abc import Callable

import pytest

from quietbits.analysis.training.setting import TrainingSetting
from quietbits.analysis.training.task import TrainedMechanism, TrainingTask


def test_data_are_kept(setting: Callable[..., TrainingSetting]) -> None:
    assert setting().federated_data(0) is setting(rounds=7).federated_data(0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"batch": 5}, "batch must be left out where local_epochs is 0, got 5"),
        ({"momentum": 1.0}, "momentum must be a number from 0 to 0.999999, got 1.0"),
        ({"samples": 0}, "samples must be a whole number from 1 to 10000, got 0"),
        ({"dirichlet_alpha": 0.0}, "dirichlet_alpha must be a number from 0.01 to 1e.06, got 0.0"),
        ({"model": "mlp-60-0"}, "width of a layer must be a whole number from 1 to 1048576, got 0"),
        ({"secret_sampling": 1}, "secret_sampling must be true or false, got 1"),
    ],
)
def test_fields_that_mean_nothing_are_refused(fields: dict[str, object], message: str, setting: Callable[..., TrainingSetting]) -> None:
    with pytest.raises(ValueError, match=message):
        setting(**fields)


def test_millions_of_clients_take_part_in_passes_without_memory_for_each() -> None:
    setting = TrainingSetting(
        clients=25_000_000,
        clients_per_round=300,
        rounds=2,
        delta=1e-9,
        adjacency="replace-one",
        sampling="passes",
        model="mlp-60-60-60",
        epsilon=4.0,
    )
    task = TrainingTask(setting, TrainedMechanism("dp-fedavg"), 0)
    plan = task.prepare(None)
    # No client takes part twice.
    assert plan.epsilons[0] == plan.epsilons[1]
    assert 3.99 < plan.epsilons[1] <= 4
    rows = task.run(plan)
    assert [row["participants"] for row in rows] == [300, 300]
    assert rows[0]["dimension"] == 11_830
