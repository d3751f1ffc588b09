"""Summary of a sweep: each setting's mean squared error, and a trusted server's error."""

import numpy as np
import pandas as pd

# Columns that do not belong to a setting.
MEASURED = ("repetition", "seed", "metric", "value")
AVERAGED = {
    "unclipped_squared_error": "unclipped_squared_error",
    "predicted_squared_error": "predicted_squared_error",
    "worst_squared_error": "worst_squared_error",
    "zero_squared_error": "zero_squared_error",
    "wrapped_coordinates": "wrapped_coordinates",
}


def summarise_sweep(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per setting of a sweep of means.

    Parameters
    ----------
    results : DataFrame
        Results of `run_tasks` for `MeanTask`s, or ``results.parquet``.

    Returns
    -------
    DataFrame
        The settings in their order, with `repetitions`; averages over them: `mean_squared_error` (squared L2 distance of the estimate from
        the mean of the clipped inputs) with its `standard_error` (missing for one repetition), `unclipped_squared_error`,
        `predicted_squared_error` and `worst_squared_error` (from the mechanism's own variances), `zero_squared_error` (of answering
        zero, or the interval's middle), `clipped_share`, `wrapped_coordinates`
        (missing where nothing is added up modulo M); and `ratio_to_central`, the mean squared error over `central_error` (missing where
        there is no such noise).
    """
    if results.empty:
        raise ValueError("results must have rows, got none: every task of the sweep has failed")
    columns = [name for name in results.columns if name not in MEASURED and not name.startswith("version_")]
    setting = results.groupby(columns, sort=False, dropna=False).ngroup()
    summary = results.loc[~setting.duplicated(), columns].reset_index(drop=True)
    measured = {metric: rows.groupby(setting)["value"] for metric, rows in results.groupby("metric")}
    errors = measured["squared_error"].agg(["count", "mean", "std"])
    averages = {name: measured[metric].mean().reindex(errors.index) for metric, name in AVERAGED.items() if metric in measured}
    summary = summary.assign(
        repetitions=errors["count"],
        mean_squared_error=errors["mean"],
        standard_error=errors["std"] / np.sqrt(errors["count"]),
        **{name: averages.get(name, np.nan) for name in AVERAGED.values()},
        clipped_share=measured["clipped"].mean() / summary["clients"],
    )
    # The column needs a type if no setting has such noise.
    summary["central_error"] = summary["central_error"].astype(float)
    return summary.assign(ratio_to_central=summary["mean_squared_error"] / summary["central_error"])
