"""Columns from which a reader can reproduce a row of a result table."""

import pandas as pd

from ..design.contracts.guarantee import Guarantee
from ..design.tables.provenance import record_provenance


def guarantee_columns(guarantee: Guarantee) -> dict[str, object]:
    """Return a guarantee as columns of a tidy table."""
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "metric": guarantee.metric,
        "adjacency": guarantee.adjacency,
        "trust_model": guarantee.trust_model,
    }


def with_provenance(frame: pd.DataFrame, experiment: str, seed: int) -> pd.DataFrame:
    """Return a result table with columns for experiment, seed and software versions.

    The columns are ``experiment``, ``seed`` and ``version_<name>`` for each piece of software. There is no column for the duration, so that
    the same seed and versions give the same table.
    """
    versions = {f"version_{name}": version for name, version in record_provenance(experiment, seed, 0.0).versions}
    return frame.assign(experiment=experiment, seed=seed, **versions)
