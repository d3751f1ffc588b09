"""Privacy as constraints on pairs of rows of a probability table.

The constraints are those of local and metric differential privacy.
"""

import math
from dataclasses import dataclass

from ...arguments import check_real

EPSILON_LOW, EPSILON_HIGH = 0.001, 20.0


@dataclass(frozen=True)
class RatioConstraint:
    """A bound on the ratio of two entries of a column of a probability table.

    Attributes
    ----------
    log_ratio : float
        Natural logarithm of the largest allowed ratio; positive.
    neighbours_only : bool
        False: the bound holds between every two rows (local differential privacy). True: it holds between neighbouring rows (metric
        differential privacy, where it implies the bounds between all other rows).
    """

    log_ratio: float
    neighbours_only: bool


def metric_power(metric: str | float | None) -> float | None:
    """Return p of the metric |y - y'|**p, at least 1, or None for local differential privacy.

    A metric is ``"l1"``, ``"l2"``, ``"l1.5"`` or another ``"l<p>"`` with p >= 1, the number p itself, or None, typed ``"none"``.
    """
    if metric is None or metric == "none":
        return None
    text = metric[1:] if isinstance(metric, str) and metric.startswith("l") else metric
    try:
        power = float(text)
    except (TypeError, ValueError):
        power = math.nan
    if isinstance(metric, bool) or not (1 <= power < math.inf):
        raise ValueError(f"metric must be none, l1, l2 or l<p> with a finite p >= 1, got {metric!r}")
    return power


def metric_name(metric: str | float | None) -> str | None:
    """Return the canonical name of a metric, such as ``"l1"``, or None for local privacy."""
    power = metric_power(metric)
    return None if power is None else f"l{power:.12g}"


def largest_epsilon(bits_in: int, metric: str | float | None) -> float:
    """Return the largest epsilon of tables: 20 over the whole grid, in units of the metric.

    The epsilon is 20 for local privacy and for p = 1, and 20 (2**bits_in - 1)**(p-1) for p > 1. With |y - y'|**p the constraint between
    neighbours is epsilon / (B-1)**p, so that the ends of the grid may differ by epsilon (B-1)**(1-p). Different p give the same tables at
    different epsilons.

    Examples
    --------
    >>> largest_epsilon(5, "l1"), largest_epsilon(5, "l2")
    (20.0, 620.0)
    """
    power = metric_power(metric)
    return EPSILON_HIGH * math.pow(2**bits_in - 1, (power or 1.0) - 1)


def ratio_constraint(epsilon: float, bits_in: int, metric: str | float | None) -> RatioConstraint:
    """Return the constraint of epsilon and a metric on a table with 2**bits_in rows.

    Epsilon is at most `largest_epsilon`. For |y - y'|**p with p >= 1 neighbours i, i+1 may differ by exp(epsilon / (B-1)**p). These bounds
    imply all others, since |i-i'| <= |i-i'|**p, so a column has B-1 constraints instead of B**2 (metric DP is eq. 3 of the MVU paper).
    """
    power = metric_power(metric)
    epsilon = check_real("epsilon", epsilon, low=EPSILON_LOW, high=largest_epsilon(bits_in, metric))
    if power is None:
        return RatioConstraint(epsilon, neighbours_only=False)
    return RatioConstraint(epsilon / (2**bits_in - 1) ** power, neighbours_only=True)


def typical_variance(constraint: RatioConstraint, input_count: int) -> float:
    """Return the order of magnitude of a constraint's variance, the unit of the programs.

    For local privacy the result is the variance of unbiased binary randomised response at an end point; for metric privacy, that of
    two-sided geometric noise on the grid. The result is right to within a factor of about ten, on the unit interval, and is no bound.
    """
    decay = math.exp(-constraint.log_ratio)
    geometric = decay / math.expm1(-constraint.log_ratio) ** 2
    return 2 * geometric / (input_count - 1) ** 2 if constraint.neighbours_only else geometric
