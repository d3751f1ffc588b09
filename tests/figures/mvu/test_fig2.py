"""Figure 2 of the MVU paper has lines and points of every mechanism."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.drawing.style import print_style
from quietbits.figures.mvu import fig2 as scalar_mean
from quietbits.figures.mvu.fig2 import FIGURE, MECHANISMS, ScalarPoint, draw_variances


@pytest.fixture(scope="module")
def variances(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    size = {"clients": 100, "batches": 10, "runs": 1}
    with pytest.MonkeyPatch.context() as patch:
        # Near-optimal tables, which are faster to design, suffice for this test.
        patch.setattr(scalar_mean, "design_mvu", partial(scalar_mean.design_mvu, starts=1))
        return rows_of([ScalarPoint(seed=0, mechanism=name, epsilon=epsilon, **size) for epsilon in (0.5, 3.0) for name in MECHANISMS])


@pytest.fixture(scope="module")
def picture(variances: pd.DataFrame) -> Figure:
    with print_style():
        return draw_variances(variances)


def test_fig2_draws_lines_and_points_of_every_mechanism(picture: Figure, variances: pd.DataFrame) -> None:
    figure = picture
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert legend == {*variances["mechanism"], "certified lower bound on the average"}
    for axes, (_, panel) in zip(figure.axes, variances.groupby("epsilon"), strict=True):
        drawn = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]
        for _, series in panel.groupby("mechanism"):
            for column in ("exact_variance", "simulated_variance"):
                assert any(np.array_equal(series[column], data, equal_nan=True) for data in drawn)
        assert any(np.all(data == panel["lower_bound"].iloc[0]) for data in drawn)
        assert len(drawn) == 2 * 6 + 1


def test_what_is_drawn_by_default() -> None:
    tasks = FIGURE.tasks(0, False)
    assert {(task.clients, task.batches, task.runs) for task in tasks} == {(100_000, 500, 10)}
    assert [(task.epsilon, task.mechanism) for task in tasks] == [(epsilon, name) for epsilon in (1.0, 3.0, 5.0) for name in MECHANISMS]
