"""Figure 1 of the cpSGD paper has every series, and hollow points where a condition binds."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.cpsgd.fig1 import FIGURE, NoisePoint, draw_noise
from quietbits.figures.drawing.style import print_style

KINDS = [("analytic", None), ("classic", None), ("theorem", 1.0), ("theorem", 0.01), ("exact", 1.0), ("exact", 0.1)]


@pytest.fixture(scope="module")
def noise(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    return rows_of(
        [
            NoisePoint(seed=0, accounting=accounting, epsilon=epsilon, delta=1e-6, scale=scale)
            for epsilon in (0.5, 1.0, 2.0, 5.0)
            for accounting, scale in KINDS
        ]
    )


@pytest.fixture(scope="module")
def picture(noise: pd.DataFrame) -> Figure:
    with print_style():
        return draw_noise(noise)


def test_cpsgd_fig1_draws_every_series_and_hollow_points_where_a_condition_binds(picture: Figure, noise: pd.DataFrame) -> None:
    for axes, accounting in zip(picture.axes, ("theorem", "exact"), strict=True):
        drawn = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
        hollow = {
            (float(x), float(y))
            for line in axes.lines
            if line.get_markerfacecolor() == "white"
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
        }
        own = noise[noise["accounting"] == accounting]
        for _, series in own.groupby("scale"):
            assert series["noise_squared_error"].tolist() in drawn
        binding = own[own["condition_binds"]]
        assert hollow == set(zip(binding["epsilon"], binding["noise_squared_error"], strict=True)) != set()
        analytic = noise[noise["accounting"] == "analytic"]
        assert analytic["noise_squared_error"].tolist() in drawn
        assert analytic["certified_error"].tolist() in drawn


def test_what_is_drawn_by_default() -> None:
    tasks = FIGURE.tasks(0, False)
    assert len({task.epsilon for task in tasks}) == 20
    assert {task.delta for task in tasks} == {1e-6}
    assert {task.scale for task in tasks if task.accounting == "theorem"} == {1.0, 0.1, 0.01, 0.001}
