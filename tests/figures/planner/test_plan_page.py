"""The page of a plan begins with recommendations and is self-contained.

No column is empty.
"""

import re

import pytest

from quietbits.analysis.planner.advice import advise
from quietbits.analysis.planner.plan import plan_task
from quietbits.analysis.planner.record import Plan
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.task import Task
from quietbits.figures.planner.plan_page import plan_page_html, plan_table


@pytest.fixture(scope="module")
def plan() -> Plan:
    return advise(plan_task(Task(Categories(10), 100, 1.0, 1e-6, "replace-one", rounds=2)))


def test_a_page_loads_nothing_and_begins_with_recommendations(plan: Plan) -> None:
    page = plan_page_html(plan)
    assert "src=" not in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page.split("<svg")[0] + page.split("</svg>")[1])
    assert page.count("<svg") == 1
    for model, name in plan.recommended.items():
        assert page.index(f"<h2>{model}: {name}</h2>") < page.index("<svg")
        assert f"quietbits calibrate {name}" in page
    assert page.count('class="best"') == len(plan.recommended)
    # Each command has a separate line.
    assert "\\n" not in page


def test_no_column_is_empty_and_times_have_one_unit(plan: Plan) -> None:
    for model in plan.trust_models:
        table = plan_table(plan, model)
        for column in table.columns:
            assert any(column.text(row) not in ("", "none") for row in (*table.shown, *table.folded)), column.heading
        headings = [column.heading for column in table.columns]
        assert "Average of all rounds" in headings
        assert "Measured" not in headings
        assert sum(heading.startswith(("Client (", "Server (")) for heading in headings) == 2
        cells = [column.text(row) for column in table.columns for row in table.shown]
        assert not [cell for cell in cells if re.search(r"e\+\d", cell)]
        assert [row for row in table.shown if row.recommended or row.on_frontier] == list(table.shown)
    assert {row.name for row in plan.feasible} == {
        row.name for model in plan.trust_models for table in [plan_table(plan, model)] for row in (*table.shown, *table.folded)
    }


def test_the_headline_says_where_no_messages_are_better() -> None:
    few = advise(plan_task(Task(Categories(10), 5, 0.5, 0.0, "replace-one"), trust="local", timed=False))
    headline = plan_page_html(few).split('class="headline"')[1].split("</p>")[0]
    assert "answering that all items are equally frequent has less" in headline


def test_a_task_that_nobody_can_serve_has_a_page_without_a_picture() -> None:
    page = plan_page_html(advise(plan_task(Task(Categories(10), 100, 1.0, 0.0, "replace-one", bits=1e-3))))
    assert "No mechanism can serve" in page
    assert "<svg" not in page
