"""Every public call refuses wrong types of balls, domains and tasks by name.

The refusal comes before any computation.
"""

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

import quietbits
from quietbits.analysis.sweeps.task import MechanismChoice
from quietbits.design.contracts.task import Budget
from quietbits.design.tables.randomised_response import generalised_randomised_response

BALL = quietbits.NormBall(8, 2.0)
TASK = quietbits.Task(BALL, 100, 1.0, 1e-5, "replace-one")
# Each name has an argument that would be valid for any call.
GOOD: dict[str, Any] = {
    "adjacency": "replace-one",
    "bits": 8,
    "bits_in": 3,
    "bits_out": 2,
    "clients": 100,
    "clip_ratio": 0.5,
    "coded_epsilon": 1.0,
    "delta": 1e-5,
    "epsilon": 1.0,
    "granularity": 0.1,
    "layout": quietbits.uniform_layout(8, 1, 7),
    "levels": 5,
    "local_sigma": 1.0,
    "local_variance": 1.0,
    "message_bits": 2,
    "noise_multiplier": 1.0,
    "noise_variance": 100.0,
    "population": "sphere",
    "projected": 4,
    "strategy": SimpleNamespace(),
    "table": generalised_randomised_response(1.0, 2),
    "budget": Budget(1.0, 1e-5, "replace-one"),
    "theta": 0.1,
    "trials": 100,
}
WANTED = {"ball": "a NormBall", "domain": "an Interval, a NormBall or Categories", "task": "a Task"}
# Names of records of results, which users do not make.
RECORDS = ("AccountSubject", "Calibration", "Plan")


def calls() -> list[tuple[str, str]]:
    """Return the public functions and classes with such a parameter, and its name."""
    result = []
    for name in dir(quietbits):
        value = getattr(quietbits, name)
        if callable(value) and not getattr(value, "_is_protocol", False) and name not in RECORDS:
            try:
                parameters = inspect.signature(value).parameters
            except ValueError:
                continue
            result += [(name, parameter) for parameter in parameters if parameter in WANTED]
    return result


def test_there_are_many_such_calls() -> None:
    assert len(calls()) > 25
    assert {("Task", "domain"), ("plan", "task"), ("build_mechanism", "task"), ("SQKRMechanism", "ball")} <= set(calls())


@pytest.mark.parametrize(("name", "parameter"), calls())
@pytest.mark.parametrize("wrong", [100, None, "ball", 1.5, (0.0, 1.0)])
def test_what_is_no_domain_is_refused(name: str, parameter: str, wrong: object) -> None:
    call = getattr(quietbits, name)
    required = [
        item.name for item in inspect.signature(call).parameters.values() if item.default is item.empty and item.kind != item.VAR_KEYWORD
    ]
    names = {"build_mechanism": "cpsgd", "PrivateMeanStrategy": "cpsgd", "MeanTask": MechanismChoice.of("cpsgd")}
    good = GOOD | dict.fromkeys(("name", "mechanism"), names.get(name)) | {parameter: wrong}
    with pytest.raises(ValueError, match=f"^{parameter} must be {WANTED[parameter]}") as refused:
        call(**{item: good[item] for item in {*required, parameter}})
    assert f"got {wrong!r}" in str(refused.value)


@pytest.mark.parametrize(("name", "parameter"), [call for call in calls() if call[1] == "ball"])
def test_an_interval_is_no_ball(name: str, parameter: str) -> None:
    test_what_is_no_domain_is_refused(name, parameter, quietbits.Interval())
