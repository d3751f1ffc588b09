"""Numbers that claims about trainings share: differences of accuracies, and the least size of a training."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...shown import in_figures, listed
from ..findings import Finding
from ..training.grids import data_title
from .claims import NOT_COMPARABLE, Need, PaperClaim, within

POINTS = 100


def chosen(frame: pd.DataFrame, wanted: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows with the given values; a missing column has no row."""
    if any(column not in frame for column in wanted):
        return frame.iloc[:0]
    selected = pd.Series(True, index=frame.index)
    for column, value in wanted.items():
        selected &= frame[column] == value
    return frame[selected]


def trained(rounds: int, repetitions: int) -> Need:
    """Return the need for trainings of a number of rounds, whose accuracies are means of several seeds.

    Accuracies of shorter trainings show who starts faster, and those of a seed vary by chance.
    """

    def lacking(table: pd.DataFrame) -> str:
        words = []
        for column, least in (("rounds", rounds), ("repetitions", repetitions)):
            largest = table[column].max() if column in table else np.nan
            if not largest >= least:
                name = "seeds" if column == "repetitions" else column
                words.append(f"{least} {name} or more (the table has {'none' if np.isnan(largest) else in_figures(largest)})")
        return listed(words) if words else ""

    return Need(lacking)


def within_budget(frame: pd.DataFrame, upper: Mapping[str, Any], lower: Mapping[str, Any]) -> Sequence[float]:
    """Return by how many points the best accuracy of one mechanism exceeds another's within the same epsilon.

    There is a number for each data set, sampling and epsilon of the first mechanism, if the second one has a run of that epsilon or less.
    Epsilon is amplified where batches are drawn in secret.
    """
    numbers = []
    for (_, sampling), own in frame.groupby(["data", "sampling"], sort=False):
        column = "epsilon_amplified" if sampling == "fixed" else "epsilon"
        first, second = (chosen(own, wanted).dropna(subset=["accuracy"]) for wanted in (upper, lower))
        for epsilon in sorted(first[column].unique()):
            better, other = (part.loc[part[column] <= epsilon, "accuracy"].max() for part in (first, second))
            if not np.isnan(other):
                numbers.append(POINTS * (better - other))
    return numbers


def on_papers_data(names: Sequence[str]) -> Need:
    """Return the need for one of a paper's data sets, of which the embedded digits are none."""

    def lacking(table: pd.DataFrame) -> str:
        return (
            ""
            if table["data"].isin(list(names)).any()
            else f"the paper's data, given by --data ({listed([data_title(name) for name in names])})"
        )

    return Need(lacking, NOT_COMPARABLE)


def papers_accuracies(source: str, column: str, tolerance: float, data: Sequence[str]) -> PaperClaim:
    """Return the claim that the paper's printed accuracies are those of its runs, in per cent."""

    def distances(table: pd.DataFrame) -> "pd.Series[float]":
        own = table[table["data"].isin(list(data))]
        distance: pd.Series[float] = POINTS * own["accuracy"] - own[column].astype(float)
        return distance

    return PaperClaim(
        statement="The runs reach the printed accuracies.",
        source=source,
        measure=Finding("Points of accuracy above the printed ones", distances),
        criterion=within(-tolerance, tolerance),
        reason="Settings that the paper leaves open were chosen here.",
        needs=(on_papers_data(data), trained(1000, 1)),
    )


def differences(frame: pd.DataFrame, upper: Mapping[str, Any], lower: Mapping[str, Any], by: Sequence[str]) -> "pd.Series[float]":
    """Return by how many points accuracies of selected rows exceed others' with the same `by`.

    Missing values of `by` are equal.
    """
    first, second = (chosen(frame, wanted) for wanted in (upper, lower))
    columns = [name for name in by if name in frame]
    best = second.groupby(columns, dropna=False, as_index=False)["accuracy"].max()
    pairs = first.groupby(columns, dropna=False, as_index=False)["accuracy"].max().merge(best, on=columns, suffixes=("", "_of_lower"))
    difference: pd.Series[float] = POINTS * (pairs["accuracy"] - pairs["accuracy_of_lower"])
    return difference
