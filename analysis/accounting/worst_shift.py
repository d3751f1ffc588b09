"""Which pair of vectors binomial noise hides least, among all that sensitivities in three norms allow."""

import math
from dataclasses import dataclass

from ...arguments import LARGEST_ACCOUNTED_DIMENSION, check_integer
from ...solvers.divergences.cpsgd_theorem import check_rate, check_scale, check_sensitivity

# How far from a whole number of steps a sensitivity may be, relative to itself.
WHOLE = 1e-9


@dataclass(frozen=True)
class WorstShift:
    """The pair of vectors that binomial noise hides least among those that sensitivities allow, if it is known.

    Attributes
    ----------
    shift : int or None
        Steps of the scale by which coordinates differ; None where the worst pair is not known.
    coordinates : int or None
        Number of coordinates that differ; None where the worst pair is not known.
    reason : str or None
        Why it is not known.
    """

    shift: int | None
    coordinates: int | None
    reason: str | None


def worst_shift(probability: float, scale: float, dimension: int, l1: float, l2: float, linf: float) -> WorstShift:
    """Return which pair of vectors binomial noise hides least, among all that sensitivities, in the vectors' units, allow.

    Vectors of neighbours differ by v steps, v whole numbers with ``|v_i| <= linf / scale``, ``sum |v_i| <= l1 / scale`` and
    ``sum v_i**2 <= (l2 / scale)**2``. A larger shift of a coordinate reveals more, as binomial noise has a log-concave distribution. So
    the worst v is known

    - in one dimension;
    - where every coordinate can be at its largest at the same time;
    - where no coordinate can change by more than one step: as many as possible do;
    - for probability 1/2, where the L1 sensitivity is no more than the largest coordinate: shifts s and t of two coordinates reveal no
      more than one shift by s + t, by group privacy (Dong, Roth, Su 2022, *Gaussian differential privacy*, theorem 2.14) and because
      trade-off functions of log-concave noise add up exactly, f_t(1 - f_s) = f_(s+t).

    It has zero coordinates where neighbours do not differ.

    Examples
    --------
    >>> worst_shift(0.5, 0.5, 10, 3.0, 3.0, 3.0)
    WorstShift(shift=6, coordinates=1, reason=None)
    """
    probability, scale = check_rate(probability), check_scale(scale)
    dimension = check_integer("dimension", dimension, low=1, high=LARGEST_ACCOUNTED_DIMENSION)
    l1 = check_sensitivity("l1_sensitivity", l1)
    l2 = check_sensitivity("l2_sensitivity", l2)
    linf = check_sensitivity("linf_sensitivity", linf)
    steps = linf / scale
    if abs(steps - round(steps)) > WHOLE * max(1.0, steps):
        return WorstShift(None, None, f"linf must be a whole multiple of scale for the exact account, got {steps:.9g} times the scale")
    total, squares = whole_steps(l1 / scale), whole_steps((l2 / scale) ** 2)
    largest = min(round(steps), total, math.isqrt(squares))
    if largest == 0:
        return WorstShift(0, 0, None)
    coordinates = min(dimension, total // largest, squares // largest**2)
    if largest == 1 or coordinates == dimension or (total == largest and probability == 0.5):
        return WorstShift(largest, coordinates, None)
    return WorstShift(None, None, "l1, l2 and linf do not tell which vectors are the worst")


def whole_steps(number: float) -> int:
    """Return the largest whole number that is not above a number of 0 or more, up to rounding errors.

    Examples
    --------
    >>> whole_steps(0.3 / 0.1), whole_steps(2.9)
    (3, 2)
    """
    return math.floor(number * (1 + WHOLE) + WHOLE)
