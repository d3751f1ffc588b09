"""Tests of sparse recovery.

Points under test: the operator against its matrix, errors against predictions, and cases in which zero is best.
"""

import math

import numpy as np
import pandas as pd
import pytest

from quietbits.design.transforms.hadamard_sketch import HadamardSketch
from quietbits.figures.linear_compression.sparse import (
    DECODERS,
    RecoveryPoint,
    arrange_recovery,
    map_zero_wins,
    measuring_operator,
    recovery_tasks,
)

NOISES = (0.125, 1.0, 16.0)


@pytest.fixture(scope="module")
def arranged(rows_of) -> pd.DataFrame:
    tasks = recovery_tasks(3, sparsities=(2, 128), noise_deviations=NOISES, dimension=2**10, measurements=2**8, repetitions=12)
    return arrange_recovery(rows_of(tasks))


def test_measurements_have_columns_of_the_norm_that_they_are_stated_for() -> None:
    operator = measuring_operator(HadamardSketch(32, 12, seed=0))
    matrix = operator.matmat(np.eye(32))
    assert np.abs(operator.rmatmat(np.eye(12)).T - matrix).max() < 1e-12
    assert np.abs(matrix) == pytest.approx(np.ones((12, 32)), rel=1e-12)


def test_there_is_a_row_for_each_setting_and_decoder(arranged: pd.DataFrame) -> None:
    assert len(arranged) == 2 * len(NOISES) * len(DECODERS)
    assert (arranged["repetitions"] == 12).all()
    assert list(arranged["decoder"][: len(DECODERS)]) == list(DECODERS)
    assert (arranged["coordinate_noise"] == arranged["noise_deviation"] / 16).all()
    assert not arranged["mean_squared_error"].isna().any()


def test_errors_are_as_predicted(arranged: pd.DataFrame) -> None:
    by = arranged.set_index(["decoder", "sparsity", "noise_deviation"])
    ordinary = by.loc["ordinary"]
    # The predicted error is exact: six means are each within 4.5 standard errors, estimated from 12 repetitions.
    gaps = (ordinary["mean_squared_error"] - ordinary["predicted_squared_error"]) / ordinary["standard_error"]
    assert gaps.abs().max() < 4.5
    assert ordinary["predicted_squared_error"].loc[(2, 1.0)] == 2**10 / 2**8 * 2 - 1
    # The oracle's prediction is a lower bound; 128 columns of length 256 are far from orthogonal.
    oracle = by.loc["oracle"]
    ratio = oracle["mean_squared_error"] / oracle["predicted_squared_error"]
    assert ratio.loc[128].between(1.5, 2.5).all()
    assert ratio.loc[2].between(0.4, 2).all()
    assert by.loc["zero"]["mean_squared_error"].to_numpy() == pytest.approx(np.ones(6))
    # With the right support, the refit equals the oracle; the Lasso shrinks the two entries by about the penalty.
    result = by.loc[("lasso-refit", 2, 0.125)]
    assert (result["missed_entries"], result["false_entries"]) == (0, 0)
    assert result["mean_squared_error"] == pytest.approx(by.loc[("oracle", 2, 0.125), "mean_squared_error"], rel=1e-6)
    assert by.loc[("lasso", 2, 0.125), "mean_squared_error"] == pytest.approx(2 * result["penalty"] ** 2, rel=0.3)


def test_the_map_says_where_zero_wins(arranged: pd.DataFrame) -> None:
    rows = map_zero_wins(arranged).set_index(["sparsity", "noise_deviation"])
    assert len(rows) == 2 * len(NOISES)
    assert rows.loc[(2, 0.125), "best"] == "lasso-refit"
    assert rows.loc[(2, 1.0), "best"] == "lasso-refit"
    # In this case, the Lasso selects no coordinate, and equals the estimate zero.
    assert rows.loc[(2, 16.0), "lasso"] == rows.loc[(2, 16.0), "zero"] == pytest.approx(1)
    assert rows.loc[(2, 16.0), "best"] == "zero"
    assert rows["zero_wins"].tolist() == (rows["best"] == "zero").tolist()
    assert rows["zero_wins"].loc[2].tolist() == [False, False, True]
    assert rows.loc[(128, 16.0), "zero_beats_oracle"]
    assert not rows.loc[(2, 1.0), "zero_beats_oracle"]
    wide = rows[["zero", "lasso-refit", "lasso", "ordinary"]]
    assert (wide.min(axis=1) == [row[best] for (_, row), best in zip(wide.iterrows(), rows["best"], strict=True)]).all()


def test_noise_only_scales_what_is_drawn() -> None:
    """Levels of noise share their draws; the oracle's error is then proportional."""
    low, high = (RecoveryPoint(seed=1, sparsity=4, noise_deviation=noise, dimension=256, measurements=64) for noise in (0.5, 2.0))
    errors = [{row["decoder"]: row["squared_error"] for row in point.run()}["oracle"] for point in (low, high)]
    assert errors[1] == pytest.approx(16 * errors[0], rel=1e-6)
    other = RecoveryPoint(seed=1, sparsity=4, noise_deviation=0.5, dimension=256, measurements=64, repetition=1)
    assert other.run()[3]["squared_error"] != pytest.approx(errors[0], rel=1e-6)


def test_a_refit_of_more_entries_than_measurements_has_no_error() -> None:
    """The Lasso may select more entries than the 16 measurements."""
    for seed, more in ((3, False), (0, True)):
        point = RecoveryPoint(seed=seed, sparsity=8, noise_deviation=0.01, dimension=64, measurements=16)
        rows = {row["decoder"]: row for row in point.run()}
        assert (rows["lasso"]["entries"] > 16) == more
        assert math.isnan(rows["lasso-refit"]["squared_error"]) == more
        assert not math.isnan(rows["lasso"]["squared_error"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sparsity": 65}, "sparsity must be a whole number from 1 to 64, got 65"),
        ({"noise_deviation": 0.0}, r"noise_deviation must be a number .*, got 0\.0"),
        ({"dimension": 60}, "measurements must be a whole number from 1 to 60, got 64"),
        ({"measurements": 512}, "measurements must be a whole number from 1 to 256, got 512"),
    ],
)
def test_bad_points(change: dict, message: str) -> None:
    good = {"sparsity": 4, "noise_deviation": 1.0, "dimension": 256, "measurements": 64}
    with pytest.raises(ValueError, match=message):
        RecoveryPoint(seed=0, **(good | change)).run()
