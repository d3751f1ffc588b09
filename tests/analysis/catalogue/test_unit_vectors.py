"""Messages that plans try for vectors on a sphere grow with epsilon, within the budget of bits and the client's time."""

import pytest

from quietbits.analysis.catalogue.registry import entry_named
from quietbits.analysis.planner.plan import plan_task
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task


def most_tried(name: str, epsilon: float, dimension: int = 1000, rounds: int = 1) -> int:
    task = Task(NormBall(dimension, 2.0), 1000, epsilon, 0.0, "replace-one", rounds=rounds)
    return max(values.get("message_bits", 0) for values in entry_named(name).candidates(task))


@pytest.mark.parametrize(
    ("name", "epsilon", "dimension", "most"),
    [
        ("rotating-simplex", 1.0, 1000, 4),
        ("rotating-simplex", 12.0, 1000, 9),
        ("rotating-simplex", 12.0, 10**5, 12),
        ("minimal-random-coding", 1.0, 1000, 10),
        ("minimal-random-coding", 8.0, 1000, 12),
        ("minimal-random-coding", 12.0, 1000, 16),
        ("minimal-random-coding", 12.0, 10**5, 10),
    ],
)
def test_longer_messages_are_tried_at_large_epsilon(name: str, epsilon: float, dimension: int, most: int) -> None:
    assert most_tried(name, epsilon, dimension) == most
    assert most_tried(name, epsilon * 2, dimension, rounds=2) == most


def test_a_plan_at_large_epsilon_has_the_error_of_long_messages() -> None:
    task = Task(NormBall(1000, 2.0), 1000, 12.0, 1e-5, "replace-one")
    errors = {item.name: item.predicted_error for item in plan_task(task, trust="local", timed=False).feasible}
    assert errors["rotating-simplex"] == pytest.approx(0.1073, rel=1e-2)
    assert errors["minimal-random-coding"] == pytest.approx(0.0925, rel=1e-2)


def test_the_budget_of_bits_limits_messages() -> None:
    task = Task(NormBall(1000, 2.0), 1000, 12.0, 1e-5, "replace-one", message_bits=9)
    bits = {item.name: item.bits_per_client for item in plan_task(task, trust="local", timed=False).feasible}
    assert bits["rotating-simplex"] == 9
    assert bits["minimal-random-coding"] <= 9
