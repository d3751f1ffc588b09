"""Tests of the table of exact recovery, at a small size."""

import math

import numpy as np
import pandas as pd
import pytest

from quietbits.figures.frequencies.freq_codes import (
    ExactRecoveryPoint,
    arrange_exact_recovery,
    exact_recovery_tasks,
    item_probabilities,
)
from quietbits.solvers.limits.histogram_code_size import code_size


@pytest.fixture(scope="module")
def arranged() -> pd.DataFrame:
    tasks = exact_recovery_tasks(4, sizes=((5, 40),), measurements=(3, 24, 36, 99), repetitions=3, time_limit=5.0)
    assert len({task.name for task in tasks}) == len(tasks) == 3 * 3 * (3 * 3 + 1)
    return arrange_exact_recovery(pd.DataFrame([row for task in tasks for row in task.run()]))


def test_codes_recover_what_has_measurements_enough(arranged: pd.DataFrame) -> None:
    success = arranged.set_index(["code", "prior", "measurements"])["success"]
    assert (success["identity"] == 1).all()
    # There are C(44, 5), about a million, histograms, and 6^3 sums of three measurements.
    assert success["bernoulli", "uniform", 3] < 1
    assert success["bernoulli", "uniform", 36] == success["rademacher", "geometric", 36] == 1
    assert (success["bernoulli"] >= success["rademacher"]).all()
    # The relaxation has several solutions for some unique histograms; if its solution is unique, it is the histogram.
    assert (success["bernoulli"] >= success["relaxation"]).all()
    assert success["relaxation", "uniform", 36] == 1
    assert (arranged["proven"] <= arranged["success"]).all()
    assert ((arranged["low"] <= arranged["success"] + 1e-12) & (arranged["success"] <= arranged["high"] + 1e-12)).all()


def test_bounds_are_beside(arranged: pd.DataFrame) -> None:
    assert (arranged["rigorous_measurements"] == code_size(5, 40)).all()
    assert np.allclose(arranged["reference_measurements"], 5 * math.log(40) / math.log(5))
    assert (arranged["histogram_measurements"] < arranged["rigorous_measurements"]).all()


def test_all_codes_have_the_same_items() -> None:
    setting = {"seed": 1, "prior": "zipf", "measurements": 20, "clients": 6, "dimension": 30, "time_limit": 5.0}
    rows = [ExactRecoveryPoint(code=code, **setting).run()[0] for code in ("bernoulli", "rademacher")]
    assert rows[0]["distinct"] == rows[1]["distinct"]
    assert rows[0]["histogram_measurements"] == rows[1]["histogram_measurements"]


@pytest.mark.parametrize("prior", ["uniform", "zipf", "geometric"])
def test_probabilities(prior: str) -> None:
    shares = item_probabilities(prior, 5)
    assert shares.sum() == pytest.approx(1)
    assert shares[1] / shares[0] == pytest.approx({"uniform": 1, "zipf": 0.5, "geometric": 0.8}[prior])


@pytest.mark.parametrize(
    ("change", "message"), [({"code": "x"}, "code must be"), ({"prior": "x"}, "prior must be"), ({"clients": 1}, "clients")]
)
def test_bad_fields(change: dict, message: str) -> None:
    setting = {"seed": 1, "code": "bernoulli", "prior": "zipf", "measurements": 20, "clients": 6, "dimension": 30}
    with pytest.raises(ValueError, match=message):
        ExactRecoveryPoint(**(setting | change)).run()
