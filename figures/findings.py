"""Findings in titles: named quantities with their ranges in the drawn table."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .drawing.directed_rounding import rounded_down, rounded_up

DIGITS = 3


@dataclass(frozen=True)
class Finding:
    """A quantity of a figure's table, which the title states by its range.

    Titles contain no other numbers or comparisons.

    Attributes
    ----------
    quantity : str
        Noun phrase that names the numbers.
    numbers : callable
        Function that returns the numbers from the drawn table; missing numbers do not apply.
    """

    quantity: str
    numbers: Callable[[pd.DataFrame], ArrayLike]

    def range(self, table: pd.DataFrame) -> tuple[float, float] | None:
        """Least and largest number, or None if the table has none."""
        numbers = np.asarray(self.numbers(table), dtype=float)
        numbers = numbers[~np.isnan(numbers)]
        return (float(numbers.min()), float(numbers.max())) if numbers.size else None

    def text(self, table: pd.DataFrame) -> str:
        """Return the quantity and its range; numbers that are not whole are rounded outward."""
        ends = self.range(table)
        return f"{self.quantity}: {'none' if ends is None else range_in_words(*ends)}"


def range_in_words(low: float, high: float) -> str:
    """Return a range in words, with both ends rounded outward.

    Examples
    --------
    >>> range_in_words(1.2345, 7.0001), range_in_words(3.0, 3.0), range_in_words(1234.5, float("inf"))
    ('1.23 to 7.01', '3', '1,230 to infinite')
    """
    ends = [_end(low, rounded_down), _end(high, rounded_up)]
    return " to ".join(dict.fromkeys(ends))


def _end(value: float, rounded: Callable[[float, int], str]) -> str:
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    text = f"{value:.0f}" if value.is_integer() else rounded(value, DIGITS)
    return f"{float(text):,.0f}" if text.lstrip("-").isdigit() else text


def ratios(upper: pd.DataFrame, lower: pd.DataFrame, by: Sequence[str], column: str) -> "pd.Series[float]":
    """Return the ratios of a column between selected rows and other rows with the same `by`.

    Rows without a counterpart are omitted.
    """
    pairs = upper.merge(lower[[*by, column]], on=list(by), suffixes=("", "_of_lower"))
    ratio: pd.Series[float] = pairs[column] / pairs[f"{column}_of_lower"]
    return ratio
