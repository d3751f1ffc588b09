"""Checks of arguments: each raises a ``ValueError`` that names the argument, echoes its value and says what would do."""

import math
from collections.abc import Collection
from numbers import Integral, Real


def check_real(name: str, value: float, *, low: float, high: float) -> float:
    """Return `value` as a float if it is a finite number in [low, high].

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : float
        The value that the caller passed.
    low, high : float
        Smallest and largest value that will do.

    Returns
    -------
    float
        The value.

    Raises
    ------
    ValueError
        If `value` is not a real number, is NaN or infinite, or lies outside [low, high].
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


def check_integer(name: str, value: int, *, low: int, high: int) -> int:
    """Return `value` as an int if it is a whole number in [low, high].

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : int
        The value that the caller passed.
    low, high : int
        Smallest and largest value that will do.

    Returns
    -------
    int
        The value.

    Raises
    ------
    ValueError
        If `value` is not an integer or lies outside [low, high].
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {value!r}")
    return int(value)


def check_probability(name: str, value: float) -> float:
    """Return `value` as a float if it is a number above 0 and below 1.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : float
        The value that the caller passed.

    Raises
    ------
    ValueError
        If `value` is not a real number, or not strictly between 0 and 1.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number above 0 and below 1, got {value!r}")
    return float(value)


def check_norm(value: float, *, high: float) -> float:
    """Return p of an L_p norm as a float if it is a number in [1, high], or infinity.

    Parameters
    ----------
    value : float
        The value that the caller passed as ``norm``.
    high : float
        Largest finite value.

    Raises
    ------
    ValueError
        If `value` is neither.
    """
    return math.inf if value == math.inf else check_real("norm", value, low=1.0, high=high)


def check_choice(name: str, value: str, choices: Collection[str]) -> str:
    """Return `value` if it is one of some names.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : str
        The value that the caller passed.
    choices : collection of str
        The names that will do, in the order in which the message lists them.

    Returns
    -------
    str
        The value.

    Raises
    ------
    ValueError
        If `value` is none of them.
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return value


def check_interval(name: str, interval: tuple[float, float]) -> tuple[float, float]:
    """Return `interval` as two floats if it is finite and not empty.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    interval : tuple of float
        Lower and upper end.

    Returns
    -------
    tuple of float
        The two ends.

    Raises
    ------
    ValueError
        If there are not two finite ends with lower < upper.
    """
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be two numbers (low, high), got {interval!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise ValueError(f"{name} must be two finite numbers with low < high, got {interval!r}")
    return low, high
