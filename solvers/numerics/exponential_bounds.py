"""Rigorous bounds on exp(-x) for rational x, in integers of any length: what an exact sampler decides close calls with."""

from fractions import Fraction


def exponential_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return whole numbers (low, high) with low <= 2**bits exp(-exponent) <= high, at most 2 apart, for an exponent of at least 0.

    The exponent is halved until it is below 1/16, the alternating Taylor series is summed in whole numbers, and the result is squared
    as often as the exponent was halved; every step is rounded outward.

    Examples
    --------
    >>> low, high = exponential_bounds(Fraction(1, 2), 64)
    >>> high - low <= 2, round(low / 2**64, 12)
    (True, 0.606530659713)
    """
    if exponent >= bits:
        return 0, 1
    halvings = int(exponent).bit_length() + 4
    # A squaring at most doubles the absolute error; 16 bits more leave it below half a unit of the result.
    precision = bits + halvings + 16
    reduced = (exponent.numerator << precision) // (exponent.denominator << halvings)
    term = total = 1 << precision
    terms = 0
    while term:
        terms += 1
        term = (term * reduced >> precision) // terms
        total += -term if terms % 2 else term
    # Cutting `reduced` short costs 1 unit; each term is at most 2 units below its exact value, and those left out sum to less than 3.
    slack = 2 * terms + 4
    low, high = total - slack, min(total + slack, 1 << precision)
    for _ in range(halvings):
        low, high = low * low >> precision, -(-high * high >> precision)
    surplus = precision - bits
    return low >> surplus, -(-high >> surplus)
