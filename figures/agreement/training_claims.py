"""Numbers that claims about trainings share: differences of accuracies, and the least size of a training."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...shown import in_figures, listed
from .claims import Need

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
