import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from quietbits.design.tables.lookup_table import LookupTable
from quietbits.design.tables.mvu import design_mvu
from quietbits.design.tables.randomised_response import (
    bitwise_randomised_response,
    generalised_randomised_response,
    is_bitwise_response,
    is_generalised_response,
)

EPSILONS = (0.001, 0.05, 0.5, 1.0, 5.0, 10.0, 20.0)


def assert_exact(table: LookupTable) -> None:
    assert (table.weights.sum(axis=1) == table.total).all()
    assert table.certificate.max_bias == 0.0
    assert table.certificate.realised_epsilon <= table.epsilon
    # Weights are whole numbers of units 2**-62, so rounding costs at most one unit of the smallest weight in epsilon.
    assert table.epsilon - table.certificate.realised_epsilon <= 600 / table.weights.min() + 1e-15 * table.epsilon
    assert list(table.alphabet) == sorted(set(table.alphabet))


@pytest.mark.parametrize("bits", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_generalised_randomised_response_is_exact(epsilon: float, bits: int) -> None:
    table = generalised_randomised_response(epsilon, bits)
    assert_exact(table)
    inputs, odds = 2**bits, math.exp(epsilon)
    assert table.probabilities == pytest.approx(((odds - 1) * np.eye(inputs) + 1) / (inputs + odds - 1), rel=1e-9)
    letters = (np.arange(inputs) / (inputs - 1) * (inputs + odds - 1) - inputs / 2) / (odds - 1)
    assert table.decode(np.arange(inputs)) == pytest.approx(letters, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("bits", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bitwise_randomised_response_is_exact(epsilon: float, bits: int) -> None:
    table = bitwise_randomised_response(epsilon, bits)
    assert_exact(table)
    odds = math.exp(epsilon / bits)
    one_bit = np.array([[odds, 1], [1, odds]]) / (1 + odds)
    product = np.ones((1, 1))
    for _ in range(bits):
        product = np.kron(product, one_bit)
    assert table.probabilities == pytest.approx(product, rel=1e-8)
    # The letters of one bit are -1 / (E_b - 1) and E_b / (E_b - 1), and bit j weighs 2**j / (2**bits - 1).
    digits = np.array([[y >> j & 1 for j in range(bits)] for y in range(2**bits)])
    expected = (digits * (odds + 1) - 1) / (odds - 1) @ (2.0 ** np.arange(bits)) / (2**bits - 1)
    assert table.decode(np.arange(2**bits)) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("design", [generalised_randomised_response, bitwise_randomised_response])
def test_nine_bits(design: type) -> None:
    assert_exact(design(20.0, 9))


@pytest.mark.parametrize("design", [generalised_randomised_response, bitwise_randomised_response])
def test_tables_in_closed_form_have_weights_of_62_bits_and_no_seed(design: Callable[..., LookupTable]) -> None:
    table = design(1.0, 2)
    assert table.total == 2**62
    assert (table.provenance.solver, table.provenance.seed) == ("closed form", 0)


def test_one_bit_is_the_mechanism_of_girgis() -> None:
    # On [-1, 1] the variance is ((E+1)/(E-1))**2 - x**2.
    table = generalised_randomised_response(1.0, 1, interval=(-1.0, 1.0))
    ends = np.array([-1.0, 1.0])
    assert table.variance(ends) == pytest.approx(((math.e + 1) / (math.e - 1)) ** 2 - ends**2, rel=1e-12)
    middle = np.linspace(-1, 1, 7)
    assert table.variance(middle) == pytest.approx(((math.e + 1) / (math.e - 1)) ** 2 - middle**2, rel=1e-12)


def test_the_row_of_a_bitwise_table_by_hand() -> None:
    table = bitwise_randomised_response(2.0, 2)
    row = [Fraction(int(weight), table.total) for weight in table.weights[1]]
    assert sum(weight * letter for weight, letter in zip(row, table.alphabet, strict=True)) == Fraction(1, 3)


@pytest.mark.parametrize("design", [generalised_randomised_response, bitwise_randomised_response])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0, "bits": 3}, "epsilon must be a number from 0.001 to 20, got 0.0"),
        ({"epsilon": math.nan, "bits": 3}, "epsilon must be a number from 0.001 to 20, got nan"),
        ({"epsilon": 1.0, "bits": 10}, "bits must be a whole number from 1 to 9, got 10"),
        ({"epsilon": 1.0, "bits": 3, "interval": (1.0, 1.0)}, "interval must be two finite numbers"),
    ],
)
def test_bad_arguments(design: type, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        design(**arguments)


@pytest.mark.parametrize("bits", [2, 3, 4])
def test_tables_of_bits_are_known_and_others_are_not(bits: int) -> None:
    table = bitwise_randomised_response(2.0, bits)
    assert is_bitwise_response(table)
    # Generalised randomised response gives all other letters the same weight, so it does not flip bits independently.
    assert not is_bitwise_response(generalised_randomised_response(2.0, bits))


@pytest.mark.parametrize("bits", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_table_is_of_its_own_kind(epsilon: float, bits: int) -> None:
    generalised, bitwise = generalised_randomised_response(epsilon, bits), bitwise_randomised_response(epsilon, bits)
    assert is_generalised_response(generalised)
    assert is_bitwise_response(bitwise)
    # With one bit, both mechanisms flip it.
    assert is_generalised_response(bitwise) == is_bitwise_response(generalised) == (bits == 1)


def two_bits(by_flips: tuple[int, int, int], kept: Fraction, total: int = 2**20) -> LookupTable:
    """Return a table of two bits with a weight per number of flips, and scaled letters."""
    flips = np.bitwise_count(np.arange(4)[:, None] ^ np.arange(4))
    letters = tuple(Fraction(1, 2) + (Fraction(y, 3) - Fraction(1, 2)) / kept for y in range(4))
    table = bitwise_randomised_response(1.0, 2)
    return dataclasses.replace(table, total=total, weights=np.array(by_flips)[flips], alphabet=letters)


@pytest.mark.parametrize(("excess", "independent"), [(-12, False), (-11, True), (0, True), (11, True), (12, False)])
def test_bits_are_independent_up_to_the_rounding_of_weights(excess: int, independent: bool) -> None:
    # Each bit is flipped with probability 1/4 for any excess. Rounding moves a weight by less than (bits + 1) 2**bits = 12.
    unit = 2**16
    table = two_bits((9 * unit + excess, 3 * unit - excess, unit + excess), Fraction(1, 2))
    assert is_bitwise_response(table) == independent
    assert not is_bitwise_response(dataclasses.replace(table, alphabet=(Fraction(0), *table.alphabet[1:])))


def test_bits_that_are_flipped_half_of_the_time_or_more_are_no_response() -> None:
    unit = 2**16
    assert not is_bitwise_response(two_bits((4 * unit,) * 3, Fraction(1)))
    assert not is_bitwise_response(two_bits((unit, 3 * unit, 9 * unit), Fraction(-1, 2)))
    assert not is_generalised_response(two_bits((4 * unit,) * 3, Fraction(1)))
    # The true input is the rarest letter, and (d - o) a_i + o sum_j a_j = total i / 3 gives these letters.
    other = two_bits((unit, 5 * unit, 5 * unit), Fraction(1))
    letters = tuple((Fraction(16 * i, 3) - 10) / -4 for i in range(4))
    assert not is_generalised_response(dataclasses.replace(other, alphabet=letters))


def test_other_tables_are_not_taken_for_randomised_response() -> None:
    generalised, bitwise = generalised_randomised_response(2.0, 2), bitwise_randomised_response(2.0, 2)
    assert is_generalised_response(generalised)
    assert is_bitwise_response(bitwise)
    # The tables have another shape, or are square and of another kind.
    for other in (design_mvu(2.0, 1, 2), design_mvu(2.0, 2, 2)):
        assert not is_generalised_response(other)
        assert not is_bitwise_response(other)
    assert not is_generalised_response(bitwise)
    assert not is_bitwise_response(generalised)
    # The changed tables have the same first row and two other rows exchanged, or the letters of a mirrored table.
    assert not is_generalised_response(dataclasses.replace(generalised, weights=generalised.weights[[0, 2, 1, 3]]))
    assert not is_generalised_response(dataclasses.replace(generalised, alphabet=generalised.alphabet[::-1]))
    assert not is_bitwise_response(dataclasses.replace(bitwise, weights=bitwise.weights[[0, 2, 1, 3]]))
