"""Columns that say of every row of a result table how it came about, so that a row can be repeated when nothing else is left of it."""

import pandas as pd

from ..design.contracts.guarantee import Guarantee
from ..design.tables.lookup_table import record_provenance


def guarantee_columns(guarantee: Guarantee) -> dict[str, object]:
    """Return a guarantee as columns of a tidy table.

    Parameters
    ----------
    guarantee : Guarantee
        What a mechanism promises.

    Returns
    -------
    dict
        ``epsilon``, ``delta``, ``metric``, ``adjacency`` and ``trust_model``.
    """
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "metric": guarantee.metric,
        "adjacency": guarantee.adjacency,
        "trust_model": guarantee.trust_model,
    }


def with_provenance(frame: pd.DataFrame, experiment: str, seed: int) -> pd.DataFrame:
    """Return a result table with its experiment's name, its seed and the versions of the software as further columns.

    Parameters
    ----------
    frame : DataFrame
        Results, one per row.
    experiment : str
        Name of the experiment.
    seed : int
        Root seed of everything random in it.

    Returns
    -------
    DataFrame
        The table with the columns ``experiment``, ``seed`` and ``version_<name>`` for each piece of software. How long it took is left
        out on purpose: the same seed and the same versions give the same table.
    """
    versions = {f"version_{name}": version for name, version in record_provenance(experiment, seed, 0.0).versions}
    return frame.assign(experiment=experiment, seed=seed, **versions)
