"""Comparison of the budgets of rows.

The module marks references, flags rows that keep another budget, and finds the best of equal budgets.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...shown import in_figures, listed

# Columns of a guarantee; comparing rows that differ in one of them causes a warning.
GUARANTEE = ("epsilon", "delta", "adjacency", "trust_model")
WORDS = {"epsilon": "epsilon", "delta": "delta", "adjacency": "adjacency", "trust_model": "trust model"}
# Share of the budget below which a row's realised epsilon is flagged.
WHOLE_BUDGET = 0.99
# Largest number of listed values of an epsilon or delta; more values are stated as a range.
MOST_LISTED = 5
NO_EPSILON = "no finite ε"


def with_flags(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with columns `is_reference` and `flag`.

    Parameters
    ----------
    rows : DataFrame
        Rows with the budget `epsilon` and `delta`, and with `realised_epsilon` and `realised_delta` of the mechanism as it was built.

    Returns
    -------
    DataFrame
        The rows. `is_reference` marks rows without a finite realised epsilon, which are not private or have no proven guarantee. `flag` is
        empty for a row that keeps its whole budget, and otherwise states the realised guarantee.
    """
    realised = rows["realised_epsilon"].astype(float)
    reference = ~np.isfinite(realised)
    unequal = ~reference & (realised < WHOLE_BUDGET * rows["epsilon"].astype(float))
    # A delta below the budget's delta is a stronger guarantee, which needs no flag if all rows have it.
    different = rows["realised_delta"].where(~reference).groupby(rows["delta"].to_numpy()).transform("nunique")
    stricter = ~reference & (different > 1) & (rows["realised_delta"] < rows["delta"])
    flags = np.where(reference, NO_EPSILON, "").tolist()
    kept, deltas = realised.tolist(), rows["realised_delta"].tolist()
    less, lower = unequal.tolist(), stricter.tolist()
    for place in np.flatnonzero(unequal | stricter).tolist():
        parts = [f"ε = {in_figures(kept[place])}"] if less[place] else []
        flags[place] = ", ".join([*parts, f"δ = {in_figures(deltas[place])}"] if lower[place] else parts)
    return rows.assign(is_reference=reference, flag=flags)


def best_rows(rows: pd.DataFrame, value: str, settings: Sequence[str], *, largest: bool = False) -> pd.Series:
    """Return indicators of the best rows among rows with equal settings and equal guarantees.

    Parameters
    ----------
    rows : DataFrame
        Rows of `with_flags`; references are never best.
    value : str
        Column to compare.
    settings : sequence of str
        Columns that must be equal beside the guarantee.
    largest : bool
        Whether the largest value, and not the least, is the best.

    Returns
    -------
    Series
        True for the best row of each group with at least two rows.
    """
    compared = rows[~rows["is_reference"] & rows[value].notna()]
    best = pd.Series(data=False, index=rows.index)
    if len(compared):
        groups = compared.groupby([*dict.fromkeys((*settings, *GUARANTEE))], sort=False, dropna=False)[value]
        chosen = (groups.idxmax() if largest else groups.idxmin())[groups.size() > 1]
        best[chosen.to_numpy()] = True
    return best


def differing_guarantees(rows: pd.DataFrame, settings: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of the guarantee in which private rows of equal settings differ."""
    private = rows[~rows["is_reference"]]
    names = [name for name in GUARANTEE if name not in settings]
    groups = private.groupby(list(settings), sort=False, dropna=False)
    return tuple(name for name in names if (groups[name].nunique(dropna=False) > 1).any())


def guarantee_sentence(rows: pd.DataFrame) -> str:
    """Return the guarantees of the private rows in a sentence."""
    private = rows[~rows["is_reference"]]
    if not len(private):
        return "No row has a finite epsilon."
    models, adjacencies = (list(dict.fromkeys(private[name])) for name in ("trust_model", "adjacency"))
    budget = ", ".join(f"{name} {_range(sorted(private[name].unique()))}" for name in ("epsilon", "delta"))
    plural = "s" * (len(models) > 1)
    return f"Guarantees: {listed(adjacencies)} adjacency, {listed(models)} trust model{plural}, {budget}."


def budget_warnings(rows: pd.DataFrame, settings: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for each way in which the budgets of compared rows differ."""
    sentences = []
    if differing := differing_guarantees(rows, settings):
        names = listed([WORDS[name] for name in differing])
        sentences.append(f"Rows differ in {names}: compare only those of the same {names}.")
    less, delta = (rows["flag"].str.contains(sign, regex=False) for sign in ("ε = ", "δ = "))
    if less.any():
        sentences.append(f"Flag ε: these rows keep a smaller epsilon than the budget's ({_labels(rows[less])}).")
    if delta.any():
        sentences.append(f"Flag δ: these rows keep a smaller delta than the budget's, a stronger promise ({_labels(rows[delta])}).")
    if rows["is_reference"].any():
        named = _labels(rows[rows["is_reference"]])
        sentences.append(f"Without a finite epsilon, and so only references: {named}.")
    return tuple(sentences)


def _range(values: Sequence[float]) -> str:
    shown = [in_figures(value) for value in values]
    return listed(shown) if len(shown) <= MOST_LISTED else f"{shown[0]} to {shown[-1]}"


def _labels(rows: pd.DataFrame) -> str:
    return listed(list(dict.fromkeys(rows["label"])))
