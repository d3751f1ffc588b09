"""The figure of secure sums against bits has lines and points beside the trusted server."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.beyond.secure_sum_bits import FIGURE, draw_bits, select_sums, sum_points
from quietbits.figures.drawing.style import print_style


@pytest.fixture(scope="module")
def sums(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    return select_sums(rows_of(sum_points(0, dimension=16, clients=(150, 300), bits=(10, 12), simulated_bits=(12,), repetitions=2)))


@pytest.fixture(scope="module")
def picture(sums: pd.DataFrame) -> Figure:
    with print_style():
        return draw_bits(sums)


def test_secure_sums_are_drawn_as_lines_and_points_beside_the_trusted_server(picture: Figure, sums: pd.DataFrame) -> None:
    legend = {text.get_text() for text in picture.legends[0].get_texts()}
    assert legend == {*sums["series"], "trusted server, Gaussian", "no messages, at most", "fewest bits"}
    for axes, (_, panel) in zip(picture.axes, sums.groupby("clients"), strict=True):
        drawn = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
        for _, series in panel.groupby("series"):
            assert series["worst_mean_variance"].tolist() in drawn
            assert series.loc[series["rounds"] > 0, "measured_squared_error"].tolist() in drawn
            assert series.loc[series["fewest_bits"], "worst_mean_variance"].tolist() in drawn
        low, high = axes.get_ylim()
        central = panel["central_squared_error"].iloc[0]
        assert [central, central] in drawn
        assert low < central < high


def test_what_is_drawn_by_default() -> None:
    problems = {point.problem for point in FIGURE.tasks(0, False)}
    assert {problem.clients for problem in problems} == {100, 1000, 10_000}
    assert {(problem.dimension, problem.epsilon, problem.delta) for problem in problems} == {(1024, 1.0, 1e-5)}
