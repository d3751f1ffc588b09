"""Tests of epsilon and error of planned mechanisms when clients drop out."""

import pytest

from quietbits.analysis.catalogue.registry import REGISTRY
from quietbits.analysis.planner.advice import advise
from quietbits.analysis.planner.plan import plan_task
from quietbits.analysis.planner.record import Plan
from quietbits.analysis.planner.words import drop_outs_in_words, task_in_words
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.guarantee import JOINT_MODELS
from quietbits.design.contracts.task import Task
from quietbits.progress import silent

TASK = Task(Categories(6), clients=100, epsilon=2.0, delta=1e-5, adjacency="replace-one", dropout=0.2)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_task(TASK, timed=False, on_step=silent)


def test_rows_state_epsilon_beyond_the_plan(plan: Plan) -> None:
    joint = [planned for planned in plan.feasible if planned.trust_model in JOINT_MODELS]
    assert {planned.trust_model for planned in joint} == set(JOINT_MODELS)
    for planned in joint:
        mechanism = planned.mechanism
        assert mechanism is not None
        assert planned.epsilon is not None
        assert planned.survivors == 80
        assert planned.epsilon <= 2.0
        for clients, stated in ((79, planned.epsilon_one_fewer), (40, planned.epsilon_half)):
            epsilon = mechanism.privacy_of(clients).epsilon(1e-5, "replace-one")
            # Too few shares may mix too little for any epsilon.
            assert stated == epsilon
            assert planned.epsilon < epsilon
        assert "--dropout 0.2" in (planned.command or "")
        assert planned.document()["epsilon_half"] in (planned.epsilon_half, None)
    assert plan.document()["task"]["dropout"] == 0.2
    others = [planned for planned in plan.feasible if planned.trust_model not in JOINT_MODELS]
    assert {(planned.survivors, planned.epsilon_one_fewer, planned.epsilon_half) for planned in others} == {(None, None, None)}


def test_errors_are_for_all_clients_and_for_those_that_remain(plan: Plan) -> None:
    for planned in plan.feasible:
        mechanism = planned.mechanism
        assert mechanism is not None
        if not mechanism.decodes_linearly:
            assert planned.predicted_error_of_survivors is None
            continue
        assert planned.predicted_error is not None
        assert planned.predicted_error_of_survivors is not None
        # Noise of a client is divided by the number of clients; a trusted server's noise, by its square.
        ratio = planned.predicted_error_of_survivors / planned.predicted_error
        assert 1.0 < ratio <= (1.5625 if planned.trust_model == "central" else 1.25) * (1 + 1e-9)


def test_texts_state_the_plan(plan: Plan) -> None:
    assert "up to 20 % of the clients may drop out" in task_in_words(plan.task)
    shuffled = drop_outs_in_words(plan, plan.of("shuffled"))
    assert shuffled is not None
    assert shuffled.startswith("The guarantee needs at least 80 of 100 clients. Epsilon if one fewer remains, and if half of them do: ")
    assert drop_outs_in_words(plan, plan.of("local")) is None
    conditions = {advice.trust_model: advice.conditions for advice in advise(plan, on_step=silent).advice}
    assert "Epsilon holds while 80 of 100 clients remain, with " in (conditions["secure-sum"] or "")
    assert "If half of these remain, epsilon is" in (conditions["shuffled"] or "")
    assert conditions["local"] is None


def test_without_a_plan_rows_state_the_price_of_one_drop_out() -> None:
    from dataclasses import replace

    plan = plan_task(replace(TASK, dropout=0.0), trust="shuffled", timed=False, on_step=silent)
    planned = plan.named("shuffled-frequency-randomised-response")
    assert planned.survivors == 100
    assert planned.epsilon is not None
    assert planned.epsilon_one_fewer is not None
    assert planned.epsilon < planned.epsilon_one_fewer < 1.02 * planned.epsilon
    assert planned.predicted_error_of_survivors is None
    assert "all 100" in (drop_outs_in_words(plan, plan.feasible) or "")


def test_one_client_has_nobody_to_lose() -> None:
    task = Task(Categories(6), clients=1, epsilon=2.0, delta=1e-5, adjacency="replace-one")
    entry = REGISTRY["shuffled-frequency-randomised-response"]
    (planned,) = [item for item in plan_task(task, trust="shuffled", timed=False, on_step=silent).feasible if item.name == entry.name]
    assert (planned.survivors, planned.epsilon_one_fewer) == (1, None)
