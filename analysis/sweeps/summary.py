"""A sweep's results in short: for each setting the mean squared error over the repetitions, and what a trusted server would pay."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...design.contracts.gaussian import central_gaussian_error
from ...design.contracts.norm_ball import NormBall
from ..catalogue.vector_mechanisms import MechanismSpec
from .store import GUARANTEE_COLUMNS, TASK_COLUMNS

SETTING = [name for name in [*TASK_COLUMNS.names, *GUARANTEE_COLUMNS.names] if name not in ("repetition", "seed")]


def summarise_sweep(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per setting of a sweep.

    Parameters
    ----------
    results : DataFrame
        What `run_sweep` returns, or ``results.parquet`` holds.

    Returns
    -------
    DataFrame
        The settings in their order, with `label` (the mechanism in words), `repetitions`, `mean_squared_error` (squared L2 distance of the
        estimate from the mean of the clipped vectors, averaged), `standard_error` of it (missing for one repetition),
        `predicted_squared_error` and `worst_squared_error` (from the mechanism's own variances), `clipped_share`, `central_error` and
        `ratio_to_central`: the error of Gaussian noise that a trusted server would add for the same (epsilon, delta) and adjacency, and
        the mean squared error over it (missing where delta is 0, for which there is no such noise).

    Raises
    ------
    ValueError
        If there are no rows.
    """
    if results.empty:
        raise ValueError("results must have rows, got none: every task of the sweep has failed")
    measured = {metric: rows.groupby(SETTING, sort=False, dropna=False)["value"] for metric, rows in results.groupby("metric")}
    errors = measured["squared_error"].agg(["count", "mean", "std"])
    summary = errors.index.to_frame(index=False).assign(
        repetitions=errors["count"].to_numpy(),
        mean_squared_error=errors["mean"].to_numpy(),
        standard_error=(errors["std"] / np.sqrt(errors["count"])).to_numpy(),
        predicted_squared_error=measured["predicted_squared_error"].mean().to_numpy(),
        worst_squared_error=measured["worst_squared_error"].mean().to_numpy(),
    )
    summary["clipped_share"] = measured["clipped"].mean().to_numpy() / summary["clients"].to_numpy()
    summary["central_error"] = [_central_error(row) for row in summary.to_dict("records")]
    summary["ratio_to_central"] = summary["mean_squared_error"] / summary["central_error"]
    summary.insert(0, "label", [_label(row) for row in summary.to_dict("records")])
    return summary


def _central_error(row: Mapping[Hashable, Any]) -> float:
    if row["delta"] == 0:
        return math.nan
    ball = NormBall(row["dimension"], row["norm"], row["clip_norm"])
    return central_gaussian_error(ball, row["clients"], row["epsilon"], row["delta"], row["adjacency"])


def _label(row: Mapping[Hashable, Any]) -> str:
    numbers = {name: None if pd.isna(row[name]) else int(row[name]) for name in ("bits_in", "bits_out", "bits")}
    metric, dithering = (None if pd.isna(row[column]) else str(row[column]) for column in ("table_metric", "dithering"))
    return str(MechanismSpec(row["mechanism"], **numbers, metric=metric, dithering=dithering))
