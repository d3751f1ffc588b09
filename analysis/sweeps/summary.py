"""A sweep's results in short: for each setting the mean squared error over the repetitions, and what a trusted server would pay."""

import numpy as np
import pandas as pd

# Columns that are not of a setting.
MEASURED = ("repetition", "seed", "metric", "value")
AVERAGED = {
    "squared_error": "mean_squared_error",
    "unclipped_squared_error": "unclipped_squared_error",
    "predicted_squared_error": "predicted_squared_error",
    "worst_squared_error": "worst_squared_error",
    "wrapped_coordinates": "wrapped_coordinates",
}


def summarise_sweep(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per setting of a sweep of means.

    Parameters
    ----------
    results : DataFrame
        What `run_tasks` returns for `MeanTask`s, or ``results.parquet`` holds.

    Returns
    -------
    DataFrame
        The settings in their order, with `repetitions`; averages over them: `mean_squared_error` (squared L2 distance of the estimate from
        the mean of the clipped inputs) with its `standard_error` (missing for one repetition), `unclipped_squared_error`,
        `predicted_squared_error` and `worst_squared_error` (from the mechanism's own variances), `clipped_share`, `wrapped_coordinates`
        (missing where nothing is added up modulo M); and `ratio_to_central`, the mean squared error over `central_error` (missing where
        there is no such noise).
    """
    if results.empty:
        raise ValueError("results must have rows, got none: every task of the sweep has failed")
    columns = [name for name in results.columns if name not in MEASURED and not name.startswith("version_")]
    setting = results.groupby(columns, sort=False, dropna=False).ngroup()
    summary = results.loc[~setting.duplicated(), columns].reset_index(drop=True)
    values = results["value"].groupby([setting, results["metric"]])
    means, counts, deviations = values.mean().unstack(), values.count().unstack(), values.std().unstack()
    repetitions = counts["squared_error"].to_numpy().astype(int)
    averages = {name: means[metric].to_numpy() if metric in means else np.nan for metric, name in AVERAGED.items()}
    summary = summary.assign(
        repetitions=repetitions,
        **averages,
        standard_error=deviations["squared_error"].to_numpy() / np.sqrt(repetitions),
        clipped_share=means["clipped"].to_numpy() / summary["clients"].to_numpy(),
    )
    # Without such noise for any setting the column has no type.
    summary["central_error"] = summary["central_error"].astype(float)
    return summary.assign(ratio_to_central=summary["mean_squared_error"] / summary["central_error"])
