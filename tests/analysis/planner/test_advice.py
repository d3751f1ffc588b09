"""Every sentence of advice holds for plans of the tasks that it describes."""

import re
from dataclasses import replace

import pytest

from quietbits.analysis.planner.advice import advise, clients_needed
from quietbits.analysis.planner.plan import plan_task
from quietbits.analysis.planner.record import Plan
from quietbits.design.contracts.domains import Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task

VECTORS = Task(NormBall(32, 2.0), clients=1000, epsilon=1.0, delta=0.0, adjacency="replace-one")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return advise(plan_task(VECTORS, timed=False))


def test_a_delta_makes_secure_sums_possible(plan: Plan) -> None:
    local, shuffled, secure_sum, central = plan.advice
    assert local.mechanism == plan.recommended["local"]
    # Shuffled letters keep the guarantee of a message by itself, without delta.
    assert shuffled.mechanism in ("shuffled-rotating-simplex", "shuffled-random-coding")
    assert (secure_sum.mechanism, central.mechanism) == (None, None)
    (relaxed,) = secure_sum.relaxations
    assert (relaxed.constraint, relaxed.value) == ("delta", 1e-6)
    another = plan_task(replace(VECTORS, delta=1e-6), trust="secure-sum", timed=False)
    assert relaxed.mechanism == another.recommended["secure-sum"]
    assert relaxed.predicted_error == another.named(relaxed.mechanism).predicted_error
    ratio = plan.named(local.mechanism).predicted_error / relaxed.predicted_error
    stated = float(re.search(r"with ([\d,.]+) times less", relaxed.text)[1].replace(",", ""))
    assert stated == pytest.approx(ratio, rel=0.005)
    assert "delta must be above 0" in secure_sum.reason


def test_a_sum_of_mixed_shares_needs_every_message() -> None:
    (advice,) = advise(plan_task(replace(VECTORS, delta=1e-6), trust="shuffled", timed=False)).advice
    assert advice.mechanism == "split-and-mix"
    assert "If any message is lost, so is the sum." in str(advice)


def test_numbers_of_clients_reach_the_stated_errors(plan: Plan) -> None:
    advice = plan.advice[0]
    for needed in advice.clients_needed:
        for clients, least, most in ((needed.clients, 0.93, 1.0), (needed.clients // 2, 1.3, 1.5)):
            another = plan_task(replace(VECTORS, clients=clients), trust="local", timed=False).named(advice.mechanism)
            assert least * needed.relative_error <= another.relative_error <= most * needed.relative_error


def test_where_no_messages_are_better_the_advice_says_so() -> None:
    plan = advise(plan_task(replace(VECTORS, clients=150), trust="local", timed=False))
    advice = plan.advice[0]
    assert plan.named(advice.mechanism).predicted_error > plan.references[0].predicted_error
    assert advice.zero_wins
    clients = int(re.search(r"better from about ([\d,]+) clients", advice.zero)[1].replace(",", ""))
    for number, wins in ((clients, False), (clients // 2, True)):
        another = advise(plan_task(replace(VECTORS, clients=number), trust="local", timed=False))
        assert another.advice[0].zero_wins is wins
    assert another.advice[0].zero.startswith("Answering zero, without any message, has ")


def test_a_larger_epsilon_is_worth_what_a_plan_says(plan: Plan) -> None:
    relaxed = next(item for item in plan.advice[0].relaxations if item.constraint == "epsilon")
    another = plan_task(replace(VECTORS, epsilon=2.0), trust="local", timed=False, options=dict(plan.named(relaxed.mechanism).options))
    assert relaxed.predicted_error == another.named(relaxed.mechanism).predicted_error
    assert "With epsilon 2 instead of 1" in relaxed.text


def test_a_limit_of_bits_is_compared_with_none() -> None:
    task = replace(VECTORS, delta=1e-5, bits=12)
    limited = advise(plan_task(task, trust="secure-sum", timed=False))
    relaxed = next(item for item in limited.advice[0].relaxations if item.constraint == "bits")
    free = plan_task(replace(task, bits=None), trust="secure-sum", timed=False)
    best = free.named(free.recommended["secure-sum"])
    assert (relaxed.mechanism, relaxed.predicted_error) == (best.name, best.predicted_error)
    assert relaxed.text.startswith(f"With {best.bits_per_client:,.0f} bits instead of ")


def test_numbers_call_the_answer_without_messages_by_its_name() -> None:
    task = Task(Interval(0.0, 5.0), clients=4, epsilon=0.5, delta=0.0, adjacency="replace-one")
    (advice,) = (item for item in advise(plan_task(task, trust="local", timed=False)).advice)
    assert advice.zero_wins
    assert advice.zero.startswith("Answering the middle of the interval, without any message, has ")


def test_processes_change_no_advice(plan: Plan) -> None:
    assert advise(plan_task(VECTORS, timed=False), workers=2).advice == plan.advice


@pytest.mark.parametrize(("power", "wanted"), [(1.0, 1e-4), (2.0, 1e-4), (0.5, 0.3)])
def test_clients_are_searched_along_a_power(power: float, wanted: float) -> None:
    number = clients_needed(lambda clients: clients**-power, 100, 100**-power, wanted)
    assert number == pytest.approx(wanted ** (-1 / power), rel=0.1)
    assert number**-power <= wanted * (1 + 1e-9)


def test_an_error_that_does_not_fall_has_no_number_of_clients() -> None:
    assert clients_needed(lambda _: 1.0, 100, 1.0, 0.5) is None
    assert clients_needed(lambda _: None, 100, 1.0, 0.5) is None
    assert clients_needed(lambda clients: 1 / clients, 100, 1e-2, 1e-30) is None
    assert clients_needed(lambda clients: 1 / clients, 100, 1e-2, 2.0) == 1
