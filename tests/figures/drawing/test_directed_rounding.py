"""Numbers in few digits, rounded up or down on request."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from quietbits.figures.drawing.directed_rounding import rounded_down, rounded_up

DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def read_rounded(text: str) -> Fraction:
    number, _, exponent = text.partition("\N{MULTIPLICATION SIGN}10⁻")
    return Fraction(number) / 10 ** int(exponent.translate(DIGITS) or "0")


@given(st.floats(1e-12, 1e6), st.integers(1, 10))
def test_rounding_errs_to_the_side_that_is_asked_for(value: float, digits: int) -> None:
    low, high = read_rounded(rounded_down(value, digits)), read_rounded(rounded_up(value, digits))
    assert low <= Fraction(value) <= high
    # Relative to the number, a step of the last digit is at most 10**(1 - digits).
    assert high - low <= Fraction(10) ** (1 - digits) * high
