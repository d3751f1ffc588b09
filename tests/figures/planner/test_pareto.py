"""Tests of the picture and the page of a plan."""

import pandas as pd
import pytest

from quietbits.analysis.planner.plan import plan_task
from quietbits.design.contracts.domains import Categories
from quietbits.design.contracts.task import Task
from quietbits.figures.drawing.style import print_style
from quietbits.figures.planner.pareto import draw_plan


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return plan_task(Task(Categories(100), 10_000, 1.0, 1e-6, "replace-one"), timed=False).designs_frame()


def test_every_trust_model_is_drawn_beside_what_is_possible(frame: pd.DataFrame) -> None:
    with print_style():
        (axes,) = draw_plan(frame).axes
    drawn = {str(line.get_label()) for line in axes.get_lines()}
    assert {"local", "secure-sum", "trusted server", "no messages", "proven bound, local"} <= drawn


def test_the_front_never_rises(frame: pd.DataFrame) -> None:
    with print_style():
        (axes,) = draw_plan(frame).axes
    for line in axes.get_lines():
        if line.get_drawstyle() == "steps-post":
            errors = list(line.get_ydata())
            assert errors == sorted(errors, reverse=True)
            assert list(line.get_xdata()) == sorted(line.get_xdata())


def test_no_name_reaches_below_the_axis(frame: pd.DataFrame) -> None:
    with print_style():
        figure = draw_plan(frame)
        figure.draw_without_rendering()
    (axes,) = figure.axes
    assert "shuffled-frequency-randomised-response" in {name.get_text() for name in axes.texts}
    assert min(name.get_window_extent().y0 for name in axes.texts) >= axes.get_window_extent().y0
