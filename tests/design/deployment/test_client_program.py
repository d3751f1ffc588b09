import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietbits.design.deployment.client_program import ClientProgram, bits_below, float_at_least, probability_word
from quietbits.design.deployment.clients.items import randomised_item
from quietbits.errors import InfeasibleError


@given(st.floats(1e-3, 30.0))
def test_words_bracket_the_probability(epsilon: float) -> None:
    low, high = (probability_word(lambda odds: 1 / (odds + 1), epsilon, up=up) for up in (False, True))
    # Interval arithmetic of fractions: exp(epsilon) by its series, with a bound on the rest.
    terms, total, number = Fraction(1), Fraction(1), 0
    exact = Fraction(epsilon)
    while number < 4 * epsilon + 60:
        number += 1
        terms = terms * exact / number
        total += terms
    least, most = total, total + 2 * terms
    assert Fraction(low, 2**64) <= 1 / (most + 1)
    assert Fraction(high, 2**64) >= 1 / (least + 1)
    assert 0 <= high - low <= 1


@given(st.fractions(0, 100, max_denominator=10**9))
def test_floats_are_rounded_up(fraction: Fraction) -> None:
    decimal = Decimal(fraction.numerator) / Decimal(fraction.denominator)
    rounded = float_at_least(decimal)
    assert Decimal(rounded) >= decimal
    assert Decimal(math.nextafter(rounded, -math.inf)) < decimal


@pytest.mark.parametrize(("number", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (2**20, 20), (2**20 + 1, 21)])
def test_bits_below(number: int, bits: int) -> None:
    assert bits_below(number) == bits


def test_a_program_must_keep_its_epsilon() -> None:
    constants = {"kept": 2**63, "categories": 2}
    ratio = 1 + Fraction(2 * 2**63, 2**63)
    ClientProgram(randomised_item, constants, 1, likelihood_ratio=ratio, epsilon=math.nextafter(math.log(3), 2))
    with pytest.raises(InfeasibleError, match="epsilon of the client's whole-number probabilities must be at most"):
        ClientProgram(randomised_item, constants, 1, likelihood_ratio=ratio, epsilon=1.0)
