"""Heavy hitters: items whose estimated frequency is above what noise alone would reach, and how many of them are truly frequent."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ...arguments import MOST_CLIENTS, check_choice, check_integer, check_real
from ...arrays import IntegerArray
from ...design.contracts.mechanism import FrequencyMechanism

RATES = ("item", "any")


@dataclass(frozen=True)
class Threshold:
    """Estimates above `frequency` are reported.

    Attributes
    ----------
    frequency : float
        A quantile of the normal distribution times the standard error of the estimate for an item that nobody holds.
    item_rate : float
        Probability, to the normal approximation of the error, with which such an item is reported. Where few messages support an item,
        below some tens, the true one is larger: twice and more for randomised response with as many items as clients.
    any_rate : float
        Bound on the probability that any of them is: `item_rate` times the number of items (Bonferroni), at most 1.
    """

    frequency: float
    item_rate: float
    any_rate: float


@dataclass(frozen=True, eq=False)
class HeavyHitters:
    """Which items were reported, beside those that are truly frequent.

    Attributes
    ----------
    threshold : Threshold
        What their estimates are above.
    reported : ndarray of int64
        Items, the most frequent by their estimates first.
    true_count : int
        Number of items whose true frequency is at least the level.
    found_count : int
        How many of these were reported.
    false_rate : float
        Share of the items that nobody holds which were reported, to be compared with `Threshold.item_rate`; NaN if there are none.
    """

    threshold: Threshold
    reported: IntegerArray
    true_count: int
    found_count: int
    false_rate: float

    @property
    def precision(self) -> float:
        """Share of those reported that are truly frequent; NaN if nothing was reported."""
        return self.found_count / len(self.reported) if len(self.reported) else math.nan

    @property
    def recall(self) -> float:
        """Share of the truly frequent items that were reported; NaN if there are none."""
        return self.found_count / self.true_count if self.true_count else math.nan


def reporting_threshold(mechanism: FrequencyMechanism, clients: int, rate: float, per: str = "any") -> Threshold:
    """Return the threshold with a given false-positive rate.

    Parameters
    ----------
    mechanism : FrequencyMechanism
        Its `other_variance` is that of an estimate for an item that nobody holds, or a bound, which errs toward a higher threshold.
    clients : int
        Number of clients.
    rate : float
        The rate, from 1e-15 to 0.5.
    per : str
        ``"any"``: at most that probability for all items together; ``"item"``: that probability for each.

    Examples
    --------
    >>> from quietbits.design.frequencies.subset_selection import subset_selection
    >>> threshold = reporting_threshold(subset_selection(1.0, 10_000), 1_000_000, 0.05)
    >>> round(threshold.frequency, 5), round(threshold.item_rate, 9)
    (0.00848, 5e-06)
    """
    check_choice("per", per, RATES)
    rate = check_real("rate", rate, low=1e-15, high=0.5)
    clients = check_integer("clients", clients, low=1, high=MOST_CLIENTS)
    item_rate = rate / mechanism.categories if per == "any" else rate
    # By symmetry: 1 - rate would be rounded.
    quantile = -float(ndtri(item_rate))
    return Threshold(quantile * math.sqrt(mechanism.other_variance / clients), item_rate, min(1.0, item_rate * mechanism.categories))


def heavy_hitters(estimates: ArrayLike, frequencies: ArrayLike, threshold: Threshold, level: float | None = None) -> HeavyHitters:
    """Return the items that are reported, and how many of them truly have a frequency of at least a level.

    Parameters
    ----------
    estimates, frequencies : array_like of shape (categories,)
        Estimated and true frequencies.
    threshold : Threshold
        As `reporting_threshold` returns it.
    level : float or None
        The level, from 1e-15 to 1; None for the threshold itself, at which an item is reported half of the time.

    Examples
    --------
    >>> found = heavy_hitters([0.52, 0.2, 0.11, -0.1, 0.05], [0.5, 0.3, 0.0, 0.2, 0.0], Threshold(0.1, 1e-3, 5e-3))
    >>> found.reported.tolist(), round(found.precision, 3), round(found.recall, 3), found.false_rate
    ([0, 1, 2], 0.667, 0.667, 0.5)
    """
    estimated, true = np.asarray(estimates, dtype=float), np.asarray(frequencies, dtype=float)
    if estimated.ndim != 1 or estimated.shape != true.shape:
        raise ValueError(f"estimates and frequencies must have one number for each item, got the shapes {estimated.shape} and {true.shape}")
    level = min(1.0, threshold.frequency) if level is None else level
    least = check_real("level", level, low=1e-15, high=1.0)
    above = np.flatnonzero(estimated > threshold.frequency)
    reported = above[np.argsort(-estimated[above], kind="stable")]
    unheld = true == 0
    return HeavyHitters(
        threshold,
        reported,
        int(np.count_nonzero(true >= least)),
        int(np.count_nonzero(true[reported] >= least)),
        float(np.mean(estimated[unheld] > threshold.frequency)) if unheld.any() else math.nan,
    )
