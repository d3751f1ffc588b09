"""Directed rounding of certified numbers to few digits."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context

# Limit below which numbers are written with a power of ten.
LEAST_EXPONENT = -3
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def rounded_up(value: float, digits: int) -> str:
    """Return the least number of the given significant digits at or above a finite number.

    There is at least one digit. The text has no trailing zeros, and writes small numbers with a power of ten.

    Examples
    --------
    >>> rounded_up(0.98516601, 4), rounded_up(1.0, 4), rounded_up(7.78461e-05, 4)
    ('0.9852', '1', '7.785×10⁻⁵')
    """
    return _rounded(value, Context(prec=digits, rounding=ROUND_CEILING))


def rounded_down(value: float, digits: int) -> str:
    """Return the largest number of the given significant digits at or below a finite number.

    The text has the form of `rounded_up`.

    Examples
    --------
    >>> rounded_down(0.98257599, 4), rounded_down(7.784999e-05, 4)
    ('0.9825', '7.784×10⁻⁵')
    """
    return _rounded(value, Context(prec=digits, rounding=ROUND_FLOOR))


def _rounded(value: float, context: Context) -> str:
    number = context.create_decimal_from_float(value).normalize(context)
    exponent = number.adjusted()
    if number and exponent < LEAST_EXPONENT:
        return f"{number.scaleb(-exponent):f}\N{MULTIPLICATION SIGN}10⁻{str(-exponent).translate(SUPERSCRIPTS)}"
    return f"{number:f}"
