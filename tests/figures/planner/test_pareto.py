"""Tests of the picture and the page of a plan."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.cbook import pts_to_poststep
from matplotlib.path import Path

from quietbits.analysis.planner.plan import plan_task
from quietbits.design.contracts.domains import Categories, Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.figures.drawing.labels import text_box
from quietbits.figures.drawing.style import CAPTION_LINES, print_style
from quietbits.figures.planner.pareto import draw_plan
from quietbits.progress import silent


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return plan_task(TASKS["items"], timed=False, on_step=silent).designs_frame()


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


TASKS = {
    "items": Task(Categories(100), 10_000, 1.0, 1e-6, "replace-one"),
    "number": Task(Interval(0.0, 1.0), 1000, 1.0, 1e-6, "replace-one"),
    "vectors over rounds": Task(NormBall(16, 2.0), 300, 4.0, 1e-5, "add-or-remove-one", rounds=20),
}


@pytest.mark.parametrize("name", TASKS)
def test_names_cover_no_point_no_line_and_no_name(name: str, frame: pd.DataFrame) -> None:
    own = frame if name == "items" else plan_task(TASKS[name], timed=False, on_step=silent).designs_frame()
    with print_style():
        figure = draw_plan(own)
        figure.draw_without_rendering()
    (axes,) = figure.axes
    names = {text.get_text() for text in axes.texts}
    assert set(own[own["recommended"].astype(bool)]["mechanism"]) <= names
    boxes = [text_box(text) for text in axes.texts]
    inside = axes.get_window_extent()
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1 for box in boxes)
    assert not any(first.overlaps(second) for first, second in combinations(boxes, 2))
    for box in boxes:
        for points in axes.collections:
            assert box.count_contains(axes.transData.transform(points.get_offsets())) == 0
        for line in axes.lines:
            path = line.get_transform().transform_path(line.get_path())
            if line.get_drawstyle() == "steps-post":
                path = Path(np.column_stack(pts_to_poststep(*path.vertices.T)))
            assert not (line.get_linestyle() != "None" and path.intersects_bbox(box, filled=False))
            assert not (line.get_marker() not in ("", "None", None) and box.count_contains(path.vertices))


def test_captions_of_plans_take_three_lines(frame: pd.DataFrame) -> None:
    long = frame.assign(rounds=1000, clients=10_000_000, population="positive-sphere", adjacency="add-or-remove-one")
    with print_style():
        assert len(draw_plan(long).get_supxlabel().splitlines()) <= CAPTION_LINES
