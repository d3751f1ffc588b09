"""Parameters of exact samplers: rational numbers, taken from whole numbers, fractions and floats without rounding."""

from fractions import Fraction
from numbers import Rational

from ...arguments import check_real


def rational_parameter(name: str, value: float | Fraction, *, low: float, high: float) -> Fraction:
    """Return the exact rational number from `low` to `high` that an argument stands for; a float counts as the binary fraction that it is.

    Examples
    --------
    >>> rational_parameter("sigma", 0.1, low=0.0, high=1.0)
    Fraction(3602879701896397, 36028797018963968)
    """
    if isinstance(value, Rational) and not isinstance(value, bool):
        # Through Python's own whole numbers: those of numpy would overflow later on.
        exact = Fraction(int(value.numerator), int(value.denominator))
        if not low <= exact <= high:
            raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
        return exact
    return Fraction(check_real(name, value, low=low, high=high))
