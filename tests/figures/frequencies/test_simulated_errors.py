"""Tests of errors of frequencies: the table, predictions and projections."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from quietbits.figures.frequencies.simulated_errors import (
    CENTRAL,
    SERIES,
    FrequencyPoint,
    arrange_frequencies,
    frequency_points,
    sketch_size,
)

POINTS = frequency_points(3, "zipf", 300, (400,), (2.0,), 12)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.DataFrame([row for point in POINTS for row in point.run()])


def test_there_is_a_row_for_each_series_and_round(rows: pd.DataFrame) -> None:
    assert rows.groupby("series").size().to_dict() == dict.fromkeys([*SERIES, CENTRAL], 12)
    assert (rows["realised_epsilon"] <= 2.0).all()
    assert set(rows.loc[rows["trust_model"] == "local", "delta"]) == {0.0}
    # All series have the same items.
    assert rows.groupby("repetition")["zero_error"].nunique().eq(1).all()


def test_errors_before_projection_are_those_that_are_predicted(rows: pd.DataFrame) -> None:
    for name, series in rows[rows["predicted_squared_error"].notna()].groupby("series"):
        spread = series["raw_squared_error"].sem()
        assert abs(series["raw_squared_error"].mean() - series["predicted_squared_error"].mean()) < 5 * spread, name


def test_projection_brings_estimates_nearer(rows: pd.DataFrame) -> None:
    assert (rows["error"] ** 2 <= rows["raw_squared_error"] * (1 + 1e-9)).all()
    assert (rows["largest_error"] <= rows["error"]).all()
    assert (rows["error"] <= np.sqrt(2)).all()


def test_a_histogram_in_a_secure_sum_is_as_good_as_the_trusted_server(rows: pd.DataFrame) -> None:
    averages = arrange_frequencies(rows).set_index("series")
    assert averages["error"]["discrete Gaussian histogram"] == pytest.approx(averages["error"][CENTRAL], rel=0.15)
    assert averages["error"]["projective geometry"] > averages["error"][CENTRAL]
    assert (averages["repetitions"] == 12).all()
    assert list(averages.index) == [*SERIES, CENTRAL]


def test_a_point_gives_the_same_rows_again() -> None:
    point = replace(POINTS[4], repetitions=2)
    assert point.run() == point.run()
    assert point.run() != replace(point, seed=4).run()


def test_a_sketch_is_about_a_sixth_of_a_histogram() -> None:
    for items in (1000, 10_000, 100_000):
        size = sketch_size(items)
        assert 4 < items / (size["rows"] * size["width"]) < 9


def test_a_population_that_is_unknown_is_refused() -> None:
    point = FrequencyPoint(seed=0, series=CENTRAL, population="normal", categories=10, clients=10, epsilon=1.0)
    with pytest.raises(ValueError, match="population must be one of"):
        point.run()
