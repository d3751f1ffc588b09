"""The figure of DP-REC's bias has its series, and fits a page."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.dp_rec.bits import FIGURE, BiasPoint, draw_bias, with_fitted_slopes
from quietbits.figures.drawing.style import print_style


@pytest.fixture(scope="module")
def frame(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    points = [
        BiasPoint(seed=2, clip_ratio=clip_ratio, dimension=dimension, group_bits=bits, seeds=20 if bits in (1, 6) else 0)
        for clip_ratio in (0.5, 1.5)
        for dimension in (1, 3)
        for bits in range(13)
    ]
    return with_fitted_slopes(rows_of(points))


@pytest.fixture(scope="module")
def picture(frame: pd.DataFrame) -> Figure:
    with print_style():
        return draw_bias(frame)


def test_the_figure_draws_every_line_and_every_point(frame: pd.DataFrame, picture: Figure) -> None:
    left, *right = picture.axes
    assert len(right) == 2
    lines = [np.asarray(line.get_ydata()).tolist() for line in left.lines]
    for _, own in frame[frame["dimension"] == 1].groupby("clip_ratio"):
        assert own["relative_bias"].tolist() in lines
        assert any(line.get_xdata()[0] == own["lemma_bits"].iloc[0] and len(line.get_xdata()) == 1 for line in left.lines)
    for axes, (_, panel) in zip(right, frame.groupby("dimension"), strict=True):
        lines = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
        for clip_ratio, own in panel.groupby("clip_ratio"):
            assert own["relative_error"].tolist() in lines
            measured = own.loc[own["seeds"] > 0, "measured_squared_error"] / clip_ratio**2
            assert any(len(line) == len(measured) and line == pytest.approx(measured.tolist()) for line in lines)
            assert [own["floor"].iloc[0]] * 2 in lines


def test_what_is_drawn_by_default() -> None:
    tasks = FIGURE.tasks(0, False)
    assert len(tasks) == 4 * 2 * 17
    assert sum(task.seeds for task in tasks) == 4 * 2 * 3 * 1000
