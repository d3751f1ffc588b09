"""Summary of a sweep: each setting's mean squared error, and a trusted server's error."""

import numpy as np
import pandas as pd

from ...shown import in_figures, listed, results_first
from .budgets import with_flags

# Columns that determine a problem, beside the mechanism, in the order in which tables show varying columns.
SETTINGS = (
    *("population", "nonzero", "scale", "clients", "dimension", "categories", "low", "high", "norm", "clip_norm", "rounds", "dropout"),
    *("delta", "epsilon"),
)
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
        The settings in their order, with `repetitions`. The averages over repetitions are `mean_squared_error` (squared L2 distance of the
        estimate from the mean of the clipped inputs) with its `standard_error` (missing for one repetition), `unclipped_squared_error`,
        `predicted_squared_error` and `worst_squared_error` (from the mechanism's own variances), `zero_squared_error` (of answering zero,
        or the interval's middle), `clipped_share`, `wrapped_coordinates` (missing where nothing is added up modulo M); `ratio_to_central`
        is the mean squared error over `central_error` (missing if there is no such noise). `is_reference` and `flag` mark rows that do not
        keep the whole budget (`with_flags`).
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
    # The column needs a type, also if no setting has such noise.
    summary["central_error"] = summary["central_error"].astype(float)
    summary = summary.assign(ratio_to_central=summary["mean_squared_error"] / summary["central_error"])
    return with_flags(summary[results_first(summary)])


def usefulness_warnings(summary: pd.DataFrame) -> tuple[str, ...]:
    """Return sentences on rows worse than the answer without messages, and on clipped inputs.

    The list omits sentences without cases.
    """
    sentences = []
    useless = summary[summary["mean_squared_error"] > summary["zero_squared_error"]]
    if len(useless):
        names = listed(list(dict.fromkeys(useless["label"])))
        sentences.append(f"In {len(useless)} of {len(summary)} rows answering zero, or the middle, is closer: of {names}.")
    if (clipped := summary["clipped_share"].max()) > 0:
        sentences.append(f"Up to {in_figures(100 * clipped)} % of a row's inputs were clipped; errors are from the clipped ones.")
    return tuple(sentences)
