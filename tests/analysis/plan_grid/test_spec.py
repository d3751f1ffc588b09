"""Files of tasks to plan become tasks, and faults name the key."""

import tomllib
from typing import Any

import pytest

from quietbits.analysis.plan_grid.spec import PlanGrid, parse_plan_grid
from quietbits.analysis.sweeps.example import example_specification
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task

GRID: dict[str, Any] = {"clients": 100, "epsilon": [1, 2], "delta": 1e-5, "adjacency": "replace-one"}


def parsed(**values: Any) -> PlanGrid:
    return parse_plan_grid({"grid": GRID | values})


def test_the_example_is_a_grid() -> None:
    grid = parse_plan_grid(tomllib.loads(example_specification("plan_grid")))
    assert (len(grid.tasks), grid.seed, grid.tolerance) == (8, 0, 0.02)


def test_every_combination_is_a_task() -> None:
    grid = parsed(bits=["none", 2], rounds=[1, 5], dimension=[4, 8], norm=[1, "inf"], categories=10, interval=[-1, 1])
    assert len(grid.tasks) == 2 * 2 * 2 * (1 + 2 * 2 + 1)
    domains = {task.domain for task in grid.tasks}
    assert {Interval(-1, 1), Categories(10), NormBall(8, float("inf")), NormBall(4, 1.0)} <= domains
    assert {task.bits for task in grid.tasks} == {None, 2.0}
    assert parsed().tasks[0] == Task(Interval(), 100, 1.0, 1e-5, "replace-one")


def test_tasks_of_several_grids_follow_each_other() -> None:
    other = GRID | {"epsilon": 4, "categories": [10, 20]}
    grid = parse_plan_grid({"seed": 3, "grid": [GRID, other]})
    assert grid.tasks == [*parse_plan_grid({"grid": GRID}).tasks, *parse_plan_grid({"grid": other}).tasks]
    assert grid.seed == 3


def test_all_grids_together_have_a_limit() -> None:
    half = GRID | {"clients": list(range(1, 302)), "epsilon": list(range(1, 302))}
    with pytest.raises(ValueError, match=r"number 2: a file must have at most 100000 tasks, got 181202"):
        parse_plan_grid({"grid": [half, half]})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"grid": GRID, "workers": 2}, "workers is not a key of a plan grid's file outside"),
        ({"grid": GRID | {"epsilons": 1}}, r"epsilons is not a key of \[grid\]"),
        ({"grid": {"clients": 5}}, r"epsilon is missing: \[grid\] must have clients, epsilon, delta, adjacency"),
        ({}, r"\[grid\] must be a table with clients, epsilon, delta, adjacency, or blocks \[\[grid\]\] of such tables, got None"),
        ({"grid": [GRID, {"clients": 5}]}, r"\[\[grid\]\] number 2: epsilon is missing"),
        ({"grid": [GRID, GRID]}, "tasks must not have the same value twice"),
        ({"grid": []}, r"\[grid\] must be a table"),
        ({"grid": GRID | {"epsilon": []}}, "epsilon must have at least one value, got none"),
        ({"grid": GRID | {"epsilon": [1, 1]}}, "epsilon must not have the same value twice, got 1 twice"),
        ({"grid": GRID | {"epsilon": [1, -1]}}, "epsilon must be a number from 1e-05 to 10000, got -1"),
        ({"grid": GRID | {"norm": 2}}, "norm must be left out without dimension, got 2"),
        (
            {"grid": GRID | {"clients": list(range(1, 400)), "epsilon": list(range(1, 400))}},
            "at most 100000 tasks, got 159201",
        ),
        ({"grid": GRID, "trust": "nobody"}, "trust must be"),
        ({"grid": GRID, "population": "sphere"}, "population"),
        ({"grid": GRID, "tolerance": 2}, "tolerance must be a number from 0 to 1, got 2"),
    ],
)
def test_faults_name_the_key(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_plan_grid(document)
