"""Secure sums against bits.

Points under test: every mechanism keeps the same guarantee, and has the predicted error.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from quietbits.analysis.catalogue.registry import build_mechanism
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task
from quietbits.errors import InfeasibleError
from quietbits.figures.beyond.secure_sum_bits import PUBLISHED, SERIES, SumPoint, SumProblem, select_sums, sum_points

Rows = Callable[[Sequence[Any]], pd.DataFrame]
SMALL: dict[str, Any] = {"dimension": 32, "clients": (150, 400), "bits": (8, 10, 14), "simulated_bits": (14,), "repetitions": 8}


@pytest.fixture(scope="module")
def frame(rows_of: Rows) -> pd.DataFrame:
    return select_sums(rows_of(sum_points(3, **SMALL)))


def test_every_series_keeps_the_same_promise(frame: pd.DataFrame) -> None:
    assert set(frame["series"]) == set(SERIES)
    assert set(frame["clients"]) == {150, 400}
    assert (frame["realised_epsilon"] <= 1.0).all()
    assert (frame["realised_epsilon"] > 0.5).all()
    assert set(frame["epsilon"]) == {1.0}
    assert set(frame["delta"]) == {1e-5}
    assert set(frame["adjacency"]) == {"replace-one"}
    assert set(frame["trust_model"]) == {"secure-sum"}


def test_the_published_account_leaves_something_to_the_mechanisms_own() -> None:
    by_theorem, by_own = (SumProblem(name, 150, 32) for name in (PUBLISHED, "cpSGD"))
    published, own = by_theorem.mechanism(20), by_own.mechanism(20)
    assert published is not None
    assert own is not None
    assert published.guarantee.epsilon < 0.9 < by_theorem.realised_epsilon(published) <= 1.0
    assert 0.9 < own.guarantee.epsilon == by_own.realised_epsilon(own) <= 1.0


def test_references_and_bits(frame: pd.DataFrame) -> None:
    ball = NormBall(32, 2.0)
    for row in frame.itertuples():
        assert row.central_squared_error == central_gaussian_error(ball, row.clients, 1.0, 1e-5, "replace-one")
        assert row.worst_mean_variance >= row.central_squared_error
    # The Poisson-binomial mechanism alone sends more coordinates than the vector has. It sends twice as many, as the dimension is a power
    # of two.
    coordinates = np.where(frame["series"] == "Poisson-binomial", 2, 1)
    assert (frame["bits_per_coordinate"] <= coordinates * frame["bits"]).all()
    assert frame["bits_per_coordinate"].max() <= 32
    for _, series in frame.groupby(["clients", "series"]):
        assert (np.diff(series["bits_per_coordinate"]) > 0).all()
        assert (np.diff(series["worst_mean_variance"]) <= 0.01 * series["worst_mean_variance"].to_numpy()[:-1]).all()
    # With many bits, noise of whole steps is as good as that of a trusted server.
    fine = SumProblem("discrete Gaussian", 400, 32).mechanism(20)
    assert fine is not None
    assert fine.variance_bound / 400 == pytest.approx(central_gaussian_error(ball, 400, 1.0, 1e-5, "replace-one"), rel=1e-3)


def test_below_the_fewest_bits_there_is_nothing(frame: pd.DataFrame) -> None:
    fewest = frame[frame["fewest_bits"]]
    assert fewest.groupby(["clients", "series"]).ngroups == len(fewest)
    assert set(fewest["series"]) == set(SERIES)
    for row in fewest.itertuples():
        assert SumProblem(row.series, row.clients, 32).mechanism(row.bits - 1) is None
        if row.series != PUBLISHED:
            task = Task(NormBall(32, 2.0), row.clients, 1.0, 1e-5, "replace-one")
            with pytest.raises(InfeasibleError, match=f"bits must be at least {row.bits} "):
                build_mechanism(SERIES[row.series], task, {"bits": row.bits - 1})


def test_measured_errors_are_the_predicted_ones(frame: pd.DataFrame) -> None:
    measured = frame[frame["rounds"] > 0]
    assert set(measured["bits"]) == {14, *frame.loc[frame["fewest_bits"], "bits"]}
    assert (measured["rounds"] == 8).all()
    assert (measured["wrapped_coordinates"] == 0).all()
    assert frame.loc[frame["rounds"] == 0, "measured_squared_error"].isna().all()
    # Vectors on the sphere are the worst case up to rounding.
    assert (measured["predicted_squared_error"] <= measured["worst_mean_variance"]).all()
    assert (measured["predicted_squared_error"] >= 0.85 * measured["worst_mean_variance"]).all()
    # The mean of 8 rounds of at least 32 nearly normal coordinates has a relative deviation of sqrt(2 / 256). Five deviations are 0.44, and
    # one of 20 points exceeds them with probability 1e-4; the seed is fixed.
    ratio = measured["measured_squared_error"] / measured["predicted_squared_error"]
    assert (np.abs(ratio - 1) < 5 * math.sqrt(2 / 256)).all()
    assert len(measured) >= 10


def test_a_row_does_not_depend_on_the_others(frame: pd.DataFrame, rows_of: Rows) -> None:
    alone = select_sums(rows_of(sum_points(3, **SMALL | {"clients": (400,), "bits": (11, 14)})))
    # Some series start at the first number of bits that the figure tries, though one bit less would suffice.
    first = alone.drop_duplicates("series").set_index("series")["fewest_bits"]
    assert not first["discrete Gaussian"]
    assert not first["Poisson-binomial"]
    columns = ["series", "bits", "worst_mean_variance", "measured_squared_error", "standard_error"]
    for row in alone.loc[alone["bits"] == 14, columns].to_dict("records"):
        same = frame[(frame["series"] == row["series"]) & (frame["bits"] == 14) & (frame["clients"] == 400)]
        assert same[columns].to_dict("records") == [row]


def test_bits_that_are_not_used_add_no_row() -> None:
    shared = {"clients": 10, "series": "one"}
    rows = pd.DataFrame([shared | {"bits": bits, "bits_per_coordinate": used} for bits, used in ((5, 4.0), (6, 4.0), (7, 3.9), (8, 6.0))])
    others = rows.assign(clients=5)
    selected = select_sums(pd.concat([rows, others], ignore_index=True))
    assert selected["bits"].tolist() == [5, 8, 5, 8]
    assert selected["clients"].tolist() == [5, 5, 10, 10]


def test_what_is_not_compressed_adds_no_row() -> None:
    point = SumPoint(seed=0, problem=SumProblem("discrete Gaussian", 150, 32), bits=33, repetitions=2)
    assert point.run(prepared=10) == []
    assert point.run(prepared=34) == []


def test_another_series_is_refused() -> None:
    with pytest.raises(ValueError, match="series must be one of discrete Gaussian, Skellam"):
        SumProblem("best", 100).mechanism(10)
