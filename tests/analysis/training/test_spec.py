"""Equal numbers in different notations of a training's file are the same task."""

from typing import Any

import pytest

from quietbits.analysis.training import spec
from quietbits.analysis.training.spec import parse_training

GRID: dict[str, Any] = {"clients": 20, "clients_per_round": 5, "rounds": 3, "delta": 1e-5, "adjacency": "replace-one"}


@pytest.mark.parametrize(("key", "number"), [("client_rate", 1), ("clip", 2), ("momentum", 0), ("epsilon", 10)])
def test_whole_settings_are_the_same_task_as_floats(key: str, number: int) -> None:
    asked = ({**GRID, "epsilon": 5, key: value, "mechanism": [{"name": "cldp"}]} for value in (number, float(number)))
    first, other = (parse_training(grid).tasks() for grid in asked)
    assert [task.name for task in first] == [task.name for task in other]
    assert first == other


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


def test_a_grid_that_is_too_large_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = list(range(1, 3001))
    block = {"name": "none", "server_rate": numbers, "client_rate": numbers, "rounds": numbers}
    with pytest.raises(ValueError, match="number of combinations must be a whole number from 1 to 100000, got 27000000000"):
        parse_training({**GRID, "mechanism": [block]})
    monkeypatch.setattr(spec, "MOST_RUNS", 12)
    few = {"name": "none", "server_rate": [1, 2, 3], "client_rate": [1, 2, 3]}
    with pytest.raises(ValueError, match=r"\[\[mechanism\]\] number 2: number of combinations must be a whole number from 1 to 3, got 9"):
        parse_training({**GRID, "mechanism": [few, {**few, "clip": 2.0}]})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": []}, "seed must have at least one value, got none"),
        ({"clients": True}, "clients must be a whole number from 1 to 1000000000000, got True"),
        ({"mechanism": [{"name": {"a": 1}}]}, r"name must be that of a mechanism, got \{'a': 1\}"),
        ({"adjacency": "add-or-remove-one", "mechanism": [{"name": "cldp", "epsilon": 1}]}, "adjacency must be replace-one for cldp"),
    ],
)
def test_what_is_wrong_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_training({**GRID, "mechanism": [{"name": "none"}], **changed})
