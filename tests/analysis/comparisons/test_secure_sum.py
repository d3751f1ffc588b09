"""Secure sums against bits: every mechanism keeps the same promise, and does what was predicted."""

import math

import numpy as np
import pandas as pd
import pytest

from quietbits.analysis.comparisons.secure_sum import SERIES, ComparisonSize, compare_secure_sums
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.errors import InfeasibleError

SMALL = ComparisonSize(dimension=32, clients=(150, 400), bits=(8, 9, 10, 12, 14), simulated_bits=(12, 14), repetitions=12)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return compare_secure_sums(SMALL, seed=3, workers=1, on_step=lambda *_: None)


def test_every_series_keeps_the_same_promise(frame: pd.DataFrame) -> None:
    assert set(frame["series"]) == set(SERIES)
    assert set(frame["clients"]) == {150, 400}
    assert (frame["realised_epsilon"] <= 1.0).all()
    assert (frame["realised_epsilon"] > 0.5).all()
    assert set(frame["epsilon"]) == {1.0}
    assert set(frame["delta"]) == {1e-5}
    assert set(frame["adjacency"]) == {"replace-one"}
    assert set(frame["trust_model"]) == {"secure-sum"}
    assert set(frame["seed"]) == {3}


def test_the_published_account_leaves_something_to_the_mechanisms_own() -> None:
    ball = NormBall(32, 2.0)
    published, own = (SERIES[name](ball, 150, 20, 1.0, 1e-5) for name in ("cpSGD, as published", "cpSGD"))
    assert published.mechanism.guarantee.epsilon < 0.9 < published.epsilon <= 1.0
    assert 0.9 < own.mechanism.guarantee.epsilon == own.epsilon <= 1.0


def test_references_and_bits(frame: pd.DataFrame) -> None:
    ball = NormBall(32, 2.0)
    for row in frame.itertuples():
        assert row.central_squared_error == central_gaussian_error(ball, row.clients, 1.0, 1e-5, "replace-one")
        assert row.worst_squared_error >= row.central_squared_error
    # Only the Poisson-binomial mechanism sends more coordinates than the vector has, twice as many: the dimension is a power of two.
    coordinates = np.where(frame["series"] == "Poisson-binomial", 2, 1)
    assert (frame["bits_per_coordinate"] <= coordinates * frame["bits"]).all()
    assert frame["bits_per_coordinate"].max() <= 32
    for _, series in frame.groupby(["clients", "series"]):
        assert (np.diff(series["bits_per_coordinate"]) > 0).all()
        assert (np.diff(series["worst_squared_error"]) <= 0.01 * series["worst_squared_error"].to_numpy()[:-1]).all()
    # With many bits, noise of whole steps is as good as that of a trusted server.
    fine = SERIES["discrete Gaussian"](ball, 400, 20, 1.0, 1e-5).mechanism
    assert fine.worst_variance / 400 == pytest.approx(central_gaussian_error(ball, 400, 1.0, 1e-5, "replace-one"), rel=1e-3)


def test_below_the_fewest_bits_there_is_nothing(frame: pd.DataFrame) -> None:
    fewest = frame[frame["fewest_bits"]]
    assert fewest.groupby(["clients", "series"]).ngroups == len(fewest)
    assert set(fewest["series"]) == set(SERIES)
    for row in fewest.itertuples():
        with pytest.raises(InfeasibleError, match=f"bits must be at least {row.bits} "):
            SERIES[row.series](NormBall(32, 2.0), row.clients, row.bits - 1, 1.0, 1e-5)


def test_measured_errors_are_the_predicted_ones(frame: pd.DataFrame) -> None:
    measured = frame[frame["rounds"] > 0]
    assert {12, 14} <= set(measured["bits"]) <= {12, 14, *frame.loc[frame["fewest_bits"], "bits"]}
    assert (measured["rounds"] == 12).all()
    assert (measured["wrapped_coordinates"] == 0).all()
    assert frame.loc[frame["rounds"] == 0, "measured_squared_error"].isna().all()
    # Vectors on the sphere are the worst but for rounding.
    assert (measured["predicted_squared_error"] <= measured["worst_squared_error"]).all()
    assert (measured["predicted_squared_error"] >= 0.85 * measured["worst_squared_error"]).all()
    # The mean of 12 rounds of 32 or more coordinates that are nearly normal has a relative deviation of sqrt(2 / 384): 5 of them are 0.36,
    # which happens to one of 20 points with a probability of about 1e-4; the seed is fixed.
    ratio = measured["measured_squared_error"] / measured["predicted_squared_error"]
    assert (np.abs(ratio - 1) < 5 * math.sqrt(2 / 384)).all()
    assert len(measured) >= 10


def test_a_row_does_not_depend_on_the_others(frame: pd.DataFrame) -> None:
    size = ComparisonSize(dimension=32, clients=(400,), bits=(11, 12), simulated_bits=(12,), repetitions=12)
    alone = compare_secure_sums(size, seed=3, workers=1, on_step=lambda *_: None)
    # Some start at the first number of bits that was tried, though one bit less would do.
    first = alone.drop_duplicates("series").set_index("series")["fewest_bits"]
    assert not first["discrete Gaussian"]
    assert not first["Poisson-binomial"]
    columns = ["series", "bits", "worst_squared_error", "measured_squared_error", "standard_error"]
    for row in alone.loc[alone["bits"] == 12, columns].to_dict("records"):
        same = frame[(frame["series"] == row["series"]) & (frame["bits"] == 12) & (frame["clients"] == 400)]
        assert same[columns].to_dict("records") == [row]


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (ComparisonSize(repetitions=1), "repetitions must be a whole number from 2 to 1000, got 1"),
        (ComparisonSize(bits=(1, 2)), "bits must be a whole number from 2 to 62, got 1"),
    ],
)
def test_a_comparison_that_cannot_be_is_refused(size: ComparisonSize, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_secure_sums(size, seed=0, workers=1, on_step=lambda *_: None)
