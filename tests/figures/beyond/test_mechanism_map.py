"""The map of the best mechanisms: winners of synthetic designs, agreement with plans, and what is drawn."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.analysis.planner.plan import plan_task
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.task import Task
from quietbits.figures.beyond.mechanism_map import (
    ADJACENCY,
    DELTA,
    FIGURE,
    MapPoint,
    best_designs,
    draw_map,
    drawn_limits,
    enough_bits,
    without_limit,
)
from quietbits.figures.drawing.style import print_style
from quietbits.progress import silent

SETTING = {"data": "items", "clients": 9, "size": 4, "delta": DELTA, "adjacency": ADJACENCY, "population": "zipf"}
ERRORS = {"central_error": 1.0, "answer_zero_error": 50.0}


def design(mechanism: str, bits: float, error: float, **other: Any) -> dict[str, Any]:
    """Return a row of a design, local and unbiased without a bound."""
    usual = {"epsilon": 1.0, "trust_model": "local", "unbiased": True, "lower_bound": math.nan, "options": f"{bits}"}
    return {
        **SETTING,
        **ERRORS,
        **usual,
        "mechanism": mechanism,
        "bits_per_client": bits,
        "predicted_error": error,
        "worst_error": 2 * error,
    } | other


def field(best: pd.DataFrame, most: float, epsilon: float = 1.0) -> dict[str, Any]:
    """Return the only row of a field."""
    (row,) = best[(best["most_bits"] == most) & (best["epsilon"] == epsilon)].to_dict("records")
    return row


def test_a_field_has_the_least_error_of_messages_within_its_bits() -> None:
    best = best_designs(pd.DataFrame([design("short", 2.0, 60.0), design("long", 16.0, 4.0, lower_bound=1.6), design("longer", 99.0, 7.0)]))

    assert best["most_bits"].min() == 2.0
    assert [field(best, most)["mechanism"] for most in (2.0, 8.0, 16.0, 1024.0, math.inf)] == ["short", "short", "long", "long", "long"]
    assert (field(best, 2.0)["zero_wins"], field(best, 16.0)["zero_wins"]) == (True, False)
    assert (field(best, 16.0)["ratio_to_central"], field(best, 16.0)["ratio_to_bound"]) == (4.0, 5.0)
    assert math.isnan(field(best, 2.0)["ratio_to_bound"])
    assert enough_bits(best)["bits_per_client"].tolist() == [16.0]
    (read,) = without_limit(best).to_dict("records")
    assert (read["mechanism"], read["enough_bits"], read["ratio_to_bound"], read["zero_wins"]) == ("long", 16.0, 5.0, False)


def test_biased_designs_count_only_without_others() -> None:
    best = best_designs(pd.DataFrame([design("biased", 1.0, 1.0, unbiased=False), design("unbiased", 4.0, 9.0)]))
    assert [field(best, most)["mechanism"] for most in (1.0, 2.0, 4.0)] == ["biased", "biased", "unbiased"]


def test_of_equally_good_mechanisms_the_one_of_most_fields_wins() -> None:
    rows = [design("wide", 1.0, 10.0), design("wide", 64.0, 5.05), design("narrow", 64.0, 5.0), design("poor", 64.0, 5.2)]
    best = best_designs(pd.DataFrame(rows))
    assert field(best, 64.0)["mechanism"] == "wide"
    assert field(best, 64.0)["predicted_error"] == 5.05
    assert field(best, 64.0)["equally_good"] == "narrow"
    assert field(best, 1.0)["equally_good"] == ""


def test_the_bound_is_that_for_messages_of_any_length() -> None:
    rows = [design("same", 1.0, 10.0, lower_bound=bound) for bound in (8.0, math.nan, 4.0)]
    assert field(best_designs(pd.DataFrame(rows)), math.inf)["lower_bound"] == 4.0


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Return the designs of two small plans, with and without a limit."""
    points = [MapPoint(seed=0, data="items", epsilon=2.0, most_bits=most, clients=20, size=4) for most in (8, None)]
    return pd.DataFrame([row for point in points for row in point.run()])


@pytest.mark.parametrize("most", [8, None])
def test_winners_are_those_that_plans_recommend(rows: pd.DataFrame, most: int | None) -> None:
    task = Task(Categories(4), 20, 2.0, DELTA, ADJACENCY, message_bits=most)
    plan = plan_task(task, timed=False, tolerance=0.0, on_step=silent)
    best = best_designs(rows)
    best = best[best["most_bits"] == (most or math.inf)].set_index("trust_model")
    assert set(best.index) == set(plan.recommended)
    for model, name in plan.recommended.items():
        planned = plan.named(name)
        assert best["predicted_error"][model] == pytest.approx(planned.predicted_error, rel=0.02)
        assert name in (best["mechanism"][model], *best["equally_good"][model].split(", "))
        if best["mechanism"][model] == name and planned.lower_bound is not None:
            assert best["ratio_to_bound"][model] == pytest.approx(planned.worst_error / planned.lower_bound)
    assert set(best["central_error"]) == {plan.central_error}


@pytest.fixture(scope="module")
def picture(rows: pd.DataFrame) -> Figure:
    with print_style():
        return draw_map(best_designs(rows))


def test_every_region_has_the_mark_of_its_mechanism(picture: Figure, rows: pd.DataFrame) -> None:
    best = best_designs(rows)
    *maps, _, key = picture.axes
    legend = key.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} >= set(best["mechanism"])
    for axes, (model, panel) in zip(maps, best.groupby("trust_model", sort=False), strict=True):
        assert str(model) in axes.get_ylabel()
        fields = panel[np.isfinite(panel["most_bits"])].sort_values("most_bits")
        regions = 1 + int((fields["mechanism"] != fields["mechanism"].shift()).iloc[1:].sum())
        assert sum(line.get_marker() not in ("None", "") for line in axes.lines) == regions
        # A hatch covers each field in which answering without messages is better.
        assert len(axes.patches) == int(fields["zero_wins"].sum())


def test_colours_are_errors_over_a_trusted_servers(picture: Figure, rows: pd.DataFrame) -> None:
    best = best_designs(rows)
    for axes, (_, panel) in zip(picture.axes, best.groupby("trust_model", sort=False), strict=False):
        fields = panel[np.isfinite(panel["most_bits"])]
        drawn = np.ma.compressed(axes.collections[0].get_array())
        assert sorted(drawn) == pytest.approx(sorted(fields["ratio_to_central"]))


def test_the_full_figure_spans_bits_and_budgets() -> None:
    tasks = FIGURE.tasks(0, False)
    assert {task.data for task in tasks} == {"numbers", "vectors", "items"}
    assert (min(task.epsilon for task in tasks), max(task.epsilon for task in tasks)) == (0.25, 16.0)
    assert len({task.name for task in tasks}) == len(tasks)
    assert drawn_limits("items")[0] == 1.0
    assert math.isinf(drawn_limits("items")[-1])
    assert all(any(task.data == data and task.most_bits is None for task in tasks) for data in ("numbers", "vectors", "items"))
