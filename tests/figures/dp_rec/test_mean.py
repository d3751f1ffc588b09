"""The figure of DP-REC's mean: every series is drawn, and it fits a page."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.figures.dp_rec.mean import FIGURE, MARKS, draw_errors, mean_points, summarise_means
from quietbits.figures.drawing.style import print_style

SMALL: dict[str, Any] = {
    "clients": 400,
    "dimension": 20,
    "repetitions": 2,
    "sqkr_repetitions": 2,
    "bits": (1, 7),
    "grouped_bits": (3,),
    "coded_bits": (2,),
    "sqkr_bits": (1,),
    "clip_ratios": (0.5, 2.0),
    "epsilons": (1.0, 4.0),
    "sqkr_epsilons": (4.0,),
    "mmrc_epsilons": (4.0,),
}


@pytest.fixture(scope="module")
def frame(rows_of: Callable[[Sequence[Any]], pd.DataFrame]) -> pd.DataFrame:
    return summarise_means(rows_of(mean_points(1, **SMALL)))


@pytest.fixture(scope="module")
def picture(frame: pd.DataFrame) -> Figure:
    with print_style():
        return draw_errors(frame)


def test_every_series_is_drawn(frame: pd.DataFrame, picture: Figure) -> None:
    legend = {text.get_text() for text in picture.legends[0].get_texts()}
    assert legend >= set(MARKS)
    assert set(frame["series"]) == set(MARKS)
    for axes, panel in zip(picture.axes, ("bits", "ratio", "epsilon"), strict=True):
        drawn = [np.asarray(line.get_ydata()).tolist() for line in axes.lines]
        for keys, series in frame[frame["panel"] == panel].groupby(["series", "variant", "drawn_from"], sort=False):
            assert series["mean_squared_error"].tolist() in drawn, keys
            if keys[-1] == "law":
                assert series["predicted_squared_error"].tolist() in drawn, keys


def test_what_is_drawn_by_default() -> None:
    points = FIGURE.tasks(0, False)
    assert {(point.of.clients, point.of.dimension) for point in points} == {(10_000, 200)}
    assert len({point.of for point in points}) == 71
