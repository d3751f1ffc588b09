"""Tests of summaries of sweeps.

Points under test: averages over repetitions, and the errors of a trusted server for comparison.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from quietbits.analysis.sweeps.run import run_tasks
from quietbits.analysis.sweeps.spec import parse_sweep
from quietbits.analysis.sweeps.summary import summarise_sweep
from quietbits.design.contracts.gaussian import central_gaussian_error
from quietbits.design.contracts.norm_ball import NormBall

FEW: dict[str, Any] = {
    "population": "sphere",
    "clients": 50,
    "dimension": 4,
    "norm": 2,
    "epsilon": [1, 3],
    "delta": 1e-5,
    "adjacency": "replace-one",
    "repetitions": 3,
    "mechanism": [{"name": "laplace"}, {"name": "gaussian"}],
}


def results_of(folder: Path, **changes: Any) -> pd.DataFrame:
    return run_tasks(parse_sweep(FEW | changes).tasks(), folder)


def test_averages_and_ratios(tmp_path: Path) -> None:
    results = results_of(tmp_path, clip_norm=0.5, scale=1.5, population=["sphere", "uniform-l1"])
    summary = summarise_sweep(results)
    assert summary["label"].tolist() == ["laplace", "gaussian"] * 4
    assert summary["epsilon"].tolist() == [1, 1, 3, 3] * 2
    assert summary["repetitions"].tolist() == [3] * 8
    # Clipping shortens all vectors of the sphere of radius 0.75, and vectors with an L1 norm of 0.75 if the L2 norm is above 0.5.
    assert summary["clipped_share"].tolist()[:4] == [1.0] * 4
    assert 0 <= summary["clipped_share"].iloc[4] < 1
    for row in summary.to_dict("records"):
        chosen = results[
            (results[["mechanism", "epsilon", "population"]] == [row["mechanism"], row["epsilon"], row["population"]]).all(axis=1)
        ]
        errors = chosen[chosen["metric"] == "squared_error"]["value"]
        assert row["mean_squared_error"] == pytest.approx(errors.mean(), rel=1e-13)
        assert row["standard_error"] == pytest.approx(errors.std(ddof=1) / np.sqrt(3), rel=1e-13)
        central = central_gaussian_error(NormBall(4, 2.0, 0.5), 50, row["epsilon"], 1e-5, "replace-one")
        assert row["central_error"] == pytest.approx(central, rel=5e-6)
        assert row["ratio_to_central"] == pytest.approx(errors.mean() / row["central_error"], rel=1e-13)
    assert summary["wrapped_coordinates"].isna().all()


def test_what_does_not_apply_is_missing(tmp_path: Path) -> None:
    summary = summarise_sweep(results_of(tmp_path, repetitions=1, delta=0, mechanism=[{"name": "cldp"}]))
    assert summary[["standard_error", "central_error", "ratio_to_central"]].isna().all(axis=None)
    assert (summary["lower_bound"] < summary["worst_squared_error"]).all()
    assert summarise_sweep(results_of(tmp_path, mechanism=[{"name": "skellam"}]))["label"].tolist() == ["skellam (bits 16)"] * 2
    with pytest.raises(ValueError, match="results must have rows, got none"):
        summarise_sweep(pd.DataFrame())


def test_trust_models_side_by_side(tmp_path: Path) -> None:
    names = ["gaussian", "distributed-discrete-gaussian", "dp-rec"]
    results = results_of(tmp_path, clients=[20, 40], epsilon=2, mechanism=[{"name": name} for name in names])
    summary = summarise_sweep(results)
    assert summary["mechanism"].tolist() == names * 2
    assert summary["trust_model"].tolist() == ["local", "secure-sum", "local"] * 2
    assert set(summary["adjacency"]) == {"replace-one"}
    assert summary["wrapped_coordinates"].isna().tolist() == [True, False, True] * 2
    assert summary["modulus"].dropna().tolist() == [2**16] * 2
    assert (summary["realised_epsilon"] <= 2).all()
    assert summary["bias_bound"].gt(0).tolist() == [False, True, True] * 2
    # A secure sum is nearly as exact as a trusted server, which adds noise once; local mechanisms add noise for each client.
    local, secure = (summary[summary["mechanism"] == name].set_index("clients")["predicted_squared_error"] for name in names[:2])
    central = summary.drop_duplicates("clients").set_index("clients")["central_error"]
    np.testing.assert_allclose(secure, central, rtol=0.01)
    np.testing.assert_allclose(local / central, [20, 40], rtol=1e-6)


def test_bits_per_coordinate_are_those_of_real_coordinates(tmp_path: Path) -> None:
    summary = summarise_sweep(results_of(tmp_path, dimension=5, epsilon=1, mechanism=[{"name": "distributed-skellam", "bits": 16}]))
    assert summary[["padded_dimension", "bits_per_client", "bits_per_coordinate"]].to_numpy().tolist() == [[8, 128, 128 / 5]]


def test_numbers_of_intervals_have_a_lower_bound(tmp_path: Path) -> None:
    document = {key: value for key, value in FEW.items() if key not in ("dimension", "norm")} | {"population": ["uniform", "ends"]}
    document |= {"interval": [[0, 1], [0, 2]], "delta": 0, "epsilon": 2}
    names = ["laplace", "cldp", "bitwise-randomised-response", "generalised-randomised-response"]
    summary = summarise_sweep(run_tasks(parse_sweep(document | {"mechanism": [{"name": name} for name in names]}).tasks(), tmp_path))
    assert summary["mechanism"].tolist() == names * 4
    assert (summary["lower_bound"] <= summary["worst_squared_error"]).all()
    assert (summary["lower_bound"] > 0.05 * summary["worst_squared_error"]).all()
    bounds = summary.groupby("high")["lower_bound"].unique()
    assert bounds[2.0] == pytest.approx(4 * bounds[1.0], rel=1e-12)


def test_rounds_share_the_budget(tmp_path: Path) -> None:
    mechanisms = [{"name": name} for name in ("gaussian", "distributed-discrete-gaussian", "cldp")]
    summary = summarise_sweep(results_of(tmp_path, epsilon=4, rounds=[1, 9], mechanism=mechanisms))
    once, often = (summary[summary["rounds"] == rounds].set_index("mechanism") for rounds in (1, 9))
    assert often["realised_epsilon"].between(3.99, 4).all()
    ratio = often["predicted_squared_error"] / once["predicted_squared_error"]
    # Nine rounds of Gaussian noise have nine times the variance, and so has the reference, so their ratio stays the same.
    assert ratio["gaussian"] == pytest.approx(9, rel=1e-6)
    assert often["central_error"].to_numpy() == pytest.approx(9 * once["central_error"].to_numpy(), rel=5e-6)
    assert 7 < ratio["distributed-discrete-gaussian"] < 10
    assert ratio["cldp"] > 9


def test_an_adjacency_that_a_guarantee_is_not_for_fails_by_itself(tmp_path: Path) -> None:
    mechanisms = [{"name": name} for name in ("gaussian", "cpsgd", "distributed-discrete-gaussian", "bitwise-randomised-response")]
    with pytest.raises(ValueError, match=r"6 of 12 tasks failed, .*: adjacency must be replace-one for gaussian, got") as caught:
        results_of(tmp_path, epsilon=2, adjacency="add-or-remove-one", mechanism=mechanisms)
    summary = summarise_sweep(caught.value.results)
    assert summary["mechanism"].tolist() == ["cpsgd", "distributed-discrete-gaussian"]
    assert set(summary["adjacency"]) == {"add-or-remove-one"}
    assert math.isfinite(summary["ratio_to_central"].sum())
