"""Rows of a grid's task agree with its plan."""

import json
from dataclasses import replace

import pytest

from quietbits.analysis.plan_grid.task import PlanTask
from quietbits.analysis.planner.plan import plan_task
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.version import __version__

PLAN = PlanTask(Task(Categories(20), 500, 2.0, 1e-5, "replace-one"), None, None, None, 0.02, 0)


def test_rows_are_the_mechanisms_that_serve() -> None:
    rows = PLAN.run(None)
    plan = plan_task(PLAN.task, timed=False)
    assert [row["mechanism"] for row in rows] == [item.name for item in plan.feasible]
    for row, item in zip(rows, plan.feasible, strict=True):
        assert (row["predicted_error"], row["ratio_to_bound"], row["ratio_to_central"]) == (
            item.predicted_error,
            item.ratio_to_bound,
            item.ratio_to_central,
        )
        assert (row["epsilon"], row["delta"], row["trust_model"], row["adjacency"]) == (
            item.epsilon,
            item.delta,
            item.trust_model,
            "replace-one",
        )
        assert json.loads(str(row["options"])) == dict(item.options)
        assert (row["provider"], row["provider_version"], row["reason"]) == ("quietbits", __version__, None)
        assert (row["task_epsilon"], row["clients"], row["categories"], row["rounds"]) == (2.0, 500, 20, 1)


def test_a_task_that_nothing_fits_is_a_row_with_the_reason() -> None:
    tight = Task(NormBall(100, 2.0), 10, 1.0, 0.0, "replace-one", bits=0.001)
    (row,) = replace(PLAN, task=tight, trust="local").run(None)
    assert row["mechanism"] is row["predicted_error"] is row["provider"] is None
    assert str(row["reason"]).startswith("no mechanism can serve the task: bits must be at least")
    assert (row["adjacency"], row["task_bits"]) == ("replace-one", 0.001)


@pytest.mark.parametrize("other", [{"population": "even"}, {"trust": "local"}, {"tolerance": 0.1}, {"task": replace(PLAN.task, rounds=2)}])
def test_names_tell_plans_apart(other: dict[str, object]) -> None:
    assert replace(PLAN, **other).name != PLAN.name  # type: ignore[arg-type]
    assert replace(PLAN, seed=1).name == PLAN.name
