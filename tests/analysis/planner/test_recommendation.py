"""Recommended mechanisms are releasable, unbiased and within the budget.

Among designs near the least error, they have the shortest message.
"""

import math
from dataclasses import replace

import pytest

from quietbits.analysis.planner.agreement import random_tasks
from quietbits.analysis.planner.plan import plan_task
from quietbits.analysis.planner.recommendation import marked, recommended_design, shortest_design
from quietbits.analysis.planner.record import PlannedMechanism, TriedDesign
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task


def tried(bits: float, error: float, bias_bound: float = 0.0) -> TriedDesign:
    return TriedDesign((("bits", bits),), bits, error, error, error + bias_bound**2, bias_bound)


def planned(name: str, *designs: TriedDesign, on_real_numbers: bool = False) -> PlannedMechanism:
    chosen = min(designs, key=lambda design: design.predicted_error)
    return PlannedMechanism(
        name,
        name,
        "local",
        feasible=True,
        adjacency="replace-one",
        predicted_error=chosen.predicted_error,
        predicted_error_of_rounds=chosen.predicted_error_of_rounds,
        bits_per_client=chosen.bits_per_coordinate,
        tried=designs,
        on_real_numbers=on_real_numbers,
    )


def test_the_shortest_design_within_the_tolerance_is_chosen() -> None:
    designs = [tried(3, 1.03), tried(4, 1.019), tried(9, 1.0)]
    assert shortest_design(designs, 0.02).bits_per_coordinate == 4
    assert shortest_design(designs, 0.0).bits_per_coordinate == 9
    assert shortest_design(designs, 0.05).bits_per_coordinate == 3
    # The recommendation keeps a smaller error if some design has it.
    assert shortest_design(designs, 0.05, most_error=1.02).bits_per_coordinate == 4
    assert shortest_design(designs, 0.05, most_error=0.5).bits_per_coordinate == 9


def test_biased_designs_count_only_alone() -> None:
    biased = tried(1, 1.0, bias_bound=0.5)
    assert not biased.unbiased
    assert tried(1, 1.0, bias_bound=0.3).unbiased
    assert shortest_design([biased, tried(8, 5.0)], 0.02).bits_per_coordinate == 8
    assert shortest_design([biased], 0.02) is biased


def test_references_on_real_numbers_are_never_recommended() -> None:
    reference = planned("exact", tried(2, 0.5), on_real_numbers=True)
    assert recommended_design([reference], 0.02) is None
    name, design, most = recommended_design([reference, planned("first", tried(64, 1.0)), planned("second", tried(6, 1.015))], 0.02)
    assert (name, design.bits_per_coordinate) == ("second", 6)
    assert most == pytest.approx(1.02)


def test_the_frontier_has_no_dominated_mechanism_and_no_reference() -> None:
    rows = marked(
        [
            planned("short", tried(1, 3.0)),
            planned("middle", tried(2, 2.0)),
            planned("dominated", tried(3, 2.0)),
            planned("exact", tried(1, 1.0), on_real_numbers=True),
            planned("long", tried(9, 1.0)),
        ],
        ["middle"],
    )
    assert [row.name for row in rows if row.on_frontier] == ["short", "middle", "long"]
    assert [row.name for row in rows if row.recommended] == ["middle"]


@pytest.mark.parametrize("task", list(random_tasks(4, seed=44)), ids=lambda task: f"{type(task.domain).__name__}-{task.clients}")
def test_recommendations_of_random_tasks_keep_budget_and_tolerance(task: Task) -> None:
    plan = plan_task(replace(task, clients=min(task.clients, 200)), timed=False)
    for model, name in plan.recommended.items():
        chosen = plan.named(name)
        rivals = [row for row in plan.of(model) if not row.on_real_numbers and row.unbiased] or plan.of(model)
        assert not chosen.on_real_numbers
        assert chosen.epsilon <= plan.task.epsilon * (1 + 1e-9)
        assert chosen.delta <= plan.task.delta
        assert chosen.predicted_error_of_rounds <= 1.02 * min(row.predicted_error_of_rounds for row in rivals) * (1 + 1e-12)
        assert chosen.on_frontier
        assert chosen.bits_per_client <= (plan.task.most_message_bits or math.inf) * (1 + 1e-9)
    assert set(plan.recommended) == {row.trust_model for row in plan.feasible if not row.on_real_numbers}


def test_the_recommended_design_replaces_a_longer_one_of_the_same_mechanism() -> None:
    task = Task(NormBall(100, 2.0), 10_000, 2.0, 1e-5, "replace-one")
    plan = plan_task(task, trust="local", timed=False)
    assert plan.recommended == {"local": "rotating-simplex"}
    assert plan.named("rotating-simplex").bits_per_client == 6
    # With a wider tolerance, one of the tried designs has a shorter message.
    wide = plan_task(task, trust="local", tolerance=0.2, timed=False)
    chosen = wide.named(wide.recommended["local"])
    releasable = [row for row in wide.feasible if not row.on_real_numbers]
    designs = [(design.bits_per_coordinate, design.predicted_error) for row in releasable for design in row.tried]
    least = min(error for _, error in designs)
    assert chosen.bits_per_coordinate == min(bits for bits, error in designs if error <= 1.2 * least)
    with pytest.raises(ValueError, match="tolerance must be a number from 0 to 1, got 2"):
        plan_task(task, tolerance=2)


@pytest.mark.parametrize(("seconds", "winner"), [(0.01, "fast"), (0.5, "accurate"), (None, "accurate")])
def test_a_far_faster_client_decides_between_equally_short_messages(seconds: float | None, winner: str) -> None:
    accurate, fast = tried(8, 1.0), tried(8, 1.01)
    pair = [
        replace(planned("accurate", accurate), client_seconds=1.0, options=accurate.options),
        replace(planned("fast", fast), client_seconds=seconds, options=fast.options),
    ]
    recommended = recommended_design(pair, 0.02)
    assert recommended is not None
    assert recommended[0] == winner
    assert recommended_design([pair[0], replace(pair[1], tried=(tried(8, 1.1),))], 0.02)[0] == "accurate"  # type: ignore[index]
