"""The figure of DP-REC's mean.

Points under test: measured errors agree with predictions, private points keep epsilon, all series are drawn.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from quietbits.design.relative_entropy.dp_rec import dp_rec_account
from quietbits.figures.dp_rec.mean import FIGURE, MARKS, MeanPoint, draw_errors, mean_points, summarise_means
from quietbits.figures.drawing.style import print_style

Rows = Callable[[Sequence[Any]], pd.DataFrame]
SMALL: dict[str, Any] = {
    "clients": 200,
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
def frame(rows_of: Rows) -> pd.DataFrame:
    return summarise_means(rows_of(mean_points(1, **SMALL)))


def test_what_was_measured_is_near_what_was_predicted(frame: pd.DataFrame) -> None:
    averaged = frame[frame["repetitions"] > 1]
    # Two repetitions of 20 coordinates are chi-square with at most 40 degrees of freedom: 5 sigma are 1.12.
    assert (np.abs(averaged["mean_squared_error"] / averaged["predicted_squared_error"] - 1) < 1.12).all()
    own = frame[frame["series"].str.startswith("DP-REC")]
    assert (own["squared_bias"] < own["predicted_squared_error"]).all()
    assert (own["message_bits"] >= own["index_bits"] + 64).all()
    assert set(frame.loc[frame["repetitions"] == 1, "drawn_from"]) == {"messages"}
    # The closer prior has the smaller error.
    by_ratio = frame[frame["panel"] == "ratio"].pivot(index="clip_ratio", columns="series", values="predicted_squared_error")
    assert by_ratio.index.tolist() == [0.5, 2.0]
    assert (by_ratio["DP-REC, prior at 1/√d"] < by_ratio["DP-REC, prior at zero"]).all()


def test_private_points_keep_their_promise(frame: pd.DataFrame) -> None:
    private = frame[frame["variant"] != ""]
    assert len(private) == 8
    assert (private["epsilon"] <= private["target_epsilon"]).all()
    assert set(private["trust_model"]) == {"central"}
    for _, row in private.iterrows():
        report = dp_rec_account(row["clip_ratio"], 200, 200, 1, 42, 200**-1.1)
        assert report.epsilon_by(row["variant"]) == row["epsilon"]
    others = frame[(frame["panel"] == "epsilon") & (frame["variant"] == "")]
    assert set(others["trust_model"]) == {"local"}
    assert (others["epsilon"] == others["target_epsilon"]).all()
    assert (frame["central_squared_error"].dropna() < frame["predicted_squared_error"][frame["panel"] == "epsilon"]).all()


def test_a_point_does_not_depend_on_which_other_points_there_are(frame: pd.DataFrame, rows_of: Rows) -> None:
    fewer = SMALL | {"bits": (7,), "grouped_bits": (), "coded_bits": (), "clip_ratios": (), "epsilons": (4.0,)}
    again = summarise_means(rows_of(mean_points(1, **fewer)))
    keys = ["panel", "series", "variant", "index_bits", "target_epsilon", "drawn_from"]
    expected = frame.set_index(keys).loc[again.set_index(keys).index].reset_index()
    pd.testing.assert_frame_equal(again[list(expected)], expected)


def test_runs_of_a_setting_are_averaged(frame: pd.DataFrame, rows_of: Rows) -> None:
    points = [point for point in mean_points(1, **SMALL) if isinstance(point, MeanPoint) and point.of.series == "PrivUnitG"]
    runs = rows_of(points)
    assert runs["repetition"].tolist() == [0, 1, 0, 1]
    result = frame[frame["series"] == "PrivUnitG"]
    assert result["mean_squared_error"].tolist() == pytest.approx(runs["squared_error"].to_numpy().reshape(2, 2).mean(axis=1))
    assert result["standard_error"].tolist() == pytest.approx(np.abs(runs["squared_error"].to_numpy().reshape(2, 2) @ [0.5, -0.5]))


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
