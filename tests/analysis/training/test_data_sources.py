"""Data by name: kept, streamed without end, or refused with what is needed."""

import pytest

from quietbits.analysis.training.data_sources import data_named
from quietbits.analysis.training.setting import TrainingSetting
from quietbits.analysis.training.task import TrainedMechanism, TrainingTask


def test_data_are_kept() -> None:
    assert data_named("digits", 100, 0) is data_named("digits", 100, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "digits", "folder": "somewhere"}, "folder must be left out for the data digits"),
        ({"name": "mnist"}, "folder must be where the files of mnist are, got None"),
        ({"name": "mnist", "samples": 3}, "samples must be left out for the data mnist, got 3"),
        ({"name": "imagenet"}, "data must be one of digits, mnist"),
    ],
)
def test_bad_requests_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data_named(clients=10, seed=0, **arguments)


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
    # Nobody takes part twice.
    assert plan.epsilons[0] == plan.epsilons[1]
    assert 3.99 < plan.epsilons[1] <= 4
    rows = task.run(plan)
    assert [row["participants"] for row in rows] == [300, 300]
    assert rows[0]["dimension"] == 11_830
