"""Checks of arguments, which raise a ``ValueError`` for values out of range.

Each message names the argument, echoes its value and states the allowed range.
"""

import math
from collections.abc import Collection
from numbers import Integral, Real

# Largest sizes, for arguments without a smaller limit. Whole numbers up to LARGEST_EXACT_INTEGER are exact as floats.
LARGEST_EXACT_INTEGER = 2**53
MOST_CLIENTS = LARGEST_EXACT_INTEGER
# Largest number of items in a public list, and of items whose estimated frequencies are held as one vector.
MOST_CATEGORIES = 2**40
MOST_ITEMS = 2**31
# Largest number of coordinates of a vector in memory, and of a sum whose privacy is computed without holding it.
LARGEST_DIMENSION = 2**31
LARGEST_ACCOUNTED_DIMENSION = 2**40
# Largest magnitude of an interval's ends: variances are squares of distances, also to letters that may lie far beyond the ends.
LARGEST_END = 1e100
# The error also suggests the closest name if there are more names than this.
FEW_CHOICES = 6


def check_real(name: str, value: float, *, low: float, high: float) -> float:
    """Return `value` as a float if it is a finite number in [low, high].

    `name` is the argument's name in the message.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= value <= high or not math.isfinite(value):
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the same number."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def check_integer(name: str, value: int, *, low: int, high: int) -> int:
    """Return `value` as an int if it is a whole number in [low, high]."""
    # Testing abstract classes is slow, and most whole numbers are plain ints.
    whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    if not whole or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {value!r}")
    return int(value)


def check_probability(name: str, value: float) -> float:
    """Return `value` as a float if it is a number above 0 and below 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number above 0 and below 1, got {value!r}")
    return float(value)


def check_norm(value: float, *, high: float) -> float:
    """Return p of an L_p norm (argument ``norm``) as a float in [1, high], or infinity."""
    if isinstance(value, bool) or not isinstance(value, Real) or not (1 <= value <= high or value == math.inf):
        raise ValueError(f"norm must be a number from 1 to {high:g}, got {value!r}; the number inf stands for the largest coordinate")
    return float(value)


def check_choice(name: str, value: str, choices: Collection[str]) -> str:
    """Return `value` if it is among the choices; otherwise raise an error that lists them.

    Among many choices the error also suggests the closest.
    """
    if value not in choices:
        likely = suggestion(value, choices) if len(choices) > FEW_CHOICES else ""
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}{likely}")
    return value


def check_listed(name: str, value: str, listed: Collection[str], where: str) -> str:
    """Return `value` if it is among more names than a message can list.

    The error names the closest names, and the command or page that lists all.
    """
    if value not in listed:
        raise ValueError(f"{name} must be a name that {where} lists, got {value!r}{suggestion(value, listed)}")
    return value


def suggestion(value: str, names: Collection[str]) -> str:
    """Return the names closest to a mistyped name, as the end of a message, or ""."""
    from difflib import get_close_matches

    close = get_close_matches(value, names, cutoff=0.5) if isinstance(value, str) else []
    return f": did you mean {' or '.join(close)}?" if close else ""


def check_interval(name: str, interval: tuple[float, float]) -> tuple[float, float]:
    """Return `interval` as two floats with lower < upper.

    The squares of the ends, and of their difference, must stay within floats' range.
    """
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be two numbers (low, high), got {interval!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} must be two finite numbers with low < high, got {interval!r}")
    if not (low >= -LARGEST_END and high <= LARGEST_END and high - low >= 1 / LARGEST_END):
        ends = f"from {-LARGEST_END:g} to {LARGEST_END:g}, at least {1 / LARGEST_END:g} apart"
        raise ValueError(f"{name} must have ends {ends}, got {interval!r}")
    return low, high
