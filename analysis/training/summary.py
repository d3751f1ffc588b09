"""Summary of a grid of trainings: the final results of each setting, averaged over seeds."""

from numbers import Real

import numpy as np
import pandas as pd

from ...shown import in_figures, results_first
from ..sweeps.budgets import with_flags

# Settings that a short table shows if they differ between runs.
VARIED = (
    *(
        "data",
        "split",
        "dirichlet_alpha",
        "model",
        "sampling",
        "clients",
        "clients_per_round",
        "rounds",
        "local_epochs",
        "batch",
        "client_rate",
    ),
    *("server", "server_rate", "momentum", "clip", "norm", "clipping", "target_epsilon", "round_epsilon", "secret_sampling", "download"),
)
# Settings that state a budget; tables show the epsilon of all rounds instead.
OF_A_BUDGET = ("target_epsilon", "round_epsilon")
# Settings that must be equal for a comparison of accuracies; other settings are choices of a training.
PROBLEM = ("data", "split", "dirichlet_alpha", "clients")
# Columns that differ between seeds of a setting.
OF_A_RUN = ("run", "seed", "round", "accuracy", "clip_norm", "participants", "messages", "bytes_up", "bytes_down")


def short_value(value: object) -> str:
    """Return a setting or result as short text for tables."""
    if value is None or value != value:
        return "\N{EN DASH}"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return in_figures(float(value), 4) if isinstance(value, Real) else str(value)


def with_totals(results: pd.DataFrame) -> pd.DataFrame:
    """Add columns `megabytes_up` and `megabytes_down`, of all rounds of the run so far."""
    totals = results.groupby("run", sort=False)[["bytes_up", "bytes_down"]].cumsum() / 1e6
    return results.assign(megabytes_up=totals["bytes_up"], megabytes_down=totals["bytes_down"])


def summarise_training(results: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each setting with its final results, averaged over seeds.

    `accuracy` after the last round is averaged over `repetitions` seeds, with its `standard_error`.

    Parameters
    ----------
    results : DataFrame
        Table of `run_training`.

    Returns
    -------
    DataFrame
        The settings in their order, with average `epsilon` after the last round, and average `megabytes_up` and `megabytes_down` of all
        rounds.
    """
    if results.empty:
        raise ValueError("results must have rows, got none: every training has failed")
    last = with_totals(results).groupby("run", sort=False).tail(1)
    shared = [
        name for name in last.columns if name not in (*OF_A_RUN, "megabytes_up", "megabytes_down") and not name.startswith("version_")
    ]
    setting = last.groupby(shared, sort=False, dropna=False).ngroup()
    summary = last.loc[~setting.duplicated(), shared].reset_index(drop=True)
    accuracy = last.groupby(setting, sort=False)["accuracy"].agg(["count", "mean", "std"])
    bytes_sent = last.groupby(setting, sort=False)[["megabytes_up", "megabytes_down"]].mean()
    summary = summary.assign(
        repetitions=accuracy["count"].to_numpy(),
        accuracy=accuracy["mean"].to_numpy(),
        standard_error=(accuracy["std"] / np.sqrt(accuracy["count"])).to_numpy(),
        **{name: bytes_sent[name].to_numpy() for name in ("megabytes_up", "megabytes_down")},
    )
    return summary[results_first(summary)]


def with_budget_flags(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary with the columns of `with_flags`, and the budget as `epsilon`.

    The budget is the target of all rounds, or the epsilon of all rounds if the setting states noise or a single round's epsilon.
    """
    budget = summary["target_epsilon"].astype(float).fillna(summary["epsilon"])
    return with_flags(summary.assign(realised_epsilon=summary["epsilon"], realised_delta=summary["delta"], epsilon=budget))
