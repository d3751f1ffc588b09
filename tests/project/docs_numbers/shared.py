"""Formats of the numbers on all pages."""

import math


def up(value: float, digits: int) -> str:
    """Return a number rounded up to digits after the point, so that bounds on privacy stay true."""
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"


def spaced(value: float) -> str:
    """Return a whole number with spaces between thousands."""
    return f"{round(value):,}".replace(",", " ") if abs(value) >= 10_000 else f"{round(value)}"


def short(value: float, digits: int = 2) -> str:
    """Return a number with the given number of digits, without zeros in the exponent: 1.6e-3."""
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"
