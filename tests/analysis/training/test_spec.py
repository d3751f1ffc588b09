"""Trainings as files: what is one number is one task."""

from typing import Any

import pytest

from quietbits.analysis.training.spec import parse_training

GRID: dict[str, Any] = {"clients": 20, "clients_per_round": 5, "rounds": 3, "delta": 1e-5, "adjacency": "add-or-remove-one"}


@pytest.mark.parametrize(("key", "number"), [("client_rate", 1), ("clip", 2), ("momentum", 0), ("epsilon", 10)])
def test_whole_settings_are_the_same_task_as_floats(key: str, number: int) -> None:
    asked = ({**GRID, "epsilon": 5, key: value, "mechanism": [{"name": "cldp"}]} for value in (number, float(number)))
    one, other = (parse_training(grid).tasks() for grid in asked)
    assert [task.name for task in one] == [task.name for task in other]
    assert one == other


@pytest.mark.parametrize(
    ("name", "option", "number"), [("dp-fedavg", "noise_multiplier", 1), ("cpsgd", "bits", 16), ("fast-projunit", "projected", 8)]
)
def test_options_have_the_kind_of_the_registry(name: str, option: str, number: int) -> None:
    asked: list[object] = [number, float(number)] if option == "noise_multiplier" else [number]
    budget = {} if option == "noise_multiplier" else {"epsilon": 5}
    grids = [{**GRID, **budget, "mechanism": [{"name": name, option: value}]} for value in asked]
    names = {task.name for grid in grids for task in parse_training(grid).tasks()}
    assert len(names) == 1
    assert f'["{option}", {"1.0" if option == "noise_multiplier" else number}]' in names.pop()


def test_a_value_that_no_option_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="bits must be a whole number from"):
        parse_training({**GRID, "mechanism": [{"name": "cpsgd", "bits": 16.5}]})
    with pytest.raises(ValueError, match="no_such is not a parameter of cldp"):
        parse_training({**GRID, "mechanism": [{"name": "cldp", "no_such": 1}]})
