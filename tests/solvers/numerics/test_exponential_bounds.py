"""Bounds on exp(-x) hold, and are tight, against mpmath at many more digits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from quietbits.solvers.numerics.exponential_bounds import exponential_bounds


def exponents() -> list[Fraction]:
    rng = np.random.default_rng(0)
    magnitudes = 2.0 ** rng.uniform(-80, 9, size=400)
    rationals = [Fraction(int(top), int(bottom)) for top, bottom in rng.integers(1, 10**6, size=(400, 2))]
    return [Fraction(0), Fraction(1), Fraction(1, 16), Fraction(10**30 + 1, 10**30), *map(Fraction, magnitudes.tolist()), *rationals]


@pytest.mark.parametrize("bits", [1, 7, 64, 128, 1000])
def test_bounds_enclose_the_exponential(bits: int) -> None:
    with mpmath.workprec(bits + 200):
        for exponent in exponents():
            value = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * mpmath.mpf(2) ** bits
            low, high = exponential_bounds(exponent, bits)
            assert 0 <= low <= value <= high <= 2**bits
            assert high - low <= 2


@pytest.mark.parametrize("exponent", [Fraction(64), Fraction(10**9), Fraction(10**40, 3)])
def test_what_is_below_one_unit_is_between_zero_and_one(exponent: Fraction) -> None:
    assert exponential_bounds(exponent, 64) == (0, 1)
